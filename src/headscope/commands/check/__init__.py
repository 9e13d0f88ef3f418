"""`headscope check`: check whether the heads of another model still do what they did."""
