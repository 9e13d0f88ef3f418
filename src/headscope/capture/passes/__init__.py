"""Work that needs its own passes: views, projections, the residual stream, and the stream of verified batches."""
