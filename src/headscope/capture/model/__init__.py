"""A loaded model and what identifies it: weights, configuration, tokenizer, sizes, masks."""
