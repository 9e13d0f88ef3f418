"""The matches of spaCy's matchers in a document. Only this file uses spaCy, and imports it when it is needed."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from headscope.corpora.document import Document, Link, Span
from headscope.errors import CorpusError, first_line, say_missing

# spaCy's matchers reject these attributes if nobody annotated them; other attributes come from the words.
_ANNOTATED = ("TAG", "POS", "MORPH", "LEMMA", "DEP")


@dataclass(frozen=True)
class Pattern:
    """One pattern of spaCy, whose matches become links or spans.

    Attributes:
        name: the label of its links or spans.
        where: its name in error messages.
        nodes: the pattern for spaCy's ``Matcher`` or ``DependencyMatcher``.
        tree: true for a ``DependencyMatcher``.
        ends: the source and the target of a link, as indices of nodes; None if a match is a span.
        kind: the kind of the links or spans.
    """

    name: str
    where: str
    nodes: list[dict[str, Any]]
    tree: bool
    ends: tuple[int, int] | None
    kind: str

    @property
    def required_attributes(self) -> frozenset[str]:
        """The attributes of spaCy that a document must have before this pattern can match a word."""
        required = {key.upper() for node in self.nodes for key in (node["RIGHT_ATTRS"] if self.tree else node)}
        return frozenset(required.intersection(_ANNOTATED) | ({"DEP"} if self.tree else set()))


@dataclass(frozen=True)
class Search:
    """Patterns, ready to be matched.

    Attributes:
        language: spaCy's vocabulary, and its pipeline if there is one.
        has_pipeline: true if there is a pipeline.
        matchers: the patterns, each with its matcher of spaCy.
    """

    language: Any
    has_pipeline: bool
    matchers: tuple[tuple[Pattern, Any], ...]

    @classmethod
    def from_patterns(cls, patterns: Sequence[Pattern], file: str, pipeline: str | None) -> "Search":
        """Return a search for the patterns of a file; `pipeline`, if given, is a model that annotates words anew.

        Raises:
            CorpusError: spaCy or the pipeline is not installed, or spaCy rejects a pattern.
        """
        language = _load_language(file, pipeline)
        matchers = tuple((pattern, _build_matcher(language, pattern)) for pattern in patterns)
        return cls(language, has_pipeline=pipeline is not None, matchers=matchers)

    @property
    def annotator(self) -> str:
        """The language, name and version of the pipeline."""
        return "{lang}_{name} {version}".format(**self.language.meta)

    def match(self, document: Document) -> tuple[frozenset[str], list[Link | Span]]:
        """Return the required attributes that a document has, and a link or span for each match in the document.

        Patterns that require a missing attribute are not matched.

        Raises:
            CorpusError: a pattern joins a word to itself, or the document has parts of speech or dependencies that are
                not those of Universal Dependencies.
        """
        required = frozenset[str]().union(*(pattern.required_attributes for pattern, _ in self.matchers))
        doc = _build_doc(self.language, document, () if self.has_pipeline else required)
        if self.has_pipeline:
            doc = self.language(doc)
        available = frozenset(attribute for attribute in required if doc.has_annotation(attribute))
        matchers = (pair for pair in self.matchers if pair[0].required_attributes <= available)
        matches = (_find_matches(pattern, matcher, doc, document) for pattern, matcher in matchers)
        return available, [*chain.from_iterable(matches)]


def _load_language(file: str, pipeline: str | None) -> Any:
    """Return the named pipeline of spaCy or, without a name, a blank one with only a vocabulary."""
    try:
        # spaCy imports torch, if that is installed.
        import spacy
    except ImportError:
        raise CorpusError(say_missing(f"the patterns {file!r} are matched by spaCy", "spacy")) from None
    if pipeline is None:
        return spacy.blank("xx")
    try:
        return spacy.load(pipeline)
    except (OSError, ValueError, ImportError) as error:
        raise CorpusError(
            f"the patterns {file!r} name the pipeline {pipeline!r}, which spaCy cannot load ({first_line(error)}); "
            f"install it (python -m spacy download NAME), or leave it out and match what the corpus is annotated with."
        ) from None


def _build_matcher(language: Any, pattern: Pattern) -> Any:
    from spacy.matcher import DependencyMatcher, Matcher

    options = {} if pattern.tree else {"greedy": "LONGEST" if pattern.ends is None else None}
    matcher = (DependencyMatcher if pattern.tree else Matcher)(language.vocab, validate=True)
    try:
        matcher.add(pattern.name, [pattern.nodes], **options)
    # spaCy raises various errors: its own, and those of regular expressions and missing attributes.
    except Exception as error:
        problems = [line.removeprefix("- ").rstrip(".") for line in str(error).splitlines() if line.startswith("- ")]
        raise CorpusError(
            f"{pattern.where} is refused by spaCy ({'; '.join(problems) or first_line(error)}); "
            f"see https://spacy.io/usage/rule-based-matching: correct it."
        ) from None
    return matcher


def _build_doc(language: Any, document: Document, required: Collection[str]) -> Any:
    """Return a document as a Doc of spaCy, with the required part of its annotation."""
    from spacy.parts_of_speech import IDS
    from spacy.tokens import Doc

    annotation: dict[str, list[Any]] = {}
    parts_of_speech = {span.start: span.label for span in document.spans if span.kind == "upos"}
    dependencies = [link for link in document.links if link.kind == "dependency"]
    if "POS" in required and parts_of_speech:
        annotation["pos"] = [parts_of_speech.get(word, "") for word in range(len(document.words))]
        if unknown := [label for label in annotation["pos"] if label not in IDS]:
            raise CorpusError(
                f'document {document.id!r} has the part of speech {unknown[0]!r}, but patterns that ask for "POS" want '
                f"those of Universal Dependencies, such as NOUN: correct it, or name a pipeline."
            )
    if "DEP" in required and dependencies:
        annotation["heads"] = _collect_heads(document, dependencies)
        annotation["deps"] = ["ROOT"] * len(document.words)
        for link in dependencies:
            annotation["deps"][link.source] = link.label
    return Doc(language.vocab, words=list(document.words), **annotation)


def _collect_heads(document: Document, dependencies: Iterable[Link]) -> list[int]:
    """Return the head of each word; a root is its own head. Raise an error if the heads form no tree."""
    heads = list(range(len(document.words)))
    for link in dependencies:
        if heads[link.source] != link.source:
            raise _report_no_tree(document, link.source, "two heads")
        heads[link.source] = link.target
    rooted = {word for word, head in enumerate(heads) if word == head}
    for word in range(len(heads)):
        path: dict[int, None] = {}
        while word not in rooted:
            if word in path:
                raise _report_no_tree(document, word, "itself above it")
            path[word] = None
            word = heads[word]
        rooted.update(path)
    return heads


def _report_no_tree(document: Document, word: int, problem: str) -> CorpusError:
    return CorpusError(
        f"document {document.id!r} has dependencies in which word {word} ({document.words[word]!r}) has {problem}, but "
        f"patterns that ask for dependencies want trees: correct it, or name a pipeline."
    )


def _find_matches(pattern: Pattern, matcher: Any, doc: Any, document: Document) -> Iterator[Link | Span]:
    """Yield a link or a span for each match of a pattern in a document, except across the boundary of a pair."""
    boundary = document.boundary or 0
    for match in matcher(doc) if pattern.tree or pattern.ends is None else matcher(doc, with_alignments=True):
        if pattern.tree:
            nodes: list[int] = match[1]
            first, last = min(nodes), max(nodes)
        else:
            first, last = match[1], match[2] - 1
        if first < boundary <= last:
            continue
        if pattern.ends is None:
            yield Span(first, last + 1, pattern.name, kind=pattern.kind)
            continue
        # The alignment has the node of each matched word, and a node without an operator matches one word.
        source, target = (nodes[end] if pattern.tree else first + match[3].index(end) for end in pattern.ends)
        if source == target:
            raise CorpusError(
                f"{pattern.where} joins word {source} ({document.words[source]!r}) of document {document.id!r} to "
                f"itself; a link joins two different words: describe source or target more exactly."
            )
        yield Link(source, target, pattern.name, kind=pattern.kind)
