"""Prompts with documents and a question about them, as JSON Lines: the text that a model reads before it answers.

A line is an object; ``system``, ``answer`` and ``gold`` are optional::

    {"system": "Answer briefly.", "documents": ["Ann lives in Bern.", "Eve lives in Rome."],
     "question": "Where does Eve live?", "answer": "Rome", "gold": 2}

The documents of a prompt are also read in other orders, of a cyclic Latin square: each document is once in each slot.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headscope.corpora.jsontext import get_text, is_text, parse_object, show
from headscope.corpora.text import read_lines
from headscope.errors import CorpusError
from headscope.files import check_regular, sha256

SYSTEM, QUESTION, TEMPLATE, OWN = "system", "question", "template", "own text"
"""The parts of a prompt that are not documents; `name_parts` lists all parts."""

FEWEST_DOCUMENTS = 2
"""The least number of documents in a prompt. A single document has one slot, so slots could not be compared."""

_KEYS = ("id", "system", "documents", "question", "answer", "gold")
_EXAMPLE = '{"documents": ["Ann lives in Bern.", "Eve lives in Rome."], "question": "Where does Eve live?"}'

Piece = tuple[str, str]
"""The name of a part of a prompt, and a stretch of text that belongs to the part."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """Documents and a question about them.

    Attributes:
        id: the number or id of the prompt in its file, for messages.
        documents: the documents in their given order.
        question: the question.
        system: the instruction before the documents; empty for none.
        answer: the text that the model gets as its own; None if the model generates one.
        gold: the number of the document that holds the answer, counted from 1; None if it is unknown.
    """

    id: str
    documents: tuple[str, ...]
    question: str
    system: str = ""
    answer: str | None = None
    gold: int | None = None

    def list_orders(self) -> list[tuple[int, ...]]:
        """Return the orders of the documents, the given one first; an order has the index of the document of each slot.

        The orders form a cyclic Latin square: each document is once in each slot.
        """
        count = len(self.documents)
        return [tuple((slot + shift) % count for slot in range(count)) for shift in range(count)]

    def lay_out_documents(self, order: Sequence[int]) -> list[Piece]:
        """Return the text of the documents in an order, each after a label, and of the question, as pieces."""
        pieces = []
        for slot, document in enumerate(order, start=1):
            pieces += [
                (TEMPLATE, f"Document {slot}: "),
                (name_slot(slot), self.documents[document]),
                (TEMPLATE, "\n\n"),
            ]
        return [*pieces, (TEMPLATE, "Question: "), (QUESTION, self.question)]

    def lay_out(self, order: Sequence[int]) -> list[Piece]:
        """Return the whole prompt without a chat template, as pieces: instruction, documents, question and labels."""
        first = [(TEMPLATE, "Instructions: "), (SYSTEM, self.system), (TEMPLATE, "\n\n")] if self.system else []
        return [*first, *self.lay_out_documents(order), (TEMPLATE, "\n\nAnswer:")]


@dataclass(frozen=True, slots=True)
class Prompts:
    """Prompts that all have the same number of documents.

    Attributes:
        name: the file of the prompts.
        sha256: the SHA-256 of that file.
        prompts: the prompts in the order of the file.
    """

    name: str
    sha256: str
    prompts: tuple[Prompt, ...]

    @property
    def slots(self) -> int:
        """The number of documents in each prompt."""
        return len(self.prompts[0].documents)


def name_slot(slot: int) -> str:
    """Return the name of a document as a part of a prompt, such as ``document 2`` for the second slot."""
    return f"document {slot}"


def name_parts(slots: int) -> list[str]:
    """Return the names of all parts of a prompt with `slots` documents; each token belongs to one part."""
    return [SYSTEM, *map(name_slot, range(1, slots + 1)), QUESTION, TEMPLATE, OWN]


def read_prompts(source: str | Path | Prompts | Sequence[Mapping[str, Any]]) -> Prompts:
    """Return the prompts in a file of JSON Lines, or in a list of dictionaries with the same keys.

    =============  =====================================================================================
    key            value
    =============  =====================================================================================
    ``documents``  a list of two or more strings, the same number in each line
    ``question``   a string
    ``system``     a string; by default there is no such text
    ``answer``     a string, which the model gets as its own text; by default it generates one
    ``gold``       the number of the document that holds the answer, counted from 1; by default unknown
    ``id``         a unique string; by default the number of the line
    =============  =====================================================================================

    A key with the value null counts as missing. Lines without a visible character are ignored.

    Args:
        source: a file, or objects with these keys. `Prompts` are returned unchanged.

    Raises:
        CorpusError: the file does not exist, a line is not an object with these keys and values, two lines have the
            same id, a line has another number of documents than the first, or there is no line.
    """
    if isinstance(source, Prompts):
        return source
    if not isinstance(source, str | Path):
        given: Any = source
        if not isinstance(given, Sequence) or not all(isinstance(record, Mapping) for record in given):
            raise CorpusError(f"the prompts are of type {type(source).__name__}; give a list such as [{_EXAMPLE}].")
        records = [(f"prompt {number}", str(number), dict(record)) for number, record in enumerate(source, start=1)]
        digest = hashlib.sha256(json.dumps([record for *_, record in records], default=repr).encode()).hexdigest()
        return _gather("the prompts in memory", digest, records)
    path = Path(source).expanduser()
    check_regular(path)
    if not path.is_file():
        raise CorpusError(f"there is no file {path}; give prompts as JSON Lines, such as {_EXAMPLE}.")
    lines = [
        (f"{path}:{number}", str(number), parse_object(f"{path}:{number}", line, _EXAMPLE))
        for number, line in read_lines(path)
        if line.strip()
    ]
    return _gather(str(source), sha256(path), lines)


def _gather(name: str, digest: str, records: Sequence[tuple[str, str, Mapping[str, Any]]]) -> Prompts:
    """Return the prompts of records; a record is its location for messages, its number and its object."""
    prompts: dict[str, Prompt] = {}
    for where, number, record in records:
        prompt = _build_prompt(where, number, record)
        if prompt.id in prompts:
            raise CorpusError(f"{where} has the id {show(prompt.id)}, which another prompt has; rename one of them.")
        first = next(iter(prompts.values()), prompt)
        if len(prompt.documents) != len(first.documents):
            raise CorpusError(
                f"{where} has {len(prompt.documents)} documents, and the first prompt has {len(first.documents)}; "
                "what a head reads from each slot is averaged over prompts, so all need as many: put prompts with "
                "another number into a file of their own."
            )
        prompts[prompt.id] = prompt
    if not prompts:
        raise CorpusError(f"{name} has no prompt; each line needs one JSON object, such as {_EXAMPLE}.")
    return Prompts(name, digest, tuple(prompts.values()))


def _build_prompt(where: str, number: str, record: Mapping[str, Any]) -> Prompt:
    if unknown := [key for key in record if key not in _KEYS]:
        raise CorpusError(
            f"{where} has the key {show(unknown[0])}; known are {', '.join(_KEYS)}: correct the spelling, or leave it "
            "out."
        )
    documents, question, gold = record.get("documents"), get_text(where, record, "question"), record.get("gold")
    if not isinstance(documents, list | tuple) or not all(map(is_text, documents)) or len(documents) < FEWEST_DOCUMENTS:
        raise CorpusError(
            f'{where} has the "documents" {show(documents)}; expected a list of {FEWEST_DOCUMENTS} strings or more, '
            "since a document is compared with others in the same slots: write them there."
        )
    if question is None:
        raise CorpusError(f'{where} has no "question"; a prompt is {_EXAMPLE}: add what is asked.')
    if gold is not None and (type(gold) is not int or not 1 <= gold <= len(documents)):
        raise CorpusError(
            f'{where} has the "gold" {show(gold)}; expected the number of the document that holds the answer, from 1 '
            f"to {len(documents)}: correct it, or leave it out."
        )
    return Prompt(
        get_text(where, record, "id") or number, tuple(document.strip() for document in documents), question.strip(),
        (get_text(where, record, "system") or "").strip(), get_text(where, record, "answer"), gold,
    )  # fmt: skip
