"""Figures of head tables and comparisons; each function returns a ``matplotlib.figure.Figure`` that belongs to nobody.

==================  ================================================================
`draw_layers`       special tokens, offsets, entropies, distances and gradients by layer
`draw_heatmaps`     a score of each head by layer, also on two corpora
`draw_reported`     reported heads with their intervals and their rivals
`draw_lengths`      how reported heads score on links of each length
`draw_head_map`     the map of the heads, and the tree in which they join
`draw_head_sets`    sets of heads: their scores, and the loss of the model without them
`draw_replication`  the lift of reported heads here and on another corpus
`draw_changes`      changes of each head and layer by fine-tuning, with the control
`draw_runs`         runs and the model before: similarity, classes of tokens, pairs
`draw_effects`      what disabling each head or layer changes
`draw_lesions`      what disabling sets of heads changes
`draw_ledger`       what each head reads of a prompt
`draw_patterns`     the patterns of attention maps
`draw_probes`       what probes get right
`draw_atlas`        the figures of an atlas, by title
`draw_outliers`     the names of heads far out of their layer
`intervals`         rows of dots with intervals, which look like their verdicts
`style`             the style of all, and `save`
==================  ================================================================
"""

from headscope.view.figures.style import save

__all__ = ["save"]
