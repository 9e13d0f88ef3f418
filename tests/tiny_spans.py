"""Random annotation of the documents of `tiny`: the spans of each kind."""

import random

from headscope.corpora.document import Span


def negations(number: int, length: int) -> tuple[Span, ...]:
    """Up to three negations: the second with a cue of two words, perhaps apart, the third with an affix for a cue.

    A scope may be empty, in pieces, and hold words of its own cue. Every third document has a treebank's mark as well.
    """
    rng = random.Random(f"negations {number}")
    spans = [Span(length // 2, length // 2 + 1, "Polarity=Neg", "negation")] if number % 3 == 0 else []
    for label in range(1, min(3, length // 2) + 1):
        cue = rng.sample(range(length), 2 if label == 2 else 1)
        scope = rng.sample(range(length), rng.randrange(length))
        kind = "affixal_cue" if label == 3 else "cue"
        spans += [Span(word, word + 1, str(label), kind) for word in cue]
        spans += [Span(word, word + 1, str(label), "scope") for word in scope]
    return tuple(spans)


def mentions(number: int, length: int) -> tuple[Span, ...]:
    """Twice as many mentions as words, of five chains, and parts of speech of most words.

    Mentions are nested, cross and come twice; a chain may have only one.
    """
    rng = random.Random(f"mentions {number}")
    tagged = [word for word in range(length) if rng.random() < 0.8]
    spans = [Span(word, word + 1, rng.choice(("PRON", "PROPN", "NOUN", "VERB")), "upos") for word in tagged]
    for _ in range(2 * length):
        start = rng.randrange(length)
        end = min(length, start + rng.choice((1, 1, 2, 3, 5)))
        spans.append(Span(start, end, rng.choice("12345"), "mention"))
    return tuple(spans)


def aspects(number: int, length: int) -> tuple[Span, ...]:
    """A question about an aspect in most documents, in one or two words anywhere, and terms of it and of others.

    Terms are nested, cross, come twice and may be the words of the question.
    """
    rng = random.Random(f"polarity {number}")
    kinds = ["asked"] * (length > 1) * rng.choice((1, 1, 2))
    kinds += [kind for kind in ("same_aspect", "other_aspect", "aspect") for _ in range(rng.choice((0, 1, 1, 2)))]
    spans = []
    for kind in kinds:
        start = rng.randrange(length)
        spans.append(Span(start, min(length, start + rng.choice((1, 1, 2))), "positive", kind))
    return tuple(spans)


def needles(number: int, words: list[str]) -> tuple[Span, ...]:
    """Up to three words that stand in the text twice: as an answer, and before that in one of a few needles.

    The last words of the two may differ. A text in which no word comes again has no needle.
    """
    rng, length = random.Random(f"needles {number}"), len(words)
    pairs = [(i, j) for j in range(1, length) for i in range(j) if words[i] == words[j]]
    if not pairs:
        return ()
    needle, answer = rng.choice(pairs)
    size = min(rng.choice((1, 2, 3)), length - answer, answer - needle)
    spans = [Span(start, start + size, kind, kind) for start, kind in ((needle, "needle"), (answer, "answer"))]
    for _ in range(rng.choice((0, 1, 4))):
        start = rng.randrange(length)
        spans.append(Span(start, start + 1, "other needle", "other needle"))
    return tuple(sorted(spans, key=lambda span: span.start))
