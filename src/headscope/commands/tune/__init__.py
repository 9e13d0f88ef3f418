"""`headscope tune`: a folder of runs."""
