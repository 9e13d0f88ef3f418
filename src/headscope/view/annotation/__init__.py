"""The local page for labelling attention maps by eye: the files that a browser reads."""

from importlib.resources import files

FILES = {"page.html": "text/html", "page.css": "text/css", "page.js": "text/javascript"}
"""The files of the page, with their media types."""

PAGE, *STYLES = FILES
"""The page, and the other files that it loads, which are the same for every folder."""


def read_page(name: str) -> bytes:
    """Return the content of a file, one of `FILES`."""
    return (files(__package__) / name).read_bytes()
