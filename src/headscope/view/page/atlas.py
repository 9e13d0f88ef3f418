"""The atlas page: one self-contained HTML file that shows a head table, with no network and no server.

The numbers stand in the page as JSON; ``page.js`` draws the grid of heads from them. What can be
read without a script (the reported heads, the figures, where it all came from) is written here.
"""

import base64
import hashlib
import html
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path
from string import Template
from types import MappingProxyType
from typing import Any

import numpy as np
import xarray as xr

from headscope import heads
from headscope.files import atomic_write
from headscope.score import ATTRIBUTE, HEAD, Score, read_scores
from headscope.view.headings import describe_causality, describe_view, name_corpus, name_model
from headscope.view.need import NeededHead, describe_head, describe_need, list_needed_heads, read_metric
from headscope.view.offsets import best_offset
from headscope.view.page.needed_heads import render_needed_heads
from headscope.view.page.reported_heads import format_address, list_columns, render_rare_rows, render_rows
from headscope.view.page.sentences import describe_texts
from headscope.view.page.theme import follow_theme
from headscope.view.probes import describe_gain
from headscope.view.reports import Report, format_measure, read_reports, row_key
from headscope.view.verdicts import (
    Q,
    choose_opening,
    describe_choice,
    describe_marks,
    describe_replication,
    describe_verdicts,
    has_permutations,
)

POLICY = (
    "default-src 'none'; style-src 'sha256-{style}'; script-src {scripts}; img-src data:; base-uri 'none'; "
    "form-action 'none'"
)
"""What the page may do: run its own scripts, and no others; nothing that it holds can send anything anywhere."""


def render_page(
    table: xr.Dataset,
    *,
    figures: Mapping[str, str],
    views: Mapping[str, xr.Dataset] = MappingProxyType({}),
    probes: xr.Dataset | None = None,
    examples: xr.Dataset | None = None,
) -> str:
    """The atlas page of a head table, as HTML.

    Args:
        table: a head table; what it has is shown, what it lacks is left out.
        figures: SVG text by title, in the order to show.
        views: the tables of the same heads through views, by name; the grid can be switched to them.
        probes: of the same model, whose figures are among `figures`.
        examples: texts with the attention of all heads (`headscope.examples`).

    Raises:
        TableError: a table does not follow the schema of `headscope.heads`.
    """
    for each in (table, *views.values()):
        heads.check(each)
    attrs = table.attrs
    reports = read_reports(table)
    reported, rare = render_rows(reports), render_rare_rows(reports)
    needed = list_needed_heads(table, reports)
    permuted = has_permutations(reports)
    counts = f"{int(attrs['documents']):,} documents, {int(attrs['tokens']):,} tokens"
    style, scripts = _asset("page.css"), [_asset("sentences.js"), _asset("page.js")]
    causality, view = describe_causality(table), describe_view(table)
    return Template(_asset("page.html")).substitute(
        policy=POLICY.format(style=_hash(style), scripts=" ".join(f"'sha256-{_hash(script)}'" for script in scripts)),
        title=_escape(f"{name_model(attrs['model'])}: head atlas"),
        model=_escape(name_model(attrs["model"])),
        corpus=_escape(name_corpus(attrs["corpus"])),
        counts=f"{counts}; {table.sizes['layer']} layers of {table.sizes['head']} heads",
        skipped=_escape(_skipped(attrs["skipped"])),
        view=f"<p>{_escape(view)}</p>" if view else "",
        style=style,
        sentences_script=scripts[0],
        script=scripts[1],
        data=_write_json(_data(table, reports, views) | _describe_heads(table, needed)),
        sentences=_sentences(examples),
        causality=f'<p class="note">{_escape(causality)}</p>' if causality else "",
        reported=f'<table class="sortable">\n{reported}\n</table>' if reported else "",
        rare=rare,
        reported_hidden="" if reported or rare else "hidden",
        table_hidden="" if reported else "hidden",
        summary=_summary(table, reports, needed, probes if figures else None),
        needed=render_needed_heads(table, needed),
        shares=_escape(_name_shares(table)),
        of_weights="Of the weights, whichever view the grid shows. " if views else "",
        chosen=_escape(describe_choice(reports)),
        marks=_escape(describe_marks(reports)),
        split=_escape(attrs.get("split", "")),
        permutations=_escape(f"q: {Q}" if permuted else ""),
        columns="\n".join(f"<dt>{c.title}</dt><dd>{_escape(c.about)}</dd>" for c in list_columns(reports)),
        navigation=_navigate(examples is not None, bool(reported or rare), bool(needed), bool(figures)),
        figures=_figures(figures),
        provenance=_provenance(attrs),
    )


