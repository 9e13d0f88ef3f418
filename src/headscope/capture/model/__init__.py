"""A loaded model and whatever identifies it: weights, configuration, tokenizer, sizes, masks."""
