"""The commands, a folder each: a request, which is checked without torch; what runs it; what prints the result."""
