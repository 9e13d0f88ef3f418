"""Changes of heads while a model runs, and their effects on the model."""
