r"""A map of the heads of a model, and clusters, from the distances between heads: Clark et al. 2019, section 6.

table with ``js_distance`` --metric multidimensional scaling--> a position for each head in the plane
                           \-average linkage, cut-------------> a cluster for each head, and the tree of merges
"""

from collections.abc import Hashable, Mapping, Sequence

import numpy as np
import scipy
import xarray as xr
from jaxtyping import Float, Int

from headscope.analyse.parts import apply_to_parts
from headscope.errors import HeadscopeError, TableError
from headscope.heads import Described, describe

CLARK = "Clark et al. 2019, section 6"
DISTANCE = "js_distance"
FEWEST_HEADS = 3
"""The smallest number of heads for which a map in the plane says anything."""

MOST_CLUSTERS = 30
"""The largest number of clusters that is tried if the number of clusters is not given."""

_OTHER = {"layer_other": "layer", "head_other": "head"}


def add_head_map(table: xr.Dataset, distances: xr.Dataset | None = None, *, clusters: int | None = None) -> xr.Dataset:
    """Add a map of the heads and clusters of heads that attend alike.

    The distances are the Jensen-Shannon divergences themselves, as in the paper. The map is rotated so that its longest
    extent is horizontal and later layers tend to lie to the right and above. Clusters come from average linkage.

    Args:
        table: A head table.
        distances: A table of the same model with ``js_distance``, by default `table` itself.
        clusters: The number of clusters. Default: the number up to 30 with the largest mean silhouette, among the
            numbers that leave no cluster with more than half of the heads. (A cluster of one head far from all others
            would have the largest silhouette.)

    Returns:
        The table with (for each run, and in an encoder-decoder for each attention type):

        * ``head_map_x`` and ``head_map_y``: the position of each head, in nats, and ``head_map_stress``, the stress-1
          of Kruskal (1964): 0 if the map keeps all distances of the table, 1 if it keeps nothing of them;
        * ``cluster``: the cluster of each head, numbered in the order of their first heads; ``cluster_silhouette``, how
          well the clusters are separated (Rousseeuw 1987): 1 is well, and below about 0.25 there is no clear structure;
        * ``cluster_stability``: the adjusted Rand index (Hubert and Arabie 1985) of the same number of clusters on one
          half of the documents and on the other, and ``js_distance_agreement``, Spearman's correlation of the distances
          on both halves. Both measure how well the distances are known. Heads that form no clusters may have stable
          distances too;
        * ``head_map_documents``: the number of documents on which the heads were compared;
        * ``js_distance_within_layer`` and ``js_distance_across_layers``: the mean distance between two heads of one
          layer, and between two heads of different layers;
        * ``cluster_merge``: the steps of the linkage. Each step has the numbers of the two clusters that it joins
          (single heads have the first numbers, then the results of earlier steps), their distance, and the number of
          heads.

    Raises:
        TableError: There are no distances, or they are of other heads, or there are fewer than three heads.
        HeadscopeError: There are fewer heads than clusters.
    """
    distances = table if distances is None else distances
    if DISTANCE not in distances:
        raise TableError("the table has no distances between heads; measure the reducer `head_distances` first.")
    if any(distances.sizes[dim] != table.sizes[dim] for dim in ("layer", "head")):
        raise TableError(
            f"the distances are between {_count(distances)} heads, and the table has {_count(table)}; give those of "
            "the same model."
        )
    measured = distances[[DISTANCE, f"{DISTANCE}_by_half"]]
    mapped = apply_to_parts(lambda part: _map_heads(part, clusters), measured)
    return table.assign(mapped).assign(head_map_documents=distances[f"{DISTANCE}_count"].variable)


def square(distances: xr.DataArray) -> tuple[Float[np.ndarray, "head head"], list[tuple[int, int]]]:
    """Return the distances of an attention type as a matrix, and the layer and number of the head of each row.

    Heads without distances are left out.
    """
    # `layer` may be limited to the layers of an attention type, while `layer_other` has all layers.
    distances = distances.sel({other: distances[dim].values for other, dim in _OTHER.items()})
    stacked = distances.stack(one=("layer", "head"), other=(*_OTHER,)).transpose("one", "other")
    known = stacked.notnull().any("other").values
    return stacked.values[known][:, known], [tuple(label) for label in stacked["one"].values[known]]


def _map_heads(distances: xr.Dataset, clusters: int | None) -> xr.Dataset:
    """Make the map and the clusters of one run and attention type; return the variables about both."""
    matrix, heads = square(distances[DISTANCE])
    if len(heads) < FEWEST_HEADS:
        raise TableError(f"a map of heads needs {FEWEST_HEADS} or more, and the model has {len(heads)}.")
    if clusters is not None and not 1 < clusters < len(heads):
        raise HeadscopeError(f"{len(heads)} heads cannot form {clusters} clusters; give 2 to {len(heads) - 1}.")
    places, stress = _scale(matrix, np.array([layer for layer, _ in heads]))
    tree = _merge(matrix)
    labels = _cut(tree, clusters) if clusters else _cut_best(tree, matrix)
    by_half = distances[f"{DISTANCE}_by_half"]
    halves = [square(by_half.sel(half=half))[0] for half in by_half["half"]]
    same_layer = np.equal.outer(*[[layer for layer, _ in heads]] * 2)
    pairs = np.triu(np.ones_like(matrix, dtype=bool), 1)
    numbers: dict[str, Described] = {
        "head_map_stress": (stress, (), "stress-1 of the map", "share of the distances"),
        "cluster_silhouette": (_silhouette(matrix, labels), (), "mean silhouette of the clusters", "silhouette"),
        "cluster_stability": (
            _stability(halves, len(set(labels))), (), "adjusted Rand index of the clusters of both halves", "index",
        ),
        f"{DISTANCE}_agreement": (
            _agreement(halves, pairs), (), "Spearman's correlation of the distances on both halves", "correlation",
        ),
        f"{DISTANCE}_within_layer": (
            _mean(matrix, pairs & same_layer), (), "mean distance of heads of one layer", "nats",
        ),
        f"{DISTANCE}_across_layers": (
            _mean(matrix, pairs & ~same_layer), (), "mean distance of heads of two layers", "nats",
        ),
    }  # fmt: skip
    by_head = {
        "head_map_x": (places[:, 0], "place of the head in the map, from the left", "nats"),
        "head_map_y": (places[:, 1], "place of the head in the map, from below", "nats"),
        "cluster": (labels.astype(float), "cluster of the head", "label"),
    }
    for name, (values, what, units) in by_head.items():
        numbers[name] = _spread(values, heads, distances.sizes), ("layer", "head"), what, units
    what = "steps of the average linkage of heads"
    numbers["cluster_merge"] = tree, ("step", "merge"), what, "head, nats or heads"
    coords = {"merge": ["first", "second", "distance", "heads"], "step": range(1, len(heads))}
    return xr.Dataset(describe(numbers, CLARK), coords=coords)


