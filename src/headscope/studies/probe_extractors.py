"""Extractors for tables of probes (`headscope probe`): their scores in percent, with intervals."""

import xarray as xr

from headscope.analyse.ends import ENDS
from headscope.analyse.probes import score_best_layer
from headscope.studies.extractors import PERCENT, make_extractor
from headscope.studies.study import NotMeasuredError, Value

ALL = "all"
TREEBANK_LINKS = "dependency"


@make_extractor
def probe_accuracy(probes: xr.Dataset, name: str) -> Value:
    """Return the share of words whose syntactic head a probe finds (UAS without punctuation)."""
    _refuse_missing(probes, name)
    return _read(probes.sel(probe=name, relation=ALL), "probe_accuracy", f"seeds: {probes.sizes['seed']}")


@make_extractor
def probe_gain(probes: xr.Dataset, name: str, baseline: str) -> Value:
    """Return the gain of a probe over a baseline, with a paired interval."""
    _refuse_missing(probes, name, baseline)
    return _read(probes.sel(probe=name, baseline=baseline, relation=ALL), "probe_gain")


@make_extractor
def best_structural_probe(probes: xr.Dataset) -> Value:
    """Return the share of links that the structural probe finds, on the layer where it is best on other texts."""
    _refuse_missing(probes)
    if "structural_uuas" not in probes:
        raise NotMeasuredError("the probes were trained without the structural probe")
    best, *share = score_best_layer(probes)
    number, lower, upper = (PERCENT * each for each in share)
    return Value(number, f"layer {best}" if best else "embeddings", lower, upper)


def _refuse_missing(probes: xr.Dataset, *names: str) -> None:
    if probes.attrs["links"] != TREEBANK_LINKS:
        raise NotMeasuredError(f"the probes find {probes.attrs['links']} links, and the paper's are of a treebank")
    if missing := [name for name in names if name not in probes["probe"].values]:
        raise NotMeasuredError(f"there is no probe {missing[0]} among those that were trained")


def _read(place: xr.Dataset, name: str, detail: str = "") -> Value:
    number, lower, upper = (PERCENT * float(place[f"{name}{end}"]) for end in ENDS)
    return Value(number, detail, lower, upper)
