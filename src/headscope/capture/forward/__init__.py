"""One forward pass that observes, edits and differentiates heads, and its checks."""
