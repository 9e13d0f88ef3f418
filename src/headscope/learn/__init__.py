"""What fits weights: a task and its control, tuned on for several seeds."""
