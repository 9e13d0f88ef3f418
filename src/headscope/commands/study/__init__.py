"""`headscope study`: a paper's results and one's own, side by side."""
