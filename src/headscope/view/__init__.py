"""Head table -> pictures: figures as files, and a page that needs no network. No torch here.

============  =============================================================================
`figures`     special tokens, offsets and entropies by layer
`heatmaps`    how each head scores on a relation, a scope, an aspect, by layer
`lengths`     how reported heads do on links of each length
`reported`    what a table reports, in rows: what the page and the terminal show
`page`        ``atlas.html``: the grid of heads, the reported heads, the figures
`changes`     what fine-tuning changes in each head and layer, task beside control
`families`    runs beside the model before: similarity, classes of tokens, paired dots
`comparison`  a comparison in words: a page, a summary on the terminal, CSV files
============  =============================================================================
"""
