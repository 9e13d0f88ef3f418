"""Facts hidden in a text, and a question about one of them: the texts on which retrieval heads are found.

A document is a row of sentences that have nothing to do with each other (the corpus ``grammar``). Some sentences more,
the needles, stand in random places among them, such as *The secret words of Vera are lamp boat corn rope .* At the end
one of them is asked for, and the answer follows: *What are the secret words of Vera ? They are lamp boat corn rope .*

All needles of a text are made of the same few words in other orders. So the word behind the last place of a word is
mostly not the one that the answer goes on with, and to copy the right needle one has to know whose words are asked for.
"""

from collections.abc import Iterator
from random import Random

from headscope.corpora.document import Document, Span
from headscope.corpora.grammar import generate_sentences
from headscope.corpora.written_text import write_sentences

COUNT, SEED = 100, 0

NEEDLES = 4
"""Needles of a text."""

ANSWER = 4
"""Words of a needle that answer the question."""

POOL = 6
"""Different words of which all needles of a text are made."""

FEWEST, MOST = 10, 25
"""Other sentences of a text."""

SHORT = 2, 4
"""Other sentences of a short text, of which a model reads four in the time of one."""

NEEDLE, OTHER_NEEDLE, ANSWERED = "needle", "other needle", "answer"
"""The kinds of span: the words that answer in their needle, those of the other needles, and the answer at the end."""

# fmt: off
NAMES = "Clara Felix Hugo Ida Karl Lena Max Nora Otto Ruth Vera Walter".split()
THINGS = "lamp boat corn rope drum bell glass silk stone wheel coin brush salt wood leaf tent wool nail soap".split()
# fmt: on


def generate_needles(
    count: int = COUNT, seed: int = SEED, *, others: tuple[int, int] = (FEWEST, MOST)
) -> Iterator[Document]:
    """Yield `count` documents, each with `others[0]` to `others[1]` other sentences; a seed gives the same ones."""
    for number in range(1, count + 1):
        random = Random(f"{seed} {number}")
        sentences = [
            [*document.words] for document in generate_sentences(random.randint(*others), random.getrandbits(32))
        ]
        names, pool = random.sample(NAMES, NEEDLES), random.sample(THINGS, POOL)
        answers = [random.sample(pool, ANSWER) for _ in names]
        chosen = random.randrange(NEEDLES)
        needles = [
            [*f"The secret words of {name} are".split(), *answer, "."]
            for name, answer in zip(names, answers, strict=True)
        ]
        places = sorted(random.choices(range(len(sentences) + 1), k=NEEDLES))
        for inserted, (place, needle) in enumerate(zip(places, needles, strict=True)):
            sentences.insert(place + inserted, needle)
        yield _assemble(f"needles:{seed}:{number}", sentences, needles, names[chosen], needles[chosen])


def _assemble(
    id: str, sentences: list[list[str]], needles: list[list[str]], name: str, answering: list[str]
) -> Document:
    """The text with its question and answer, and the spans of what answers it and of what does not."""
    words: list[str] = []
    spans: list[Span] = []
    for sentence in sentences:
        words += sentence
        if any(sentence is needle for needle in needles):
            end = len(words) - 1  # before the full stop
            kind = NEEDLE if sentence is answering else OTHER_NEEDLE
            spans.append(Span(end - ANSWER, end, kind, kind))
    words += [*f"What are the secret words of {name} ? They are".split(), *answering[-ANSWER - 1 :]]
    spans.append(Span(len(words) - 1 - ANSWER, len(words) - 1, ANSWERED, ANSWERED))
    return Document(id, tuple(words), spans=tuple(spans), written=write_sentences(words))
