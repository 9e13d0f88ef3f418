"""`headscope explore`: serve the page of an atlas on this machine, with a model that answers its questions."""
