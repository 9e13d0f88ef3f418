"""The head table of probes, made from their sums: right choices by relation and fold, and the weights of heads."""

from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr

from headscope.analyse.probes import CONTROL, COUNT, GAIN_OVER, RIGHT, add_probe_scores
from headscope.heads import Described, describe, variable
from headscope.learn.probe import ATTENTION, CONTROLLED, PROBES, Sums
from headscope.learn.probe_data import LONGEST, SIDES, ProbeData

CLARK = "Clark et al. 2019, section 5"
HEWITT_LIANG = "Hewitt and Liang 2019, section 2"
VOITA_TITOV = "Voita and Titov 2020, section 2.2"
HEWITT_MANNING = "Hewitt and Manning 2019, sections 2 and 3"

DIRECTIONS = ("dependent_to_head", "head_to_dependent")
LENGTHS = tuple(length for length in range(-LONGEST, LONGEST + 1) if length)


def tabulate_probes(
    by_seed: Mapping[int, Mapping[str, Sums]], data: ProbeData, labels: Sequence[str], *, tests_per_text: int
) -> xr.Dataset:
    """Return the head table of the probes of several seeds.

    Args:
        by_seed: For each seed, the sums of each probe by its name.
        data: The data of the treebank.
        labels: The relations of the rows.
        tests_per_text: The largest number of seeds that tested the same text.
    """
    seeds = [*by_seed]
    first = by_seed[seeds[0]]
    names = [name for name in PROBES if name in first]
    right = np.stack([[by_seed[seed][name]["right"] for name in names] for seed in seeds])
    lengths = np.stack([[by_seed[seed][name]["by_length"] for name in names] for seed in seeds]).sum(0)
    has_length = [length + LONGEST for length in LENGTHS]
    totals = lengths[:, 1, has_length]
    losses = np.array([[float(by_seed[seed][name]["loss"]) for name in names] for seed in seeds])
    counts = right[:, :, 1].sum((2, 3))
    of_probe, of_length = ("probe",), ("probe", "length")
    values: dict[str, Described] = {
        # A text that several seeds have tested counts once.
        RIGHT: (
            right[:, :, 0] / tests_per_text, ("seed", *of_probe, "relation", "fold"), "choices that are right",
            "choices",
        ),
        COUNT: (right[:, 0, 1] / tests_per_text, ("seed", "relation", "fold"), "choices", "choices"),
        "probe_length_accuracy": (
            lengths[:, 0, has_length] / np.where(totals, totals, np.nan), of_length,
            "choices of a word at a distance that are right", "share of choices",
        ),
        "probe_length_count": (totals[0] / tests_per_text, ("length",), "choices of a word at a distance", "choices"),
        "probe_log_loss": (
            losses.sum(0) / counts.sum(0) / np.log(2), of_probe, "mean of -log2 p(nearest right candidate)", "bits",
        ),
    }  # fmt: skip
    variables = describe(values, CLARK)
    variables |= _describe_controls(by_seed, tests_per_text)
    variables |= _describe_codes(by_seed)
    variables |= _describe_weights(by_seed, data)
    variables |= _describe_structural(by_seed)
    coords = {"probe": names, "relation": [*labels], "length": [*LENGTHS], "seed": seeds, "side_special": [*SIDES]}
    coords |= {"direction": [*DIRECTIONS], "controlled": [*CONTROLLED]}
    used = {dim for each in variables.values() for dim in each.dims}
    table = xr.Dataset(variables, coords={name: labels for name, labels in coords.items() if name in used})
    table = table.assign_coords({dim: np.arange(1, table.sizes[dim] + 1) for dim in ("layer", "head")})
    if "hidden_layer" in table.dims:
        table = table.assign_coords(hidden_layer=np.arange(table.sizes["hidden_layer"]))
    if len({kind for kind, _, _ in data.heads}) > 1:
        table = table.assign_coords(attention_type=list(dict.fromkeys(kind for kind, _, _ in data.heads)))
    return add_probe_scores(table, [name for name in GAIN_OVER if name in names])


