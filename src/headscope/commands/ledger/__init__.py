"""`headscope ledger`: measure the attention of each head to each part of a prompt while the model writes."""
