"""Chat templates: where the texts of messages stand in what a template writes, whatever it does with them."""

from collections.abc import Callable, Sequence

import pytest

from headscope.capture.tokens.chat import locate_texts

Render = Callable[[Sequence[str]], str]


def locate(render: Render, texts: Sequence[str]) -> list[list[str]] | None:
    """What is rendered, with brackets around each text wherever it stands."""
    rendered = render(texts)
    located = locate_texts(rendered, texts, render)
    return located and [
        [f"{rendered[:first]}[{rendered[first:last]}]{rendered[last:]}" for first, last in places] for places in located
    ]


def raise_for_one_character(text: str) -> str:
    if len(text) == 1:
        raise ValueError("a message is longer")
    return text


def test_a_text_is_where_the_template_writes_it_and_not_where_its_words_come_first() -> None:
    assert locate(lambda texts: "Be brief. Today: {} - {}".format(*texts), ["Be brief.", "Be"]) == [
        ["Be brief. Today: [Be brief.] - Be"],
        ["Be brief. Today: Be brief. - [Be]"],
    ]
    assert locate("|".join, ["a", "a", "a"]) == [["[a]|a|a"], ["a|[a]|a"], ["a|a|[a]"]]


@pytest.mark.parametrize(
    ("render", "texts", "expected"),
    [
        (lambda texts: f"<{texts[0].strip()}>", ["  a b\n"], [["<[a b]>"]]),
        (lambda texts: f"<{texts[0].upper()}>", ["straße"], [["<[STRASSE]>"]]),
        (lambda texts: f"<{texts[0]}>", [" \ue000 "], [["<[ \ue000 ]>"]]),
        # As Qwen3 does with the thoughts of earlier answers.
        (lambda texts: f"<{texts[0].split('</think>')[-1].strip()}>", ["<think>hm</think>\n\nyes"], [["<[yes]>"]]),
        (lambda texts: f"<{texts[0]}> <{texts[0]}>", ["a"], [["<[a]> <a>", "<a> <[a]>"]]),
        (lambda texts: f"<{texts[1]}>", ["a", "b"], [[], ["<[b]>"]]),
        (lambda texts: f"<{texts[0]}{texts[1]}>", ["", "b"], [[], ["<[b]>"]]),
        (lambda texts: f"<{texts[0].replace('long', '')}>", ["long"], [[]]),
        (lambda texts: f"<{texts[1]}{texts[0]}>", ["a", "b"], [["<b[a]>"], ["<[b]a>"]]),
    ],
)
def test_what_a_template_may_do_with_a_text(render: Render, texts: list[str], expected: list[list[str]]) -> None:
    assert locate(render, texts) == expected


@pytest.mark.parametrize(
    ("render", "texts"),
    [
        (lambda texts: f"<{texts[0]}>" if "?" in texts[0] else f"<{texts[0]}>!", ["why?"]),
        (lambda texts: f"<{'A question: ' if '?' in texts[0] else ''}{texts[0]}>", ["why?"]),
        (lambda texts: "<>" if len(texts[0]) == 1 else f"<{texts[0]}>", ["long"]),
        (lambda texts: f"<{texts[0].replace('b', '')}>", ["abc"]),
        (lambda texts: f"<{texts[0]}> <{texts[0].upper()}>", ["a"]),
        (lambda texts: f"<{texts[0].replace('c', texts[1])}>", ["abcde", "c"]),
        (lambda texts: " ".join(sorted({*texts})), ["a", "a"]),
        (lambda texts: " ".join(sorted(texts)), ["b", "a"]),
        (lambda texts: raise_for_one_character(texts[0]), ["long"]),
    ],
)
def test_where_a_template_looks_at_a_text_nothing_is_guessed(render: Render, texts: list[str]) -> None:
    assert locate(render, texts) is None
