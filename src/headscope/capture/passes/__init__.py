"""Work that runs its own forward passes: views, projections, the residual stream, the stream of verified batches."""
