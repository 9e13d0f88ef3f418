"""The pages of the documentation, and the code that they show."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
REFERENCE = DOCS / "reference"
"""The folder of pages that `tools/make_reference.py` writes, which is not in the repository."""
PAGES = sorted([*ROOT.glob("*.md"), *(page for page in DOCS.glob("**/*.md") if page.parent != REFERENCE)])


def blocks(page: Path, language: str) -> list[str]:
    """The blocks of code in a language."""
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), flags=re.DOTALL)


def check_links(page: Path) -> list[Path]:
    """Assert that each link of a page leads to a file, and to a heading if it names one; return the files."""
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    links = re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)", text)
    assert len(links) == text.count("](")
    targets = []
    for path, anchor in (link for link in links if not link[0].startswith("https://")):
        targets.append((page.parent / path).resolve() if path else page)
        assert targets[-1].exists(), path
        if anchor:
            assert anchor in list_anchors(targets[-1]), f"{path}#{anchor}"
    return targets


def list_anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
