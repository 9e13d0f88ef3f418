"""The study of dependency paths: which heads are in its sets, and what a language model loses without them."""

import shutil
from collections.abc import Mapping
from itertools import permutations

import numpy as np
import pandas as pd
import pytest
import scipy.stats
import xarray as xr

import headscope
import study_corpora
from headscope.analyse.lesions import compare_with_random
from headscope.corpora import read_minimal_pairs
from headscope.errors import HeadscopeError
from headscope.heads import read_table
from headscope.intervene.likelihood import score_minimal_pairs
from headscope.studies import STUDIES, judge
from headscope.studies.sashida2026 import choose_top_heads, find_best_scores
from headscope.studies.study import NotMeasuredError
from intervene.test_likelihood import make

STUDY = STUDIES["sashida2026"]
RELATIONS = ["all", "det", "nsubj", "nsubj:*", "rare", "path all", "path obl+case", "path nmod+case"]
LAYERS, HEADS = 5, 7


@pytest.fixture
def treebank() -> xr.Dataset:
    """Low scores of all heads; rows that pool others and rare rows have the highest."""
    generator = np.random.default_rng(3)
    dims, sizes = ("relation", "direction", "layer", "head"), (len(RELATIONS), 2, LAYERS, HEADS)
    scores = xr.DataArray(
        generator.uniform(0, 0.4, sizes), dims=dims,
        coords={
            "relation": RELATIONS, "direction": ["dependent_to_head", "head_to_dependent"],
            "layer": np.arange(1, LAYERS + 1), "head": np.arange(1, HEADS + 1),
        },
    )  # fmt: skip
    count = xr.full_like(scores.isel(layer=0, head=0, drop=True), 40)
    for name in ("all", "nsubj:*", "path all"):
        scores.loc[{"relation": name, "layer": 5}] = 0.99
    scores.loc[{"relation": "rare", "layer": 4}] = 1.0
    count.loc[{"relation": "rare"}] = 39
    return xr.Dataset({"relation_accuracy": scores, "relation_count": count})


def test_sets_are_of_the_best_relations_and_paths(treebank: xr.Dataset) -> None:
    scores = treebank["relation_accuracy"]
    for relation, direction, layer, head, score in (
        ("det", "dependent_to_head", 1, 2, 0.9), ("nsubj", "head_to_dependent", 2, 3, 0.8),
        ("det", "head_to_dependent", 3, 3, 0.7), ("nsubj", "dependent_to_head", 3, 4, 0.6),
        ("path obl+case", "dependent_to_head", 3, 5, 0.9), ("path nmod+case", "head_to_dependent", 2, 3, 0.8),
        ("path obl+case", "head_to_dependent", 3, 7, 0.7), ("path nmod+case", "dependent_to_head", 1, 1, 0.6),
    ):  # fmt: skip
        scores.loc[{"relation": relation, "direction": direction, "layer": layer, "head": head}] = score
    # A tenth of 35 heads is 4 (3.5).
    assert choose_top_heads(treebank) == {
        "single-hop": ["1-2", "2-3", "3-3", "3-4"],
        "multi-hop": ["3-5", "2-3", "3-7", "1-1"],
        "mixed": ["1-2", "2-3", "3-3", "3-4", "3-5", "3-7", "1-1"],
    }
    best = find_best_scores(treebank, multi=False)
    expected = scores.sel(relation=["det", "nsubj"]).max(("relation", "direction"))
    np.testing.assert_array_equal(best, expected)


def test_a_direction_with_few_links_chooses_no_head(treebank: xr.Dataset) -> None:
    place = {"relation": "det", "direction": "dependent_to_head"}
    treebank["relation_accuracy"].loc[place | {"layer": 2}] = 0.95
    assert set(choose_top_heads(treebank)["single-hop"]) <= {f"2-{head}" for head in range(1, HEADS + 1)}
    treebank["relation_count"].loc[place] = 39
    assert not set(choose_top_heads(treebank)["single-hop"]) <= {f"2-{head}" for head in range(1, HEADS + 1)}


def test_without_paths_there_are_no_sets(treebank: xr.Dataset) -> None:
    with pytest.raises(NotMeasuredError, match="no path of several dependencies 40 times"):
        choose_top_heads(treebank.sel(relation=["all", "det"]))


