"""Figures of head tables and comparisons; each function returns a ``matplotlib.figure.Figure`` that belongs to nobody.

=============  ===============================================================
`layers`       special tokens, offsets, entropies, distances and gradients by layer
`heatmaps`     a score of each head by layer, also on two corpora
`reported`     reported heads with their intervals, beside their rivals
`lengths`      how reported heads score on links of each length
`head_map`     the map of the heads, and the tree in which they join
`replication`  the lift of reported heads here and on another corpus
`changes`      what fine-tuning changes in each head and layer, task beside control
`runs`         runs beside the model before: similarity, classes of tokens, paired dots
`outliers`     the names of heads far out of their layer
`intervals`    rows of dots with intervals, which look like their verdicts
`style`        the style of all, and `save`
=============  ===============================================================
"""

from headscope.view.figures.style import save

__all__ = ["save"]
