"""The commands, one folder each: a request, which is checked before torch is loaded, and functions that run it."""
