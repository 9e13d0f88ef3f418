"""``atlas.html``: the grid of heads, the reported heads and the figures in one file that needs no network."""

from headscope.view.page.atlas import render_page, write_page

__all__ = ["render_page", "write_page"]
