"""`headscope align`: find the heads of the cross-attention that are the word alignment."""
