"""`headscope probe`: what the attention of all heads together says of the links between words."""
