"""The atlas page: one self-contained HTML file that shows a head table, with no network and no server.

The numbers stand in the page as JSON; ``page.js`` permutations the grid of heads from them. What can be
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
from headscope.view.offset import best_offset
from headscope.view.pagetable import columns_of, table_of
from headscope.view.reported import PERMUTED, Q, Report, chosen, reports, rule

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

ONE_TOKEN = ("mass_self", "mass_previous", "mass_next", "mass_cls", "mass_first")


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
    found = reports(table)
    reported = table_of(found)
    rows = [row for report in found for row in report.named]
    untrained, permuted = any(row.untrained.value >= 0 for row in rows), any(row.q >= 0 for row in rows)
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
        summary=_summary(found),
        chosen=f"{chosen(untrained)} Bold green: {rule(permuted)}",
        split=_escape(attrs.get("split", "")),
        permutations=_escape(
            f"Permuted: {PERMUTED} The text below a heading says where else. q: {Q}" if permuted else ""
        ),
        columns="\n".join(f"<dt>{column.heading}</dt><dd>{_escape(column.about)}</dd>" for column in columns_of(found)),
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
    with atomic_write(path) as temporary:
        temporary.write_bytes(text.encode("utf-8", errors="replace"))
    return path


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
    """Nested lists ``[leading...][attention_type][layer][head]``; a table without attention types has one."""
    if "attention_type" not in values.dims:
        values = values.expand_dims("attention_type")
    return _nested(values.transpose(*leading, "attention_type", "layer", "head").astype(float).values.tolist())


def _data(table: xr.Dataset) -> dict[str, Any]:
    """What ``page.js`` permutations, in plain lists."""
    data: dict[str, Any] = {
        "layers": table.sizes["layer"],
        "heads": table.sizes["head"],
        "attention_types": [str(name) for name in table["attention_type"].values]
        if "attention_type" in table.dims
        else [],
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
    """The surface variables that have numbers: names, a sentence, a baseline for each attention type, values."""
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


def _summary(found: Sequence[Report]) -> str:
    """For how much of what is looked for a head stands out, with a link to where it says so."""
    counts = []
    for report in found:
        if report.named:
            standing = sum(row.stands_out for row in report.named)
            counts.append(f"{standing} of {len(report.named)} {report.hypothesis.things}")
    if not counts:
        return ""
    told = " and ".join(filter(None, (", ".join(counts[:-1]), counts[-1])))
    return f'<p class="summary"><a href="#reported">A head stands out</a> from its controls for {told}.</p>'


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
