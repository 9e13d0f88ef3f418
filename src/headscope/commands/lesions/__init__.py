"""`headscope lesions`: what the heads of each relation are needed for."""
