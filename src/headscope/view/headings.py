"""Texts above a table: the names of its model and corpus, and sentences on how it was measured."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import xarray as xr

from headscope.corpora.summary import NOTES, TREE_FAULTS
from headscope.heads import EDITED, head_name
from headscope.layers import describe_without_attention, read_without_attention
from headscope.text_forms import SPACED, WRITTEN

CAUSAL = "decoder"
"""The attention type in which a word sees no later words."""


def name_corpus(corpus: object) -> str:
    """Return the name of a corpus without its folders, which mean nothing on other machines."""
    return Path(str(corpus)).name or str(corpus)


def name_model(model: object) -> str:
    """Return the name of a model for readers: the last folder of a path, or a hub id (``owner/name``) unchanged.

    Words before the name stay too, as in ``adapter of /models/bert``.
    """
    kind, _, within = str(model).partition(" of ")
    if within and "/" not in kind:
        return f"{kind} of {name_model(within)}"
    path = Path(str(model))
    is_path = path.is_absolute() or str(model).startswith((".", "~")) or len(path.parts) > 2
    return path.name or str(model) if is_path else str(model)


def name_head(layer: int, head: int, attention_type: str = "") -> str:
    """Return the name of a head, preceded by its attention type if there is one: ``decoder 2-3``."""
    return f"{attention_type} {head_name(layer, head)}".strip()


def name_row(row: Mapping[Any, Any]) -> str:
    """Return the name of the head in a row of a data frame."""
    return name_head(row["layer"], row["head"], row.get("attention_type", ""))


def describe_view(table: xr.Dataset) -> str:
    """Return a sentence on the view that was measured and what it shows; empty for attention weights."""
    return f"View “{table.attrs['view']}”: {table.attrs['view_shows']}." if "view" in table.attrs else ""


def _describe_sample(table: xr.Dataset) -> str:
    """Return sentences on the sample of queries that a table was estimated from; empty if all were measured."""
    if "sample_queries" not in table.attrs:
        return ""
    return (
        f"Estimated from about {table.attrs['sample_queries']:,} tokens of each long text as queries, at random (seed "
        f"{table.attrs['sample_seed']}). Intervals of 95 % say where the values of all tokens may lie."
    )


def describe_edits(table: xr.Dataset) -> str:
    """Return a sentence on the edits of heads under which a table was measured; empty without edits."""
    edits = table.attrs.get(EDITED, "")
    return f"Measured while heads of the model were edited: {edits}." if edits else ""


def describe_reading(about: Mapping[Any, Any]) -> str:
    """Return sentences on the form, start token, source and labels of the texts, from the attributes of a table."""
    form, tuned = about.get("text"), about.get("tuned_on_text")
    sentences = []
    if form == SPACED:
        sentences.append("Words were read with a space before each, not as the texts are written.")
    if form == WRITTEN and (count := about.get("documents_without_text", 0)):
        sentences.append(f"Documents without a text: {count:,}. Their words were read with spaces between them.")
    if tuned is not None and form in (WRITTEN, SPACED) and tuned != form:
        sentences.append(f"The runs were tuned on {tuned} texts.")
    if matched := about.get("label_names"):
        sentences.append(f"Labels of the model were read as those of the task: {matched}.")
    source = f"Texts: {about['corpus_source']}." if about.get("corpus_source") else ""
    return " ".join(filter(None, (*sentences, describe_start(about), source)))


def describe_start(about: Mapping[Any, Any]) -> str:
    """Return a sentence on the start token, from the attributes of a table; empty if they do not name it."""
    if "start" not in about:
        return ""
    source = f"predicted from {about['start']}" if about["start"] else "not predicted"
    return f"The first token of a text is {source}."


def describe_measured(table: xr.Dataset) -> str:
    """Return sentences on edits, view and sample of a table, and on form and source of its texts; or an empty text."""
    parts = (describe_edits(table), describe_view(table), _describe_sample(table), describe_reading(table.attrs))
    return " ".join(filter(None, parts))


def describe_corpus(table: xr.Dataset) -> str:
    """Return sentences on repeated documents, sentences that are not trees, and notes; empty if there are none."""
    return " ".join(filter(None, (_describe_copies(table), _describe_trees(table), table.attrs.get(NOTES, ""))))


def _describe_copies(table: xr.Dataset) -> str:
    """Return sentences on the documents that repeat other documents; empty if there are none."""
    if not (count := table.attrs.get("documents_repeated", 0)):
        return ""
    return f"Documents that repeat others: {count:,}. They share the folds of these and are no further evidence."


def _describe_trees(table: xr.Dataset) -> str:
    """Return a note on the annotated sentences that are not trees; empty if all are trees."""
    counts = json.loads(table.attrs.get(TREE_FAULTS, "{}"))
    if not counts:
        return ""
    kinds = ", ".join(f"{count:,} {fault}" for fault, count in counts.items())
    return f"Sentences that are no trees: {sum(counts.values()):,} ({kinds}). Their links are measured all the same."


def describe_layers(table: xr.Dataset) -> str:
    """Return a sentence on the layers of a model without attention; empty if all layers have attention."""
    return describe_without_attention(read_without_attention(table))


def name_replication(table: xr.Dataset) -> str:
    """Return the name of the corpus on which heads were replicated, without its folders."""
    return name_corpus(table.attrs.get("replication_corpus", "the other corpus"))


def describe_causality(table: xr.Dataset) -> str:
    """Return sentences about the links that a causal model can show; empty for other models or without links."""
    if "direction" not in table.dims or CAUSAL not in _list_attention_types(table):
        return ""
    if "attention_type" in table.dims:
        return (
            "In the decoder a word sees only itself and the words before it. In each direction a head can be right "
            "about the links whose other end is earlier, and about no others: of all links together about half, "
            "of one relation all, some or none."
        )
    return (
        "This model is causal: a word sees only itself and the words before it. Each direction is scored on the links "
        "whose other end is earlier, and each link counts in one of the two directions."
    )


def is_of_decoder(table: xr.Dataset) -> bool:
    """Return True if the model of a table has only the attention type of a decoder."""
    return _list_attention_types(table) == {CAUSAL}


def _list_attention_types(table: xr.Dataset) -> set[str]:
    """Return the attention types of the model; a table of a single type names it in the attribute ``paths``."""
    if "attention_type" in table.dims:
        return {str(name) for name in table["attention_type"].values}
    return {path.split(" ")[0] for path in json.loads(table.attrs.get("paths", "{}"))}
