"""`headscope list`: list reducers, corpora, studies and tasks by name."""
