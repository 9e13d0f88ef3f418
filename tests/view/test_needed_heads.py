"""`headscope atlas --effects`: what each head marks beside what happens without it, in a model of which we know both.

Of the planted model two heads read the answer of the task. One of them also looks from verbs to their objects; the
other does nothing that a treebank knows. A third head looks from nouns to their determiners, which nobody needs.
"""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import headscope
from headscope.errors import HeadscopeError
from headscope.heads import write_table
from headscope.runner.completed_table import name_view
from headscope.view.page import render_page
from planted import documents, from_to
from planted_task import make_task, mark_objects, plant_task
from view.parsed import Browse, OpenPage, Page
from view.test_exports import export, read_csv

READING, MARKING = [(2, 3), (1, 2)], {(2, 3): mark_objects, (3, 5): from_to("noun", "determiner")}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model, the corpus, what disabling heads changes, and the atlas with it."""
    folder, model = tmp_path_factory.mktemp("need"), plant_task(READING, rules=MARKING)
    model.module.save_pretrained(folder / "model")
    model.tokenizer.save_pretrained(folder / "model")
    sentences = [
        "".join(
            f"{number}\t{word}\t_\tX\t_\t_\t{head}\t{label}\t_\t_\n"
            for number, (word, (head, label)) in enumerate(zip(each.words, _find_heads(each), strict=True), start=1)
        )
        for each in documents(211)
    ]
    (folder / "planted.conllu").write_text(
        "".join(f"# newdoc id = {number}\n{lines}\n" for number, lines in enumerate(sentences))
    )
    headscope.measure_effects(
        str(folder / "model"), make_task(61), folder / "effects", layers=[1], heads=_list_heads(), placebos=3,
        progress=False,
    )  # fmt: skip
    return folder


def _find_heads(document: headscope.Document) -> list[tuple[int, str]]:
    """The head of each word, counted from 1, and its label; words without a link hang on the root."""
    heads = {link.source: (link.target + 1, link.label) for link in document.links}
    (root,) = {target - 1 for target, label in heads.values() if label == "obj"}
    return [(0, "root") if word == root else heads.get(word, (root + 1, "dep")) for word in range(len(document.words))]


def _list_heads() -> list[str]:
    return [f"{layer}-{head}" for layer in (1, 2, 3) for head in range(1, 6)]


@pytest.fixture(scope="module")
def atlas(folder: Path) -> Path:
    headscope.atlas(
        str(folder / "model"), folder / "planted.conllu", folder / "atlas", effects=folder / "effects",
        permutations=199, progress=False,
    )  # fmt: skip
    return folder / "atlas"


def test_a_search_leads_to_the_needed_heads(atlas: Path, open_page: OpenPage) -> None:
    page = open_page((atlas / "atlas.html").read_text(encoding="utf-8"))
    page.locator("#search").fill("needed")
    entry = page.locator("#search-results li").first
    assert re.fullmatch(r"Needed heads 2: (2-3, 1-2|1-2, 2-3)", entry.inner_text())
    page.keyboard.press("Enter")
    assert page.locator("#needed").evaluate("(node) => Math.abs(node.getBoundingClientRect().top)") < 900


@pytest.mark.full
def test_each_head_gets_its_role(atlas: Path) -> None:
    frame = pd.read_csv(atlas / "tables" / "need.csv").set_index(["layer", "head"])
    assert len(frame) == 15
    roles = frame["role"].to_dict()
    assert roles.pop((2, 3)) == "marks and needed"
    assert roles.pop((3, 5)) == "marks, not needed"
    assert roles.pop((1, 2)) == "needed, marks nothing we measured"
    assert {*roles.values()} == {"not needed, marks nothing we measured"}
    assert "obj" in frame["stands_out_for"][2, 3]
    assert "det" in frame["stands_out_for"][3, 5]


def test_the_table_has_the_effects_and_says_where_they_came_from(folder: Path, atlas: Path) -> None:
    table, effects = headscope.read_table(atlas / "heads.nc"), headscope.read_table(folder / "effects" / "effects.nc")
    for end in ("", "_lower", "_upper", "_p_corrected", "_placebo", "_placebo_p_corrected"):
        expected = effects[f"effect_loss{end}"].sel(how="uniform", subset="all")
        np.testing.assert_array_equal(table[f"effect_loss{end}"].values, expected.values)
    for name in ("corpus", "corpus_sha256", "call"):
        assert table.attrs[f"effects_{name}"] == effects.attrs[name]
    assert (table.attrs["effects_how"], table.attrs["effects_examples"]) == ("uniform", 61)
    about = json.loads((atlas / "manifest.json").read_text())["about"]
    assert about["effects_call"] == effects.attrs["call"]
    assert f"effects='{folder / 'effects'}'" in about["call"]


@pytest.mark.full
def test_the_terminal_names_them(folder: Path, run) -> None:
    code, printed, _ = run(
        "atlas", folder / "model", folder / "planted.conllu", "--effects", folder / "effects", "--permutations", 199,
        "--table", "-o", folder / "again",
    )  # fmt: skip
    assert code == 0
    assert "marks and needed: 2-3 (" in printed
    assert "marks, not needed: 3-5 (" in printed
    assert "needed, marks nothing we measured: 1-2 (" in printed
    first, other = "on nouns (test): 1 needed, 1 not needed.", "Of the other 13: 1 needed, 12 not needed."
    assert f"2 heads stand out for a row; {first} {other}" in printed.replace("\n", " ")


def test_the_page_has_a_table_of_them_without_a_script(atlas: Path) -> None:
    parsed = Page((atlas / "atlas.html").read_text())
    assert parsed.find("section", id="needed-rows")
    titles = [text for attrs, text in parsed.find("h3") if not attrs and "need" in text.lower()]
    assert titles == ["Marks and needed", "Marks, not needed", "Needed, marks nothing we measured"]
    names = [text for attrs, text in parsed.find("a") if "effect_loss" in str(attrs.get("href"))]
    assert names == ["2-3", "3-5", "1-2"]
    summaries = [text for _, text in parsed.find("p", **{"class": "summary"})]
    assert summaries[-1].endswith("Of the other 13: 1 needed, 12 not needed.")


def test_they_are_exported_with_their_roles(atlas: Path, open_page: OpenPage, tmp_path: Path) -> None:
    page = open_page((atlas / "atlas.html").read_text())
    heading, *rows = read_csv(export(page, "needed-csv", tmp_path))
    assert heading[:2] == ["role", "head"]
    assert [row[:2] for row in rows] == [
        ["Marks and needed", "2-3"], ["Marks, not needed", "3-5"], ["Needed, marks nothing we measured", "1-2"],
    ]  # fmt: skip
    assert {len(row) for row in rows} == {len(heading)}


CLICK = """
  const rows = [...document.querySelectorAll("#needed-rows tbody tr")];
  const row = rows.find((each) => each.textContent.startsWith("2-3"));
  row.cells[3].click();
  document.body.dataset.address = location.hash;
  document.body.dataset.current = row.getAttribute("aria-current");
  document.body.dataset.low = document.querySelector(".scale .low").textContent;
