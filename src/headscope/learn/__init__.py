"""Fitting weights: tasks, their controls, and fine-tuning on them with several seeds."""
