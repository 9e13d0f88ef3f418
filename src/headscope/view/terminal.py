"""A head table on the terminal."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import xarray as xr
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from headscope.analyse import top_heads
from headscope.heads import head_name

SHOWN = 24
"""Relations that are shown; all are in the table."""

LEVEL = 0.05
"""Of the false discovery rate up to which a head stands out."""

_FROM = {
    "dependent": "dep.",
    "head": "head",
    "mention": "ment.",
    "scope": "word",
    "question": "quest.",
    "either": "either",
}


def summarise(table: xr.Dataset, console: Console) -> None:
    """What a table holds, in few lines: its source, the heads that stand out and those that are reported."""
    about = table.attrs
    model, corpus = escape(str(about["model"])), escape(str(about["corpus"]))
    console.print(f"\n[bold]{model}[/] on [bold]{corpus}[/]", soft_wrap=True, highlight=False)
    console.print(
        f"{table.sizes['layer']} layers of {table.sizes['head']} heads; {about['documents']:,} documents, "
        f"{about['words']:,} words, {about['tokens']:,} tokens"
    )
    skipped = json.loads(about["skipped"])
    reasons = "; ".join(f"{count:,} {reason}" for reason, count in skipped.items())
    if about["tokens_unknown"]:
        console.print(f"Unknown to the tokenizer: {about['tokens_unknown']:,} tokens", style="yellow")
    console.print(f"Skipped: {reasons or 'nothing'}", style="yellow" if skipped else "")
    _surface(table, console)
    _token_classes(table, console)
    _hypotheses(table, console)
    _regression(table, console)


def _surface(table: xr.Dataset, console: Console) -> None:
    shown = {
        "the previous token": "mass_previous",
        "the next token": "mass_next",
        "[CLS]": "mass_cls",
        "[SEP]": "mass_sep",
        "the first token": "mass_first",
        ". and ,": "mass_punctuation",
    }
    if "mass_cls" in table and table["mass_cls"].notnull().any():
        del shown["the first token"]
    lines = Table(box=None, show_header=False, pad_edge=False)
    for what, variable in shown.items():
        if variable in table and (best := top_heads(table, variable)) and best[0][1] > 0:
            lines.add_row(what, "   ".join(f"[bold]{name}[/] {value:.2f}" for name, value in best))
    if lines.row_count:
        console.print("\nThe heads that look most at ... (mean share of attention)")
        console.print(lines)


def _token_classes(table: xr.Dataset, console: Console) -> None:
    if "token_class_mass" not in table:
        return
    lines = Table(box=None, show_header=False, pad_edge=False)
    for name, share in _by(table["token_class_share"]):
        best = top_heads(table.sel(token_class=name), "token_class_mass")
        heads = "   ".join(f"[bold]{head}[/] {value:.2f}" for head, value in best)
        lines.add_row(str(name.item()), heads, f"{share.item():.2f}")
    console.print("\nThe heads that look most at a class of tokens (and the share of the tokens that it is)")
    console.print(lines)


def _hypotheses(table: xr.Dataset, console: Console) -> None:
    """The reported head of the most frequent relations, class of mentions and scope, beside its baselines."""
    every = list(_reported(table))
    rows = [row for row in every if row["reported_layer"] > 0]
    if every and not rows:
        console.print(f"\nToo few links in a half of the corpus to report a head for any of {len(every)} relations.")
    if not rows:
        return
    relations = [row for row in rows if row["is_relation"]]
    shown = [*relations[:SHOWN], *(row for row in rows if not row["is_relation"])]
    twin, moved = "twin_accuracy" in rows[0], any("reported_q" in row for row in rows)
    # Narrow enough for 80 columns; a long name takes two lines.
    grid = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for column in ("relation", "head", "from", "score", "[95 %]", "count", "offset"):
        right = column in {"score", "count", "offset"}
        grid.add_column(column, no_wrap=column != "relation", justify="right" if right else "left")
    for column, there in (("twin", twin), ("moved", moved), ("q", moved)):
        if there:
            grid.add_column(column, no_wrap=True, justify="right")
    for row in shown:
        stack = f"{row['reported_stack']} " if "reported_stack" in row else ""
        # A head is worth a name only if it beats its controls beyond their intervals and its own, and chance.
        stands_out = row["heldout_lower"] > _control(row) and row.get("reported_q", 0) < LEVEL
        grid.add_row(
            escape(row["label"]),
            stack + head_name(row["reported_layer"], row["reported_head"]),
            _FROM[row.get("reported_direction", row["from"]).partition("_to_")[0]],
            _short(row["heldout_accuracy"]),
            f"{_short(row['heldout_lower'], 2)}–{_short(row['heldout_upper'], 2)}",
            f"{row['heldout_count']:,.0f}",
            f"{row['heldout_offset']:+d}: {_short(row['heldout_offset_accuracy'])}",
            *([_short(row["twin_accuracy"])] if twin else []),
            *(
                [_short(row[name]) if name in row else "" for name in ("reported_shuffled", "reported_q")]
                if moved
                else []
            ),
            style="bold green" if stands_out else "",
        )
    console.print(
        "\nThe head for each relation: chosen on one half of the documents, scored on the other, like the best "
        f"fixed offset (in words){' and the best head of a random twin' * twin}."
    )
    console.print(grid)
    if moved:
        console.print(
            "Moved: the head's score where the gold stands elsewhere, links at the same length. "
            "q: how likely a head of so many is to score as much there (corrected for all heads; false discovery rate "
            "over the rows)."
        )
    console.print(
        f"Green: its interval lies above those of the controls{f', and q is below {LEVEL}' if moved else ''}."
    )
    if "antecedent_rules" in table:
        rules = ", ".join(f"{name.item()} {share.item():.3f}" for name, share in _by(table["antecedent_rules"]))
        console.print(f"Antecedents found by rules that know the mentions: {rules}.")
    more, rare = len(relations) - SHOWN, table.sizes.get("relation", 0) - len(relations)
    if more > 0 or rare:
        console.print(f"{max(more, 0)} more relations are in the table; {rare} have too few links in a half to report.")


def _short(share: float, digits: int = 3) -> str:
    """A share without the 0 before the point."""
    return f"{share:.{digits}f}".removeprefix("0")


def _regression(table: xr.Dataset, console: Console) -> None:
    """What the attention of the head with the best F1 to a negation's cue depends on (Zhao and Bethard 2020, 4.2)."""
    if "scope_label_coefficient" not in table or not table["scope_label_coefficient"].notnull().any():
        return
    where = table["scope_f1"].argmax(...)
    label, distance, explained = (
        float(table[f"scope_{name}"].isel(where)) for name in ("label_coefficient", "distance_coefficient", "r_squared")
    )
    more = (table["scope_label_coefficient"] > 0) & (table["scope_label_q"] < 0.05)
    ((name, _),) = top_heads(table, "scope_f1", 1)
    console.print(
        f"\nAttention of a word to the cue of a negation, in {name} (of the best F1): {label:+.3f} if in the scope, "
        f"{distance:+.4f} for each word of distance; R² {explained:.2f}. The scope adds to it in {int(more.sum())} of "
        f"{int(table['scope_f1'].count())} heads (false discovery rate below 0.05)."
    )


