"""How sure we are of a head's accuracy, and of having found the right head."""

from dataclasses import dataclass

import numpy as np
import xarray as xr
from scipy.stats import t as student

from headscope import heads
from headscope.errors import TableError

LEVEL = 0.95
MINIMUM = 20
"""Links that each half of the corpus must hold before a head is reported for a relation."""

SOURCE = "headscope"
SPLIT = (
    "The documents are dealt to ten folds by a hash of {unit}. The head (and its direction), the offset and the twin's "
    "head are chosen on the even folds and scored on the odd ones. The intervals take documents as independent; where "
    "those of one text resemble each other, they are too narrow."
)
"""How the reported numbers are made; stored in the table and shown beside them."""

_UNITS = {"text": "the text that they come from", "document": "their names, since they come from few texts"}

_CHOOSE, _SCORE = slice(0, None, 2), slice(1, None, 2)
_HEAD = ("layer", "head", "direction")


@dataclass(frozen=True)
class Counts:
    """Sums over documents, from which an accuracy and its clustered interval follow.

    With x the links got right in a document and n the links it has: ``right`` is the sum of x,
    ``links`` of n, ``right_squares`` of x², ``right_by_links`` of x·n, ``links_squares`` of n², and
    ``documents`` the number of documents with n > 0.
    """

    right: xr.DataArray
    links: xr.DataArray
    right_squares: xr.DataArray
    right_by_links: xr.DataArray
    links_squares: xr.DataArray
    documents: xr.DataArray

    @classmethod
    def of(cls, table: xr.Dataset, name: str, folds: slice = slice(None)) -> "Counts":
        """What `table` holds on ``correct`` (heads) or ``offset``, over some of its folds."""
        of_name = (f"fold_{name}", "fold_link", f"fold_{name}_squares", f"fold_{name}_by_link")
        variables = (*of_name, "fold_link_squares", "fold_documents")
        missing = [variable for variable in variables if variable not in table]
        if missing:
            raise TableError(
                f"the head table has no {missing[0]}, from which the uncertainty follows; measure `relations` first."
            )
        # A head that a stack does not have is NaN, and stays so.
        return cls(*(table[variable].isel(fold=folds).sum("fold", skipna=False) for variable in variables))

    def at(self, **place: xr.DataArray) -> "Counts":
        """The counts of one choice (of head or offset) for each relation."""
        return Counts(*(v.sel({d: i for d, i in place.items() if d in v.dims}) for v in vars(self).values()))

    @property
    def accuracy(self) -> xr.DataArray:
        """The share of links got right; NaN where there are none."""
        return self.right / self.links.where(self.links > 0)

    def interval(self, level: float = LEVEL) -> tuple[xr.DataArray, xr.DataArray]:
        """A confidence interval for the accuracy, clustered by document.

        Links of one document are not independent. The variance of the ratio of two sums over
        documents is estimated by linearisation (Cochran 1977, section 6.3; the sandwich estimator
        of a regression on a constant, with the factor m/(m-1) for m documents). Compared with
        the variance under independence it gives the number of independent links that would tell
        as much, never more than there are, and with that number comes Wilson's interval (1927),
        which stays between 0 and 1 and is not empty where a head is always right. Its quantile is
        Student's with m-1 degrees of freedom: the normal one is too narrow for few documents.

        Simulated (correlation 0.3 within documents), an interval of 95 % covers the truth in 93 to
        96 % for 5 to 151 documents and accuracies of 0.1 to 0.9; near 0 or 1, with few documents,
        in less (0.98 with 50 documents: 88 %). Documents are taken as independent. Where those of
        one text resemble each other, it covers far less: with 20 texts of 50 sentences and a
        correlation of 0.02 within texts, 58 %.
        """
        p, n, m = self.accuracy, self.links.where(self.links > 0), self.documents
        residuals = self.right_squares - 2 * p * self.right_by_links + p**2 * self.links_squares
        clustered = residuals.clip(min=0) / n**2 * (m / (m - 1).where(m > 1))
        independent = p * (1 - p) / n
        effect = (clustered / independent.where(independent > 0)).clip(min=1).fillna(1)
        # One document alone says nothing about the spread between documents.
        effective = (n / effect).where(m > 1)
        z2 = xr.apply_ufunc(student.ppf, (1 + level) / 2, (m - 1).where(m > 1)) ** 2
        centre = (p + z2 / (2 * effective)) / (1 + z2 / effective)
        half = np.sqrt(z2 * (p * (1 - p) + z2 / (4 * effective)) / effective) / (1 + z2 / effective)
        return (centre - half).clip(min=0), (centre + half).clip(max=1)


