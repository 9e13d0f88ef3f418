"""Documents -> verified batches: what a second reader costs, and what was left out is counted once, come what may."""

import json
from dataclasses import replace
from functools import cache
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import laws
import tiny
from headscope.capture.model.model import Model
from headscope.capture.passes import stream
from headscope.capture.passes.stream import Plan, Stream
from headscope.corpora.document import Document
from headscope.errors import CorpusError, ModelError
from headscope.reducers import Surface
from headscope.runner import local, measure
from headscope.runner.checkpoint import RunSums, load

LONG = [
    replace(document, id=f"long {document.id}", words=document.words * 3, boundary=None)
    for document in tiny.documents(5)
]
DOCUMENTS = [LONG[0], *tiny.documents(7), tiny.tokenless_document(), *LONG[1:]]
LIMIT = 31


@cache
def model() -> Model:
    return Model.from_module(*tiny.make("bert"), name="bert")


def longest(documents: list[Document], count: int = 5) -> list[tuple[int, str]]:
    """A second reader of batches: the longest documents, by their tokens."""
    lengths = []
    for portion in Stream(documents, (model(),)):
        for batch in portion.batches:
            tokens = batch.encoder.real.sum(1).tolist()
            lengths += [(length, document.id) for length, document in zip(tokens, batch.documents, strict=True)]
    return sorted(lengths, reverse=True)[:count]


def test_a_second_reader_is_ten_lines() -> None:
    lengths = []
    for document in DOCUMENTS:
        words, boundary = list(document.words), document.boundary
        segments = [words] if boundary is None else [words[:boundary], words[boundary:]]
        encoded = model().tokenizer(*segments, is_split_into_words=True)["input_ids"] if words else []
        lengths.append((len(encoded), document.id))
    expected = sorted(lengths, reverse=True)[:5]
    assert longest(DOCUMENTS) == expected


def skipped(sums: RunSums) -> dict[str, int]:
    return sums.select_run("skipped")


@cache
def expected() -> dict[str, int]:
    """What is left out of each document by itself, added up."""
    done = RunSums({})
    for document in DOCUMENTS:
        done += laws.add_up(model(), [document], [Surface()], Plan(max_tokens=LIMIT))
    return skipped(done)


def test_what_is_expected_is_left_out_for_several_reasons() -> None:
    assert expected()[f"documents longer than {LIMIT} tokens"] == 3
    assert expected()["words without a token"] == 2
    assert any(reason.startswith("pairs of segments cut") for reason in expected())


@settings(max_examples=15, deadline=None)
@given(
    order=st.permutations(range(len(DOCUMENTS))),
    cuts=st.sets(st.integers(1, len(DOCUMENTS) - 1), max_size=4),
    batch_tokens=st.sampled_from([1, 29, 4096]),
    window=st.sampled_from([1, 2, 3, 2048]),
)
def test_skipped_counts_are_the_same_in_any_order_split_batch_and_window(order, cuts, batch_tokens, window) -> None:
    ordered = [DOCUMENTS[index] for index in order]
    done = RunSums({})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream, "WINDOW", window)
        for start, end in pairwise([0, *sorted(cuts), len(DOCUMENTS)]):
            plan = Plan(max_tokens=LIMIT, cut=False, batch_tokens=batch_tokens)
            done += laws.add_up(model(), ordered[start:end], [Surface()], plan)
    assert skipped(done) == expected()


@pytest.mark.parametrize("window", [1, 2, 2048])
@pytest.mark.parametrize("batch_tokens", [1, 29, 4096])
def test_skipped_counts_survive_a_kill_and_a_resume(tmp_path, monkeypatch, window: int, batch_tokens: int) -> None:
    monkeypatch.setattr(stream, "WINDOW", window)
    monkeypatch.setattr(local, "SAVE_EVERY", 0.0)
    plan = Plan(max_tokens=LIMIT, cut=False, batch_tokens=batch_tokens)
    whole = measure(model(), DOCUMENTS, plan=plan)
    assert json.loads(whole.attrs["skipped"]) == expected()
    saved = tmp_path / "sums.npz"
    reports: list[int] = []

    def kill(done: int, total: int) -> None:
        reports.append(done)
        if len(reports) % 2 == 0:
            raise KeyboardInterrupt

    for _ in range(99):  # killed again and again, and taken up again
        try:
            table = measure(model(), DOCUMENTS, plan=plan, checkpoint=saved, resume=True, progress=kill)
        except KeyboardInterrupt:
            continue
        break
    assert table.drop_attrs().identical(whole.drop_attrs())
    assert table.attrs["skipped"] == whole.attrs["skipped"]
    assert skipped(load(saved)[0]) == expected()
    # A run that is finished adds nothing when it is taken up.
    again = measure(model(), DOCUMENTS, plan=plan, checkpoint=saved, resume=True)
    assert again.attrs["skipped"] == whole.attrs["skipped"]


def test_documents_behind_the_last_batch_are_a_portion_without_one(monkeypatch) -> None:
    monkeypatch.setattr(stream, "WINDOW", 1)
    portions = list(Stream([*tiny.documents(2), LONG[0]], (model(),), Plan(max_tokens=LIMIT)))
    assert [len(portion.batches) for portion in portions] == [1, 1, 0]
    assert [len(portion.captures) for portion in portions] == [1, 1, 0]
    assert portions[-1].skipped == {f"documents longer than {LIMIT} tokens": 1}


def test_nothing_to_measure_is_refused_with_the_reasons() -> None:
    with pytest.raises(CorpusError) as refused:
        measure(model(), [LONG[0], LONG[2]], plan=Plan(max_tokens=LIMIT, cut=False))
    assert str(refused.value) == (
        f"none of the 2 documents could be measured (2 documents longer than {LIMIT} tokens); "
        "give shorter documents or a model that takes longer ones."
    )


def test_a_model_is_verified_before_the_first_batch_is_handed_out() -> None:
    training = replace(model(), module=tiny.make("bert")[0].train())
    with pytest.raises(ModelError, match="is in training mode"):
        next(iter(Stream(DOCUMENTS, (training,))))


def test_a_pair_whose_sample_is_one_text_too_long_for_the_model_is_verified_all_the_same() -> None:
    # The sample of a pair is its beginning, which here is the first segment alone.
    words = tuple(word for document in tiny.documents(31) for word in document.words)[:131]
    pair = Document("pair", words=(*words, *words[:7]), boundary=len(words))
    short = Model.from_module(*tiny.make("bert"), name="short")
    short.module.config.max_position_embeddings = 29
    (portion,) = Stream([pair], (short,), Plan(pair_tokens=23))
    assert len(portion.batches) == 1
