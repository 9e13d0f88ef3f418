"""`headscope draw`: draw the figures of an existing atlas."""
