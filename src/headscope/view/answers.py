"""Sentences about a row or a head of a table, made only of the table's numbers."""

import math
from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np
import pandas as pd
import xarray as xr

from headscope.analyse.head_roles import ROLE
from headscope.analyse.report import CLUSTERS, DOES_NOT, NOT_YET, STANDS_OUT, UNDECIDED
from headscope.analyse.rivals import UNTRAINED
from headscope.heads import head_name
from headscope.view.headings import is_of_decoder
from headscope.view.need_report import describe_effect, read_metric
from headscope.view.reports import Report, Reported, RivalScore, find_place, format_measure, group_by_head
from headscope.view.roles_report import describe_role, list_roles
from headscope.view.verdicts import enumerate_parts, name_lack
from headscope.view.wording import format_interval

LEAST = 0.05
"""The smallest difference from the mean of all heads at which a sentence names the most unusual target of a head."""

RESTING, RESTS = "mass_first", 0.5
"""The variable with the attention to the first token of a text, and the share from which a head counts as resting."""

SURE = 0.5
"""The smallest share of random halves of the texts that must choose a head before a sentence calls it the best."""

NO_ROW = "It was chosen for no row."
RESTS_HERE = "It rests on these texts, which do not show what it does where it has something to do."


def describe_row(report: Report, row: Reported) -> list[str]:
    """Return sentences about a row and its head: the verdict, the held-out score, the rivals, the permuted score."""
    score = f"{format_measure(report.score)} {format_interval(*row.score, digits=2)}"
    attends = f", from the {row.attends}" if row.direction else ""
    choice = f"For {row.label}, head {row.where} {_say_choice(row)}: {score} on {row.scored:,} held-out "
    return [answer_row(row), f"{choice}{report.score.items}{attends}.", *_compare(row)]


def _say_choice(row: Reported) -> str:
    """Return "is best" or, if fewer than half of all random halves of the texts choose the head, "was chosen"."""
    share = row.selection_frequency
    return f"was chosen, as in {share:.0%} of random halves of the texts" if share < SURE else "is best"


def answer_row(row: Reported) -> str:
    """Return a sentence that says whether the head of a row stands out.

    It begins with Yes, No, No difference, Cannot say or Not yet. For a row without a verdict, it states only the head
    and its score.
    """
    head = f"head {row.where} {row.plain.state(_format_share(row.score.value), row.scored)}"
    better = [rival for rival in row.rivals if rival.lift.upper < 0]
    # A rival that surely beats the head takes the place of the strongest rival.
    rival = min(better, key=lambda rival: rival.lift.value) if better else row.strongest_rival
    beside = f"{_name_rival(rival)} {_format_share(rival.score.value)}" if rival else ""
    match row.verdict:
        case verdict if verdict == STANDS_OUT:
            untrained = [each for each in row.rivals if each.name == UNTRAINED and each is not rival]
            others = [beside, *(f"{_name_rival(each)} {_format_share(each.score.value)}" for each in untrained)]
            return f"Yes. {_begin('; '.join(filter(None, (head, ', '.join(others)))))}."
        case verdict if verdict == UNDECIDED:
            texts = f" ({row.clusters} groups of texts; {CLUSTERS} are needed)" if row.clusters < CLUSTERS else ""
            return f"Cannot say. {_begin(', '.join(filter(None, (head, beside))))}: {name_lack([row])} to tell{texts}."
        case verdict if verdict == NOT_YET:
            known = _begin(", ".join(filter(None, (head, beside))))
            return f"Not yet. {known}; the untrained model is still to be measured."
        case verdict if verdict == DOES_NOT:
            if rival is not None and better:
                verb = "finds" if row.plain.claim.startswith("finds") else "has"
                return f"No. {_begin(f'{_name_rival(rival)} {verb} {_format_share(rival.score.value)}; {head}')}."
            if rival is not None and not rival.lift.lower > 0:
                return f"No difference. {_begin(f'{head}, {beside}')}: the gap is within the noise."
            chance = f", by chance {_format_share(row.permuted)}" if math.isfinite(row.permuted) else ""
            return f"No difference. {_begin(f'{head}{chance}')}: it may be chance."
    return f"{_begin(head)}."


def _name_rival(rival: RivalScore) -> str:
    return rival.plain if rival.name == UNTRAINED else f"the rule '{rival.plain}'"


def _format_share(share: float) -> str:
    return f"{100 * share:.0f} %"


def _begin(sentence: str) -> str:
    return f"{sentence[:1].upper()}{sentence[1:]}"


def _compare(row: Reported) -> Iterator[str]:
    """Yield sentences about the rivals of a row's head and its score on the permuted annotation."""
    rival = row.strongest_rival
    if rival is not None:
        lift = format_interval(*row.lift, digits=2, sign=True)
        yield f"Its lift over the strongest rival, {rival.label} ({rival.score.value:.2f}), is {lift}."
    if math.isfinite(row.permuted):
        yield f"With the annotation permuted it has {row.permuted:.2f}."
    for untrained in row.rivals:
        if untrained.name == UNTRAINED and untrained is not rival:
            yield f"The best head of the untrained model has {untrained.score.value:.2f}."


