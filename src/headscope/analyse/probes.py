"""Accuracies of probes with their intervals, and the gains of a probe over the baselines on the same texts.

sums by seed, probe, relation and fold --pool seeds--> ratios and paired differences (`analyse.uncertainty`)
"""

from collections.abc import Sequence

import numpy as np
import xarray as xr

from headscope.analyse.ends import make_ends
from headscope.analyse.uncertainty import Lift, Ratio
from headscope.errors import TableError
from headscope.heads import variable

RIGHT, COUNT = "fold_probe_right", "fold_probe_choice"
CONTROL = "fold_control_right"

GAIN_OVER = ("right-branching", "words-and-distances", "untrained-attention-and-words")
"""The baselines for which the gain of a probe is computed."""

WITHOUT_ATTENTION, WITH_ATTENTION = "words-and-distances", "attention-and-words"
"""The two probes whose difference is the main result."""

ALL = "all"
SHARE = "share of choices"
CLARK = "Clark et al. 2019, section 5"
HEWITT_LIANG = "Hewitt and Liang 2019, section 2"
HEWITT_MANNING = "Hewitt and Manning 2019, section 3"


def add_probe_scores(table: xr.Dataset, baselines: Sequence[str] = GAIN_OVER) -> xr.Dataset:
    """Add the accuracies of probes, their gains over baselines and their selectivity to a table of sums by fold.

    Args:
        table: A table with ``fold_probe_right`` and ``fold_probe_choice``.
        baselines: The names of the probes for which gains are computed.

    Returns:
        The table with:

        * ``probe_accuracy`` of each probe on each relation, the first of which is ``all`` (on dependencies the
          unlabelled attachment score without punctuation, UAS), with ``_lower`` and ``_upper``: an interval clustered
          by text (`headscope.analyse.uncertainty.Ratio`), and ``probe_count``;
        * ``probe_accuracy_by_seed``, the accuracy of each seed on all choices;
        * ``probe_gain`` over each of `baselines`, with a paired interval (`headscope.analyse.uncertainty.Lift`);
        * ``control_accuracy`` and ``probe_selectivity``, the accuracy less the accuracy on the control task, with its
          interval;
        * ``structural_uuas`` of each layer, with its interval.
    """
    labels = [ALL, *map(str, table["relation"].values)]
    by_row = {name: _add_all(table[name]) for name in (RIGHT, COUNT)}
    right, count = (by_row[name].sum("seed") for name in (RIGHT, COUNT))
    ratio = Ratio(right, count)
    scores = _describe("probe_accuracy", ratio, "choices that a probe gets right", CLARK)
    seeds = by_row[RIGHT].sel(relation=ALL).sum("fold") / by_row[COUNT].sel(relation=ALL).sum("fold")
    what, dims = "choices that a probe gets right, by seed", [str(dim) for dim in seeds.dims]
    scores["probe_accuracy_by_seed"] = variable(seeds.values, dims, name=what, units=SHARE, source=CLARK)
    if baselines:
        lift = Lift(ratio, Ratio(right.sel(probe=[*baselines]).rename(probe="baseline"), count))
        scores |= _describe("probe_gain", lift, "accuracy of a probe less that of a baseline", CLARK)
    if CONTROL in table:
        control = Ratio(table[CONTROL].sum("seed"), table[f"{CONTROL}_count"].sum("seed"))
        names = [str(name) for name in table["controlled"].values]
        task = Ratio(right.sel(probe=names, relation=ALL).rename(probe="controlled"), count.sel(relation=ALL))
        what = "choices of the control task that a probe gets right"
        accuracy = control.value.values
        scores["control_accuracy"] = variable(accuracy, ["controlled"], name=what, units=SHARE, source=HEWITT_LIANG)
        lift, what = Lift(task, control), "accuracy of a probe less that on the control task"
        scores |= _describe("probe_selectivity", lift, what, HEWITT_LIANG)
    if "structural_found" in table:
        ratio = Ratio(table["structural_found"], table["structural_links"])
        what = "links of the trees that the structural probe finds"
        scores |= _describe("structural_uuas", ratio, what, HEWITT_MANNING)
    counts = variable(
        count.sum("fold").values, ("relation",), name="choices that are tested", units="choices", source=CLARK
    )
    sums = {name: by_row[name].variable.copy() for name in (RIGHT, COUNT)}
    for name, values_of in sums.items():
        values_of.attrs = dict(table[name].attrs)
    rest = table.drop_vars([RIGHT, COUNT]).drop_dims("relation", errors="ignore")
    coords = {"relation": np.array(labels)} | ({"baseline": np.array([*baselines])} if baselines else {})
    together = rest.assign(sums | scores | {"probe_count": counts}).assign_coords(coords)
    order = np.argsort(-together["probe_count"].values, kind="stable")
    return together.isel(relation=order)


