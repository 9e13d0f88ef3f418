"""`headscope export`: write heads to a file that you can pass on."""
