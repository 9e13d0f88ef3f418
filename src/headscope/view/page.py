"""The atlas page: one self-contained HTML file that shows a head table, with no network and no server.

The numbers stand in the page as JSON; ``page.js`` draws the grid of heads from them. What can be
read without a script (the reported heads, the figures, where it all came from) is written here.
"""

import base64
import html
import json
import math
from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from headscope import heads
from headscope.disk import replacing

SURFACE: Mapping[str, tuple[str, str]] = {
    "mass_self": ("to itself", "the token itself"),
    "mass_previous": ("to the token before", "the token before"),
    "mass_next": ("to the token after", "the token after"),
    "mass_cls": ("to [CLS]", "[CLS]"),
    "mass_sep": ("to [SEP]", "all [SEP] tokens"),
    "mass_punctuation": ("to “.” and “,”", "full stops and commas"),
    "mass_first": ("to the first token", "the first token of the text"),
    "mass_sep_from_sep": ("from [SEP] to [SEP]", "all [SEP] tokens, where the attending token is a [SEP] itself"),
    "mass_sep_from_other": ("from others to [SEP]", "all [SEP] tokens, where the attending token is any other"),
    "entropy": ("entropy", ""),
    "entropy_from_cls": ("entropy, from [CLS]", ""),
    "entropy_uniform": ("entropy if uniform", ""),
    "mean_distance": ("mean distance", ""),
}
"""The surface variables in reading order: a short name, and what is attended to."""

INTERVAL = ("heldout_lower", "heldout_accuracy", "heldout_upper", "heldout_offset_accuracy", "twin_accuracy")
ONE_TOKEN = ("mass_self", "mass_previous", "mass_next", "mass_cls", "mass_first")


class Offset(NamedTuple):
    """A fixed offset in words (-1 is the word before) and its accuracy."""

    offset: int
    accuracy: float


def page(table: xr.Dataset, *, figures: Mapping[str, str]) -> str:
    """The atlas page of a head table, as HTML.

    Args:
        table: a head table; what it has is shown, what it lacks is left out.
        figures: SVG text by title, in the order to show.

    Raises:
        TableError: `table` does not follow the schema of `headscope.heads`.
    """
    heads.check(table)
    attrs = table.attrs
    reported = _reported_rows(table)
    counts = f"{int(attrs['documents']):,} documents, {int(attrs['tokens']):,} tokens"
    return Template(_asset("page.html")).substitute(
        title=_escape(f"{attrs['model']}: head atlas"),
        model=_escape(attrs["model"]),
        corpus=_escape(attrs["corpus"]),
        counts=f"{counts}; {table.sizes['layer']} layers of {table.sizes['head']} heads",
        skipped=_escape(_skipped(attrs["skipped"])),
        style=_asset("page.css"),
        script=_asset("page.js"),
        # "<" could end the element that holds the data, whatever the data are; \u003c cannot.
        data=json.dumps(_data(table), allow_nan=False, separators=(",", ":")).replace("<", "\\u003c"),
        reported=reported,
        reported_hidden="" if reported else "hidden",
        split=_escape(attrs.get("split", "")),
        figures=_figures(figures),
        provenance=_provenance(attrs),
    )


def write_page(table: xr.Dataset, path: str | Path, figures: Mapping[str, str] | None = None) -> Path:
    """Write the atlas page, whole or not at all.

    Raises:
        TableError: the table does not follow the schema.
        HeadscopeError: the disk refuses the file.
    """
    path = Path(path)
    text = page(table, figures=figures or {})
    with replacing(path) as temporary:
        temporary.write_bytes(text.encode("utf-8", errors="replace"))
    return path


def best_offset(table: xr.Dataset, row: str, variable: str = "offset_accuracy", dim: str = "relation") -> Offset | None:
    """The fixed offset with the highest accuracy on a relation, or another row; None where the table has none."""
    if variable not in table:
        return None
    accuracy = table[variable].sel({dim: row})
    if not accuracy.notnull().any():
        return None
    best = int(np.nanargmax(accuracy.values))
    return Offset(int(accuracy["offset"].values[best]), float(accuracy.values[best]))


def signed(offset: int) -> str:
    """An offset with its sign, as ``+1`` or ``−2``."""
    return f"{offset:+d}".replace("-", "−")


def _asset(name: str) -> str:
    return resources.files("headscope.view").joinpath(name).read_text(encoding="utf-8")


def _escape(text: object) -> str:
    return html.escape(str(text), quote=True)


