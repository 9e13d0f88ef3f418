"""A page inside a notebook."""

import html

HEIGHT = 900
"""Pixels of the frame."""


def frame_page(page: str, title: str) -> str:
    """An element that holds a whole page, HTML.

    The page stands in the element itself: it needs no server, and stays in a notebook that is exported. The frame lets
    it run its script and save files, and keeps it from everything else in the notebook.

    Args:
        page: HTML that loads nothing from elsewhere.
        title: the name of the frame, for screen readers.
    """
    content = html.escape(page, quote=False).replace("'", "&#39;")
    return (
        f"<iframe title='{html.escape(title)}' sandbox='allow-scripts allow-downloads' "
        f"style='width: 100%; height: {HEIGHT}px; border: 0' srcdoc='{content}'></iframe>"
    )
