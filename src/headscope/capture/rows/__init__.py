"""Rows of attention: with their matrix, or in one fused pass without it, on a processor or a GPU."""
