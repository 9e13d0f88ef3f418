"""`headscope profile`: find the roles of the heads of a decoder."""
