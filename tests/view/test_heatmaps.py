"""Heatmaps of all but relations: the table's own numbers, read back from the artists."""

import io
import re

import numpy as np
import pytest
import xarray as xr
from matplotlib.collections import QuadMesh
from rich.console import Console

import tiny
from headscope.analyse import add_intervals, add_regression, add_report, consistency
from headscope.capture.model.model import Model
from headscope.errors import TableError
from headscope.runner.local import measure
from headscope.score import find_score
from headscope.view.figures.draw_heatmaps import draw_consistency_heatmap, draw_score_heatmap
from headscope.view.glosses import gloss_row
from headscope.view.table_frames import make_frames
from headscope.view.table_report import print_table

RIVALS = {
    "offset": "offset {}",
    "nearest": "nearest earlier mention",
    "head_match": "nearest with the same head word",
    "rules": "rules that know the mentions",
    "all": "all words of the sentence",
    "blind": "pointing blindly",
    "untrained": "untrained model",
}
BASELINES = {
    "antecedent_accuracy": {
        "antecedent_nearest": "nearest earlier mention",
        "antecedent_head_match": "nearest with the same head word",
        "antecedent_rules": "rules that know the mentions",
    },
    "aspect_accuracy": {"aspect_chance": "pointing blindly"},
}


@pytest.fixture(scope="module")
def table() -> xr.Dataset:
    module, tokenizer = tiny.make("bert")
    reducers = ["surface", "coreference", "scope", "aspects", "classes", "roles"]
    found = measure(Model.from_module(module, tokenizer, name="bert"), tiny.documents_with_roles(23), reducers)
    return add_regression(add_report(add_intervals(found), found, minimum=1))


def shown(figure) -> list[np.ndarray]:
    panels = [axes for axes in figure.axes if axes.get_xlabel() == "head"]
    meshes = [one for axes in panels for one in axes.collections if isinstance(one, QuadMesh)]
    return [np.ma.getdata(mesh.get_array()) for mesh in meshes]


def held_out(table: xr.Dataset, prefix: str, measure: str, attends: str) -> str:
    """The line of the held-out score; what a reported head has, and what its strongest rival has."""
    head = f"{table[f'{prefix}reported_layer'].item():.0f}-{table[f'{prefix}reported_head'].item():.0f}"
    ends = [table[f"{prefix}heldout_{name}"].item() for name in (measure, "lower", "upper")]
    scored = f"{ends[0]:.2f}" + (f" [{ends[1]:.2f}, {ends[2]:.2f}]" if np.isfinite(ends[1]) else "")
    rival = table[f"{prefix}lift_rival"].item()
    label = RIVALS.get(rival, "").format(f"{table[f'{prefix}heldout_offset'].item():+.0f}".replace("-", "−"))
    if rival == "window":
        before, behind = (table[f"{prefix}heldout_window_{end}"].item() for end in ("before", "behind"))
        label = f"{before} words before the cue, {behind} after it"
    variable = f"{prefix}{'' if rival == 'untrained' else 'heldout_'}{rival}_{measure}"
    verdict = table[f"{prefix}reported_verdict"].item()
    return f"held out: {head} from {attends}: {scored} · {label} {table[variable].item():.2f} · {verdict}"


def best_of(offset: xr.DataArray) -> str:
    return f"best fixed offset {int(offset.idxmax('offset')):+d}: {offset.max().item():.2f}".replace("-", "−")


def joined(text: str) -> str:
    """Lines of a title, which break where they must."""
    return " ".join(text.split())


def test_the_scope_of_every_head_beside_its_baselines(table) -> None:
    figure = draw_score_heatmap(table, "scope_f1")
    np.testing.assert_array_equal(shown(figure)[0], table["scope_f1"].values)
    assert joined(figure.get_suptitle()) == (
        f"word → the negation that negates it (scope, F1) · {table['scope_count'].item()} negations "
        f"{best_of(table['scope_offset_f1'])} · "
        f"all words of the sentence: {table['scope_all_f1'].item():.2f}"
    )
    (axes,) = [axes for axes in figure.axes if axes.get_xlabel() == "head"]
    assert joined(axes.get_title("left")).startswith(f"{held_out(table, 'scope_', 'f1', 'word')} best on all texts: ")