def _describe_controls(by_seed: Mapping[int, Mapping[str, Sums]], tests_per_text: int) -> dict[str, xr.Variable]:
    sums = _gather(by_seed, [f"{name} control" for name in CONTROLLED], "control")
    if sums is None:
        return {}
    what = "choices of the control task"
    names = {CONTROL: f"{what} that are right", f"{CONTROL}_count": what}
    values = np.moveaxis(sums / tests_per_text, 2, 0)
    dims = ("seed", "controlled", "fold")
    described = {name: (by_fold, dims, names[name], "choices") for name, by_fold in zip(names, values, strict=True)}
    return describe(described, HEWITT_LIANG)


def _describe_codes(by_seed: Mapping[int, Mapping[str, Sums]]) -> dict[str, xr.Variable]:
    sums = _gather(by_seed, [f"{name} code" for name in CONTROLLED], "code")
    if sums is None:
        return {}
    bits, uniform, count = (sums[..., place] for place in range(3))
    length = "bits per choice in which a probe that learns as it goes codes the training texts"
    compression = "how many times shorter that code is than one with equal probabilities"
    described: dict[str, Described] = {
        "probe_code_length": ((bits / count).mean(0), ("controlled",), length, "bits"),
        "probe_compression": ((uniform / bits).mean(0), ("controlled",), compression, "ratio"),
    }
    return describe(described, VOITA_TITOV)


def _describe_weights(by_seed: Mapping[int, Mapping[str, Sums]], data: ProbeData) -> dict[str, xr.Variable]:
    """Return the weights of the heads in the probe without words, as means over seeds."""
    weights, scale = (
        np.stack([sums[ATTENTION][name] for sums in by_seed.values()]).mean(0) for name in ("weight", "scale")
    )
    types = list(dict.fromkeys(kind for kind, _, _ in data.heads))
    layers, heads = max(layer for _, layer, _ in data.heads), max(head for _, _, head in data.heads)
    by_head = np.full((len(types), layers, heads, weights.shape[1] + 1), np.nan)
    for (kind, layer, head), values, size in zip(data.heads, weights, scale, strict=True):
        by_head[types.index(kind), layer - 1, head - 1] = [*values, size]
    dims: tuple[str, ...] = ("attention_type", "layer", "head")
    if len(types) == 1:
        by_head, dims = by_head[0], dims[1:]
    units = "nats per unit of attention"
    what = "weight of a head in the probe without words"
    return {
        "probe_weight": variable(
            by_head[..., :2], (*dims, "direction"), name=f"{what}, for a candidate that a word attends to, or that "
            "attends to it", units=units, source=CLARK,
        ),
        "probe_root_weight": variable(
            by_head[..., 2:4], (*dims, "side_special"), name=f"{what}, for having no head, by attention to special "
            "tokens before and after the words", units=units, source=CLARK,
        ),
        "probe_attention_size": variable(
            by_head[..., 4], dims, name="root mean square of the attention of a head from a word to a word",
            units="share of attention", source="headscope",
        ),
    }  # fmt: skip


def _describe_structural(by_seed: Mapping[int, Mapping[str, Sums]]) -> dict[str, xr.Variable]:
    steps = [sums["structural"] for sums in by_seed.values() if "structural" in sums]
    if not steps:
        return {}
    what = "links of the trees, without punctuation"
    # Only the first seed has these sums, because training a probe for each layer takes long.
    total, links = steps[0]["links_found"], steps[0]["links"]
    described: dict[str, Described] = {
        "structural_found": (total, ("hidden_layer", "fold"), f"{what}, that the structural probe finds", "links"),
        "structural_links": (links, ("fold",), what, "links"),
    }
    return describe(described, HEWITT_MANNING)


def _gather(by_seed: Mapping[int, Mapping[str, Sums]], steps: Sequence[str], name: str) -> np.ndarray | None:
    """Return the sums of the given steps, by seed and step, for seeds with all these steps; None if there are none."""
    done = [[sums[step][name] for step in steps] for sums in by_seed.values() if all(step in sums for step in steps)]
    return np.stack(done) if done else None
