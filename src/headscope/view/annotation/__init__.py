"""The local page for labelling attention maps by eye: the files that a browser reads."""

from importlib.resources import files

FILES = {"page.html": "text/html", "page.css": "text/css", "page.js": "text/javascript"}
"""The files of the page, with their media types."""

PAGE, *STYLES = FILES
"""The name of the page, and the names of the other files that the page loads."""


def read_page(name: str) -> bytes:
    """Return the content of a file of the page, by its name in `FILES`."""
    return (files(__package__) / name).read_bytes()