@pytest.mark.parametrize(("variable", "dim", "offset", "attends", "panels"), [
    ("antecedent_accuracy", "mention", "antecedent_offset", "mention", 4),
    ("aspect_accuracy", "target", "aspect_offset", "question", 8),
])  # fmt: skip
def test_a_panel_for_each_row_that_there_is_beside_its_baselines(table, variable, dim, offset, attends, panels) -> None:
    score = find_score(table, variable)
    some = table[f"{score.stem}_count"] > 0
    assert int(some.sum()) == panels
    figure = draw_score_heatmap(table, variable)
    assert len(shown(figure)) == panels
    assert joined(figure.get_suptitle()) == f"{score.title}: {score.definition}"
    titles = [axes.get_title("left") for axes in figure.axes if axes.get_xlabel() == "head"]
    for panel, title, name in zip(shown(figure), titles, table[dim].values[some.values], strict=True):
        row = table.sel({dim: name})
        np.testing.assert_array_equal(panel, row[variable].values)
        key, label = f"{score.stem}:{name}", score.label.format(name)
        has_head = row[f"{score.stem}_reported_layer"] > 0
        caption = f"{gloss_row(key).title} ({label})" if has_head else name.replace("_", " ")
        said = [f"{caption} · {row[f'{score.stem}_count'].item()} {score.items}"]
        baselines = [best_of(row[offset])] if row[offset].max() > 0 else []
        baselines += [f"{what}: {row[baseline].item():.2f}" for baseline, what in BASELINES[variable].items()]
        said += [" · ".join(baselines)]
        # Separators stand behind the text, where no offset leads.
        assert ("best fixed offset" in title) == (not name.startswith("sep_"))
        assert row[f"{score.stem}_reported_layer"] > 0 or name != "all"
        if has_head:
            said.append(held_out(row, f"{score.stem}_", "accuracy", attends))
        best = np.unravel_index(row[variable].values.argmax(), row[variable].shape)
        said.append(f"best on all texts: {best[0] + 1}-{best[1] + 1} {row[variable].max().item():.2f}")
        assert joined(title) == " ".join(said)


def test_a_target_that_no_pair_has_has_no_panel(table) -> None:
    fewer = table.assign(aspect_count=table["aspect_count"].where(table["target"] != "sentiment", 0))
    figure = draw_score_heatmap(fewer, "aspect_accuracy")
    assert len(shown(figure)) == 7
    assert not [axes for axes in figure.axes if "sentiment" in axes.get_title("left")]


def test_every_target_is_in_the_csv_files_and_on_the_terminal(table) -> None:
    found = make_frames(table)
    row = found["aspect"].set_index("target").loc["phrase"]
    assert row["aspect_chance"] == table["aspect_chance"].sel(target="phrase").item()
    assert row["aspect_reported_head"] == table["aspect_reported_head"].sel(target="phrase").item()
    heads = found["aspect-heads"].set_index(["layer", "head", "target"])["aspect_mass"]
    assert heads.loc[2, 5, "phrase"] == table["aspect_mass"].sel(layer=2, head=5, target="phrase").item()
    assert len(found["aspect-offsets"]) == 8 * 10
    text = io.StringIO()
    print_table(table, Console(file=text, width=99), whole=True)
    (line,) = [line for line in text.getvalue().splitlines() if re.match(r"phrase +\d-", line)]
    score = f"{table['aspect_heldout_accuracy'].sel(target='phrase').item():.3f}".removeprefix("0")
    assert line.split()[1:4] == [
        f"{row['aspect_reported_layer']:.0f}-{row['aspect_reported_head']:.0f}?",  # of few texts
        "quest.",
        score,
    ]


def test_the_scores_on_two_corpora_side_by_side_on_one_scale(table) -> None:
    other = table.assign(scope_f1=table["scope_f1"][::-1, ::-1].copy(data=2 * table["scope_f1"].values[::-1, ::-1]))
    other = other.assign_attrs(corpus="far/away/reviews_2012", corpus_sha256="23" * 32)
    figure = draw_consistency_heatmap(table, other, "scope_f1")
    panels = [axes for axes in figure.axes if axes.get_xlabel() == "head"]
    for values, one in zip(shown(figure), (table, other), strict=True):
        np.testing.assert_array_equal(values, one["scope_f1"].values)
    scales = [(mesh.norm.vmin, mesh.norm.vmax) for axes in panels for mesh in axes.collections]
    assert scales == [(0, 1)] * 2
    names = [axes.get_title("left").split("\n")[0] for axes in panels]
    assert names == ["documents in memory", "reviews_2012"]
    found = consistency(table, other, "scope_f1")
    assert figure.get_suptitle() == (
        f"scope F1 on two corpora\nKendall's τ {found.tau:.3f} [{found.lower:.2f}, {found.upper:.2f}]"
    )


def test_two_corpora_of_one_name_are_told_apart(table) -> None:
    figure = draw_consistency_heatmap(table, table.assign_attrs(corpus_sha256="23" * 32), "scope_label_coefficient")
    panels = [axes for axes in figure.axes if axes.get_xlabel() == "head"]
    least = table["scope_label_coefficient"].min().item()
    assert {mesh.norm.vmin for axes in panels for mesh in axes.collections} == {least}
    assert least < 0
    names = [axes.get_title("left").split("\n")[0] for axes in panels]
    assert names == ["documents in memory (1)", "documents in memory (2)"]
    assert figure.get_suptitle() == "scope label coefficient on two corpora\nKendall's τ 1.000"


