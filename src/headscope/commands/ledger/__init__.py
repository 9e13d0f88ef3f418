"""`headscope ledger`: what each head reads from each part of a prompt while the model writes."""
