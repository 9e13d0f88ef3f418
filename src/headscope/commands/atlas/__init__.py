"""`headscope atlas`: measure all that the annotation of a corpus allows, and show the results on one page."""
