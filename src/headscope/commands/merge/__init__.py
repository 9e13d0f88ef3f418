"""`headscope merge`: the shards of a corpus joined into one head table."""
