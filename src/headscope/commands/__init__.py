"""The commands, a folder each: a request, which is checked without torch, and what runs it and prints the result."""