def tabulate(changes: dict[str, np.ndarray]) -> xr.Dataset:
    """A table of lesions of so many changes of the accuracy: that without the set, then those without random sets."""
    values = np.stack(list(changes.values()))
    half = 0.01
    compared = compare_with_random(values, 1000)
    variables = {"": values[:, 0], "_lower": values[:, 0] - half, "_upper": values[:, 0] + half} | {
        end: compared[end] for end in ("_random", "_excess", "_excess_lower", "_excess_upper")
    }
    # One in the number of runs is as small as it gets; of three sets each is as likely to be the worst.
    variables["_p"] = np.minimum(1, len(values) * (values <= values[:, :1]).sum(1) / values.shape[1])
    of_sets = {f"lesion_accuracy{end}": (("set", "subset"), value[:, None]) for end, value in variables.items()}
    member = np.zeros((len(changes), LAYERS, HEADS), dtype=int)
    member[:, 0, :3] = 1
    of_sets["examples"] = ("subset", [1000])
    less = values[:, None, 0] - values[None, :, 0]
    for end, away in (("", 0.0), ("_lower", -half), ("_upper", half)):
        of_sets[f"lesion_accuracy_less{end}"] = (("set", "set_other", "subset"), (less + away)[..., None])
    return xr.Dataset(
        of_sets | {"set_member": (("set", "layer", "head"), member)},
        coords={"set": list(changes), "set_other": list(changes), "subset": ["all"]}, attrs={"model": "some/model"},
    )  # fmt: skip


def judge_world(drops: dict[str, float], random: float, seed: int = 0) -> dict[str, str]:
    """The verdicts, by what is claimed, where random sets drop by so much."""
    generator = np.random.default_rng(seed)
    changes = {name: -np.array([drop, *generator.normal(random, 0.01, 119)]) for name, drop in drops.items()}
    tables = {f"{name}_{match}": tabulate(changes) for name in STUDY.lesions for match in ("layer", "size")}
    return {finding.claim.what: finding.verdict for finding in judge(STUDY, tables)}


def test_verdicts_where_sets_are_like_random_ones() -> None:
    for seed in range(5):
        verdicts = judge_world({"single-hop": 0.05, "multi-hop": 0.05, "mixed": 0.05}, 0.05, seed)
        assert {*verdicts.values()} == {"unclear"}


def test_a_set_that_is_not_the_worst_of_enough_is_unclear_though_its_interval_is_above_random() -> None:
    random = np.random.default_rng(3).normal(-0.05, 0.01, 19)
    table = tabulate({name: np.array([-0.085, *random]) for name in ("single-hop", "multi-hop", "mixed")})
    assert (table["lesion_accuracy_excess_upper"] < 0).all()
    findings = judge(STUDY, {f"{name}_{match}": table for name in STUDY.lesions for match in ("layer", "size")})
    assert {finding.verdict for finding in findings} == {"unclear"}


def test_verdicts_where_nothing_changes_in_few_examples() -> None:
    """Then intervals by text have no width."""
    values = np.zeros((3, 11))
    table = tabulate(dict(zip(("single-hop", "multi-hop", "mixed"), values, strict=True)))
    for end in ("_lower", "_upper"):
        table[f"lesion_accuracy{end}"][:] = 0
        table[f"lesion_accuracy_less{end}"][:] = 0
    table["examples"][:] = 13
    findings = judge(STUDY, {f"{name}_{match}": table for name in STUDY.lesions for match in ("layer", "size")})
    assert {finding.verdict for finding in findings} == {"unclear"}
    assert {finding.ours.detail for finding in findings} == {"3 heads", "random sets 0.00", ""}


def test_verdicts_where_the_paper_is_right_and_where_it_is_wrong() -> None:
    assert {*judge_world({"single-hop": 0.1, "multi-hop": 0.2, "mixed": 0.3}, 0.02).values()} == {"holds"}
    wrong = judge_world({"single-hop": 0.2, "multi-hop": 0.1, "mixed": 0.05}, 0.5)
    assert {*wrong.values()} == {"fails"}


@pytest.mark.full
def test_a_language_model_loses_what_disabling_the_heads_by_hand_loses(tmp_path) -> None:
    model = make("llama")
    data = study_corpora.write(tmp_path / "data")
    settings = {"limits": {"blimp": 31, "last_words": 13}, "progress": False, "figures": True}
    result = headscope.study("sashida2026", (model.module, model.tokenizer), data, tmp_path / "out", **settings)
    tables = result.tables
    assert {*tables} == {"treebank", "blimp_layer", "blimp_size", "last_words_layer", "last_words_size"}
    sets = choose_top_heads(tables["treebank"])
    pairs = [*read_minimal_pairs(data / "blimp")][:31]
    whole = score_minimal_pairs(model, pairs)["difference"]
    margins: dict[str, np.ndarray] = {}
    for name, heads in sets.items():
        with headscope.disable(model, heads, "uniform"):
            without = score_minimal_pairs(model, pairs)["difference"]
        assert abs((without - whole).mean()) > 0.01
        for match in ("layer", "size"):
            of_set = tables[f"blimp_{match}"].sel(set=name, subset="all")
            assert float(of_set["lesion_margin"]) == pytest.approx((without - whole).mean(), abs=1e-4)
            right = (without > 0).mean() - (whole > 0).mean()
            assert float(of_set["lesion_accuracy"]) == pytest.approx(right, abs=1e-9)
        margins[name] = without
    for name, other in permutations(sets, 2):
        less = tables["blimp_size"].sel(set=name, set_other=other, subset="all")
        expected = scipy.stats.ttest_rel(margins[name], margins[other]).confidence_interval(0.95)
        assert float(less["lesion_margin_less"]) == pytest.approx((margins[name] - margins[other]).mean(), abs=1e-4)
        assert float(less["lesion_margin_less_lower"]) == pytest.approx(expected.low, abs=1e-3)
        assert float(less["lesion_margin_less_upper"]) == pytest.approx(expected.high, abs=1e-3)
    assert tables["last_words_size"].attrs["documents"] == 13
    assert tables["blimp_size"].attrs["match"] == "size"
    written = read_table(tmp_path / "out" / "blimp_size.nc")
    xr.testing.assert_allclose(written["lesion_margin"], tables["blimp_size"]["lesion_margin"])
    frame = pd.read_csv(tmp_path / "out" / "sashida2026.csv")
    assert not (frame["verdict"] == "not measured").any()
    sheet = (tmp_path / "out" / "sashida2026.md").read_text()
    assert "31 minimal pairs" in sheet
    assert "13 texts" in sheet
    assert "sashida2026-drops.png" in sheet


