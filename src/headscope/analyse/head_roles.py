"""The roles of the heads of a decoder, such as induction: which roles each head has, and which is its main role.

tables of the model and of the untrained model --scores that name roles--> lift and q of each head --> roles
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import xarray as xr

from headscope.analyse.report import CLUSTERS
from headscope.analyse.rivals import UNTRAINED, choose_rivals, describe_values
from headscope.analyse.significance import false_discoveries
from headscope.analyse.uncertainty import ALPHA, Lift, Ratio
from headscope.errors import TableError
from headscope.score import ATTRIBUTE, Score, read_scores, write_scores

ROLE = "head_role"
"""The variable of the main role (as an index into the attribute ``names``), and the prefix of the other variables."""

NONE = "none"
"""The main role of a head without a role."""

LEFT_OUT, CORPUS = "roles_left_out", "roles_corpus"
"""Two attributes (JSON): the roles that were not measured, with reasons; and the texts for the measured roles."""

PROFILE = Score(
    f"{ROLE}_score",
    "Roles of heads",
    "the score by which a head has a role, each in a unit of its own, on generated texts",
    items="items",
    rows="roles of heads",
    label="role: {}",
)


class _Judged(NamedTuple):
    """The statistics of one role: the last five have a single value, and all others a value for each head."""

    score: xr.DataArray
    lower: xr.DataArray
    upper: xr.DataArray
    rival: xr.DataArray
    lift: xr.DataArray
    lift_lower: xr.DataArray
    p: xr.DataArray
    passes: xr.DataArray
    items: xr.DataArray
    untrained: xr.DataArray
    threshold: xr.DataArray
    rank: xr.DataArray
    texts: xr.DataArray


def find_head_roles(measured: Iterable[tuple[xr.Dataset, xr.Dataset]], left_out: Mapping[str, str]) -> xr.Dataset:
    """Find the roles of a model's heads, by the scores that measure a role (`headscope.score.Score.roles`).

    A head has a role if its score reaches the threshold of the role, the intervals of its lift over every rival and
    over the best head of the untrained model lie above 0, and q, the false discovery rate of such a lift over all heads
    and roles, is below 0.05. The options of rivals, and the untrained model's head, are the best on the same texts,
    which puts the head at a disadvantage.

    Args:
        measured: Tables of a model, each with a table of the untrained model on some of the same texts.
        left_out: The roles that could not be measured, each with the reason.

    Returns:
        A table. For each head and role it has ``head_role_score`` with ``_lower`` and ``_upper``, ``head_role_rival``
        (the largest score that it is compared with), ``head_role_lift`` over this rival, ``head_role_q`` and
        ``head_role_has`` (1 if the head has the role; NaN if there are too few texts to decide). For each role it has
        ``head_role_count``, ``head_role_untrained``, ``head_role_from`` and ``head_role_units``. For each head it has
        ``head_role``, the main role: among its roles of the lowest rank, the role with the largest lift.

    Raises:
        TableError: No score of the tables measures a role, or all these scores are NaN.
    """
    judged: dict[str, _Judged] = {}
    units: dict[str, str] = {}
    for table, untrained in measured:
        for score in read_scores(table):
            if score.roles:
                judged |= _judge_score(table, untrained, score)
                units |= dict.fromkeys(score.roles.values(), str(table[score.variable].attrs["units"]))
    judged = {role: each for role, each in judged.items() if bool(each.score.notnull().any())}
    if not judged:
        raise TableError("no score of the tables says of which role of a head it is; measure one that does.")
    part = _Judged(*(xr.concat(each, "role", coords="minimal") for each in zip(*judged.values(), strict=True)))
    part = part._replace(**{name: values.assign_coords(role=[*judged]) for name, values in part._asdict().items()})
    q = part.p.copy(data=false_discoveries(part.p.values))
    has = part.passes & (part.lift_lower > 0) & (q < ALPHA)
    decided = has.astype(float).where((part.texts >= CLUSTERS) & part.score.notnull())
    variables = {
        "_score": (part.score, "score of the head", "share"),
        "_score_lower": (part.lower, "score of the head: lower end of the 95 % interval", "share"),
        "_score_upper": (part.upper, "score of the head: upper end of the 95 % interval", "share"),
        "_rival": (part.rival, "largest score of its rivals and of the best head of the untrained model", "share"),
        "_lift": (part.lift, "score of the head less that of its strongest rival", "share"),
        "_q": (q, "false discovery rate of a lift over all rivals, over all heads and roles", "probability"),
        "_has": (decided, f"1 if it has the role: from the threshold on, above all rivals, q below {ALPHA}", "flag"),
        "_count": (part.items, "items on which a head is scored", "items"),
        "_untrained": (part.untrained, "score of the best head of the untrained model", "share"),
        "_from": (part.threshold, "score from which on a head has the role", "share"),
    }  # fmt: skip
    new = {f"{ROLE}{end}": describe_values(*described) for end, described in variables.items()}
    label = xr.DataArray([units[role] for role in judged], dims="role")
    new[f"{ROLE}_units"] = describe_values(label, "unit of the scores of the role", "label")
    new[ROLE] = _choose_main(part, decided == 1, [*judged])
    about = {ATTRIBUTE: write_scores([PROFILE]), LEFT_OUT: json.dumps(dict(left_out), ensure_ascii=False)}
    coords = part.score.drop_vars(["run", "direction"], errors="ignore").coords
    return xr.Dataset(new, coords=coords, attrs=about).set_coords(f"{ROLE}_units")


def join_head_roles(table: xr.Dataset, roles: xr.Dataset) -> xr.Dataset:
    """Add the roles of `find_head_roles` to `table`, which has the same heads on other texts."""
    scores = write_scores([*read_scores(table), PROFILE])
    about = {ATTRIBUTE: scores, **{name: roles.attrs[name] for name in (LEFT_OUT, CORPUS)}}
    labels = {name: roles[name] for name in ("role", f"{ROLE}_units")}
    return table.assign(roles.data_vars).assign_coords(labels).assign_attrs(about)


def name_main_roles(table: xr.Dataset) -> xr.DataArray:
    """Return the main role of each head in words; `NONE` for a head without a role."""
    main = table[ROLE]
    return main.copy(data=np.array(json.loads(main.attrs["names"]))[main.values.astype(int)])


def read_left_out(table: xr.Dataset) -> dict[str, str]:
    """Return the roles that could not be measured, each with the reason."""
    left_out: dict[str, str] = json.loads(table.attrs.get(LEFT_OUT, "{}"))
    return left_out


def _judge_score(table: xr.Dataset, untrained: xr.Dataset, score: Score) -> dict[str, _Judged]:
    """Return the statistics of each role of a score."""
    ratio, row = Ratio.of_heads(table, score), score.row_dimension(table)
    rivals = choose_rivals(table, score, untrained, {})
    lifts = [Lift(ratio, rival.scored) for rival in rivals.values()]

    def largest(values: Iterable[xr.DataArray]) -> xr.DataArray:
        # Drop the options of rivals, which are coordinates that differ between rivals.
        several = [each.reset_coords(drop=True) for each in values]
        return xr.concat(several, "rival", coords="minimal").max("rival", skipna=False)

    heads = ratio.value
    texts = ratio.clusters.broadcast_like(heads).max(["layer", "head"])
    items = ratio.denominator.sum("fold").broadcast_like(heads).max(["layer", "head"])
    parts = {
        "score": heads, "lower": ratio.interval()[0], "upper": ratio.interval()[1],
        "rival": largest(rival.scored.value.broadcast_like(heads) for rival in rivals.values()),
        "lift": -largest(-lift.value for lift in lifts),
        "lift_lower": -largest(-lift.interval()[0] for lift in lifts),
        "p": largest(lift.p_value() for lift in lifts),
        "passes": heads >= score.role_from, "items": items, "untrained": rivals[UNTRAINED].scored.value,
        "threshold": xr.full_like(items, score.role_from, dtype=float),
        "rank": xr.full_like(items, score.role_rank, dtype=int), "texts": texts,
    }  # fmt: skip
    return {role: _Judged(**_select(parts, {row: name} if row else {})) for name, role in score.roles.items()}


def _select(parts: Mapping[str, xr.DataArray], place: Mapping[str, str]) -> dict[str, xr.DataArray]:
    """Select one row of a score, with only the dimensions of heads."""
    order = ("layer", "head")
    rows = (values.sel(place).reset_coords(drop=True) for values in parts.values())
    return {name: values.transpose(*order, missing_dims="ignore") for name, values in zip(parts, rows, strict=True)}


def _choose_main(part: _Judged, has: xr.DataArray, names: Sequence[str]) -> xr.Variable:
    """Return the main role of each head as a variable, whose values are indices into its attribute ``names``."""
    lowest = part.rank.where(has).min("role")
    lift = part.lift.where(has & (part.rank == lowest)).fillna(-np.inf)
    code = (lift.argmax("role") + 1).where(has.any("role"), 0)
    what = "main role of the head on generated texts: of the roles that it has, not resting, that of the largest lift"
    main = describe_values(code.transpose("layer", "head"), what, "label")
    main.attrs |= {"names": json.dumps([NONE, *names], ensure_ascii=False), "title": "main role"}
    return main
