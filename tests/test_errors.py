"""Messages: one sentence that a terminal can show, however odd or long what it quotes."""

from headscope.errors import LONGEST, CorpusError, HeadscopeError


def test_what_a_terminal_would_obey_is_shown_and_not_done() -> None:
    assert str(HeadscopeError("the label '\x1b[2J\x00\ud83d' is naïve")) == r"the label '\x1b[2J\x00\ud83d' is naïve"


def test_a_long_message_keeps_its_beginning_and_its_end() -> None:
    message = str(CorpusError(f"line 3 has {'x' * 1_000_000} in it; correct it."))
    assert message.startswith("line 3 has xxx")
    assert message.endswith("xxx in it; correct it.")
    assert " ... " in message
    assert len(message) == LONGEST + 5
    assert str(CorpusError("x" * LONGEST)) == "x" * LONGEST
