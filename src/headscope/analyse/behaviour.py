"""The behaviour of each head in a few words, to colour a map of heads by: Clark et al. 2019, figure 6."""

import json
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import xarray as xr
from jaxtyping import Bool

from headscope.analyse.report import STANDS_OUT, list_verdicts
from headscope.errors import TableError
from headscope.heads import variable
from headscope.score import HEAD

SOURCE = "Clark et al. 2019, figure 6; thresholds of headscope"
BROAD = "broad"
"""The behaviour of a head that attends to nearly all tokens alike."""


def add_behaviours(table: xr.Dataset, *, share: float = 0.5, breadth: float = 0.9) -> xr.Dataset:
    """Add the variable ``behaviour``: for each head, the index of its behaviour in the attribute ``names``.

    `name_behaviours` returns the names. A head without any of these behaviours has an empty name.

    A head has the first behaviour of these that applies:

    1. it is the reported head of a row of a score, and stands out: the name of the row, such as ``obj``, or of several;
    2. a target gets at least `share` of its attention: the target that gets most, such as ``the next token``;
    3. its entropy is at least `breadth` of the entropy of uniform attention: ``broad``.

    Args:
        table: A head table, with its report (`add_report`) if it has scores.
        share: The least share of a head's attention, as a mean over tokens, that makes a target its behaviour.
        breadth: The least share of the entropy of uniform attention, in nats, that makes a head broad.
    """
    dims = [dim for dim in HEAD if dim in table.dims and dim != "direction"]
    sizes = [table.sizes[dim] for dim in dims]
    behaviours = np.where(_is_broad(table, dims, breadth), BROAD, np.full(sizes, "", dtype=object))
    targets = [
        values.transpose(*dims)
        for values in table.data_vars.values()
        if values.attrs.get("target") and {*values.dims} == {*dims}
    ]
    if targets:
        titles = np.array([values.attrs["target"] for values in targets], dtype=object)
        shares = np.nan_to_num(np.stack([values.values for values in targets]), nan=-1.0)
        # If shares are equal (the first token is often [CLS]), the first target counts.
        behaviours = np.where(shares.max(0) >= share, titles[shares.argmax(0)], behaviours)
    marks: defaultdict[tuple[int, ...], list[str]] = defaultdict(list)
    for head, row, verdict in list_verdicts(table, dims):
        if verdict == STANDS_OUT:
            places = (table[dim].values.tolist().index(at) for dim, at in zip(dims, head, strict=True))
            marks[tuple(places)].append(row)
    for place, rows in marks.items():
        behaviours[place] = ", ".join(rows)
    names, codes = np.unique(behaviours.astype(str), return_inverse=True)
    what = f"what the head does; share of attention at least {share:g}, entropy at least {breadth:g} of uniform"
    new = variable(codes.reshape(sizes), dims, name=what, units="label", source=SOURCE)
    new.attrs["names"] = json.dumps(names.tolist(), ensure_ascii=False)
    return table.assign(behaviour=new)


def name_behaviours(table: xr.Dataset) -> xr.DataArray:
    """Return the name of each head's behaviour, which is empty for a head without a behaviour.

    Raises:
        TableError: The table has no ``behaviour``; `add_behaviours` adds it.
    """
    if "behaviour" not in table:
        raise TableError("the head table has no behaviour; add it by headscope.analyse.add_behaviours first.")
    behaviour = table["behaviour"]
    return behaviour.copy(data=np.array(json.loads(behaviour.attrs["names"]))[behaviour.values])


def _is_broad(table: xr.Dataset, dims: Sequence[str], breadth: float) -> Bool[np.ndarray, "*head"] | bool:
    """Return True for the heads whose entropy is near the entropy of uniform attention; False without entropies."""
    if not {"entropy", "entropy_uniform"} <= {*table.data_vars}:
        return False
    entropy, uniform = (table[name].transpose(*dims).values for name in ("entropy", "entropy_uniform"))
    return np.asarray(entropy >= breadth * uniform)
