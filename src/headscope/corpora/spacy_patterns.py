"""Patterns of spaCy as your own hypothesis: their matches in the documents of any corpus become links.

A file in JSON lists them, in spaCy's own notation (https://spacy.io/usage/rule-based-matching)::

    {"patterns": {
        "determiner": {
            "tokens": [{"POS": "DET"}, {"POS": "ADJ", "OP": "*"}, {"POS": "NOUN"}],
            "source": 0, "target": 2},
        "object": {
            "dependencies": [
                {"RIGHT_ID": "verb", "RIGHT_ATTRS": {"POS": "VERB"}},
                {"LEFT_ID": "verb", "REL_OP": ">", "RIGHT_ID": "thing", "RIGHT_ATTRS": {"DEP": "obj"}}],
            "source": "thing", "target": "verb"}}}

No model of spaCy is needed: a pattern can use the words, and the annotation of the document.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from headscope.corpora.document import Document, Link, Skipped
from headscope.corpora.jsontext import is_text, read_json, show
from headscope.corpora.matches import Pattern, Search
from headscope.errors import CorpusError
from headscope.files import check_regular, expand_home
from headscope.guards.formats import PATTERNS, open_file, read_bytes

KIND = "pattern"
"""The default kind of the links and spans of a pattern."""

_KEYS = ("tokens", "dependencies", "source", "target", "kind")
_ANCHOR = ("RIGHT_ID", "RIGHT_ATTRS")
_NODE = ("LEFT_ID", "REL_OP", *_ANCHOR)
_EXAMPLE = '{"patterns": {"determiner": {"tokens": [{"POS": "DET"}, {"POS": "NOUN"}], "source": 0, "target": 1}}}'
# The operators that match a token a fixed number of times; "!" matches a token that does not fit.
_FIXED = re.compile(r"!?|\{\d+\}")


@dataclass(frozen=True)
class Patterns:
    """The patterns of a file.

    Attributes:
        name: the file as the user named it.
        content: the content of the file, in JSON.
        sha256: the SHA-256 of the bytes of the file and, if it names a pipeline, the pipeline's name and version.
        pipeline: the model of spaCy that annotates the words; by default the annotation of the corpus is used.
        patterns: the patterns in the order of the file.
    """

    name: str
    content: str
    sha256: str
    pipeline: str | None
    patterns: tuple[Pattern, ...] = field(compare=False, repr=False)

    def annotate(self, parts: Iterable[Document | Skipped], corpus: str) -> Iterator[Document | Skipped]:
        """Yield the documents of a corpus, each with further links and spans for the matches of the patterns.

        The corpus provides ``POS`` (spans of kind ``upos``) and the tree with ``DEP`` (links of kind ``dependency``;
        a word without a head is a ``ROOT``). A pattern for links yields all its matches; a pattern for spans, its
        longest matches that do not overlap (spaCy's ``greedy="LONGEST"``). A link that occurs twice is added once. A
        match that crosses the boundary of a pair does not count.

        Raises:
            CorpusError: a pattern joins a word to itself, or matches nothing in the whole corpus; or a document has
                parts of speech or dependencies that are not those of Universal Dependencies.
        """
        search = Search.from_patterns(self.patterns, self.name, self.pipeline)
        matches = dict.fromkeys((pattern.name for pattern in self.patterns), 0)
        annotated: frozenset[str] = frozenset()
        empty = True
        for part in parts:
            if isinstance(part, Skipped):
                yield part
                continue
            empty = False
            available, results = search.match(part)
            annotated |= available
            links, spans = dict.fromkeys(part.links), dict.fromkeys(part.spans)
            for result in results:
                matches[result.label] += 1
                if isinstance(result, Link):
                    links[result] = None
                else:
                    spans[result] = None
            yield replace(part, links=tuple(links), spans=tuple(spans))
        for pattern in self.patterns if not empty else ():
            if not matches[pattern.name]:
                missing = pattern.required_attributes - annotated
                raise CorpusError(_describe_no_match(pattern, corpus, missing, self.pipeline))


def read(path: str | Path) -> Patterns:
    """Return the patterns of a file, each checked by spaCy.

    =================  ==========================================================================
    key of the file    value
    =================  ==========================================================================
    ``patterns``       an object with a pattern for each name
    ``pipeline``       optional: a model of spaCy that is installed, or the folder of one
    =================  ==========================================================================

    =================  ==========================================================================
    key of a pattern   value
    =================  ==========================================================================
    ``tokens``         a pattern of spaCy's ``Matcher``, the attributes of one token after the other
    ``dependencies``   instead: a pattern of its ``DependencyMatcher``
    ``source``         the end of a link from which a head looks: the index of a token, counted from 0,
                       or a ``RIGHT_ID``
    ``target``         likewise, the end to which it looks; without both, a match of tokens is a span
    ``kind``           optional: the kind of the links or spans, in place of ``pattern``
    =================  ==========================================================================

    Raises:
        CorpusError: the file does not exist, it is not JSON in UTF-8 or has other keys, an end of a link is not a
            single word of the pattern or both are one, operators leave open which words a match joins, spaCy
            rejects a pattern, or spaCy (extra ``spacy``) or the pipeline is not installed.
    """
    file, record, patterns = _parse(path)
    pipeline = record.get("pipeline")
    search = Search.from_patterns(patterns, str(path), pipeline)
    digest = hashlib.sha256(read_bytes(file, PATTERNS))
    if pipeline is not None:
        digest.update(search.annotator.encode())
    content = json.dumps(record, ensure_ascii=False)
    return Patterns(str(path), content, sha256=digest.hexdigest(), pipeline=pipeline, patterns=patterns)


def check(path: str | Path) -> None:
    """Raise an error for a missing or invalid file of patterns; do not import spaCy, which takes seconds.

    Raises:
        CorpusError: one of the errors of `read` that need no spaCy.
    """
    _parse(path)


def _parse(path: str | Path) -> tuple[Path, dict[str, Any], tuple[Pattern, ...]]:
    """Return the path of a file of patterns with the home folder filled in, its content, and its patterns."""
    file = expand_home(path)
    check_regular(file)
    if not file.is_file():
        raise CorpusError(f"there is no file of patterns {str(path)!r}; name one in JSON, such as {_EXAMPLE}.")
    with open_file(file, PATTERNS):  # raises an error for a file that is too large
        record = _read_file(file)
    return file, record, tuple(_parse_pattern(file, name, entry) for name, entry in record["patterns"].items())


def _read_file(file: Path) -> dict[str, Any]:
    record: dict[str, Any] = read_json(file, f"a file of patterns is one object, such as {_EXAMPLE}: correct the line.")
    expected = f'a file of patterns is one object, such as {_EXAMPLE}, perhaps with a "pipeline": correct it.'
    if not isinstance(record, dict) or not {"patterns"} <= set(record) <= {"patterns", "pipeline"}:
        raise CorpusError(f"{file} has {show(record)}; {expected}")
    if not isinstance(record["patterns"], dict) or not record["patterns"]:
        raise CorpusError(f'{file} has the "patterns" {show(record["patterns"])}; {expected}')
    if "pipeline" in record and not is_text(record["pipeline"]):
        raise CorpusError(
            f'{file} has the "pipeline" {show(record["pipeline"])}; write the name of one, such as "en_core_web_sm".'
        )
    return record


def _parse_pattern(file: Path, name: str, entry: Any) -> Pattern:
    where = f"the pattern {show(name)} of {file}"
    expected = f'a pattern has "tokens" or "dependencies" and perhaps "source", "target", "kind", as in {_EXAMPLE}'
    if not is_text(name):
        raise CorpusError(f"{where} has no name to label what it finds: write one.")
    if not isinstance(entry, dict) or ("tokens" in entry) + ("dependencies" in entry) != 1:
        raise CorpusError(f"{where} is {show(entry)}; {expected}: correct it.")
    if unknown := [key for key in entry if key not in _KEYS]:
        raise CorpusError(f"{where} has the unknown {', '.join(map(show, unknown))}; {expected}: correct it.")
    tree = "dependencies" in entry
    nodes = entry["dependencies" if tree else "tokens"]
    if not isinstance(nodes, list) or not nodes or not all(isinstance(node, dict) for node in nodes):
        raise CorpusError(f"{where} matches {show(nodes)}; expected a list of objects, one a token: correct it.")
    if tree:
        _check_tree(where, nodes)
    if any("_" in (node["RIGHT_ATTRS"] if tree else node) for node in nodes):
        raise CorpusError(
            f'{where} asks for "_", what a program has added to spaCy\'s tokens; here no program does: leave it out.'
        )
    kind = entry.get("kind", KIND)
    if not is_text(kind):
        raise CorpusError(f"{where} has the kind {show(kind)}; it is a string with a visible character: correct it.")
    return Pattern(name, where, nodes, tree=tree, ends=_find_ends(where, entry, nodes, tree), kind=kind)


def _check_tree(where: str, nodes: list[dict[str, Any]]) -> None:
    """Raise an error if the nodes of a tree have wrong keys, or operators, which spaCy itself does not reject."""
    for position, node in enumerate(nodes):
        expected = _NODE if position else _ANCHOR
        if set(node) != set(expected) or not isinstance(node["RIGHT_ATTRS"], dict) or not is_text(node["RIGHT_ID"]):
            raise CorpusError(
                f"{where} has {show(node)} as node {position}, counted from 0; expected "
                f'{", ".join(map(show, expected))}, of which "RIGHT_ATTRS" is an object: correct it.'
            )
        if _get_operator(node["RIGHT_ATTRS"]):
            raise CorpusError(
                f'{where} has an "OP" in node {show(node["RIGHT_ID"])}; a node is one word: leave it out.'
            )


def _find_ends(where: str, entry: Mapping[str, Any], nodes: list[dict[str, Any]], tree: bool) -> tuple[int, int] | None:
    """Return the indices of source and target among the nodes; None for a pattern of tokens without both."""
    if not tree and "source" not in entry and "target" not in entry:
        return None
    names = [node["RIGHT_ID"] for node in nodes] if tree else list(range(len(nodes)))
    ends = []
    for end in ("source", "target"):
        value = entry.get(end)
        # True is an int in Python, but not an index.
        if value not in names or type(value) not in (int, str):
            raise CorpusError(
                f"{where} has {f'the {end} {show(value)}' if end in entry else f'no {end}'}; a link needs both, "
                f"each one of {', '.join(map(show, names))}: correct it."
            )
        ends.append(names.index(value))
        if not tree and _get_operator(nodes[ends[-1]]):
            raise CorpusError(
                f'{where} has the {end} {value}, a place with an "OP"; a link joins single words, which of several is '
                f"not known: leave the operator out, or add a place without one."
            )
    if ends[0] == ends[1]:
        raise CorpusError(f"{where} has source and target in one place; a link joins two words: correct one of them.")
    # spaCy returns one of the matches over the same words. If only one stretch varies in length, there is no other.
    free = [i for i, node in enumerate(nodes) if not tree and not _FIXED.fullmatch(_get_operator(node))]
    if len({(i > min(ends)) + (i > max(ends)) for i in free}) > 1:
        raise CorpusError(
            f'{where} has an "OP" in more than one of the stretches before, between and after source and target, so '
            f"that spaCy would not return all links: keep operators to one of them, or write several patterns."
        )
    return ends[0], ends[1]


def _get_operator(attributes: Mapping[str, Any]) -> str:
    return next((str(value) for key, value in attributes.items() if key.upper() == "OP"), "")


def _describe_no_match(pattern: Pattern, corpus: str, missing: frozenset[str], pipeline: str | None) -> str:
    matches = f"{pattern.where} matches nothing in the corpus {corpus!r}"
    if not missing:
        return f"{matches}, so there would be no row for it: correct it, or leave it out."
    reason = f"which the pipeline {pipeline!r} does not annotate" if pipeline else "with which no document is annotated"
    return (
        f"{matches}, because it asks for {' and '.join(sorted(missing))}, {reason}: leave it out, or name a pipeline."
    )