def with_intervals(table: xr.Dataset) -> xr.Dataset:
    """`table` with the interval of every ``relation_accuracy``, clustered by document."""
    lower, upper = Counts.of(table, "correct").interval()
    order = table["relation_accuracy"].dims
    return table.assign(
        relation_accuracy_lower=_described(lower.transpose(*order), "lower end of the 95 % interval", "share of links"),
        relation_accuracy_upper=_described(upper.transpose(*order), "upper end of the 95 % interval", "share of links"),
    )


def with_report(table: xr.Dataset, twin: xr.Dataset | None = None, *, minimum: int = MINIMUM) -> xr.Dataset:
    """`table` with the head to report for each relation, beside its baselines.

    The best of many heads looks better than it is on the very links on which it was chosen (the
    best of 288 chance predictors at 0.20 shows 0.32 on 100 links). So the head, its direction and
    the fixed offset are chosen on one half of the documents and scored on the other; the same is
    done with the heads of a random-weights twin.

    Args:
        table: with the sums that the reducer ``relations`` keeps.
        twin: the same for a model of the same shape with random weights, on the same corpus.
        minimum: links that each half must hold; rarer relations get no head (layer and head 0).

    Returns:
        The table with, for each relation, ``reported_layer``, ``reported_head``, ``reported_direction``
        (and ``reported_stack``), ``reported_again`` (whether the other half would have chosen the same),
        ``heldout_accuracy|lower|upper|count``, ``heldout_offset``, ``heldout_offset_accuracy|lower|upper``, and
        ``twin_accuracy|lower|upper``.
    """
    place = _best(Counts.of(table, "correct", _CHOOSE))
    links = table["fold_link"]
    enough = (links.isel(fold=_CHOOSE).sum("fold") >= minimum) & (links.isel(fold=_SCORE).sum("fold") >= minimum)
    share = "share of links"
    again = _best(Counts.of(table, "correct", _SCORE))
    held = Counts.of(table, "correct", _SCORE).at(**place)
    offset = _best(Counts.of(table, "offset", _CHOOSE), dims=("offset",))
    held_offset = Counts.of(table, "offset", _SCORE).at(**offset)
    same = np.logical_and.reduce([place[dim] == again[dim] for dim in place])
    new = {
        f"reported_{dim}": _described(
            chosen.where(enough, "" if chosen.dtype.kind == "U" else 0), f"{dim} of the reported head", "label"
        )
        for dim, chosen in place.items()
    }
    new["reported_again"] = _described(
        (same & enough).astype(np.int8), "1 if the other half chooses the same head", "flag"
    )
    new["heldout_count"] = _described(held.links.where(enough, 0), "links on which the head is scored", "links")
    new |= _scores("heldout", held, enough, "accuracy of the reported head on the half it was not chosen on", share)
    new["heldout_offset"] = _described(offset["offset"].where(enough, 0), "best fixed offset", "words")
    new |= _scores(
        "heldout_offset", held_offset, enough, "accuracy of the best fixed offset, chosen and scored likewise", share
    )
    if twin is not None:
        twin = twin.reindex(relation=table["relation"])
        held_twin = Counts.of(twin, "correct", _SCORE).at(**_best(Counts.of(twin, "correct", _CHOOSE)))
        new |= _scores(
            "twin",
            held_twin,
            enough,
            "accuracy of the best head of a random-weights twin, chosen and scored likewise",
            share,
        )
    dealt_by = table["fold_link"].attrs.get("dealt_by", "text")
    return table.assign(new).assign_attrs(split=SPLIT.format(unit=_UNITS[dealt_by]))


def _best(counts: Counts, dims: tuple[str, ...] | None = None) -> dict[str, xr.DataArray]:
    """The coordinates of the best accuracy for each relation; the first of equals."""
    accuracy = counts.accuracy.fillna(-1)
    dims = dims or tuple(dim for dim in ("stack", *_HEAD) if dim in accuracy.dims)
    flat = accuracy.stack(place=dims)
    where = flat.argmax("place")
    return {dim: flat[dim].isel(place=where).drop_vars(["place", *dims], errors="ignore") for dim in dims}


def _scores(name: str, counts: Counts, enough: xr.DataArray, what: str, units: str) -> dict[str, xr.Variable]:
    lower, upper = counts.interval()
    values = {"accuracy": counts.accuracy, "lower": lower, "upper": upper}
    words = {
        "accuracy": what,
        "lower": f"{what}: lower end of the 95 % interval",
        "upper": f"{what}: upper end of the 95 % interval",
    }
    return {f"{name}_{key}": _described(value.where(enough), words[key], units) for key, value in values.items()}


def _described(values: xr.DataArray, name: str, units: str) -> xr.Variable:
    return heads.variable(values.values, [str(d) for d in values.dims], name=name, units=units, source=SOURCE)