def _number(value: float) -> float | None:
    """Six significant digits, far below any uncertainty and a third of the size; None where there is no number."""
    return float(f"{value:.6g}") if math.isfinite(value) else None


def _nested(values: Any) -> Any:
    return [_nested(part) for part in values] if isinstance(values, list) else _number(values)


def _stacked(values: xr.DataArray, *leading: str) -> Any:
    """Nested lists ``[leading...][stack][layer][head]``; a table without stacks has one."""
    if "stack" not in values.dims:
        values = values.expand_dims("stack")
    return _nested(values.transpose(*leading, "stack", "layer", "head").astype(float).values.tolist())


def _data(table: xr.Dataset) -> dict[str, Any]:
    """What ``page.js`` draws, in plain lists."""
    data: dict[str, Any] = {
        "layers": table.sizes["layer"],
        "heads": table.sizes["head"],
        "stacks": [str(name) for name in table["stack"].values] if "stack" in table.dims else [],
        "surface": list(_surface(table)),
        "relations": [],
    }
    if "relation_accuracy" not in table:
        return data
    data["relation_source"] = str(table["relation_accuracy"].attrs["source"])
    data["directions"] = [str(name) for name in table["direction"].values]
    for key in ("accuracy", "lower", "upper"):
        variable = "relation_accuracy" if key == "accuracy" else f"relation_accuracy_{key}"
        if variable in table:
            data[key] = _stacked(table[variable], "relation", "direction")
    for relation in table["relation"].values:
        best = best_offset(table, relation)
        count = int(table["relation_count"].sel(relation=relation)) if "relation_count" in table else None
        data["relations"].append(
            {
                "name": str(relation),
                "count": count,
                "offset": best and best.offset,
                "offset_accuracy": best and _number(best.accuracy),
            }
        )
    return data


def _surface(table: xr.Dataset) -> Iterator[dict[str, Any]]:
    """The surface variables that have numbers: names, a sentence, a baseline for each stack, values."""
    uniform: list[float] = []
    if "entropy_uniform" in table:
        mean = table["entropy_uniform"].mean([dim for dim in ("layer", "head") if dim in table["entropy_uniform"].dims])
        uniform = [float(value) for value in np.atleast_1d(mean.values)]
    for name, (label, target) in SURFACE.items():
        if name not in table or not table[name].notnull().any():
            continue
        baseline: list[float | None] = []
        if name in ONE_TOKEN and uniform:
            note = "Baseline: what one token gets under uniform attention (e to the minus the uniform entropy)."
            highest = np.atleast_1d(table[name].max(["layer", "head"]).values)
            # Where a decoder cannot look ahead, the token after gets nothing from uniform attention either.
            baseline = [
                _number(math.exp(-value)) if top > 0 else None for value, top in zip(uniform, highest, strict=True)
            ]
        elif name in ("entropy", "entropy_from_cls") and uniform:
            note = "Baseline: uniform attention; a head far below it looks at few tokens."
            baseline = [_number(value) for value in uniform]
        elif target:
            note = "It has no fixed baseline: under uniform attention it is the share of such tokens in the text."
        else:
            note = ""
        what = f"Mean share of a token’s attention that goes to {target}." if target else _sentence(name)
        yield {
            "name": name,
            "label": label,
            "about": f"{what} {note}".strip(),
            "source": str(table[name].attrs["source"]),
            "units": str(table[name].attrs["units"]),
            "baseline": baseline,
            "values": _stacked(table[name]),
        }


def _sentence(name: str) -> str:
    if name == "mean_distance":
        return "Mean distance in tokens, before or after, to the tokens attended to, weighted by the attention."
    if name == "entropy_uniform":
        return "Mean entropy in nats if attention were uniform: the baseline of the two entropies."
    whose = "of [CLS]" if name == "entropy_from_cls" else "of a token"
    return f"Mean entropy of the attention {whose}, in nats."


def _skipped(text: str) -> str:
    """The skipped documents and why, in words."""
    reasons = _parsed(text)
    if not isinstance(reasons, dict):
        return f"Skipped: {text}."
    if not reasons:
        return "Nothing was skipped."
    return "Skipped: " + "; ".join(f"{count} ({reason})" for reason, count in reasons.items()) + "."


def _parsed(text: object) -> Any:
    try:
        return json.loads(str(text))
    except ValueError:
        return text


