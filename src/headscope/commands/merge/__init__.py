"""`headscope merge`: join the shards of a corpus into one head table."""
