"""`headscope probe`: measure how well the attention of all heads together predicts the links between words."""
