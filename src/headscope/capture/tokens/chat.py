"""Where the texts of messages stand in what a chat template writes of them.

A template is a program. Its own words may be those of a message, and it may trim a message, put the system text into
the message of the user, write a text twice or leave it out. So a text is not searched for: the template writes once
more, with a character for the text that is nowhere else.
"""

from collections.abc import Callable, Sequence
from itertools import accumulate, chain, pairwise

from headscope.corpora.written_text import Offsets

_PRIVATE_USE = range(0xE000, 0xF900)
"""Characters without a meaning, which no template trims, changes to upper case or divides."""


def locate_texts(
    rendered: str, texts: Sequence[str], render: Callable[[Sequence[str]], str]
) -> list[list[Offsets]] | None:
    """Return the characters of each text wherever it stands in what is rendered; None if that is not sure.

    What stands there is the text, or a stretch of it, such as the text without white space around it; it may be in
    upper or lower case. A text that is left out, or has no visible character, stands nowhere. It is not sure where a
    template writes something else around another text, or writes a text in a way that can only be guessed at.

    Args:
        rendered: what `render` gives for the texts.
        texts: in any order.
        render: lays the chat template around texts, as many and in the same order.
    """
    mark = next(each for each in map(chr, _PRIVATE_USE) if not any(each in text for text in (rendered, *texts)))
    located: list[list[Offsets]] = []
    for number, text in enumerate(texts):
        if not text.strip():
            located.append([])
            continue
        try:
            around = render([*texts[:number], mark, *texts[number + 1 :]]).split(mark)
        except Exception:  # templates raise what they like
            return None
        length = (len(rendered) - sum(map(len, around))) // max(len(around) - 1, 1)
        stretch = rendered[len(around[0]) : len(around[0]) + length]
        if stretch.join(around) != rendered or stretch.casefold() not in text.casefold():
            return None
        starts = accumulate((len(before) + length for before in around[1:-1]), initial=len(around[0]))
        located.append([(start, start + length) for start in starts] if stretch.strip() else [])
    stretches = sorted(chain.from_iterable(located))
    return None if any(second[0] < first[1] for first, second in pairwise(stretches)) else located
