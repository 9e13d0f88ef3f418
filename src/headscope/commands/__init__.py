"""The commands, a folder each: a request, which is checked without torch, and functions that run and print it."""
