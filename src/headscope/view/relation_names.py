"""The relations of Universal Dependencies in plain words (https://universaldependencies.org/u/dep): `relations.tsv`."""

from collections.abc import Mapping
from importlib import resources
from typing import NamedTuple


class RelationName(NamedTuple):
    """A relation in plain words.

    Attributes:
        dependent, dependents: the word that depends, and several of them.
        head: the word on which it depends.
        about: a sentence that explains it.
        example: words between which it holds and, behind a colon, the two: from the dependent to its head.
    """

    dependent: str
    dependents: str
    head: str
    about: str
    example: str


def read_names(file: str) -> Mapping[str, dict[str, str]]:
    """The rows of a file of names beside this one, by what stands in their first column."""
    text = resources.files("headscope.view").joinpath(file).read_text(encoding="utf-8")
    heading, *lines = (line.split("\t") for line in text.splitlines())
    return {key: dict(zip(heading[1:], names, strict=True)) for key, *names in lines}


RELATIONS = {code: RelationName(**names) for code, names in read_names("relations.tsv").items()}
"""All relations of version 2, subtypes that are common, and `all` of a head table, by their codes."""


def find_relation(code: str) -> RelationName | None:
    """The name of a relation; of one that pools its subtypes, ``nsubj:*``, and of an unknown subtype, that of its base.

    None of what is no relation of Universal Dependencies.
    """
    base, _, subtype = code.partition(":")
    name = RELATIONS.get(code) or RELATIONS.get(base)
    if name is None or code in RELATIONS:
        return name
    kind = " of any kind" if subtype == "*" else f" ({subtype})"
    return name._replace(dependent=f"{name.dependent}{kind}", dependents=f"{name.dependents}{kind}")
