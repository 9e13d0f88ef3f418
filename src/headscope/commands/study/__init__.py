"""`headscope study`: a paper's results and yours, side by side."""
