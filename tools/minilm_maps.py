"""The maps of MiniLM that were labelled by eye, on sentence pairs of GLUE: their labels, and how to make them again.

The labels are in ``minilm_maps.csv``; the texts are read from the folder of GLUE.

Columns: ``task`` and ``line`` of its ``dev.tsv``, ``layer`` and ``head`` from 1, ``tokens`` of the text, ``sample``
(``random``: as many maps of each head; ``chosen``: of heads whose maps had shown a rare pattern), ``label``, and
``second``, the label that a second annotator gave to a random 100 of them, knowing the rule (`RULE`) alone.
"""

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from headscope.capture.model.model import Model
from headscope.corpora.document import Document
from headscope.errors import CorpusError
from headscope.learn.glue import read_glue
from headscope.learn.map_sample import HeadMap, MapName, read_maps
from headscope.learn.task import TEST

LABELS = Path(__file__).with_suffix(".csv")

NUMBERS = ("line", "layer", "head", "tokens")
"""The columns that are whole numbers."""

RULE = """\
1. Block: the two squares that the separators mark (each sentence with itself, on the diagonal) stand out from the other
   two as areas, with an edge at a separator on at least one side. A band along the diagonal alone is no block. A light
   column may be there too.
2. A diagonal is there if a line or band along the main diagonal, or parallel to it, is lighter than what surrounds it
   and can be followed over about three quarters of its length.
3. A vertical is there if at least one column, often the first, is lighter than its neighbours and can be followed over
   about three quarters of the rows.
4. Vertical+diagonal: both 2 and 3. Diagonal: only 2. Vertical: only 3.
5. Heterogeneous: none of these; also where scattered spots are lighter than any column.
"""
"""By which the labels were given, in this order, from contact sheets without the names of heads.

A map is drawn as its image (`headscope.reducers.support.pattern_network.make_images`): dark blue for no weight, yellow
for the largest, and ticks at the separators.
"""


@dataclass(frozen=True)
class LabelledMap:
    """A map of MiniLM and its labels.

    Attributes:
        task: a set of GLUE.
        line: of its development file.
        layer, head: counted from 1.
        tokens: of the text, by which one sees that it is the same.
        sample: ``random`` or ``chosen``.
        label: the pattern.
        second: the pattern that the second annotator saw; empty for most.
    """

    task: str
    line: int
    layer: int
    head: int
    tokens: int
    sample: str
    label: str
    second: str


def read_labels() -> list[LabelledMap]:
    """Return all labels."""
    with LABELS.open(encoding="utf-8", newline="") as lines:
        return [
            LabelledMap(**{name: int(value) if name in NUMBERS else value for name, value in row.items()})
            for row in csv.DictReader(lines)
        ]


def make_maps(model: Model, data: str | Path, labels: list[LabelledMap]) -> list[HeadMap]:
    """The maps of these labels, in their order.

    Args:
        model: MiniLM.
        data: the folder of GLUE, or one above it.
        labels: of maps of texts in GLUE's development sets.

    Raises:
        CorpusError: a text is missing, or is another one.
    """
    documents = {task: _read_documents(data, task) for task in sorted({each.task for each in labels})}
    names = []
    for each in labels:
        if each.line not in documents[each.task]:
            raise CorpusError(f"the development file of {each.task} in {data} has no text in line {each.line}.")
        names.append(MapName(documents[each.task][each.line].id, each.layer, each.head))
    texts = [document for by_line in documents.values() for document in by_line.values()]
    maps = {each.name: each for each in read_maps(model, texts, names)}
    for each, name in zip(labels, names, strict=True):
        if len(maps[name].weights) != each.tokens:
            raise CorpusError(
                f"{name.document} has {len(maps[name].weights)} tokens, and the map that was labelled had "
                f"{each.tokens}; give GLUE's own files and MiniLM."
            )
    return [maps[name] for name in names]


def _read_documents(data: str | Path, task: str) -> Mapping[int, Document]:
    """The texts of a development file, by line."""
    examples = read_glue(data, task).splits[TEST]
    return {
        int(example.name.rpartition(":")[2]): example.to_document()
        for example in examples
        if all(text.split() for text in example.texts)
    }
