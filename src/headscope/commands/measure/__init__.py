"""`headscope measure`: a head table of the reducers that are named, or the sums of a shard of a corpus."""