def describe_heads(
    table: xr.Dataset, reports: Sequence[Report], needed: pd.DataFrame
) -> dict[tuple[str, int, int], str]:
    """Return sentences about each head: its role, its main target, the rows it is reported for, and its effect.

    In a table of a tuned model, a sentence also names the matching head of the model before.

    Args:
        table: The head table.
        reports: The reports of the table.
        needed: The heads of the table with their effects, from `list_needed_heads`.

    Returns:
        The sentences by attention type (empty for a model with one), layer and head.
    """
    rows, metric = group_by_head(reports), read_metric(table)
    effects = {find_place(head): describe_effect(head, metric) for head in needed.to_dict("records") if metric}
    targets = dict(_describe_targets(table))
    types = table["attention_type"].values.tolist() if "attention_type" in table.dims else [""]
    matches, roles, resting = dict(_describe_matches(table)), dict(_describe_roles(table)), {*_list_resting(table)}
    places = product(types, table["layer"].values.tolist(), table["head"].values.tolist())
    return {
        place: " ".join(
            filter(
                None,
                (
                    roles.get(place),
                    targets.get(place),
                    RESTS_HERE if place in resting else "",
                    _describe_rows(rows[place]) if place in rows else NO_ROW if rows and place not in resting else "",
                    effects.get(place),
                    matches.get(place),
                ),
            )
        )
        for place in places
    }


def _describe_roles(table: xr.Dataset) -> Iterator[tuple[tuple[str, int, int], str]]:
    """Yield each head (attention type, layer, head) and a sentence about its main role; nothing without roles."""
    for row in list_roles(table).to_dict("records") if ROLE in table else ():
        yield find_place(row), describe_role(row)


def _list_resting(table: xr.Dataset) -> Iterator[tuple[str, int, int]]:
    """Yield the heads of a decoder that give at least the share `RESTS` of attention to the first token."""
    if RESTING in table and is_of_decoder(table):
        shares = table[RESTING].reset_coords(drop=True).to_dataframe().reset_index()
        yield from map(find_place, shares[shares[RESTING] >= RESTS].to_dict("records"))


def _describe_matches(table: xr.Dataset) -> Iterator[tuple[tuple[str, int, int], str]]:
    """Yield each head and a sentence about the matching head of the model before; nothing if no heads were matched."""
    if "matched_layer" not in table:
        return
    names = ["matched_layer", "matched_head", "matched_distance", "own_distance"]
    matches = table[names].reset_coords(drop=True).to_dataframe().reset_index().dropna(subset="matched_distance")
    for match in matches.to_dict("records"):
        place = find_place(match)
        layer, head, distance, own = (match[name] for name in names)
        other, same = head_name(int(layer), int(head)), (layer, head) == place[1:]
        whom = "itself" if same else f"head {other}"
        beside = "" if same else f"; the head of its own place is at {own:.2f}"
        yield place, f"Of the heads before it is matched with {whom}: {distance:.2f} nats{beside}."


def _describe_targets(table: xr.Dataset) -> Iterator[tuple[tuple[str, int, int], str]]:
    """Yield each head and a sentence about the target that it attends to most, compared with the mean of all heads."""
    shares = {str(values.attrs["target"]): values for values in table.data_vars.values() if values.attrs.get("target")}
    if not shares:
        return
    by_target = xr.concat([values.drop_attrs() for values in shares.values()], "target", coords="minimal")
    if "attention_type" not in by_target.dims:
        by_target = by_target.expand_dims(attention_type=[""])
    names, of_head = [*shares], ("attention_type", "layer", "head")
    means = by_target.mean(of_head).values
    places = product(*(by_target[dim].values.tolist() for dim in of_head))
    for place, of_targets in zip(places, by_target.stack(place=of_head).T.values, strict=True):
        if np.isnan(of_targets).all():
            continue
        most, distinct = int(np.nanargmax(of_targets)), int(np.nanargmax(of_targets - means))
        sentence = (
            f"attends most to {names[most]}: {of_targets[most]:.0%} of its attention, {means[most]:.0%} in the mean of "
            "all heads."
        )
        if distinct != most and of_targets[distinct] - means[distinct] >= LEAST:
            share = f"{of_targets[distinct]:.0%}, {means[distinct]:.0%} in the mean"
            sentence += f" More than other heads it attends to {names[distinct]}: {share}."
        yield place, f"Head {head_name(*place[1:])} {sentence}"


def _describe_rows(rows: Sequence[Reported]) -> str:
    """Return sentences that name the rows a head is reported for, grouped by verdict."""
    sentences = {
        "It stands out for {}.": [row.caption for row in rows if row.stands_out],
        "It was chosen for {}, but does not stand out.": [
            row.caption for row in rows if row.verdict not in (STANDS_OUT, UNDECIDED, NOT_YET)
        ],
        "It was chosen for {}; whether it stands out is not known yet.": [
            row.caption for row in rows if row.verdict == NOT_YET
        ],
        "It was chosen for {}; whether it stands out cannot be decided.": [
            row.caption for row in rows if row.verdict == UNDECIDED
        ],
    }
    return " ".join(text.format(enumerate_parts(labels)) for text, labels in sentences.items() if labels)
