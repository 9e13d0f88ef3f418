"""Figures of head tables and comparisons. Each function returns a ``matplotlib.figure.Figure`` and does not use pyplot.

==================  ================================================================
`draw_layers`       special tokens, offsets, entropies, distances and gradients by layer
`draw_heatmaps`     a score of each head by layer, also on two corpora
`draw_reported`     reported heads with their intervals and their rivals
`draw_lengths`      the score of reported heads on links of each length
`draw_head_map`     the map of the heads, and the tree of their clusters
`draw_head_sets`    sets of heads: their scores, and the loss of the model without them
`draw_replication`  the lift of reported heads here and on another corpus
`draw_changes`      changes of each head and layer by fine-tuning, with the control
`draw_runs`         runs and the model before: similarity, classes of tokens, pairs
`draw_effects`      the effect of disabling each head or layer
`draw_lesions`      the effect of disabling sets of heads
`draw_ledger`       the attention of each head to the parts of a prompt
`draw_patterns`     the patterns of attention maps
`draw_probes`       the accuracy of probes
`draw_attention`    the attention of heads on one text
`draw_atlas`        the figures of an atlas, by title
`draw_outliers`     the names of heads that are outliers in their layer
`intervals`         rows of dots with intervals, with a look for each verdict
`style`             the style of all figures, and `save`
==================  ================================================================
"""

from headscope.view.figures.style import save

__all__ = ["save"]
