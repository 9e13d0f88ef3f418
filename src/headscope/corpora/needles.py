"""Facts hidden in a text, and a question about one of them: the texts that show retrieval heads.

A document is a sequence of unrelated sentences (the corpus ``grammar``). Further sentences, the needles, are in random
positions among them, such as *The secret words of Vera are lamp boat corn rope .* At the end is a question about one of
them, followed by the answer: *What are the secret words of Vera ? They are lamp boat corn rope .*

All needles of a text consist of the same few words in different orders. So the word after the last occurrence of a word
is usually not the next word of the answer, and only the name in the question says which needle to copy.
"""

from collections.abc import Iterator
from random import Random

from headscope.corpora.document import Document, Span
from headscope.corpora.grammar import generate_sentences
from headscope.corpora.written_text import write_sentences

COUNT, SEED = 100, 0

NEEDLES = 4
"""The number of needles in a text."""

ANSWER = 4
"""The number of words in a needle that answer the question."""

POOL = 6
"""The number of different words from which all needles of a text are made."""

FEWEST, MOST = 10, 25
"""The least and greatest number of other sentences in a text."""

SHORT = 2, 4
"""The least and greatest number of other sentences in a short text; four take a model as long as one long text."""

NEEDLE, OTHER_NEEDLE, ANSWERED = "needle", "other needle", "answer"
"""The kinds of span: the answer's words in their needle, the words of the other needles, and the answer at the end."""

# fmt: off
NAMES = "Clara Felix Hugo Ida Karl Lena Max Nora Otto Ruth Vera Walter".split()
THINGS = "lamp boat corn rope drum bell glass silk stone wheel coin brush salt wood leaf tent wool nail soap".split()
# fmt: on


def generate_needles(
    count: int = COUNT, seed: int = SEED, *, others: tuple[int, int] = (FEWEST, MOST)
) -> Iterator[Document]:
    """Yield `count` documents, each with needles among `others[0]` to `others[1]` other sentences.

    The same seed gives the same documents.
    """
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
    """Return the document of the sentences, with the question and the answer at the end, and spans on all answers."""
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
