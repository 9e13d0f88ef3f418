"""`headscope explore`: the page of an atlas on this machine, with the model behind it."""
