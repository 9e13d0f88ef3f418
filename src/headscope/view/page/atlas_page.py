"""The atlas page: one self-contained HTML file that shows a head table without a network or a server.

The page holds the numbers as JSON, from which ``scripts`` draw the grid of heads. This module writes the parts that can
be read without a script: the reported heads, the figures, and the provenance.
"""

import base64
import hashlib
import html
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import resources
from pathlib import Path
from string import Template
from types import MappingProxyType
from typing import Any

import pandas as pd
import xarray as xr

from headscope import heads
from headscope.examples import READS, STEPS
from headscope.files import atomic_write
from headscope.predictions import find_single_labels
from headscope.score import ATTRIBUTE, read_scores
from headscope.view.headings import (
    describe_causality,
    describe_corpus,
    describe_layers,
    describe_measured,
    name_corpus,
    name_model,
)
from headscope.view.need_report import describe_need, list_needed_heads
from headscope.view.page.needed_heads import render_needed_heads
from headscope.view.page.numbers import PageView, describe_numbers, name_shares
from headscope.view.page.packed import pack_json
from headscope.view.page.reported_heads import list_columns, render_rare_rows, render_rows
from headscope.view.page.script import join_modules
from headscope.view.page.text_data import describe_texts
from headscope.view.page.theme import follow_theme
from headscope.view.probes_report import describe_gain
from headscope.view.reports import Report, read_reports
from headscope.view.verdicts import (
    P,
    describe_awaited,
    describe_choice,
    describe_marks,
    describe_replication,
    describe_verdicts,
    has_p_values,
)
from headscope.view.wording import describe_single_labels


@dataclass(frozen=True)
class Live:
    """The settings of a live page, which asks a server for the attention of a model.

    Attributes:
        token: The secret text that the server requires with each question.
        max_tokens: The largest number of tokens in a text.
    """

    token: str
    max_tokens: int


ASKS = "; connect-src 'self'"
"""The addition to `POLICY` for a live page, which lets the page send questions to its server."""

POLICY = (
    "default-src 'none'; style-src 'sha256-{style}'; script-src 'sha256-{script}'; img-src data:; base-uri 'none'; "
    "form-action 'none'"
)
"""The content security policy of the page: it runs only its own script, and nothing in it can send data anywhere."""

UNREPORTED = "No head is reported: the corpus has no links, spans or labels, or no reducer scored heads by them."
UNCHOSEN = "No head is reported: this table has scores, but no heads that were chosen by them. An atlas has both."


def render_page(
    table: xr.Dataset,
    *,
    figures: Mapping[str, str],
    views: Mapping[str, xr.Dataset] = MappingProxyType({}),
    probes: xr.Dataset | None = None,
    examples: xr.Dataset | None = None,
    distances: xr.Dataset | None = None,
    live: Live | None = None,
) -> str:
    """Return the atlas page of a head table, as HTML.

    Args:
        table: A head table; the page leaves out parts for which the table has no values.
        figures: The figures as SVG text by title, in the order to show them. If it is empty, the page says how to draw
            them.
        views: For each further view, by name, a table of the same heads that the grid can show.
        probes: The probes of the same model, whose figures are among `figures`.
        examples: Texts with the attention of all heads (`headscope.examples`).
        distances: A table with the distances between heads (``js_distance``, in nats), to list the nearest heads.
        live: The settings of a page that a server answers (`headscope.explore`).

    Raises:
        TableError: a table does not follow the schema of `headscope.heads`.
    """
    return fill_page(
        [
            PageView("weights", table, _read("heads.nc")),
            *(PageView(name, each, _read(f"heads-{name}.nc")) for name, each in views.items()),
        ],
        figures=figures if figures or live is None else None, probes=probes, examples=examples, distances=distances,
        live=live,
    )  # fmt: skip


