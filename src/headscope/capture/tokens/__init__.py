"""Words and the tokens that a model reads for them, one by one and in padded batches."""
