"""The roles of the heads of a decoder, as a data frame, in sentences and on the terminal."""

from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from rich.console import Console
from rich.markup import escape

from headscope.analyse.head_roles import CORPUS, NONE, ROLE, read_left_out
from headscope.heads import head_name
from headscope.view.headings import name_model
from headscope.view.lines import make_grid, print_grid, write
from headscope.view.verdicts import enumerate_parts
from headscope.view.wording import format_interval, format_number

SHOWN = 4
"""The number of heads of a role that the terminal shows."""

RESTING = "sink"
"""The role of heads that rest on the first token."""

COLUMNS = ("score", "score_lower", "score_upper", "count", "rival", "untrained", "lift", "q")
"""The columns of `list_roles` on the main role of each head, by the suffixes of the variables of the table."""


def list_roles(table: xr.Dataset) -> pd.DataFrame:
    """Return the main role, the other roles and all scores of each head, as a data frame with a row for each head.

    Columns are ``layer``, ``head``, ``role``, ``score`` with ``score_lower``, ``score_upper`` and ``units``, ``count``
    (the items that were scored), ``rival`` (the largest score that it is compared with), ``untrained`` (the score of
    the best head of the untrained model), ``lift`` over the rival, ``q``, ``also`` (its other roles), and after them a
    column for each role. Heads of layers without attention are left out.
    """
    roles, dims = table["role"].values.tolist(), ("layer", "head", "role")
    scores = table[f"{ROLE}_score"].transpose(*dims)
    known = {end: table[f"{ROLE}_{end}"].broadcast_like(scores).transpose(*dims).values for end in COLUMNS}
    has, units = table[f"{ROLE}_has"].transpose(*dims).values == 1, table[f"{ROLE}_units"].values.tolist()
    main = table[ROLE].transpose(*dims[:2]).values.astype(int) - 1  # the index of a role; -1 without a role
    rows = []
    for place in np.argwhere(scores.notnull().any("role").values):
        layer, head = map(int, place)
        role = main[layer, head]
        also = [name for name, there in zip(roles, has[layer, head], strict=True) if there]
        known_by = {end: values[layer, head, role] if role >= 0 else np.nan for end, values in known.items()}
        rows.append({
            "layer": layer + 1, "head": head + 1, "role": roles[role] if role >= 0 else NONE, **known_by,
            "units": units[role] if role >= 0 else "",
            "also": ", ".join(name for name in also if role < 0 or name != roles[role]),
            **dict(zip(roles, scores.values[layer, head], strict=True)),
        })  # fmt: skip
    return pd.DataFrame(rows)


def describe_roles(table: xr.Dataset) -> list[str]:
    """Return at most five sentences: the number and the clearest head of each role, resting heads, undecided roles."""
    if ROLE not in table:
        return [_describe_left_out(table)]
    frame = list_roles(table)
    counts = frame["role"].value_counts().to_dict()
    without = counts.pop(NONE, 0)
    listed = [f"{count} {role}" for role, count in counts.items()]
    by_main = f", by their main one: {enumerate_parts(listed)}" if listed else ""
    sentences = [f"Of {len(frame)} heads {len(frame) - without} have a role{by_main}."]
    clearest = [
        f"{_name(best)} ({role}, {_short(best[role])})"
        for role in table["role"].values.tolist()
        if role != RESTING and (best := _find_clearest(frame, role)) is not None
    ]
    if clearest:
        sentences.append(f"The clearest of each: {enumerate_parts(clearest)}.")
    if resting := counts.get(RESTING, 0):
        sentences.append(
            f"{resting} {'head rests' if resting == 1 else 'heads rest'} on these texts: much of the attention goes to "
            "the first token, as where a head has nothing to do; in other texts it may have something to do."
        )
    undecided = table[f"{ROLE}_has"].isnull() & table[f"{ROLE}_score"].notnull()
    if few := [str(role) for role in table["role"].values if bool(undecided.sel(role=role).all())]:
        sentences.append(f"Too few texts to decide who has the role {enumerate_parts(few)}.")
    if read_left_out(table):
        sentences.append(_describe_left_out(table))
    return sentences


