"""The local page on which attention maps are labelled by eye: files that a browser reads."""

from importlib.resources import files

FILES = {"page.html": "text/html", "page.css": "text/css", "page.js": "text/javascript"}
"""The files of the page, and their types."""

PAGE, *STYLES = FILES
"""The page itself, and the files that it loads, which are the same for every folder."""


def read_page(name: str) -> bytes:
    """One of `FILES`."""
    return (files(__package__) / name).read_bytes()
