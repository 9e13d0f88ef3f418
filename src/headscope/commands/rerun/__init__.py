"""`headscope rerun`: measure a head table again, by the request that it records."""
