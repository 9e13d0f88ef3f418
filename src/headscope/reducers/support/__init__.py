"""What several reducers share: folds, permutations, attention between words, and how gold is read."""
