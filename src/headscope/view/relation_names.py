"""The relations of Universal Dependencies in plain words (https://universaldependencies.org/u/dep): `relations.tsv`."""

from collections.abc import Mapping
from importlib import resources
from typing import NamedTuple


class RelationName(NamedTuple):
    """A relation in plain words.

    Attributes:
        dependent, dependents: The name of the dependent, in the singular and in the plural.
        head: The name of its syntactic head.
        about: A sentence that explains the relation.
        example: Some words with the relation and, after a colon, the dependent and its head.
    """

    dependent: str
    dependents: str
    head: str
    about: str
    example: str


def read_names(file: str) -> Mapping[str, dict[str, str]]:
    """Return the rows of a file of names in this folder, by the value in their first column."""
    text = resources.files("headscope.view").joinpath(file).read_text(encoding="utf-8")
    heading, *lines = (line.split("\t") for line in text.splitlines())
    return {key: dict(zip(heading[1:], names, strict=True)) for key, *names in lines}


RELATIONS = {code: RelationName(**names) for code, names in read_names("relations.tsv").items()}
"""All relations of version 2, common subtypes, and the row `all` of a head table, by code."""


def find_relation(code: str) -> RelationName | None:
    """Return the name of a relation, or None for a code that is not a relation of Universal Dependencies.

    A code that pools subtypes, such as ``nsubj:*``, and an unknown subtype get the name of their base, with an
    addition.
    """
    base, _, subtype = code.partition(":")
    name = RELATIONS.get(code) or RELATIONS.get(base)
    if name is None or code in RELATIONS:
        return name
    kind = " of any kind" if subtype == "*" else f" ({subtype})"
    return name._replace(dependent=f"{name.dependent}{kind}", dependents=f"{name.dependents}{kind}")
