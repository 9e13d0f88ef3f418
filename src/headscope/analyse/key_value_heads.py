"""Values of key/value heads: what the query heads that share one do together.

In grouped-query attention (Ainslie et al. 2023) each key/value head serves the same number of consecutive query heads.
"""

from collections.abc import Sequence

import numpy as np
import xarray as xr

from headscope.analyse.uncertainty import Ratio
from headscope.errors import TableError
from headscope.heads import KEY_VALUE_HEADS, KEY_VALUE_HEADS_BY_LAYER
from headscope.score import Score, read_scores

DIMENSION = "key_value_head"

PROVENANCE = ("model", "weights_sha256", "corpus", "corpus_sha256", "documents", "words", "tokens", "skipped", "call",
              "created", "versions", "view")  # fmt: skip
"""The attributes of a table of heads that hold for its key/value heads too."""


def group_heads(table: xr.Dataset, key_value_heads: int | None = None) -> xr.Dataset:
    """Return the values of each key/value head, over all query heads that share it.

    A score (accuracy, F1) is computed from the answers of these query heads together, with a 95 % interval clustered by
    text if the table has sums by fold. Any other value, such as an entropy or a share of attention, is the mean over
    the query heads.

    Args:
        table: A head table.
        key_value_heads: The number of key/value heads in a layer. Default: the number in the table's attributes.

    Returns:
        A dataset with the dimension ``key_value_head``, counted from 1, in place of ``head``, and the number of items
        of each score. Reports about single heads (chosen heads, permutations, p-values) are left out.

    Raises:
        TableError: The number is unknown, differs by layer, or does not divide the number of heads.

    Example:
        >>> groups = headscope.analyse.group_heads(headscope.read_table("heads.nc"))
        >>> groups["relation_accuracy"].sel(relation="obj").max("direction")
    """
    heads = table.sizes["head"]
    count = table.attrs.get(KEY_VALUE_HEADS) if key_value_heads is None else key_value_heads
    if by_layer := table.attrs.get(KEY_VALUE_HEADS_BY_LAYER):
        raise TableError(
            f"the layers of the model have different numbers of key/value heads ({by_layer}), which no table with as "
            "many in each layer can hold; read the heads themselves."
        )
    if count is None:
        raise TableError(
            "the table does not say that query heads share keys; give key_value_heads=N, which the configuration of "
            "the model has as num_key_value_heads."
        )
    if count < 1 or heads % count:
        raise TableError(
            f"{count} key/value heads cannot be shared by {heads} heads; give a number that divides {heads}."
        )
    scores = read_scores(table)
    # Labels, such as verdicts, are about single heads.
    table = table.drop_vars([name for name in {*table.coords} - {*table.dims} if table[name].dtype.kind not in "iufb"])
    groups = _average(table, int(count))
    values = {name: groups[name] for name in _list_values(table, scores)}
    for score in scores:
        if score.variable in values and score.is_ratio and {*score.numerator, *score.denominator} <= {*table.data_vars}:
            values |= _score_groups(groups, score)
    values |= {name: table[name] for score in scores if (name := f"{score.stem}_count") in table}
    about = {name: value for name, value in table.attrs.items() if name in PROVENANCE}
    return xr.Dataset(values).rename(head=DIMENSION).assign_attrs(about, **{KEY_VALUE_HEADS: int(count)})


def _average(table: xr.Dataset, count: int) -> xr.Dataset:
    """Average all numbers over the query heads that share a key/value head, along the dimension ``head``."""
    size = table.sizes["head"] // count
    numbers = [name for name, values in table.data_vars.items() if "head" in values.dims and values.dtype.kind in "iuf"]
    sharing = table[numbers].drop_vars("head").coarsen(head=size).construct(head=("head", "sharing"), keep_attrs=True)
    averaged = sharing.mean("sharing", skipna=False, keep_attrs=True).assign_coords(head=np.arange(1, count + 1))
    return averaged.merge(table.drop_dims("head"))


def _list_values(table: xr.Dataset, scores: Sequence[Score]) -> list[str]:
    """List the variables with a value for each head, except comparisons of a single head with others or chance."""
    of_single_heads = tuple(prefix for s in scores for prefix in (f"{s.stem}_", f"{s.report_prefix}shortlist_"))
    of_scores = {score.variable for score in scores}
    return [
        str(name)
        for name, values in table.data_vars.items()
        if {"layer", "head"} <= {*values.dims}
        and not {"fold", "head_other", "head_before"} & {*values.dims}
        and (name in of_scores or not str(name).startswith(of_single_heads))
    ]


def _score_groups(groups: xr.Dataset, score: Score) -> dict[str, xr.DataArray]:
    """Compute the score of each key/value head from the sums of its query heads, with its interval."""
    ratio, values = Ratio.of_heads(groups, score), groups[score.variable]
    scored = {score.variable: ratio.value.transpose(*values.dims).assign_attrs(values.attrs)}
    for end, at in zip(("lower", "upper"), ratio.interval(), strict=True):
        named = values.attrs | {"long_name": f"{end} end of the 95 % interval"}
        scored[f"{score.variable}_{end}"] = at.transpose(*values.dims).assign_attrs(named)
    return scored