def _figures(figures: Mapping[str, str]) -> str:
    """Each figure as an image with its bytes in the page: nothing inside an SVG can reach the page around it."""
    if not figures:
        return ""
    parts = ['<section aria-labelledby="figures"><h2 id="figures">Figures</h2>']
    for title, svg in figures.items():
        code = base64.b64encode(svg.encode("utf-8", errors="replace")).decode("ascii")
        source = f"data:image/svg+xml;base64,{code}"
        parts.append(
            f'<figure><figcaption>{_escape(title)}</figcaption><img alt="{_escape(title)}" src="{source}"></figure>'
        )
    return "\n".join([*parts, "</section>"])


def _provenance(attrs: Mapping[str, Any]) -> str:
    """Every attribute of the table as a row."""
    rows = []
    for key, value in attrs.items():
        parsed = _parsed(value)
        if isinstance(parsed, dict):
            value = "; ".join(f"{name} {number}" for name, number in parsed.items()) or "none"
        rows.append(f'<tr><th scope="row">{_escape(key)}</th><td>{_escape(value)}</td></tr>')
    return "\n".join(rows)


def _reported_rows(table: xr.Dataset) -> str:
    """A row for each relation; empty where the table reports no heads."""
    if not {"reported_layer", "reported_head", "heldout_accuracy"} <= set(table):
        return ""
    return "\n".join(_reported_row(table.sel(relation=name)) for name in table["relation"].values)


def _reported_row(row: xr.Dataset) -> str:
    """One relation: its head, and on the held-out half its accuracy, the best offset and the random twin."""

    def value(name: str) -> float:
        return float(row[name]) if name in row else math.nan

    def text(name: str) -> str:
        return str(row[name].item()) if name in row else ""

    def score(name: str) -> str:
        lower, upper = value(f"{name}_lower"), value(f"{name}_upper")
        interval = f"[{lower:.2f}, {upper:.2f}]" if math.isfinite(lower) and math.isfinite(upper) else ""
        return _number_cell(value(f"{name}_accuracy"), ".2f", interval)

    layer, head = int(row["reported_layer"]), int(row["reported_head"])
    start = f'<th scope="row">{_escape(text("relation"))}</th>{_number_cell(value("relation_count"), ",.0f")}'
    if layer == 0:
        return f'<tr class="rare">{start}{_cell("too rare")}{_cell("–") * 6}</tr>'
    offset = f"at {signed(int(row['heldout_offset']))}" if "heldout_offset" in row else ""
    cells = [
        start,
        _cell(_escape(f"{text('reported_stack')} {heads.head_name(layer, head)}".strip()), layer + head / 1000),
        _cell(_escape(text("reported_direction").replace("_", " ")), _escape(text("reported_direction"))),
        score("heldout"),
        _number_cell(value("heldout_count"), ",.0f"),
        _number_cell(value("heldout_offset_accuracy"), ".2f", offset),
        score("twin"),
        _cell(_interval(*map(value, INTERVAL))),
    ]
    return f"<tr>{''.join(cells)}</tr>"


def _number_cell(value: float, form: str, small: str = "") -> str:
    """A number and what stands behind it; a dash where there is none."""
    return (
        _cell(f"{value:{form}} <small>{small}</small>" if small else f"{value:{form}}", value)
        if math.isfinite(value)
        else _cell("–")
    )


def _cell(content: str, value: float | str = "") -> str:
    """A cell and what it sorts by, both HTML."""
    return f'<td data-value="{value}">{content}</td>'


def _interval(lower: float, middle: float, upper: float, offset: float, twin: float) -> str:
    """A line from 0 to 1: accuracy (dot) with its interval, best offset (bar), random twin (ring)."""
    marks = ['<line class="axis" x1="0" x2="100" y1="8" y2="8"/>']
    if math.isfinite(offset):
        marks.append(f'<line class="offset" x1="{100 * offset:.1f}" x2="{100 * offset:.1f}" y1="2" y2="14"/>')
    if math.isfinite(twin):
        marks.append(f'<circle class="twin" cx="{100 * twin:.1f}" cy="8" r="3"/>')
    if math.isfinite(lower) and math.isfinite(upper):
        marks.append(f'<line class="interval" x1="{100 * lower:.1f}" x2="{100 * upper:.1f}" y1="8" y2="8"/>')
    if math.isfinite(middle):
        marks.append(f'<circle class="score" cx="{100 * middle:.1f}" cy="8" r="3.2"/>')
    return (
        f'<svg class="scores" viewBox="-4 0 108 16" width="135" height="20" aria-hidden="true">{"".join(marks)}</svg>'
    )
