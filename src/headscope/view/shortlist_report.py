"""The heads that stand out by a score (`headscope.analyse.shortlist`), as a data frame, a list and on the terminal."""

import pandas as pd
import xarray as xr
from rich.console import Console
from rich.markup import escape

from headscope.analyse.report import DOES_NOT, STANDS_OUT, UNDECIDED
from headscope.analyse.rivals import UNTRAINED
from headscope.analyse.uncertainty import ALPHA
from headscope.headlists import HeadEntry, HeadList
from headscope.heads import head_name
from headscope.score import Score, main_score
from headscope.view.lines import format_range, make_grid, print_grid, write
from headscope.view.listed_heads import make_head_list
from headscope.view.wording import format_brief_p

SHOWN = 10
"""The number of heads of a row that the terminal shows."""

PLACE = ("attention_type", "layer", "head")


def list_shortlist(table: xr.Dataset) -> pd.DataFrame:
    """Return the scores and the verdict of each head in each row of a table's only score, the best head first.

    Columns are ``attention_type`` (if there are several), ``layer``, ``head``, the dimension of the rows, and the score
    on all texts (such as ``accuracy``) with ``lower``, ``upper`` and ``count``. For the half of the texts on which no
    head was chosen, there are ``heldout`` with ``heldout_lower`` and ``heldout_upper``, ``lift`` over the strongest
    ``rival`` with its ends, ``q`` and the ``verdict``. ``error_rate`` follows if the table has one. Heads without a
    score are left out.
    """
    score = main_score(table)
    row, prefix = score.row_dimension(table), f"{score.report_prefix}shortlist"
    columns = {
        score.measure: score.variable, "lower": f"{score.variable}_lower", "upper": f"{score.variable}_upper",
        "count": f"{score.stem}_count", "heldout": f"{prefix}_{score.measure}", "heldout_lower": f"{prefix}_lower",
        "heldout_upper": f"{prefix}_upper", "lift": f"{prefix}_lift", "lift_lower": f"{prefix}_lift_lower",
        "lift_upper": f"{prefix}_lift_upper", "rival": f"{prefix}_rival", "q": f"{prefix}_q",
        "verdict": f"{prefix}_stands_out", "error_rate": f"{score.stem}_error_rate",
    }  # fmt: skip
    chosen = xr.Dataset({column: table[name] for column, name in columns.items() if name in table})
    order = [dim for dim in (*PLACE, row) if dim in chosen.dims]
    frame = chosen.to_dataframe(dim_order=order).reset_index()
    frame = frame[frame[score.measure].notna()]
    verdicts = frame["verdict"].map({1: STANDS_OUT, 0: DOES_NOT}).fillna(UNDECIDED)
    rows = pd.Categorical(frame[row], categories=table[row].values)
    frame = frame.assign(verdict=verdicts, by_row=rows, by_score=-frame["heldout"])
    frame = frame.sort_values(["by_row", "by_score"], kind="stable", ignore_index=True)
    return frame[[*order, *chosen.data_vars]]


def list_shortlisted(table: xr.Dataset, row: str, top: int | None = None) -> HeadList:
    """Return the heads that stand out in a row of the score, or the first `top` of them, with held-out scores."""
    score, frame = main_score(table), list_shortlist(table)
    dim = score.row_dimension(table)
    chosen = frame[(frame["verdict"] == STANDS_OUT) & (frame[dim] == row)]
    entries = tuple(
        HeadEntry(
            int(each["layer"]), int(each["head"]), each["heldout"], each["heldout_lower"], each["heldout_upper"],
            heldout=True, verdict=STANDS_OUT, score=score.variable, row=row, title=score.label.format(row),
            attention_type=str(each.get("attention_type", "")), rival=str(each["rival"]),
        )
        for each in chosen.head(len(chosen) if top is None else top).to_dict("records")
    )  # fmt: skip
    return make_head_list(table, entries, f"All heads that stand out. {table.attrs.get('split', '')}".strip())


def print_shortlist(table: xr.Dataset, console: Console, *, whole: bool = False) -> None:
    """Print, for each row of the score, the number of heads that stand out, and the best of them (all if `whole`)."""
    score, frame = main_score(table), list_shortlist(table)
    dim = score.row_dimension(table)
    for row in table[dim].values:
        _print_row(score, str(row), frame[frame[dim] == row], console, None if whole else SHOWN)


def _print_row(score: Score, row: str, frame: pd.DataFrame, console: Console, shown: int | None) -> None:
    chosen = frame[frame["verdict"] == STANDS_OUT]
    result = f"too few {score.items} or texts to decide which heads stand out"
    if (frame["verdict"] != UNDECIDED).any():
        result = f"{len(chosen)} of {len(frame)} heads stand out beyond every rival, on texts on which none was chosen"
        result += f" (q below {ALPHA}){f'; the best {shown}' if shown and len(chosen) > shown else ''}"
    label = escape(score.label.format(row))
    write(console, f"\n[bold]{label}[/]: {result}")
    if chosen.empty:
        return
    titles = {rival.name: rival.title for rival in score.rivals} | {UNTRAINED: "best head of the untrained model"}
    columns = ("head", score.measure, "95 % interval", "lift", "95 % interval ", "strongest rival", "q")
    lines = make_grid(*columns, left=("strongest rival",), wraps=("strongest rival",))
    for each in chosen[:shown].to_dict("records"):
        lines.add_row(
            head_name(each["layer"], each["head"]), f"{each['heldout']:.3f}",
            format_range(each["heldout_lower"], each["heldout_upper"], sign=""), f"{each['lift']:+.3f}",
            format_range(each["lift_lower"], each["lift_upper"]), escape(titles[each["rival"]]),
            format_brief_p(each["q"]),
        )  # fmt: skip
    print_grid(lines, console)
