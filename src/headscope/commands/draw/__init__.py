"""`headscope draw`: the figures of an atlas that is there."""
