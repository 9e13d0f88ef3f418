"""`headscope tune`: fine-tune a model several times, into a folder of runs."""
