"""The attention maps of the tiny models, as the models themselves return them, worked out once for all tests."""

from collections.abc import Callable
from functools import cache
from typing import Any

import tiny
import witnesses
from headscope.capture.model.model import Model
from headscope.corpora import Document


@cache
def make(family: str) -> Model:
    return Model.from_module(*tiny.make(family), name=family)


@cache
def see_all(family: str, documents: tuple[Document, ...]) -> dict[str, list[witnesses.Seen]]:
    """The maps of some documents by attention type."""
    seen: dict[str, list[witnesses.Seen]] = {}
    for document in documents:
        for attention_type, maps in witnesses.see(*tiny.make(family), document).items():
            seen.setdefault(attention_type, []).append(maps)
    return seen


@cache
def ask(witness: Callable[..., Any], family: str, documents: tuple[Document, ...], attention_type: str) -> Any:
    """What a witness says of the maps of one attention type."""
    return witness(see_all(family, documents)[attention_type])
