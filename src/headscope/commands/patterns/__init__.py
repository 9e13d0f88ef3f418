"""`headscope patterns`: classify the attention maps of each head, and label maps by eye."""