def test_the_difference_of_two_sets_is_paired() -> None:
    """Both lose much, and on the same examples: their own intervals overlap, that of the difference is above 0."""
    changes = {"single-hop": -0.2, "multi-hop": -0.25, "mixed": -0.25}
    table = tabulate({name: np.array([drop, *np.linspace(-0.01, 0.01, 10)]) for name, drop in changes.items()})
    for end, away in (("_lower", -0.1), ("_upper", 0.1)):
        table[f"lesion_accuracy{end}"] = table["lesion_accuracy"] + away
    findings = judge(STUDY, {f"{name}_{match}": table for name in STUDY.lesions for match in ("layer", "size")})
    (finding,) = (
        finding for finding in findings
        if finding.claim.what == "BLiMP, drop without multi-hop heads less that without single-hop ones"
    )  # fmt: skip
    ours = finding.ours
    assert (ours.number, ours.lower, ours.upper) == pytest.approx((5, 4, 6))
    assert finding.verdict == "holds"
    older = table.drop_vars([name for name in table if "_less" in name])
    findings = judge(STUDY, {f"{name}_{match}": older for name in STUDY.lesions for match in ("layer", "size")})
    assert {finding.why for finding in findings if finding.verdict == "not measured"} == {
        "the table does not compare sets of heads with each other"
    }


class KilledError(Exception):
    """What ends a run in the middle."""


@pytest.mark.full
def test_a_killed_study_goes_on_behind_the_sets_that_are_done(tmp_path) -> None:
    model, data, steps = make("llama"), study_corpora.write(tmp_path / "data"), []
    settings = {"limits": {"blimp": 7, "last_words": 5}, "data": data}

    def run(kill_at: int = 0, **how: object) -> Mapping[str, xr.Dataset]:
        def report(step: str, done: int, total: int) -> None:
            if step.startswith("disabling"):
                steps.append((done, total))
                if len(steps) == kill_at:
                    raise KilledError

        steps.clear()
        bare = (model.module, model.tokenizer)
        return headscope.study("sashida2026", bare, out=tmp_path / "out", progress=report, **settings, **how).tables

    whole = run()
    # The random sets of a table come in stages, each of which counts its steps anew.
    every, begins = len(steps), [at for at in range(1, len(steps)) if steps[at][0] <= steps[at - 1][0]]
    assert len(begins) >= 3  # there are four tables
    done = begins[len(begins) // 2]
    with pytest.raises(KilledError):
        run(kill_at=done + 1)
    resumed = run(resume=True)
    assert len(steps) == every - done
    for name, table in whole.items():
        xr.testing.assert_identical(resumed[name].drop_attrs(), table.drop_attrs())


def test_a_model_without_a_language_head_says_so(tmp_path) -> None:
    model = make("llama")
    data = study_corpora.write(tmp_path / "data")
    bare = (model.module.base_model, model.tokenizer)
    result = headscope.study("sashida2026", bare, data, tmp_path / "out", progress=False)
    assert {*result.tables} == {"treebank"}
    assert {finding.verdict for finding in result.findings} == {"not measured"}
    assert all("gives a sentence no probability" in finding.why for finding in result.findings)


def test_a_folder_without_minimal_pairs_is_refused_before_anything_is_measured(tmp_path) -> None:
    data = study_corpora.write(tmp_path / "data")
    shutil.rmtree(data / "blimp")
    with pytest.raises(HeadscopeError, match=r"the study needs what is not in the folder .*: blimp"):
        headscope.study("sashida2026", "minilm", data, tmp_path / "out", progress=False)
    assert not (tmp_path / "out").exists()
