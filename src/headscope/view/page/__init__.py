"""Pages about an atlas or a comparison, each a self-contained HTML file."""

from headscope.view.page.atlas_page import Live, render_page, write_page
from headscope.view.page.comparison_page import write_comparison_page
from headscope.view.page.text_data import describe_text, measure_texts

__all__ = ["Live", "describe_text", "measure_texts", "render_page", "write_comparison_page", "write_page"]