def write_page(
    table: xr.Dataset,
    path: str | Path,
    figures: Mapping[str, str] | None = None,
    views: Mapping[str, xr.Dataset] | None = None,
    probes: xr.Dataset | None = None,
    examples: xr.Dataset | None = None,
) -> Path:
    """Write the atlas page, whole or not at all; the arguments are those of `render_page`.

    Raises:
        TableError: the table does not follow the schema.
        HeadscopeError: the disk refuses the file.
    """
    path = Path(path)
    text = render_page(table, figures=figures or {}, views=views or {}, probes=probes, examples=examples)
    with atomic_write(path) as temporary:
        temporary.write_bytes(text.encode("utf-8", errors="replace"))
    return path


def _asset(name: str) -> str:
    return resources.files("headscope.view.page").joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """The hash by which a policy knows a script or a style, which in the page begins with a new line."""
    return base64.b64encode(hashlib.sha256(f"\n{text}".encode()).digest()).decode()


def _escape(text: object) -> str:
    return html.escape(str(text), quote=True)


def _write_json(data: Any) -> str:
    """JSON for a script element, which "<" could end, whatever the data are; its escape cannot."""
    return json.dumps(data, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


def _sentences(examples: xr.Dataset | None) -> str:
    """The element with the data of ``sentences.js``; nothing without examples."""
    if examples is None:
        return ""
    return f'<script type="application/json" id="sentences-data">{_write_json(describe_texts(examples))}</script>'


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


def _data(table: xr.Dataset, reports: Sequence[Report], views: Mapping[str, xr.Dataset]) -> dict[str, Any]:
    """The data of ``page.js``, in plain lists."""
    opening = choose_opening(reports)
    return {
        "layers": table.sizes["layer"],
        "heads": table.sizes["head"],
        "attention_types": _labels(table, "attention_type"),
        "directions": _labels(table, "direction"),
        "opening": opening and format_address(opening),
        **_numbers(table),
        "views": [{"name": name, "shows": describe_view(each), **_numbers(each)} for name, each in views.items()],
    }


def _numbers(table: xr.Dataset) -> dict[str, Any]:
    """What another view has other numbers of."""
    return {
        "shares": _name_shares(table),
        "statistics": list(_statistics(table)),
        "scores": list(_score_rows(table)),
    }


def _name_shares(table: xr.Dataset) -> str:
    """The unit of the weights of a table, of several: shares of attention."""
    return heads.get_share(table).replace("share", "shares", 1)


def _labels(table: xr.Dataset, dim: str) -> list[str]:
    return [str(label) for label in table[dim].values] if dim in table.dims else []


def _score_rows(table: xr.Dataset) -> Iterator[dict[str, Any]]:
    """The rows of all scores, those by which heads are reported first."""
    scores = sorted(read_scores(table), key=lambda score: not score.has_report)
    titles = [score.title for score in scores]
    for score in scores:
        row = score.row_dimension(table)
        if {*table[score.variable].dims} <= {*HEAD, row}:
            alone = score.title if titles.count(score.title) == 1 else format_measure(score)
            yield from _rows_of_score(table, score, alone)


def _rows_of_score(table: xr.Dataset, score: Score, alone: str) -> Iterator[dict[str, Any]]:
    """The rows of a score: names, count, baseline, and the values, with any intervals, by direction.

    Args:
        table: a head table.
        score: of the table.
        alone: the name of its row where it has but one.
    """
    values = table[score.variable]
    for place in score.places(table):
        row = values.sel(place)
        if not row.notnull().any():
            continue
        best = best_offset(table, score, place) if score.has_report else None
        baseline, what = _baseline_of_score(table, score, place)
        variables = {end: f"{score.variable}_{end}" for end in ("lower", "upper")}
        ends = {end: _by_head(table[v].sel(place), "direction") for end, v in variables.items() if v in table}
        yield {
            "key": row_key(score, place),
            "name": " ".join(place.values()) or alone,
            "label": score.label.format(*place.values() or [score.title]),
            "title": score.title,
            "about": ": ".join(filter(None, (" ".join(place.values()), score.title, score.definition))),
            "measure": format_measure(score) if score.is_ratio else str(values.attrs["units"]),
            "source": str(values.attrs["source"]),
            "ranked": score.has_report,
            "attends": score.attends,
            "directed": "direction" in values.dims,
            "count": score.count(table, place) or None,
            "offset": best and best.offset,
            "offset_value": best and _number(best.value),
            "control": what,
            "control_value": baseline,
            "values": _by_head(row, "direction"),
            **ends,
        }


def _baseline_of_score(table: xr.Dataset, score: Score, place: Mapping[str, str]) -> tuple[float | None, str]:
    """What a description of where attention goes is compared with, and what that is; None of other scores."""
    if score.control not in table or table[score.control].sel(place).ndim:
        return None, ""
    return _number(float(table[score.control].sel(place))), score.baselines[score.control]


def _statistics(table: xr.Dataset) -> Iterator[dict[str, Any]]:
    """The variables of each head that have a title and numbers: a sentence, a baseline for each attention type."""
    for name, values in table.data_vars.items():
        if not values.attrs.get("title") or not values.notnull().any():
            continue
        baseline, note = _baseline(table, values)
        about, texts = str(values.attrs["long_name"]), values.attrs.get("texts", "mean over all texts")
        yield {
            "name": str(name),
            "label": str(values.attrs["title"]),
            "about": f"{about[0].upper()}{about[1:]}, {texts}. {note}".strip(),
            "source": str(values.attrs["source"]),
            "units": str(values.attrs["units"]),
            "baseline": baseline,
            "diverging": values.attrs.get("scale") == "diverging",
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


def _summary(
    table: xr.Dataset, reports: Sequence[Report], needed: Sequence[NeededHead], probes: xr.Dataset | None
) -> str:
    """The rows for which a head stands out, how many are needed, and what all heads together know, with links."""
    sentence = " ".join(filter(None, (describe_verdicts(reports), describe_replication(table, reports))))
    sentences = {"reported": sentence, "needed": describe_need(table, needed)}
    sentences["figures"] = "" if probes is None else f"Probes of all heads: {describe_gain(probes)}"
    return "\n".join(
        f'<p class="summary"><a href="#{part}">{_escape(text)}</a></p>' for part, text in sentences.items() if text
    )


def _describe_heads(table: xr.Dataset, needed: Sequence[NeededHead]) -> dict[str, Any]:
    """For ``page.js``, a sentence about each head and what happens without it; none without effects."""
    metric = read_metric(table)
    if metric is None:
        return {}
    sentences = {(head.attention_type, head.layer, head.head): describe_head(head, metric) for head in needed}
    return {
        "need": [
            [
                [sentences.get((attention_type, layer, head), "") for head in table["head"].values.tolist()]
                for layer in table["layer"].values.tolist()
            ]
            for attention_type in _labels(table, "attention_type") or [""]
        ]
    }


def _navigate(sentences: bool, reported: bool, needed: bool, figures: bool) -> str:
    """Links to the parts that the page has."""
    parts = [
        ("heads", "Head grid"), ("sentences", "Sentences"), ("reported", "Reported heads"),
        ("needed", "Without a head"), ("figures", "Figures"),
    ]  # fmt: skip
    present = {"heads": True, "sentences": sentences, "reported": reported, "needed": needed, "figures": figures}
    parts = [*(part for part in parts if present[part[0]]), ("provenance", "Where this comes from")]
    return " ".join(f'<a href="#{name}">{title}</a>' for name, title in parts)


def _figures(figures: Mapping[str, str]) -> str:
    """Each figure as an image with its bytes in the page: nothing inside an SVG can reach the page around it."""
    if not figures:
        return ""
    parts = ['<section aria-labelledby="figures"><h2 id="figures">Figures</h2>']
    for title, svg in figures.items():
        code = base64.b64encode(follow_theme(svg).encode("utf-8", errors="replace")).decode("ascii")
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
