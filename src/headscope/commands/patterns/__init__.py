"""`headscope patterns`: the patterns of the attention maps of each head, and labelling maps by eye."""
