"""Questions about the aspect terms of reviews: SemEval-2014 task 4, laptops, in XML, without aspect categories.

A sentence and one of its aspect terms are a pair of segments, in the form of the restaurants
(`headscope.corpora.semeval`): a question that names the term, then the review. The label of the pair is the polarity
of the term, or ``conflict`` if the term occurs in the sentence several times with several polarities.

The question repeats words of the review, so a head that looks for equal words finds the term.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from headscope.corpora.document import Document, Skipped, Span
from headscope.corpora.markup import find_tags
from headscope.corpora.reviews import Sentence, join_polarities, parse_term, parse_text, read_sentences
from headscope.corpora.semeval import MARKUP

_WITHOUT_TERMS = "sentences without aspect terms"


def read(path: Path, *, name: str | None = None) -> Iterator[Document | Skipped]:
    """Yield a pair for each aspect term of each sentence of one file: the question about the term, and the review.

    Terms that differ only in upper and lower case count as one, and the question has the first spelling. All of them
    are spans of the kind ``same_aspect`` with their own polarities, and the other terms of the sentence are of the kind
    ``other_aspect``. Words and the other spans are those of `headscope.corpora.semeval.read`. Aspect categories, which
    the restaurants have, are ignored. The group of a pair is its sentence. A sentence without a term is skipped.

    Raises:
        CorpusError: as in `headscope.corpora.semeval.read`.
    """
    prefix = name or path.name
    for sentence_id, elements in read_sentences(MARKUP, path):
        text = parse_text(MARKUP, path, elements)
        terms: defaultdict[str, list[Span]] = defaultdict(list)
        names: dict[str, str] = {}
        for element in elements:
            if element.name == "aspectTerm":
                term = MARKUP.get_attribute(path, element, "term")
                terms[term.casefold()].append(parse_term(MARKUP, path, element, text))
                names.setdefault(term.casefold(), term)
        if not terms:
            yield Skipped(f"{path}:{elements[0].line}", _WITHOUT_TERMS)
        place = f"{prefix}:{sentence_id}"
        sentence = Sentence(place, place, text, _order(terms.values()))
        for term, same in terms.items():
            others = _order(spans for other, spans in terms.items() if other != term)
            yield sentence.ask(names[term], join_polarities(span.label for span in same), same=same, other=others)


def recognise(beginning: Sequence[str]) -> bool:
    """Return whether these first lines of a file have sentences with aspect terms and without aspect categories."""
    tags = [*find_tags(beginning)]
    return tags[:3] == ["sentences", "sentence", "text"] and "aspectTerm" in tags and "aspectCategories" not in tags


def _order(terms: Iterable[Iterable[Span]]) -> list[Span]:
    return sorted((span for spans in terms for span in spans), key=lambda span: (span.start, span.end))
