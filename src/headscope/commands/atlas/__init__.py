"""`headscope atlas`: everything that a corpus allows, measured, tested, drawn and put on a page."""
