"""The atlas page: one self-contained HTML file that shows a head table, with no network and no server.

The numbers stand in the page as JSON; ``page.js`` draws the grid of heads from them. What can be
read without a script (the reported heads, the figures, where it all came from) is written here.
"""

import base64
import html
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
import xarray as xr

from headscope import heads
from headscope.files import atomic_write
from headscope.score import ATTRIBUTE, Score, read_scores
from headscope.view.offsets import best_offset
from headscope.view.page.reported_heads import list_columns, render_rows
from headscope.view.reports import (
    Q,
    Report,
    describe_choice,
    describe_replication,
    describe_standing,
    describe_verdicts,
    format_measure,
    read_reports,
)


def render_page(table: xr.Dataset, *, figures: Mapping[str, str]) -> str:
    """The atlas page of a head table, as HTML.

    Args:
        table: a head table; what it has is shown, what it lacks is left out.
        figures: SVG text by title, in the order to show.

    Raises:
        TableError: `table` does not follow the schema of `headscope.heads`.
    """
    heads.check(table)
    attrs = table.attrs
    reports = read_reports(table)
    reported = render_rows(reports)
    rows = [row for report in reports for row in report.rows_with_heads]
    permuted = any(row.q >= 0 for row in rows)
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
        summary=_summary(table, reports),
        chosen=f"{describe_choice(reports)} Bold green: {describe_standing(permuted)}",
        split=_escape(attrs.get("split", "")),
        permutations=_escape(f"q: {Q}" if permuted else ""),
        columns="\n".join(f"<dt>{c.heading}</dt><dd>{_escape(c.about)}</dd>" for c in list_columns(reports)),
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
    text = render_page(table, figures=figures or {})
    with atomic_write(path) as temporary:
        temporary.write_bytes(text.encode("utf-8", errors="replace"))
    return path


def _asset(name: str) -> str:
    return resources.files("headscope.view.page").joinpath(name).read_text(encoding="utf-8")


def _escape(text: object) -> str:
    return html.escape(str(text), quote=True)


def _number(value: float) -> float | None:
    """Six significant digits, far below any uncertainty and a third of the size; None where there is no number."""
    return float(f"{value:.6g}") if math.isfinite(value) else None


def _nested(values: Any) -> Any:
    return [_nested(part) for part in values] if isinstance(values, list) else _number(values)


def _by_head(values: xr.DataArray, *leading: str) -> Any:
    """Nested lists ``[leading...][attention_type][layer][head]``; a table without attention types has one."""
    for dim in (*leading, "attention_type"):
        if dim not in values.dims:
            values = values.expand_dims(dim)
    return _nested(values.transpose(*leading, "attention_type", "layer", "head").astype(float).values.tolist())


def _data(table: xr.Dataset) -> dict[str, Any]:
    """The data of ``page.js``, in plain lists."""
    return {
        "layers": table.sizes["layer"],
        "heads": table.sizes["head"],
        "attention_types": _labels(table, "attention_type"),
        "statistics": list(_statistics(table)),
        "directions": _labels(table, "direction"),
        "scores": [row for score in read_scores(table) if score.has_report for row in _score_rows(table, score)],
    }


def _labels(table: xr.Dataset, dim: str) -> list[str]:
    return [str(label) for label in table[dim].values] if dim in table.dims else []


def _score_rows(table: xr.Dataset, score: Score) -> Iterator[dict[str, Any]]:
    """The rows of a score: names, count, best offset, and the values with their intervals by direction."""
    values = table[score.variable]
    for place in score.places(table):
        row = values.sel(place)
        if not row.notnull().any():
            continue
        best = best_offset(table, score, place)
        variables = {end: f"{score.variable}_{end}" for end in ("lower", "upper")}
        ends = {end: _by_head(table[v].sel(place), "direction") for end, v in variables.items() if v in table}
        yield {
            "key": ":".join((score.stem, *place.values())),
            "name": " ".join(place.values()) or score.title,
            "label": score.label.format(*place.values() or [score.title]),
            "title": score.title,
            "about": ": ".join(filter(None, (" ".join(place.values()), score.title, score.definition))),
            "measure": format_measure(score),
            "source": str(values.attrs["source"]),
            "attends": score.attends,
            "directed": "direction" in values.dims,
            "count": score.count(table, place) or None,
            "offset": best and best.offset,
            "offset_value": best and _number(best.value),
            "values": _by_head(row, "direction"),
            **ends,
        }


def _statistics(table: xr.Dataset) -> Iterator[dict[str, Any]]:
    """The variables of each head that have a title and numbers: a sentence, a baseline for each attention type."""
    for name, values in table.data_vars.items():
        if not values.attrs.get("title") or not values.notnull().any():
            continue
        baseline, note = _baseline(table, values)
        about = str(values.attrs["long_name"])
        yield {
            "name": str(name),
            "label": str(values.attrs["title"]),
            "about": f"{about[0].upper()}{about[1:]}, mean over texts. {note}".strip(),
            "source": str(values.attrs["source"]),
            "units": str(values.attrs["units"]),
            "baseline": baseline,
            "values": _by_head(values),
        }


def _baseline(table: xr.Dataset, values: xr.DataArray) -> tuple[list[float | None], str]:
    """The value under uniform attention for each attention type, and a sentence about it; empty where it has none."""
    name = values.attrs.get("baseline", "")
    if name not in table:
        return [], ""
    dims = [dim for dim in ("layer", "head") if dim in table[name].dims]
    uniform = [float(value) for value in np.atleast_1d(table[name].mean(dims).values)]
    if values.attrs["units"] == table[name].attrs["units"]:
        note = "Baseline: uniform attention; a head far below it looks at few tokens."
        return [_number(value) for value in uniform], note
    # Where a decoder cannot look ahead, the token after gets nothing from uniform attention either.
    highest = np.atleast_1d(values.max(["layer", "head"]).values)
    note = "Baseline: what one token gets under uniform attention (e to the minus the uniform entropy)."
    return [_number(math.exp(-value)) if top > 0 else None for value, top in zip(uniform, highest, strict=True)], note


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


def _summary(table: xr.Dataset, reports: Sequence[Report]) -> str:
    """The rows for which a head stands out, by score, and how many do elsewhere too, with a link to the table."""
    sentence = " ".join(filter(None, (describe_verdicts(reports), describe_replication(table, reports))))
    return f'<p class="summary"><a href="#reported">{_escape(sentence)}</a></p>' if sentence else ""


def _figures(figures: Mapping[str, str]) -> str:
    """Each figure as an image with its bytes in the page: nothing inside an SVG can reach the page around it."""
    if not figures:
        return ""
    parts = ['<section aria-labelledby="figures"><h2 id="figures">Figures</h2>']
    for title, svg in figures.items():
        code = base64.b64encode(svg.encode("utf-8", errors="replace")).decode("ascii")
        image = f'<img alt="{_escape(title)}" src="data:image/svg+xml;base64,{code}">'
        parts.append(f"<figure><figcaption>{_escape(title)}</figcaption>{image}</figure>")
    return "\n".join([*parts, "</section>"])


def _provenance(attrs: Mapping[str, Any]) -> str:
    """Every attribute of the table as a row, but for the descriptions of its scores."""
    rows = []
    for key, value in attrs.items():
        if key == ATTRIBUTE:
            continue
        parsed = _parsed(value)
        if isinstance(parsed, dict):
            value = "; ".join(f"{name} {number}" for name, number in parsed.items()) or "none"
        rows.append(f'<tr><th scope="row">{_escape(key)}</th><td>{_escape(value)}</td></tr>')
    return "\n".join(rows)
