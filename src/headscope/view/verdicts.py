"""Verdicts in sentences: for how many rows a head stands out, here and on another corpus, and what that means."""

from collections.abc import Sequence

import xarray as xr

from headscope.analyse.replicate import SURVIVES
from headscope.analyse.report import AWAITED, CLUSTERS, NOT_YET, STANDS_OUT, UNDECIDED
from headscope.analyse.rivals import UNTRAINED
from headscope.view.headings import name_replication
from headscope.view.reports import LEVEL, Report, Reported, list_rows

P = "that of no lift over some rival, or of chance where links were permuted, the larger; corrected for the rows."


def describe_verdicts(reports: Sequence[Report]) -> str:
    """Return sentences with the number of rows for which a head stands out, by score; empty if no row has a head."""
    standing: list[str] = []
    without: list[str] = []
    undecided: list[str] = []
    singular = False
    for report in reports:
        rows = report.rows_with_heads
        count = sum(map(may_stand_out, rows))
        if count or len(rows) > 1:
            singular = not standing and (count == 1 or len(rows) == 1)
            standing.append(_count_rows(report, count))
        elif rows:
            without.append(_count_rows(report, count))
        if count := sum(row.verdict == UNDECIDED for row in rows):
            undecided.append(_count_rows(report, count))
    if not (standing or without):
        return ""
    rivals, waits = any(row.rivals for row in list_rows(reports)), has_open_verdicts(reports)
    beaten = " and ".join(
        ["every rule" if waits else "all its rivals"] * rivals + ["chance"] * has_permutations(reports)
    )
    subject, many = enumerate_parts(standing or without), not singular if standing else len(without) > 1
    sentence = f"{subject[:1].upper()}{subject[1:]} {'have' if many else 'has'} {'a' if standing else 'no'} head that "
    sentence += f"beats {beaten}" if beaten else "may stand out" if waits else "stands out"
    if standing and without:
        sentence += f"; {enumerate_parts(without)} {'have' if len(without) > 1 else 'has'} none"
    return (
        f"{sentence}."
        + " Whether it beats the untrained model too is not known yet." * waits
        + _describe_undecided(list_rows(reports), undecided)
    )


def _describe_undecided(rows: Sequence[Reported], counts: Sequence[str]) -> str:
    """Return a sentence with the number of undecided rows of each score; empty if there are none."""
    return f" There are {name_lack(rows)} to decide about {enumerate_parts(counts)}." if counts else ""


def describe_awaited(table: xr.Dataset) -> str:
    """Return sentences on the untrained model that a page still waits for; empty if the page is complete."""
    if AWAITED not in table.attrs:
        return ""
    return (
        'The untrained model is still to be measured: a verdict that needs it is "not yet". Load this page again when '
        "headscope atlas has ended; if that was interrupted, run it again with --resume."
    )


def may_stand_out(row: Reported) -> bool:
    """Return True if the head of a row stands out, or may do so when the untrained model is measured."""
    return row.verdict in (STANDS_OUT, NOT_YET)


def has_open_verdicts(reports: Sequence[Report]) -> bool:
    """Return True if the verdict of a row still depends on the untrained model."""
    return any(row.verdict == NOT_YET for row in list_rows(reports))


def _count_rows(report: Report, count: int) -> str:
    """Return `count` and the number of rows with a head; for a single row, its name or the title of the score."""
    rows, title = report.rows_with_heads, report.score.title
    if len(rows) > 1:
        return f"{count} of {len(rows)} {report.score.rows}"
    if ":" in rows[0].key:
        return f"the row {rows[0].name}"
    return title[:1].lower() + title[1:] if title[1:2].islower() else title


def describe_choice(reports: Sequence[Report]) -> str:
    """Return sentences about how heads and their rivals are chosen and scored."""
    names = {rival.name for row in list_rows(reports) for rival in row.rivals}
    titles = [rival.title for report in reports for rival in report.score.rivals if rival.name in names]
    titles += ["best head of the untrained model"] if UNTRAINED in names else []
    chosen = "Each head was chosen on one half of the documents and scored on the other"
    if not titles:
        return f"{chosen}."
    return (
        f"{chosen}, and so were its rivals: {enumerate_parts(list(dict.fromkeys(titles)))}. "
        "Lift: the score of the head less that of its strongest rival on the same items."
    )


def describe_marks(reports: Sequence[Report], *, colour: str = "green") -> str:
    """Return an explanation of the marks after heads and rows: `*` and a colour, `?` and grey, and `=`."""
    rows = list_rows(reports)
    sentences = [f"* and {colour}: {describe_standing(reports)}"]
    if any(row.verdict == UNDECIDED for row in rows):
        sentences.append(f"? and grey: {name_lack(rows)} to decide.")
    if any(row.folded for row in rows):
        sentences.append("=: the row after it pools others, and has the same items here.")
    return " ".join(sentences)


def name_lack(rows: Sequence[Reported]) -> str:
    """Return "too few texts" for undecided rows without a p-value, "too few permutations" for others, or both."""
    tested = {row.p >= 0 for row in rows if row.verdict == UNDECIDED}
    return enumerate_parts([f"too few {('texts', 'permutations')[each]}" for each in sorted(tested)])


def describe_standing(reports: Sequence[Report]) -> str:
    """Return the condition under which a head stands out (`headscope.analyse.report`)."""
    tested = f" (p below {LEVEL})" if has_p_values(reports) else ""
    return (
        f"on {CLUSTERS} or more texts on which it was not chosen, the head beats every rule that it was compared "
        f"with{tested}; at most about one table in twenty has such a row by luck."
    )


def describe_replication(table: xr.Dataset, reports: Sequence[Report]) -> str:
    """Return a sentence about the heads that stand out here and on another corpus; empty without another corpus."""
    rows = [row for row in list_rows(reports) if row.replication is not None]
    if not rows:
        return ""
    corpus = name_replication(table)
    verdicts = [row.replication.verdict for row in rows if row.stands_out and row.replication is not None]
    if not verdicts:
        return f"No head stands out here, so there is none that could do so again on {corpus}."
    counts = {verdict: verdicts.count(verdict) for verdict in (SURVIVES, UNDECIDED)}
    undecided = f" There is too little to decide about {counts[UNDECIDED]}." if counts[UNDECIDED] else ""
    return f"{counts[SURVIVES]} of {len(verdicts)} heads that stand out here also do on {corpus}.{undecided}"


def describe_rare(report: Report) -> str:
    """Return a phrase with the number of rows that have too few items to report a head; empty if there are none."""
    count, every = len(report.rare_rows), len(report.shown_rows)
    if not count:
        return ""
    return (
        f"{count} of {every} {report.score.rows}: too few {report.score.items} in a half of the corpus to report a head"
    )


def has_permutations(reports: Sequence[Report]) -> bool:
    """Return True if the gold was permuted for a row."""
    return any(row.permuted >= 0 for row in list_rows(reports))


def has_p_values(reports: Sequence[Report]) -> bool:
    """Return True if a verdict has a p-value."""
    return any(row.p >= 0 for row in list_rows(reports))


def choose_opening(reports: Sequence[Report]) -> Reported | None:
    """Return the row to show first: of rows that (may) stand out, the row with the largest lift; else the first."""
    rows = list_rows(reports)
    standing = [row for row in rows if may_stand_out(row)]
    return max(standing, key=lambda row: row.lift.value) if standing else next(iter(rows), None)


def enumerate_parts(parts: Sequence[str]) -> str:
    """Return the parts joined by commas, with an "and" before the last part."""
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))
