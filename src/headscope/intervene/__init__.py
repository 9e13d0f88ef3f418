"""What changes heads while a model runs, and what that does to it."""
