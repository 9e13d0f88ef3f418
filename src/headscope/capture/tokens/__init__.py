"""Words and the tokens that a model reads for them, text by text and in padded batches."""
