"""What a browser would see of a page."""

import base64
import gzip
import json
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import playwright.sync_api as playwright


class Page(HTMLParser):
    """What a browser would see: each element with its attributes and the text right inside it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None], list[str]]] = []
        self.open: list[int] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "br":
            self.handle_data("\n")
            return
        self.elements.append((tag, dict(attrs), []))
        if tag not in ("meta", "link", "img", "input"):
            self.open.append(len(self.elements) - 1)

    def handle_endtag(self, tag: str) -> None:
        assert self.elements[self.open.pop()][0] == tag

    def handle_data(self, data: str) -> None:
        for position in self.open:
            self.elements[position][2].append(data)

    def find(self, tag: str, **attributes: str) -> list[tuple[dict[str, str | None], str]]:
        return [
            (attrs, "".join(text))
            for name, attrs, text in self.elements
            if name == tag and all(attrs.get(key) == value for key, value in attributes.items())
        ]

    def data(self) -> dict[str, Any]:
        ((_, text),) = self.find("script", id="atlas-data")
        return json.loads(gzip.decompress(base64.b64decode(text)))


def rows_of_reported(parsed: Page) -> list[list[str]]:
    """Texts of the cells of the table of reported heads."""
    rows: list[list[str]] = []
    inside = False
    for tag, attrs, text in parsed.elements:
        if tag == "table":
            inside = attrs.get("class") == "sortable"
        elif inside and tag == "tr":
            rows.append([])
        elif inside and tag in ("td", "th"):
            rows[-1].append("".join(text).strip())
    return [row for row in rows[1:] if len(row) > 1]


def codes_of_reported(parsed: Page) -> list[str]:
    """The codes of the rows of that table, which stand small behind their plain names."""
    return [str(attrs["data-code"]) for attrs, _ in parsed.find("th", scope="row") if "data-code" in attrs]


Browse = Callable[..., Page]
OpenPage = Callable[..., playwright.Page]
