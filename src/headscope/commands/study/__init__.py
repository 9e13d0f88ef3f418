"""`headscope study`: measure what a paper measured, and show its results next to yours."""