def _reported(table: xr.Dataset) -> Iterator[dict[str, Any]]:
    """A row for each thing that heads are reported for; a score is called accuracy in all of them."""
    for prefix, dim, what, source in (
        ("", "relation", "{}", ""),
        ("antecedent_", "mention", "coref: {}", "mention"),
        ("scope_", None, "scope, F1", "scope"),
        ("aspect_", "target", "{}", "question"),
        ("role_", None, "roles, weight", "either"),
    ):
        if f"{prefix}reported_layer" not in table:
            continue
        names = [name for name in map(str, table.data_vars) if name.startswith(prefix)]
        of = {re.sub("_(f1|weight)$", "_accuracy", name.removeprefix(prefix)): table[name] for name in names}
        for place in [{}] if dim is None else [{dim: value} for value in table[dim].values]:
            row = {name: values.sel(place) for name, values in of.items() if set(values.dims) == set(place)}
            label = what.format(*place.values())
            yield {name: value.item() for name, value in row.items()} | {
                "label": label, "from": source, "is_relation": dim == "relation",
            }  # fmt: skip


def _by(values: xr.DataArray) -> Iterator[tuple[xr.DataArray, xr.DataArray]]:
    """Each place along the only axis, and its value, where there is one."""
    (dim,) = values.dims
    present = values.dropna(dim)
    return zip(present[dim], present, strict=True)


def explain(table: xr.Dataset, console: Console) -> None:
    """How each layer was measured; neighbouring layers of one way together."""
    ways: dict[tuple[str, str, int], list[int]] = {}
    for path, texts in json.loads(table.attrs["paths"]).items():
        stack, layer, way = path.split(" ", 2)
        ways.setdefault((stack, way, texts), []).append(int(layer))
    grid = Table(box=None, pad_edge=False)
    for column in (*(["stack"] if "stack" in table.dims else []), "layers", "texts", "measured"):
        grid.add_column(column, justify="right" if column == "texts" else "left")
    for (stack, way, texts), layers in sorted(ways.items(), key=lambda item: (item[0][0], min(item[1]), item[0][1])):
        grid.add_row(*([stack] if "stack" in table.dims else []), _runs(sorted(layers)), f"{texts:,}", way)
    console.print("\nHow attention was measured:")
    console.print(grid)


def _runs(layers: list[int]) -> str:
    """Numbers as stretches: 1-3, 5."""
    starts = [layer for layer in layers if layer - 1 not in layers]
    ends = [layer for layer in layers if layer + 1 not in layers]
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in zip(starts, ends, strict=True))


def _control(row: Mapping[str, Any]) -> float:
    """The upper end of the better control."""
    return float(max(row["heldout_offset_upper"], row.get("twin_upper", 0.0)))