def _scale(
    matrix: Float[np.ndarray, "head head"], layers: Int[np.ndarray, " head"]
) -> tuple[Float[np.ndarray, "head 2"], float]:
    """Return positions of heads in the plane that keep the distances of a matrix best, and the stress of the map."""
    # Imported here because it takes longer to load than everything else that analyses tables.
    from sklearn.manifold import MDS

    if not matrix.any():
        return np.zeros((len(matrix), 2)), 0.0
    scaling = MDS(metric="precomputed", init="classical_mds", n_init=1, max_iter=1000, eps=1e-9, normalized_stress=True)
    places = scaling.fit_transform(matrix)
    places = places - places.mean(0)
    axes = np.linalg.svd(places, full_matrices=False)[2]
    places = places @ axes.T
    # Each axis may point either way: choose the way in which later layers have larger coordinates.
    return places * np.where((layers - layers.mean()) @ places < 0, -1, 1), float(scaling.stress_)


def _merge(matrix: Float[np.ndarray, "head head"]) -> Float[np.ndarray, "step 4"]:
    """Return the tree that joins heads by average linkage of their distances."""
    condensed = scipy.spatial.distance.squareform(matrix, checks=False)
    tree: np.ndarray = scipy.cluster.hierarchy.linkage(condensed, method="average")
    return tree


def _cut(tree: Float[np.ndarray, "step 4"], clusters: int) -> Int[np.ndarray, " head"]:
    """Cut a tree into clusters; return the number of each head's cluster.

    Clusters are numbered in the order of their first heads.
    """
    labels = scipy.cluster.hierarchy.fcluster(tree, clusters, criterion="maxclust")
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return np.asarray(np.argsort(np.argsort(first))[inverse] + 1)


def _cut_best(tree: Float[np.ndarray, "step 4"], matrix: Float[np.ndarray, "head head"]) -> Int[np.ndarray, " head"]:
    """Cut a tree into the clusters with the largest mean silhouette; return the number of each head's cluster.

    A cut with a cluster of more than half of the heads is chosen only if all cuts have such a cluster.
    """
    cuts = [_cut(tree, number) for number in range(2, min(MOST_CLUSTERS, len(matrix) - 1) + 1)]
    even = [labels for labels in cuts if 2 * np.bincount(labels).max() <= len(labels)]
    return max(even or cuts, key=lambda labels: _silhouette(matrix, labels))


def _silhouette(matrix: Float[np.ndarray, "head head"], labels: Int[np.ndarray, " head"]) -> float:
    from sklearn.metrics import silhouette_score

    # A single cluster, or a cluster for each head, has no silhouette.
    return float(silhouette_score(matrix, labels, metric="precomputed")) if 1 < len(set(labels)) < len(labels) else -1.0


def _stability(halves: Sequence[np.ndarray], clusters: int) -> float:
    """Return the adjusted Rand index of the clusters on two halves of the documents; NaN if a half is missing."""
    from sklearn.metrics import adjusted_rand_score

    if not _are_two(halves):
        return np.nan
    return float(adjusted_rand_score(*(_cut(_merge(half), clusters) for half in halves)))


def _agreement(halves: Sequence[np.ndarray], pairs: np.ndarray) -> float:
    """Return Spearman's correlation of the distances on two halves of the documents.

    It is NaN if a half is missing, or if all its distances are equal.
    """
    if not _are_two(halves) or any(np.ptp(half[pairs]) == 0 for half in halves):
        return np.nan
    return float(scipy.stats.spearmanr(*(half[pairs] for half in halves)).statistic)


def _are_two(halves: Sequence[np.ndarray]) -> bool:
    return len(halves) == 2 and all(half.size > 0 for half in halves)


def _mean(matrix: Float[np.ndarray, "head head"], pairs: np.ndarray) -> float:
    return float(matrix[pairs].mean()) if pairs.any() else np.nan


def _spread(values: np.ndarray, heads: Sequence[tuple[int, int]], sizes: Mapping[Hashable, int]) -> np.ndarray:
    """Arrange the values of heads in a grid of layers and heads, with NaN where there is no head."""
    spread = np.full((sizes["layer"], sizes["head"]), np.nan)
    for value, (layer, head) in zip(values, heads, strict=True):
        spread[layer - 1, head - 1] = value
    return spread


def _count(table: xr.Dataset) -> int:
    return int(table.sizes["layer"] * table.sizes["head"])
