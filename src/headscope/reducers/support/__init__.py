"""Code that several reducers share: folds, permutations, attention between words, and readers of the gold."""
