"""`headscope disable`: measure the effect of disabling each head of a model on a task."""