def test_a_panel_for_each_class_of_tokens_that_there_is(table) -> None:
    table = table.assign(token_class_share=table["token_class_share"].where(table["token_class"] != "verb"))
    figure = draw_score_heatmap(table, "token_class_mass")
    panels = shown(figure)
    meshes = [axes.collections[0] for axes in figure.axes if axes.get_xlabel() == "head"]
    (scale,) = {mesh.norm.vmax for mesh in meshes}
    assert len(panels) == 7
    times = (table["token_class_mass"] / table["token_class_share"]).drop_sel(token_class="verb")
    assert scale == max(2, times.max())
    for panel, axes, name in zip(panels, figure.axes, times["token_class"].values, strict=False):
        np.testing.assert_array_equal(panel, times.sel(token_class=name).clip(min=1 / scale).values)
        share, count = (table[f"token_class_{what}"].sel(token_class=name).item() for what in ("share", "count"))
        assert axes.get_title(loc="left").startswith(
            f"{name} ({share:.0%}) · {count:.0f} documents\nbest on all texts: "
        )
    (bar,) = [axes for axes in figure.axes if axes.get_ylabel() == "times the share of the tokens"]
    ticks = {label.get_text(): place for place, label in zip(bar.get_yticks(), bar.get_yticklabels(), strict=True)}
    assert {"1/2": 0.5, "1": 1, "2": 2}.items() <= ticks.items()


def test_roles_beside_any_two_words_and_their_report(table) -> None:
    figure = draw_score_heatmap(table, "role_weight")
    for panel, variable in zip(shown(figure), ("role_weight", "role_weight_anywhere"), strict=True):
        np.testing.assert_array_equal(panel, table[variable].values)
    assert joined(figure.get_suptitle()) == (
        f"role ↔ its predicate (roles, weight) · {table['role_count'].item()} links "
        f"{best_of(table['role_weight_offset'])}"
    )
    title, *_ = [axes.get_title("left") for axes in figure.axes if axes.get_xlabel() == "head"]
    assert held_out(table, "role_", "weight", "either") in joined(title)


def test_frames_of_classes_and_roles(table) -> None:
    found = make_frames(table)
    assert len(found["token-class-heads"]) == table["token_class_mass"].size
    assert found["token-class"].set_index("token_class")["token_class_count"].to_dict() == {
        str(name): count for name, count in table["token_class_count"].to_series().items()
    }
    row = found["role"].loc[0]
    assert row["role_count"] == table["role_count"]
    assert row["role_left_out_role"] == table["role_left_out_role"] > 0
    assert found["heads"]["role_weight"].tolist() == table["role_weight"].values.ravel().tolist()


def test_a_table_of_scores_alone_has_no_frame_of_heads(table) -> None:
    frames = make_frames(table[["aspect_accuracy", "aspect_count"]])
    assert "heads" not in frames
    assert len(frames["aspect-heads"]) == table["aspect_accuracy"].count()
    assert {*frames["columns"]["table"]} == {"aspect", "aspect-heads"}


def test_classes_and_roles_on_the_terminal(table) -> None:
    text = io.StringIO()
    print_table(table, Console(file=text, width=99), whole=True)
    lines = text.getvalue().splitlines()
    noun = table.sel(token_class="noun")
    (line,) = [line for line in lines if line.startswith("noun ")]
    assert line.split()[2] == f"{noun['token_class_mass'].max().item():.2f}"
    assert line.split()[-1] == f"{noun['token_class_share'].item():.2f}"
    (line,) = [line for line in lines if line.startswith("roles, weight ")]
    head = f"{table['role_reported_layer'].item():.0f}-{table['role_reported_head'].item():.0f}?"  # of few texts
    score = f"{table['role_heldout_weight'].item():.3f}".removeprefix("0")
    assert line.split()[2:5] == [head, "either", score]


@pytest.mark.parametrize(
    "lacking", ["scope_f1", "antecedent_accuracy", "aspect_accuracy", "token_class_mass", "role_weight"]
)
def test_without_the_score_there_is_no_figure(table, lacking: str) -> None:
    every = (
        "antecedent_accuracy", "scope_precision", "scope_recall", "scope_f1", "aspect_accuracy", "token_class_mass",
        "role_weight",
    )  # fmt: skip
    others = ", ".join(variable for variable in every if variable != lacking)
    with pytest.raises(TableError) as refused:
        draw_score_heatmap(table.drop_vars(lacking), lacking)
    assert str(refused.value) == f"the head table has no score {lacking}; it has {others}."


def test_every_score_has_its_interval_and_its_report(table) -> None:
    for score in ("antecedent_accuracy", "scope_f1", "aspect_accuracy", "role_weight"):
        inside = (table[f"{score}_lower"] <= table[score]) & (table[score] <= table[f"{score}_upper"])
        assert bool((inside | table[score].isnull() | table[f"{score}_lower"].isnull()).all())
    chosen = {dim: table[f"scope_reported_{dim}"].item() for dim in ("layer", "head")}
    # The head is the best of the even folds, and is scored on the odd ones, by hand.
    hits, said, gold = (table[name] for name in ("fold_scope_said_hits", "fold_scope_said", "fold_scope"))
    even, odd = (
        2 * hits[..., half].sum("fold") / (said[..., half].sum("fold") + gold[half].sum("fold"))
        for half in (slice(0, None, 2), slice(1, None, 2))
    )
    assert even.sel(chosen).item() == even.max().item()
    assert table["scope_heldout_f1"].item() == pytest.approx(odd.sel(chosen).item())
    assert 0 < table["scope_reported_selection_frequency"].item() <= 1