"""


def test_a_row_shows_its_effect_in_the_grid_on_a_scale_around_0(atlas: Path, browse: Browse) -> None:
    parsed = browse((atlas / "atlas.html").read_text(), script=CLICK)
    body = parsed.find("body")[0][0]
    assert body["data-address"] == "#variable=effect_loss&head=2-3"
    assert body["data-current"] == "true"
    assert (body["data-low"] or "").startswith("−")
    ((_, sentence),) = parsed.find("p", id="profile-about")
    assert "It stands out for " in sentence
    assert sentence.endswith(": needed.")
    table = headscope.read_table(atlas / "heads.nc")
    assert f"changes by {float(table['effect_loss'].sel(layer=2, head=3)):+.3f} [" in sentence


def test_a_page_without_effects_has_none_of_it(atlas: Path) -> None:
    table = headscope.read_table(atlas / "heads.nc")
    own = [name for name in table.data_vars if str(name).startswith("effect_")] + ["need", "marks"]
    before = table.drop_vars(own)
    before.attrs = {name: value for name, value in table.attrs.items() if not str(name).startswith("effects_")}
    parsed = Page(render_page(before, figures={}))
    assert not parsed.find("section", id="needed-rows")
    assert "need" not in parsed.data()


@pytest.mark.full
def test_too_few_texts_say_nothing_of_what_heads_mark(folder: Path, tmp_path: Path) -> None:
    result = headscope.atlas(
        str(folder / "model"), folder / "planted.conllu", tmp_path, effects=folder / "effects", limit=97,
        permutations=0, map_documents=0, examples=0, progress=False,
    )  # fmt: skip
    marks = result.table["marks"]
    assert (marks.sel(layer=2, head=3) >= 1).item()
    assert (marks.sel(layer=1, head=2) == 0).item()
    few = headscope.atlas(
        str(folder / "model"), folder / "planted.conllu", tmp_path, effects=folder / "effects", limit=7,
        permutations=0, map_documents=0, examples=0, progress=False,
    )  # fmt: skip
    roles = pd.read_csv(tmp_path / "tables" / "need.csv").set_index(["layer", "head"])["role"]
    assert roles[2, 3] == "needed"
    assert not any("mark" in role for role in roles)
    assert not few.table["marks"].notnull().any()


def test_a_click_shows_the_effect_also_from_a_view(folder: Path, atlas: Path, browse: Browse) -> None:
    table = headscope.read_table(atlas / "heads.nc")
    own = [name for name in table.data_vars if str(name).startswith("effect_")] + ["need", "marks"]
    page = render_page(table, figures={}, views={"norm": name_view(table.drop_vars(own), "norm")})
    body = browse(page, address="#variable=entropy&view=norm&head=1-1", script=CLICK).find("body")[0][0]
    assert (body["data-address"], body["data-current"]) == ("#variable=effect_loss&head=2-3", "true")


@pytest.mark.full
def test_heads_that_were_not_disabled_are_counted_as_such(folder: Path, tmp_path: Path, run) -> None:
    headscope.measure_effects(
        str(folder / "model"), make_task(61), tmp_path / "some", heads=["1-2", "1-4"], placebos=3, progress=False
    )
    code, printed, _ = run(
        "atlas", folder / "model", folder / "planted.conllu", "--effects", tmp_path / "some", "--permutations", 0,
        "--map-documents", 0, "--examples", 0, "-o", tmp_path / "atlas",
    )  # fmt: skip
    assert code == 0
    first, other = "on nouns (test): 2 not tested.", "Of the other 13: 1 needed, 1 not needed, 11 not tested."
    assert f"2 heads stand out for a row; {first} {other}" in printed.replace("\n", " ")


def test_without_annotation_needed_heads_are_named_all_the_same(folder: Path, tmp_path: Path, run) -> None:
    (tmp_path / "text.txt").write_text("dog sees the cat now .\n" * 23)
    code, printed, _ = run(
        "atlas", folder / "model", tmp_path / "text.txt", "--format", "sentences", "--effects", folder / "effects",
        "--table", "-o", tmp_path / "atlas",
    )  # fmt: skip
    assert code == 0
    assert "Of 15 heads, on nouns (test): 2 needed, 13 not needed." in printed.replace("\n", " ")
    assert "\nneeded: 1-2 (+" in printed


REFUSED = {
    "nothing there": "there is no file {folder}/effects.nc; effects are written by `headscope disable`",
    "another table": "{folder}/heads.nc has no effects of query heads such as 3-1; run `headscope disable`",
    "damaged": "{folder}/effects.nc is not a netCDF-4 file",
    "other weights": "the effects are those of {model}, and minilm differs from that in its weights; give the model",
}


@pytest.mark.full
@pytest.mark.parametrize("case", REFUSED)
def test_effects_that_do_not_fit_are_refused_before_anything_is_measured(
    case: str, folder: Path, atlas: Path, tmp_path: Path
) -> None:
    effects, model, steps = tmp_path, str(folder / "model"), []
    if case == "another table":
        effects = atlas / "heads.nc"
    elif case == "damaged":
        (tmp_path / "effects.nc").write_bytes(b"\x89 no table")
    elif case == "other weights":
        changed = headscope.read_table(folder / "effects" / "effects.nc")
        write_table(changed.assign_attrs(weights_sha256="0" * 64), tmp_path / "effects.nc")
    with pytest.raises(HeadscopeError) as refused:
        headscope.atlas(
            model, folder / "planted.conllu", tmp_path / "out", effects=effects, permutations=0,
            progress=lambda step, *_: steps.append(step),
        )  # fmt: skip
    where = effects if effects.is_dir() else effects.parent
    expected = REFUSED[case].format(folder=where, model=model).replace("minilm", model)
    assert str(refused.value).startswith(expected)
    assert not any("measuring" in step for step in steps)
    assert not (tmp_path / "out" / "atlas.html").exists()


@pytest.mark.full
def test_a_table_of_runs_gives_the_run_that_the_model_is(folder: Path, tmp_path: Path) -> None:
    effects = headscope.read_table(folder / "effects" / "effects.nc")
    runs = [
        {"name": "seed-1", "weights_sha256": "0" * 64},
        {"name": "seed-2", "weights_sha256": effects.weights_sha256},
    ]
    by_example = effects[["examples", "texts"]]
    both = xr.concat([effects.drop_vars([*by_example]) * factor for factor in (-1, 1)], "run", combine_attrs="override")
    both = both.assign_coords(run=["seed-1", "seed-2"]).merge(by_example)
    both = both.assign_attrs(effects.attrs | {"runs": json.dumps(runs)})
    result = headscope.atlas(
        str(folder / "model"), folder / "planted.conllu", tmp_path, effects=both, permutations=0,
        limit=29, progress=False,
    )  # fmt: skip
    expected = effects["effect_loss"].sel(how="uniform", subset="all").values
    np.testing.assert_array_equal(result.table["effect_loss"].values, expected)
