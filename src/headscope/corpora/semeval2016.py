"""Questions about the aspects of reviews: SemEval-2016 task 5 and SemEval-2015 task 12, in XML.

An opinion has a category, an entity with one of its attributes (``FOOD#QUALITY``), and a target, the words that it is
about. A sentence and one of the categories are a pair of segments, in the form of SemEval-2014
(`headscope.corpora.semeval`): a question that names entity and attribute, then the sentence. The label of the pair is
the polarity of the opinions of this category, ``conflict`` if there are several, or ``none`` without such an opinion.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import Path

from headscope.corpora.document import Document, Skipped, Span
from headscope.corpora.markup import Element, Markup, find_tags
from headscope.corpora.reviews import (
    ABSENT,
    Sentence,
    get_polarity,
    join_polarities,
    parse_term,
    parse_text,
    read_sentences,
)
from headscope.errors import CorpusError, quote

_MARKUP = Markup(
    "SemEval-2016",
    {
        "": ("Reviews",), "Reviews": ("Review",), "Review": ("sentences", "Opinions"), "sentences": ("sentence",),
        "sentence": ("text", "Opinions"), "Opinions": ("Opinion",),
    },
)  # fmt: skip
_NO_TARGET = ("NULL", None)
_OUT_OF_SCOPE = "sentences out of the scope of their domain"
_WITHOUT_OPINIONS = "sentences without opinions"
_OF_REVIEWS = "opinions on a whole review"


def read(path: Path, *, name: str | None = None) -> Iterator[Document | Skipped]:
    """Yield a pair for each sentence of one file and each category of the file: the question, and the sentence.

    The targets of opinions of the category are spans of the kind ``same_aspect`` with the polarities of these
    opinions, and other targets of the kind ``other_aspect``; a target with several opinions of one polarity is one
    span. The target ``NULL`` has no span, and neither has an opinion without the attribute, as on laptops. Words and
    the other spans are those of `headscope.corpora.semeval.read`. The group of a pair is its review.

    Sentences out of scope, sentences without an opinion, and opinions on a whole review are skipped.

    Raises:
        CorpusError: the file is not well-formed XML in UTF-8, declares entities, has other elements than those
            of the task, or has no sentence; an attribute is missing or has a value outside the task, two sentences
            have the same id, or the characters at the offsets of a target differ from the target.
    """
    prefix = name or path.name
    categories: dict[str, None] = {}
    for event, element in _MARKUP.parse(path):
        if event == "start" and element.name == "Opinion":
            if element.ancestors[-2].name == "Review":
                yield Skipped(f"{path}:{element.line}", _OF_REVIEWS)
            else:
                categories[_get_category(path, element)] = None
    for sentence_id, elements in read_sentences(_MARKUP, path):
        sentence, where = elements[0], f"{path}:{elements[0].line}"
        text = parse_text(_MARKUP, path, elements)
        targets: defaultdict[str, list[Span]] = defaultdict(list)
        polarities: defaultdict[str, list[str]] = defaultdict(list)
        for element in elements:
            if element.name == "Opinion":
                category = _get_category(path, element)
                polarities[category].append(get_polarity(_MARKUP, path, element))
                if element.attributes.get("target") not in _NO_TARGET:
                    targets[category].append(parse_term(_MARKUP, path, element, text, name="target"))
        if sentence.attributes.get("OutOfScope", "").casefold() == "true":
            yield Skipped(where, _OUT_OF_SCOPE)
            continue
        if not polarities:
            yield Skipped(where, _WITHOUT_OPINIONS)
            continue
        group = f"{prefix}:{_MARKUP.get_attribute(path, sentence.ancestors[1], 'rid')}"
        reviewed = Sentence(f"{prefix}:{sentence_id}", group, text, _unite(targets, targets.keys()))
        for category in categories:
            same = _unite(targets, {category})
            places = {(span.start, span.end) for span in same}
            others = _unite(targets, targets.keys() - {category})
            yield reviewed.ask(
                category,
                join_polarities(polarities[category]) if category in polarities else ABSENT,
                name=re.sub("[#_]", " ", category).casefold(),
                same=same,
                other=[span for span in others if (span.start, span.end) not in places],
            )


def recognise(beginning: Sequence[str]) -> bool:
    """Return whether the first tags in these lines are ``Reviews``, ``Review``, ``sentences`` and ``sentence``."""
    tags = find_tags(beginning)
    return [next(tags, None) for _ in range(4)] == ["Reviews", "Review", "sentences", "sentence"]


def _get_category(path: Path, element: Element) -> str:
    category = _MARKUP.get_attribute(path, element, "category")
    if not re.fullmatch(r"\w+#\w+", category):
        raise CorpusError(
            f"{path}:{element.line} has the category {quote(category)}; SemEval-2016 names an entity and one of its "
            "attributes, such as 'FOOD#QUALITY': correct it."
        )
    return category


def _unite(targets: Mapping[str, Sequence[Span]], categories: Set[str]) -> list[Span]:
    """Return the targets of some categories in the order of their positions, without repeating equal spans."""
    spans = {span for category in categories for span in targets.get(category, ())}
    return sorted(spans, key=lambda span: (span.start, span.end, span.label))
