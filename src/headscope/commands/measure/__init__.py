"""`headscope measure`: measure a head table with the named reducers, or the sums of a shard of a corpus."""
