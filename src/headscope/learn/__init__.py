"""Fitting weights: tasks and their controls, and fine-tuning on them with several seeds."""
