"""Rows of attention: with their matrix, in one fused pass without it, on a processor or a GPU."""
