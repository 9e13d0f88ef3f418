"""Two tiers of tests: `pytest` runs the short one, in minutes; `pytest -m full` runs the rest, marked ``full``.

Every witness, law and refusal is in the short tier once. A test that is repeated for many families of models is there
for three of them; what needs a fixture that takes long, and what is marked ``full`` by hand, is not. In the tests of
some packages the short tier also checks the shapes of tensors at each call, which doubles the time of a test.
"""

from collections.abc import Iterable, Iterator
from itertools import groupby

import pytest

SHORT_FAMILIES = ("bert", "mistral", "bart")
"""An encoder; a decoder with grouped queries and a window; an encoder-decoder."""

FULL_FIXTURES = frozenset({"browser", "cluster", "ontogum", "smollm2"})
"""Fixtures that start a program of somebody else, read a whole corpus, or convert a model."""

CHECKED_PACKAGES = ("headscope.capture", "headscope.reducers", "headscope.runner")
"""Packages whose tensors have shapes that could be mixed up; in their own tests the short tier checks each call."""


def checks_shapes(item: pytest.Item) -> bool:
    """Return whether a test is one of a package whose shapes are checked.

    Of a test that is repeated for families, the repetition with an encoder is not: it has as many queries as keys, and
    as many heads of both, so that shapes cannot tell which of them a tensor has.
    """
    in_checked_package = item.path.parent.name in {package.rpartition(".")[2] for package in CHECKED_PACKAGES}
    return in_checked_package and _get_family(item) != "bert"


def list_full(items: Iterable[pytest.Item]) -> Iterator[pytest.Item]:
    """Yield the tests that are in the long tier though nobody has marked them."""
    for _, cases in groupby(items, key=lambda item: (item.path, getattr(item, "originalname", item.name))):
        together = list(cases)
        families = {item: _get_family(item) for item in together}
        short = [family for family in families.values() if family in SHORT_FAMILIES] or [*families.values()][:1]
        for item, family in families.items():
            if family not in short or FULL_FIXTURES.intersection(getattr(item, "fixturenames", ())):
                yield item


def _get_family(item: pytest.Item) -> str | None:
    """Return the family of models that a test is parametrised with, if it is."""
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    return parameters.get("family", parameters.get("model_type"))
