"""`headscope profile`: the roles of the heads of a decoder."""