def fill_page(
    views: Sequence[PageView],
    *,
    against: str = "",
    figures: Mapping[str, str] | None = None,
    probes: xr.Dataset | None = None,
    examples: xr.Dataset | None = None,
    distances: xr.Dataset | None = None,
    live: Live | None = None,
) -> str:
    """Return a page (HTML) about the heads of the first table in `views`; its grid can also show the other tables.

    Args:
        views: Tables of the same heads that the grid can show.
        against: The name of the view with which the grid compares the first view when the page opens.
        figures: As in `render_page`; None for a page without a gallery.
        probes: As in `render_page`.
        examples: As in `render_page`.
        distances: As in `render_page`.
        live: As in `render_page`.

    Raises:
        TableError: a table does not follow the schema of `headscope.heads`.
    """
    for view in views:
        heads.check(view.table)
    table = views[0].table
    attrs = table.attrs
    reports = read_reports(table)
    reported, rare = render_rows(reports), render_rare_rows(reports)
    needed = list_needed_heads(table, reports)
    counts = f"{int(attrs['documents']):,} documents, {int(attrs['tokens']):,} tokens"
    sizes = f"{table.sizes['layer']} layers of {table.sizes['head']} heads"
    style, script = _asset("page.css"), join_modules("main")
    causality, awaited = describe_causality(table), describe_awaited(table)
    shown = " ".join(filter(None, (*describe_single_labels(find_single_labels(attrs)), describe_measured(table))))
    return Template(_asset("page.html")).substitute(
        policy=POLICY.format(style=_hash(style), script=_hash(script)) + (ASKS if live else ""),
        live=_write_element("live-data", asdict(live) | {"steps": STEPS, "reads": READS}) if live else "",
        title=_escape(f"{name_model(attrs['model'])}: head atlas"),
        model=_escape(name_model(attrs["model"])),
        corpus=_escape(name_corpus(attrs["corpus"])),
        counts=f"{counts}; {sizes}. {describe_layers(table)}".rstrip(". "),
        skipped=_escape(f"{_skipped(attrs['skipped'])} {describe_corpus(table)}".rstrip()),
        view=f"<p>{_escape(shown)}</p>" if shown else "",
        style=style,
        script=script,
        data=pack_json(describe_numbers(views, reports, needed, distances, against)),
        sentences=_sentences(examples),
        awaited=f'<p class="note" id="awaited">{_escape(awaited)}</p>' if awaited else "",
        causality=f'<p class="note">{_escape(causality)}</p>' if causality else "",
        reported=f'<table class="sortable">\n{reported}\n</table>' if reported else "",
        rare=rare,
        unreported="" if reported or rare else f'<p class="note">{_explain_missing(table)}</p>',
        table_hidden="" if reported else "hidden",
        summary=_summary(table, reports, needed, None if figures is None else probes),
        needed=render_needed_heads(table, needed),
        shares=_escape(name_shares(table)),
        of_view=f"Of the {'model after' if against else 'weights'}, whichever view the grid shows. "
        if len(views) > 1
        else "",
        chosen=_escape(describe_choice(reports)),
        marks=_escape(describe_marks(reports, colour="teal")),
        split=_escape(attrs.get("split", "")),
        permutations=_escape(f"p: {P}" if has_p_values(reports) else ""),
        columns="\n".join(
            f'<dt class="column">{column.title}</dt><dd class="column">{_escape(column.about)}</dd>'
            for column in list_columns(reports)
        ),
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
    distances: xr.Dataset | None = None,
) -> Path:
    """Write the atlas page to a file, completely or not at all; the other arguments are explained in `render_page`.

    Raises:
        TableError: the table does not follow the schema.
        HeadscopeError: the disk refuses the file.
    """
    path = Path(path)
    text = render_page(
        table, figures=figures or {}, views=views or {}, probes=probes, examples=examples, distances=distances
    )
    with atomic_write(path) as temporary:
        temporary.write_bytes(text.encode("utf-8", errors="replace"))
    return path


def _read(file: str) -> str:
    """Return the Python code that reads a table in the folder of the page."""
    return f"headscope.read_table({json.dumps(file)})"


def _asset(name: str) -> str:
    return resources.files("headscope.view.page").joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """Return the hash that allows a script or a style in a policy; in the page, the text follows a line break."""
    return base64.b64encode(hashlib.sha256(f"\n{text}".encode()).digest()).decode()


def _escape(text: object) -> str:
    return html.escape(str(text), quote=True)


def _write_json(data: Any) -> str:
    """Return data as JSON for a script element; "<" is escaped, since it could end the element."""
    return json.dumps(data, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


def _sentences(examples: xr.Dataset | None) -> str:
    """Return the element with the data of ``scripts/texts.js``; an empty string without examples."""
    if examples is None:
        return ""
    return _write_element("sentences-data", describe_texts(examples))


def _write_element(name: str, data: Any) -> str:
    """Return a script element with data as JSON; scripts find the element by its name."""
    return f'<script type="application/json" id="{name}">{_write_json(data)}</script>'


def _explain_missing(table: xr.Dataset) -> str:
    """Return the reason why no head is reported."""
    return UNCHOSEN if any(score.has_report for score in read_scores(table)) else UNREPORTED


def _skipped(text: str) -> str:
    """Return a sentence about the skipped documents, with the reasons."""
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


def _summary(table: xr.Dataset, reports: Sequence[Report], needed: pd.DataFrame, probes: xr.Dataset | None) -> str:
    """Return paragraphs on heads that stand out, needed heads and probes, with links to the sections about them."""
    sentence = " ".join(filter(None, (describe_verdicts(reports), describe_replication(table, reports))))
    sentences = {"reported": sentence, "needed": describe_need(table, needed)}
    sentences["figures"] = "" if probes is None else f"Probes of all heads: {describe_gain(probes)}"
    return "\n".join(
        f'<p class="summary"><a href="#{part}">{_escape(text)}</a></p>' for part, text in sentences.items() if text
    )


UNDRAWN = (
    "No figures are drawn yet. Draw them with <code>headscope draw FOLDER</code>, or in Python "
    "<code>figures=True</code>: they are then shown here, and are in the folder <code>figures</code> for a paper."
)


def _figures(figures: Mapping[str, str] | None) -> str:
    """Return the section with the figures as images whose SVG is in the page; an empty string for None.

    A script or style inside of an image cannot access the page around it.
    """
    if figures is None:
        return ""
    parts = ['<section aria-labelledby="figures"><h2 id="figures">Figures</h2>']
    parts += [] if figures else [f'<p class="note">{UNDRAWN}</p>']
    for title, svg in figures.items():
        code = base64.b64encode(follow_theme(svg).encode("utf-8", errors="replace")).decode("ascii")
        image = f'<img alt="{_escape(title)}" src="data:image/svg+xml;base64,{code}">'
        parts.append(f"<figure><figcaption>{_escape(title)}</figcaption>{image}</figure>")
    return "\n".join([*parts, "</section>"])


def _provenance(attrs: Mapping[str, Any]) -> str:
    """Return a row (HTML) for each attribute of a table, except the descriptions of its scores."""
    rows = []
    for key, value in attrs.items():
        if key == ATTRIBUTE:
            continue
        parsed = _parsed(value)
        if isinstance(parsed, dict):
            value = "; ".join(f"{name} {number}" for name, number in parsed.items()) or "none"
        rows.append(f'<tr><th scope="row">{_escape(key)}</th><td>{_escape(value)}</td></tr>')
    return "\n".join(rows)
