"""`headscope rerun`: a head table measured again, as it records."""
