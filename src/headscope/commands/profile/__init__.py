"""`headscope profile`: what the heads of a decoder do."""
