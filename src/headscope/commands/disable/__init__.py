"""`headscope disable`: what disabling each head of a model changes on a task."""