def list_clearest(table: xr.Dataset) -> list[str]:
    """Return the name of the clearest head of each role, except the resting role; empty without roles in the table."""
    if ROLE not in table:
        return []
    frame = list_roles(table)
    best = [_find_clearest(frame, role) for role in table["role"].values.tolist() if role != RESTING]
    return list(dict.fromkeys(_name(row) for row in best if row is not None))


def _find_clearest(frame: pd.DataFrame, role: str) -> dict[Any, Any] | None:
    """Return the row of the best head with a role, as main role or, failing that, as another role; None without one."""
    also = frame["also"].str.split(", ").map(lambda names: role in names)
    rows = next((rows for rows in (frame[frame["role"] == role], frame[also]) if len(rows)), None)
    return None if rows is None else rows.sort_values(role, ascending=False, kind="stable").iloc[0].to_dict()


def _describe_left_out(table: xr.Dataset) -> str:
    """Return sentences on the roles that could not be measured, one for each reason."""
    by_reason: dict[str, list[str]] = {}
    for role, reason in read_left_out(table).items():
        by_reason.setdefault(reason.rstrip("."), []).append(role)
    return " ".join(f"Not measured: {enumerate_parts(roles)}, since {why}." for why, roles in by_reason.items())


def describe_role(row: dict[Any, Any]) -> str:
    """Return a sentence on the main role of a head, from a row of `list_roles`; empty without a role."""
    if row["role"] == NONE:
        return ""
    score = format_interval(row["score"], row["score_lower"], row["score_upper"], digits=2)
    also = f", also {row['also']}" if row["also"] else ""
    texts = ": it rests there, and may not in other texts" if row["role"] == RESTING else ""
    return (
        f"On generated texts its role is {row['role']}{also}: {score} ({row['units']}; the best untrained head has "
        f"{row['untrained']:.2f}){texts}."
    )


def print_roles(table: xr.Dataset, console: Console) -> None:
    """Print sentences on the roles of the heads, and the clearest heads of each role."""
    model, texts = name_model(table.attrs["model"]), table.attrs.get(CORPUS, "generated texts")
    heading = f"\nRoles of the heads of [bold]{escape(model)}[/], on [bold]{escape(texts)}[/]"
    console.print(heading, highlight=False, emoji=False)
    for sentence in describe_roles(table):
        console.print(escape(sentence), highlight=False, emoji=False)
    if ROLE not in table:
        return
    frame = list_roles(table)
    columns = ("head", "main role", "score", "95 %", "rival", "untrained", "count", "also")
    lines = make_grid(*columns, left=("main role", "95 %", "also"), wraps=("also",), apart=1)
    for role in table["role"].values.tolist():
        rows = frame[frame["role"] == role].sort_values("lift", ascending=False, kind="stable")
        for row in rows.head(SHOWN).to_dict("records"):
            ends = f"{_short(row['score_lower'])} to {_short(row['score_upper'])}"
            lines.add_row(
                _name(row), role, _short(row["score"]), ends, _short(row["rival"]), _short(row["untrained"]),
                f"{row['count']:,.0f}", row["also"],
            )  # fmt: skip
    if not lines.row_count:
        return
    write(console, f"\nThe {SHOWN} clearest heads of each main role")
    print_grid(lines, console)
    units = pd.Series(table[f"{ROLE}_units"].values, index=table["role"].values)
    parts = [f"{enumerate_parts([*names])}: {unit}" for unit, names in units.groupby(units, sort=False).groups.items()]
    note = "rival: the largest score of a rule without a model, of the same head elsewhere, or of an untrained head"
    console.print(escape(f"Scores are shares. {'; '.join(parts)}. {note}."), highlight=False, emoji=False)


def _name(row: dict[Any, Any]) -> str:
    return head_name(row["layer"], row["head"])


def _short(share: float) -> str:
    return format_number(share, 2).replace("0.", ".", 1)
