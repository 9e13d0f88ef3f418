"""The last word of texts: which word that is, and its probability against plain loops, whatever the batch."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
import torch

import tiny
from headscope.capture.model.model import Model
from headscope.corpora.document import Document, Link
from headscope.corpora.last_words import end_at_last_word
from headscope.corpora.message import Message
from headscope.errors import CorpusError
from headscope.intervene.evaluation import Evaluation, compute_logits
from headscope.intervene.language import prepare_last_words
from headscope.intervene.prediction import SentenceReader
from intervene.test_likelihood import make

WORDS = sorted({word for document in tiny.documents(7) for word in document.words if word.isalpha()})
PASSAGES = [
    Document(f"{number}:{word}", (*document.words[: 3 + number], word, ",", "..."), group=str(number))
    for number, document in enumerate(tiny.documents(5))
    for word in WORDS
]


def gather(model: Model, evaluation: Evaluation) -> dict[str, np.ndarray]:
    """The quantities of the texts, by the whole model."""
    sums = np.zeros((evaluation.items, len(evaluation.quantities)))
    for batch in evaluation.batches:
        with torch.no_grad():
            logits = compute_logits(model, batch)
            np.add.at(sums, batch.items.numpy(), evaluation.quantify(batch, logits, logits).numpy())
    return dict(evaluation.gather(sums))


@contextmanager
def prefer_words(model: Model) -> Iterator[None]:
    """Add to the logits of `WORDS` of one token, so that some of them are the most probable ones."""
    spelt = model.tokenizer([[word] for word in WORDS], is_split_into_words=True, add_special_tokens=False)["input_ids"]
    bonus = torch.zeros(model.module.config.vocab_size)
    bonus[[tokens[0] for tokens in spelt if len(tokens) == 1]] = 20.0
    hook = model.module.get_output_embeddings().register_forward_hook(lambda *called: called[-1] + bonus)
    try:
        yield
    finally:
        hook.remove()


def score_naively(model: Model, document: Document) -> tuple[float, bool, int]:
    """The log-probability of the last word, if each token is the most probable one, and how many there are."""
    tokenizer, words = model.tokenizer, list(document.words[:-2])
    encoded = tokenizer(words, is_split_into_words=True)
    ids, word = encoded["input_ids"], encoded.word_ids()
    mask = tokenizer.mask_token_id if "decoder" not in model.layers else None
    if mask is None and tokenizer.bos_token_id is not None and word[0] is not None:
        ids, word = [tokenizer.bos_token_id, *ids], [None, *word]
    places = [place for place, number in enumerate(word) if number == len(words) - 1]
    total, right = 0.0, True
    for place in places:
        seen = ids[:place] if mask is None else [*ids[:place], mask, *ids[place + 1 :]]
        with torch.no_grad():
            logits = model.module(torch.tensor([seen])).logits[0, -1 if mask is None else place].double()
        total += logits.log_softmax(-1)[ids[place]].item()
        right = right and int(logits.argmax()) == ids[place]
    return total, right, len(places)


@pytest.mark.parametrize("family", ["gpt2", "llama", "bert", "modernbert"])
def test_last_words_are_scored_as_by_a_plain_loop(family: str) -> None:
    model = make(family)
    evaluation = prepare_last_words(SentenceReader(model, "spaced"), PASSAGES, name="passages", batch_tokens=61)
    with prefer_words(model):
        values = gather(model, evaluation)
        expected = [score_naively(model, document) for document in PASSAGES]
    np.testing.assert_allclose(values["log_probability"], [total for total, _, _ in expected], atol=1e-4)
    np.testing.assert_array_equal(values["right"], [float(right) for _, right, _ in expected])
    np.testing.assert_array_equal(values["tokens"], [tokens for _, _, tokens in expected])
    assert 0 < values["right"].sum() < len(PASSAGES)
    assert len({*values["tokens"]}) > 1
    accuracy, loss, _ = evaluation.metrics
    sums = {name: np.array(each.sum()) for name, each in values.items()}
    assert accuracy.compute(sums) == pytest.approx(np.mean([right for _, right, _ in expected]))
    assert loss.compute(sums) == pytest.approx(-np.mean([total for total, _, _ in expected]), abs=1e-5)
    assert evaluation.examples == tuple(document.id for document in PASSAGES)
    assert {*evaluation.clusters} == {"0", "1", "2", "3", "4"}


@pytest.mark.parametrize(
    ("words", "boundary", "last"),
    [
        ("the dog sees a cat .", None, "the dog sees a cat"),
        ("the dog sees a cat 's '' .", None, "the dog sees a cat"),
        ("the dog sees <unk> 17", None, "the dog sees"),
        ("the dog sees a cat . It runs !", 6, "It runs"),
        ("the dog", None, "the dog"),
        ("it is one o\u2019clock.\u2019", None, "it is one o\u2019clock"),
        ("\u2018Begone!\u2019 cried the dog; \u2018quickly!\u2019", None, "\u2018Begone!\u2019 cried the dog"),
    ],
)
def test_a_text_ends_at_the_last_word_of_its_last_segment(words: str, boundary: int | None, last: str) -> None:
    given = Document("1", tuple(words.split()), links=(Link(0, 1, "det"),), boundary=boundary)
    assert end_at_last_word(given) == Document("1", tuple(last.split()))


@pytest.mark.parametrize("words", ["dog", "dog .", "<unk> 17", "... dog", "a b . dog !"])
def test_a_text_without_a_word_behind_the_first_has_no_last_word(words: str) -> None:
    given = Document("1", tuple(words.split()), boundary=3 if words.startswith("a b") else None)
    expected = words.startswith("...")
    assert (end_at_last_word(given) is not None) is expected


def test_a_conversation_does_not_end_at_its_last_word() -> None:
    with pytest.raises(CorpusError) as refused:
        end_at_last_word(Document("1", ("the", "dog"), messages=(Message("user", "the dog"),)))
    assert str(refused.value) == (
        "the document '1' is a conversation; the chat template writes more after its last word; give texts that end "
        "with the word to be predicted."
    )


def test_what_is_left_out_is_counted() -> None:
    model = make("llama")
    texts = [*PASSAGES[:3], Document("short", ("dog",)), Document("long", ("dog",) * 61)]
    evaluation = prepare_last_words(SentenceReader(model), texts, name="passages", max_tokens=31)
    assert len(evaluation.examples) == 3
    assert sorted(evaluation.skipped.values()) == [1, 1]
    assert "texts without a word after the first" in evaluation.skipped
    with pytest.raises(CorpusError, match="passages has no text whose last word 'llama' could predict"):
        prepare_last_words(SentenceReader(model), texts[3:], name="passages", max_tokens=31)
