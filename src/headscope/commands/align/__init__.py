"""`headscope align`: which heads of the cross-attention are the word alignment."""
