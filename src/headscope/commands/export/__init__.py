"""`headscope export`: heads in a file to hand on."""
