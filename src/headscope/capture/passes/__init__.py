"""What needs a pass of its own: views, projections, the residual stream, and the stream of verified batches."""
