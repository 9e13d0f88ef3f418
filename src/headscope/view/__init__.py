"""Head table -> pictures: figures as files, and a page that needs no network. No torch here.

==========  ===============================================================================
`figures`   special tokens, offsets and entropies by layer; a heatmap for each relation
`page`      ``atlas.html``: the grid of heads, the reported heads, the figures
==========  ===============================================================================
"""
