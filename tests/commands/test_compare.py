"""The command `compare` as a user types it: what it writes, what it says, and how it refuses."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from matplotlib.figure import Figure

import headscope
from analyse.run_tables import simulate
from analyse.tables import RELATIONS, head_table, texts
from headscope import heads
from headscope.analyse import compare_variable as compare
from headscope.analyse import consistencies, rank_sum
from headscope.commands.compare.request import Compare
from headscope.commands.recorded_request import REQUEST, restore_request
from headscope.errors import HeadscopeError
from headscope.files import LOCK, reserve
from headscope.reducers import NegationScope, TokenClasses
from headscope.score import write_scores
from headscope.view.figures import style

LAYERS, HEADS = 3, 5
SEEDS = [2, 3, 5, 7]
CLASSES = ["noun", "verb", "pronoun"]


def family(corpus: int, folder: Path, seeds: list[int] = SEEDS) -> dict[str, Path]:
    """Before, after and control on a corpus, as files; nouns get more after, verbs are not there."""
    draw = np.random.default_rng(corpus)
    shares = np.random.default_rng(1).beta(2, 6, (LAYERS, HEADS))
    gained = np.clip(shares + 0.1, 0, 0.99)[None] * np.ones((len(seeds), 1, 1))
    about = {"corpus": f"texts-{corpus}.json", "corpus_sha256": f"{corpus:02x}" * 32}
    made = {
        "before": simulate(draw, shares, **about),
        "after": simulate(draw, gained, seeds=seeds, **about),
        "control": simulate(draw, shares[None] * np.ones((len(seeds), 1, 1)), seeds=seeds, control=True, **about),
    }
    paths = {}
    for name, table in made.items():
        mass = draw.uniform(0.1, 0.2, (*table["scope_f1"].shape, len(CLASSES)))
        mass[..., 0] += 0.1 * (name == "after")
        mass[..., 1] = np.nan
        table = table.assign_coords(token_class=CLASSES).assign(
            token_class_mass=heads.variable(
                mass, (*table["scope_f1"].dims, "token_class"), name="attention", units="share of attention", source="x"
            )
        )
        table.attrs["scores"] = write_scores((*NegationScope.scores, *TokenClasses.scores))
        paths[name] = heads.write_table(table, folder / f"{name}-{corpus}.nc")
    return paths


@pytest.fixture(autouse=True)
def _few_figures(monkeypatch) -> None:
    """Those of the F1 are drawn; of the others there are empty files, since drawing takes its time."""

    def save(figure: Figure, folder: Path, name: str, *, pdf: bool, bare: bool) -> list[Path]:
        if name.startswith("scope_f1"):
            return style.save(figure, folder, name, pdf=pdf, bare=bare)
        folder.mkdir(exist_ok=True)
        paths = [folder / f"{name}.{suffix}" for suffix in ("png", "svg")]
        for path in paths:
            path.touch()
        return paths

    monkeypatch.setattr("headscope.view.figures.save", save)


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> dict[str, Path]:
    return family(3, tmp_path_factory.mktemp("one"))


@pytest.fixture(scope="module")
def others(tmp_path_factory) -> dict[str, Path]:
    return family(5, tmp_path_factory.mktemp("other"))


def words(files: dict[str, Path]) -> list[object]:
    return [files["before"], files["after"], "--control", files["control"]]


@pytest.mark.parametrize(
    "labels",
    [[f"{'ä' * 99}{end}" for end in ("no", "ve", "pr")], ["a:b", "a/b", "A_b"]],
    ids=["too long for names of files", "alike as names of files"],
)
def test_any_labels_are_compared(files, tmp_path, labels) -> None:
    before, after = (heads.read_table(files[name]).assign_coords(token_class=labels) for name in ("before", "after"))
    result = headscope.compare(before, after, variables=["token_class_mass"], out=tmp_path, figures=True)
    kept = sorted(path.stem for path in (tmp_path / "comparisons").iterdir())
    assert len(kept) == len(result.comparisons) == 2
    assert all(len(name.encode()) <= 200 for name in kept)
    for comparison in result.comparisons:
        assert any(heads.read_table(tmp_path / "comparisons" / f"{name}.nc").identical(comparison) for name in kept)
    page = (tmp_path / "comparison.md").read_text()
    assert all(f"figures/{name}-changes.png" in page for name in kept)


@pytest.mark.full
def test_everything_that_the_tables_have_in_common_is_compared(run, files, others, tmp_path) -> None:
    out = tmp_path / "made" / "changes"
    elsewhere = [f"--other-{name}={others[name]}" for name in ("before", "after", "control")]
    code, said, _ = run("compare", *words(files), *elsewhere, "--figures", "-o", out)
    assert code == 0
    names = ["scope_precision", "scope_recall", "scope_f1", "token_class_mass-noun", "token_class_mass-pronoun"]
    assert sorted(path.stem for path in (out / "comparisons").iterdir()) == sorted(names)
    tables = [heads.read_table(files[name]) for name in ("before", "after", "control")]
    for name in names:
        variable, _, label = name.partition("-")
        kept = heads.read_table(out / "comparisons" / f"{name}.nc")
        where = {"token_class": label} if label else None
        assert kept.attrs.pop(REQUEST)
        xr.testing.assert_identical(kept, compare(*tables, variable, where=where))
        frame = pd.read_csv(out / "tables" / f"{name}-heads.csv")
        assert frame["change_task"].to_numpy() == pytest.approx(
            kept["change"].sel(group="task").values.ravel(), rel=1e-4
        )
    drawn_so = {path.name for path in (out / "figures").iterdir()}
    assert {"scope_f1-changes.png", "scope_f1-layers.svg", "scope_f1-baseline.png", "pairs-best.svg"} <= drawn_so
    assert "token_class_mass-noun-changes.png" in drawn_so
    assert "token_class_mass-noun-baseline.png" not in drawn_so
    page = (out / "comparison.md").read_text()
    assert "# What fine-tuning on negation changes in the heads of made/up" in page
    assert all(
        (out / path).is_file() for path in [line.split("(")[-1][:-1] for line in page.splitlines() if "](" in line]
    )
    listed = json.loads((out / "comparison.json").read_text())
    assert set(listed["sha256"]) | {"comparison.json"} == {
        path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()
    }
    assert listed["about"]["variables"] == [name.replace("-", " ") for name in names]
    # What it says of the F1, and of the other corpus.
    assert "made/up before and after fine-tuning on negation" in said
    assert "texts-3.json: 15 heads; negation, 4 runs; control, 4 runs" in said
    there = [heads.read_table(others[name]) for name in ("before", "after", "control")]
    found = [consistencies(*pair, "scope_f1") for pair in zip(tables, there, strict=True)]
    there_called = there[0].attrs["corpus"]
    assert f"On {there_called}, negation: {found[1]}" in said
    assert f"## Do the same heads score well on {there_called}?" in page
    assert f"rank-sum, p = {rank_sum(found[1].taus, found[2].taus):.4g}" in page
    count = len([name for name in listed["sha256"] if not name.startswith("figures/")]) + 1
    assert f"Read {out / 'comparison.md'}; {count} files in {out}, where figures are drawn now." in said


def test_few_runs_are_said_to_show_nothing_by_this_test(run, tmp_path) -> None:
    files = family(3, tmp_path, [2, 3, 5])
    code, said, _ = run("compare", *words(files), "--variable", "scope_f1", "-o", tmp_path / "out")
    assert code == 0
    assert "With 3 against 3 runs, p is 0.1 at least: this test cannot show whether the task changes more than" in said
    assert "not significant" not in said


def test_variables_are_named_with_their_places(run, files, tmp_path) -> None:
    out = tmp_path / "out"
    asked = ["--variable", "token_class_mass:token_class=pronoun", "--variable", "scope_recall"]
    assert run("compare", files["before"], files["after"], *asked, "-o", out)[0] == 0
    assert {path.stem for path in (out / "comparisons").iterdir()} == {"scope_recall", "token_class_mass-pronoun"}
    assert run("compare", files["before"], files["after"], "--variable", "token_class_mass", "-o", out)[0] == 0
    left = {path.stem for path in (out / "comparisons").iterdir()}
    assert left == {"token_class_mass-noun", "token_class_mass-pronoun"}


def test_of_relations_the_frequent_ones_are_compared_in_their_reported_direction(run, monkeypatch, tmp_path) -> None:
    monkeypatch.setattr("headscope.commands.compare.entries.FREQUENT", 3)
    before = head_table(texts(np.random.default_rng(3)), RELATIONS)
    after = head_table(texts(np.random.default_rng(5)), RELATIONS).assign_attrs(weights_sha256="ef" * 32)
    paths = [heads.write_table(table, tmp_path / f"{place}.nc") for place, table in enumerate((before, after))]
    code, said, _ = run("compare", *paths, "-o", tmp_path / "out")
    assert code == 0
    counts = before["relation_count"].to_series().sort_values(ascending=False, kind="stable")
    names = {path.stem for path in (tmp_path / "out" / "comparisons").iterdir()}
    best = before["relation_accuracy"].max(["layer", "head"]).to_series()
    assert names == {f"relation_accuracy-{relation}-{best[relation].idxmax()}" for relation in counts.index[:3]}
    assert "4 rarer relations were not compared; name one as --variable relation_accuracy:relation=NAME." in said


def test_without_a_folder_nothing_is_written(files, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = headscope.compare(files["before"], files["after"], variables="scope_f1")
    assert (result.folder, result.files, [*tmp_path.iterdir()]) == (None, (), [])
    assert [each.attrs["variable"] for each in result.comparisons] == ["scope_f1"]


def test_the_request_that_a_comparison_records_gives_it_again(files) -> None:
    before = heads.read_table(files["before"])
    (first,) = headscope.compare(before, files["after"], files["control"], variables=["scope_f1"]).comparisons
    (again,) = restore_request(Compare, first.attrs[REQUEST], before=before).run().comparisons
    xr.testing.assert_identical(first, again)
    with pytest.raises(HeadscopeError, match=r"made with .*before-3\.nc' in memory as `before`"):
        restore_request(Compare, first.attrs[REQUEST])


@pytest.mark.full
def test_each_stack_of_an_encoder_decoder_is_compared_alone(run, files, tmp_path) -> None:
    paths, halves = {}, {}
    for name in ("before", "after", "control"):
        table = heads.read_table(files[name]).drop_vars("token_class_mass")
        other = table.map(lambda values: values * 0.5 if "head" in values.dims else values, keep_attrs=True)
        by_head = [name for name, values in table.items() if "head" in values.dims]
        both = xr.concat([table, other], dim="attention_type", data_vars=by_head).assign_coords(
            attention_type=["encoder", "decoder"]
        )
        paths[name], halves[name] = heads.write_table(both, tmp_path / f"{name}.nc"), other
    out = tmp_path / "out"
    code, said, _ = run("compare", *words(paths), "--variable", "scope_f1", "-o", out)
    assert code == 0
    assert {path.stem for path in (out / "comparisons").iterdir()} == {"scope_f1-encoder", "scope_f1-decoder"}
    kept, alone = heads.read_table(out / "comparisons" / "scope_f1-decoder.nc"), compare(*halves.values())
    xr.testing.assert_allclose(kept, alone)
    assert kept.attrs["best_head"] == alone.attrs["best_head"]
    assert "in scope F1, decoder (q" in " ".join(said.split())
    one = ["--variable", "scope_f1:attention_type=encoder", "-o", tmp_path / "one"]
    assert run("compare", *words(paths), *one)[0] == 0
    assert [path.stem for path in (tmp_path / "one" / "comparisons").iterdir()] == ["scope_f1-encoder"]


@pytest.mark.full
def test_what_the_other_corpus_lacks_is_counted(run, files, others, tmp_path) -> None:
    less = {
        name: heads.write_table(heads.read_table(path).drop_vars("token_class_mass"), tmp_path / f"{name}.nc")
        for name, path in others.items()
    }
    elsewhere = [f"--other-{name}={less[name]}" for name in ("before", "after")]
    code, said, _ = run("compare", files["before"], files["after"], *elsewhere, "-o", tmp_path / "out")
    assert code == 0
    assert "2 of 5 were not compared across corpora, because the other corpus has no values of them." in said
    assert ", control: " not in said


REFUSED = {
    "no table": (
        lambda files, others: [files["before"], "nothing.nc"],
        "there is no file nothing.nc; a head table is written by `headscope atlas`, `headscope measure` or "
        "`headscope merge`.",
    ),
    "half of another corpus": (
        lambda files, others: [*words(files), f"--other-before={others['before']}"],
        "--other-before and --other-after go together, and --other-control goes with both.",
    ),
    "a control on the other corpus alone": (
        lambda files, others: [
            files["before"],
            files["after"],
            *(f"--other-{name}={path}" for name, path in others.items()),
        ],
        "--other-control is the control on another corpus; give it on this one too, as --control.",
    ),
    "swapped": (
        lambda files, others: [files["after"], files["before"]],
        "{after} holds 4 runs; give the table of the model before it was tuned first, and that of the runs second.",
    ),
    "another corpus": (
        lambda files, others: [files["before"], others["after"]],
        "{other_after} is of the corpus 'texts-5.json' and {before} of 'texts-3.json'; measure both on the same "
        "corpus.",
    ),
    "no such variable": (
        lambda files, others: [*words(files), "--variable", "mass_sep"],
        "--variable mass_sep: {before} has no variable 'mass_sep'; it has scope_precision, scope_recall, scope_f1, "
        "token_class_mass.",
    ),
    "no such place": (
        lambda files, others: [*words(files), "--variable", "token_class_mass:token_class=comma"],
        "--variable token_class_mass:token_class=comma: {before} has no token_class 'comma'; it has noun, "
        "verb, pronoun.",
    ),
    "no place at all": (
        lambda files, others: [*words(files), "--variable", "token_class_mass:noun"],
        "--variable token_class_mass:noun: 'noun' is no place of token_class_mass; write NAME:DIMENSION=PLACE, such as "
        "token_class_mass:token_class=noun.",
    ),
    "not of heads": (
        lambda files, others: [*words(files), "--variable", "fold_scope"],
        "--variable fold_scope: fold_scope is not of each head; {before} has scope_precision, scope_recall, scope_f1, "
        "token_class_mass.",
    ),
    "nothing there": (
        lambda files, others: [*words(files), "--variable", "token_class_mass:token_class=verb"],
        "no head has a value of 'token_class_mass' in {before} and in all runs; compare another variable.",
    ),
}


@pytest.mark.parametrize(("given", "sentence"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_compared_is_refused_in_a_sentence(run, files, others, tmp_path, given, sentence) -> None:
    out = tmp_path / "out"
    code, _, complained = run("compare", *given(files, others), "-o", out)
    assert code == 2
    assert complained.strip().splitlines()[-1] == "headscope: " + sentence.format(
        **files, **{f"other_{name}": path for name, path in others.items()}
    )
    assert not out.exists()


def test_whoever_comes_second_is_refused_before_anything_is_compared(files, tmp_path) -> None:
    out, steps = tmp_path / "out", []
    with reserve(out, out / LOCK), pytest.raises(HeadscopeError) as refused:
        headscope.compare(files["before"], files["after"], out=out, progress=lambda step, *_: steps.append(step))
    assert str(refused.value) == (
        f"another headscope command is writing to {out}; wait until it has ended, or choose another place."
    )
    assert "comparing" not in steps
    assert list(tmp_path.iterdir()) == []


def test_nobody_is_sent_to_resume_what_keeps_nothing(run, files, tmp_path, monkeypatch) -> None:
    faults = {
        "interrupted.": KeyboardInterrupt(),
        f"the comparison could not be written to {tmp_path} (the tape is torn); free some space or choose another "
        "folder.": OSError(5, "the tape is torn"),
    }
    for sentence, fault in faults.items():

        def fail(*_: object, fault: BaseException = fault) -> None:
            raise fault

        monkeypatch.setattr("headscope.commands.folder.write_content", fail)
        code, _, complained = run("compare", *words(files), "--variable", "scope_f1", "-o", tmp_path)
        assert code in (2, 130)
        assert complained.strip().splitlines()[-1] == f"headscope: {sentence}"


def test_a_variable_that_has_no_value_at_any_place_is_refused(run, files, tmp_path) -> None:
    empty = []
    for name in ("before", "after"):
        table = heads.read_table(files[name])
        table = table.assign(token_class_mass=table["token_class_mass"].where(False))
        empty.append(heads.write_table(table, tmp_path / f"{name}.nc"))
    code, _, complained = run("compare", *empty, "--variable", "token_class_mass", "-o", tmp_path / "out")
    assert code == 2
    assert complained.strip().splitlines()[-1] == (
        f"headscope: no head has a value of 'token_class_mass' in {empty[0]} and in all runs; compare another variable."
    )


def test_tables_without_a_score_in_common_are_refused(run, files, tmp_path) -> None:
    gone = ["token_class_mass", "scope_f1", "scope_precision", "scope_recall"]
    bare = [
        heads.write_table(heads.read_table(files[name]).drop_vars(gone), tmp_path / f"{name}.nc")
        for name in ("before", "after")
    ]
    code, _, complained = run("compare", *bare, "-o", tmp_path / "out")
    assert code == 2
    assert complained.strip().splitlines()[-1] == (
        f"headscope: {bare[0]} and the tables after have no score in common; name a variable as --variable, such as "
        "mass_sep."
    )
