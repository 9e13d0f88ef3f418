"""`headscope lesions`: find the minimal pairs for which the heads of each relation are needed."""
