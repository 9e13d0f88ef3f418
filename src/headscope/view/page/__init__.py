"""Pages: one self-contained HTML file each, of an atlas or of a comparison."""

from headscope.view.page.atlas import render_page, write_page
from headscope.view.page.comparison import write_comparison_page

__all__ = ["render_page", "write_comparison_page", "write_page"]