def score_best_layer(table: xr.Dataset) -> tuple[int, float, float, float]:
    """Return the index of the layer where the structural probe finds most links, the share, and the share's interval.

    The best of many layers scores too well on the texts by which it was chosen. So the layer is chosen on every second
    fold that has links, and scored on the other folds. If only one fold has links, both are done on this fold.
    """
    right, links = table["structural_found"], table["structural_links"]
    present = np.flatnonzero(links.values > 0)
    chosen, scored = (present[::2], present[1::2]) if len(present) > 1 else (present, present)
    best = int(right.isel(fold=chosen).sum("fold").values.argmax())
    ratio = Ratio(right.isel(hidden_layer=best, fold=scored), links.isel(fold=scored))
    lower, upper = (float(end) for end in ratio.interval())
    return best, float(ratio.value), lower, upper


def add_probe_strengths(table: xr.Dataset, probes: xr.Dataset) -> xr.Dataset:
    """Add the strength with which each head supports a candidate in the probe that uses only attention.

    Args:
        table: A head table.
        probes: A table of probes of the same model.

    Returns:
        The table with ``probe_strength_to_head``, for the attention from a word to its syntactic head (or to the target
        of the probes' links), and ``probe_strength_from_head``, for the attention in the other direction: the weight of
        the head times the root mean square of its attention between words, in nats.

    Raises:
        TableError: The probes are of other heads.
    """
    sizes = [{dim: each.sizes.get(dim) for dim in ("attention_type", "layer", "head")} for each in (table, probes)]
    if sizes[0] != sizes[1]:
        raise TableError("the probes are of a model of another shape than the table; give those of the same model.")
    strength = probes["probe_weight"] * probes["probe_attention_size"]
    end = "its syntactic head" if probes.attrs["links"] == "dependency" else "the word that it is linked to"
    ways = {
        "to_head": ("dependent_to_head", f"from a word to {end}", "Probe: from a word to its head"),
        "from_head": ("head_to_dependent", f"to a word from {end}", "Probe: to a word from its head"),
    }
    return table.assign({
        f"probe_strength_{name}": variable(
            (values := strength.sel(direction=direction, drop=True)).values, [str(dim) for dim in values.dims],
            name=f"weight in the probe without words of the attention {what}, times the size of that attention",
            units="nats", source=CLARK, title=title,
        )
        for name, (direction, what, title) in ways.items()
    })  # fmt: skip


def _describe(name: str, measured: Ratio | Lift, what: str, source: str) -> dict[str, xr.Variable]:
    """Return a share of choices, or a difference of shares, and the ends of its interval, as variables."""
    values, dims = (measured.value, *measured.interval()), [str(dim) for dim in measured.value.dims]
    return make_ends(name, (each.values.astype(float) for each in values), dims, what=what, units=SHARE, source=source)


def _add_all(sums: xr.DataArray) -> xr.DataArray:
    """Return the sums of relations, after a first row ``all`` with the sum over all relations."""
    everything = sums.sum("relation").expand_dims(relation=[ALL])
    labelled = sums.assign_coords(relation=sums["relation"].values.astype(str))
    return xr.concat([everything, labelled], "relation").transpose(*sums.dims)
