"""The map and the clusters of heads: planted groups, structureless heads, and scikit-learn's own numbers."""

import numpy as np
import pytest
import xarray as xr
from scipy.spatial.distance import pdist, squareform
from sklearn.cluster import AgglomerativeClustering
from sklearn.metrics import adjusted_rand_score, silhouette_score

import headscope
from headscope.errors import HeadscopeError, TableError
from headscope.heads import variable

LAYERS, HEADS = 5, 7


def tabulate(points: np.ndarray, *, noise: float = 0.0, layers: int = LAYERS) -> xr.Dataset:
    """A table of heads at points of some space, whose distances differ by noise from half to half of the corpus."""
    shape = (layers, len(points) // layers)
    rng, exact = np.random.default_rng(3), squareform(pdist(points))
    halves = []
    for _ in range(2):
        disturbed = abs(exact + noise * rng.standard_normal(exact.shape))
        halves.append(np.triu(disturbed, 1) + np.triu(disturbed, 1).T)
    dims = ("layer", "head", "layer_other", "head_other")
    about = {"name": "distance", "units": "nats", "source": "planted"}
    by_half = np.stack([half.reshape(*shape, *shape) for half in halves])
    data = {
        "js_distance": variable(by_half.mean(0), dims, **about),
        "js_distance_by_half": variable(by_half, ("half", *dims), **about),
        "js_distance_count": variable(np.asarray(13), (), **about),
    }
    coords = {"half": ["even", "odd"]}
    for dim, size in zip(dims, (*shape, *shape), strict=True):
        coords[dim] = range(1, size + 1)
    return xr.Dataset(data, coords=coords)


def make_groups(*centres: tuple[float, ...], spread: float = 0.05) -> tuple[np.ndarray, np.ndarray]:
    """35 heads in groups, dealt to the layers in turn; and the group of each."""
    group = np.arange(LAYERS * HEADS) % len(centres)
    return np.array(centres)[group] + spread * np.random.default_rng(1).standard_normal((len(group), 3)), group


GROUPS = ((0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (0.0, 2.0, 0.0), (0.0, 0.0, 3.0))


def test_planted_groups_are_the_clusters() -> None:
    points, group = make_groups(*GROUPS)
    table = headscope.analyse.add_head_map(tabulate(points, noise=0.01))
    labels = table["cluster"].values.ravel()
    assert adjusted_rand_score(group, labels) == 1
    assert labels[:4].tolist() == [1, 2, 3, 4]
    assert table["cluster_silhouette"] > 0.9
    assert table["cluster_stability"] == 1
    assert table["js_distance_agreement"] > 0.99
    assert table["head_map_documents"] == 13


def test_heads_without_groups_have_a_small_silhouette_though_their_distances_are_stable() -> None:
    """A cloud can be cut into clusters, and again into the same ones: that makes no groups of them."""
    cloud = np.random.default_rng(5).uniform(size=(LAYERS * HEADS, 11))
    table = headscope.analyse.add_head_map(tabulate(cloud, noise=0.001))
    assert table["cluster_silhouette"] < 0.25
    assert table["cluster_stability"] > 0.9
    unknown = headscope.analyse.add_head_map(tabulate(cloud, noise=1.0))
    assert abs(unknown["cluster_stability"]) < 0.2
    assert unknown["js_distance_agreement"] < 0.5


def test_one_head_far_away_is_no_reason_for_two_clusters() -> None:
    points, _ = make_groups(*GROUPS)
    points[17] = (40.0, 40.0, 40.0)
    table = headscope.analyse.add_head_map(tabulate(points))
    sizes = np.unique(table["cluster"], return_counts=True)[1]
    assert sizes.max() <= LAYERS * HEADS / 2
    assert sorted(sizes) == [1, 8, 8, 9, 9]


@pytest.mark.parametrize("clusters", [2, 3, 11])
def test_clusters_and_silhouette_are_those_of_scikit_learn(clusters: int) -> None:
    distances = tabulate(np.random.default_rng(7).uniform(size=(LAYERS * HEADS, 3)))
    table = headscope.analyse.add_head_map(distances, clusters=clusters)
    matrix = distances["js_distance"].values.reshape(LAYERS * HEADS, -1)
    expected = AgglomerativeClustering(clusters, metric="precomputed", linkage="average").fit_predict(matrix)
    assert adjusted_rand_score(expected, table["cluster"].values.ravel()) == 1
    silhouette = silhouette_score(matrix, expected, metric="precomputed")
    assert float(table["cluster_silhouette"]) == pytest.approx(silhouette)


def test_heads_in_a_plane_are_drawn_as_they_are() -> None:
    points = np.random.default_rng(9).uniform(size=(LAYERS * HEADS, 2)) * (3, 1)
    table = headscope.analyse.add_head_map(tabulate(points))
    places = np.stack([table["head_map_x"].values.ravel(), table["head_map_y"].values.ravel()], axis=-1)
    np.testing.assert_allclose(pdist(places), pdist(points), atol=1e-3)
    assert table["head_map_stress"] < 1e-3
    assert np.ptp(places[:, 0]) > np.ptp(places[:, 1])
    layers = np.repeat(np.arange(LAYERS), HEADS)
    assert ((layers - layers.mean()) @ places > 0).all()


def test_the_mean_distances_within_and_across_layers() -> None:
    distances = tabulate(np.random.default_rng(11).uniform(size=(LAYERS * HEADS, 3)))
    table, within, across = headscope.analyse.add_head_map(distances), [], []
    matrix = distances["js_distance"].values
    for layer, head in np.ndindex(LAYERS, HEADS):
        for layer_other, head_other in np.ndindex(LAYERS, HEADS):
            if (layer, head) < (layer_other, head_other):
                (within if layer == layer_other else across).append(matrix[layer, head, layer_other, head_other])
    assert float(table["js_distance_within_layer"]) == pytest.approx(np.mean(within))
    assert float(table["js_distance_across_layers"]) == pytest.approx(np.mean(across))


def test_each_attention_type_has_a_map_of_its_own() -> None:
    points, _ = make_groups(*GROUPS)
    alone = [tabulate(points[: layers * HEADS], layers=layers) for layers in (2, 5)]
    both = xr.concat(alone, xr.Variable("attention_type", ["encoder", "decoder"]), join="outer")
    table = headscope.analyse.add_head_map(both)
    for attention_type, distances in zip(("encoder", "decoder"), alone, strict=True):
        expected = headscope.analyse.add_head_map(distances)
        ours = table.sel(attention_type=attention_type)
        for name in ("head_map_x", "cluster", "cluster_merge"):
            xr.testing.assert_allclose(ours[name].dropna(ours[name].dims[0], how="all").drop_vars("attention_type"),
                                       expected[name])  # fmt: skip
    assert np.isnan(table["cluster"].sel(attention_type="encoder", layer=3)).all()


def test_heads_that_are_all_alike_are_one_point_and_one_cluster() -> None:
    table = headscope.analyse.add_head_map(tabulate(np.zeros((LAYERS * HEADS, 3))))
    assert not table["head_map_x"].any()
    assert table["head_map_stress"] == 0
    assert (table["cluster"] == 1).all()
    assert table["cluster_silhouette"] == -1
    assert np.isnan(table["js_distance_agreement"])


def test_of_one_half_no_stability_is_known() -> None:
    distances = tabulate(make_groups(*GROUPS)[0])
    distances["js_distance_by_half"][1] = np.nan
    table = headscope.analyse.add_head_map(distances)
    assert np.isnan(table["cluster_stability"])
    assert np.isnan(table["js_distance_agreement"])


def test_what_has_no_map_is_refused() -> None:
    distances = tabulate(make_groups(*GROUPS)[0])
    with pytest.raises(TableError) as refused:
        headscope.analyse.add_head_map(distances.drop_vars("js_distance"))
    assert str(refused.value) == (
        "the table has no distances between heads; measure the reducer `head_distances` first."
    )
    with pytest.raises(TableError) as refused:
        headscope.analyse.add_head_map(distances.isel(layer=slice(2)), distances)
    assert str(refused.value) == (
        "the distances are between 35 heads, and the table has 14; give those of the same model."
    )
    with pytest.raises(TableError) as refused:
        headscope.analyse.add_head_map(tabulate(np.zeros((1, 3)), layers=1))
    assert str(refused.value) == "a map of heads needs 3 or more, and the model has 1."
    for clusters in (1, 35):
        with pytest.raises(HeadscopeError) as refused:
            headscope.analyse.add_head_map(distances, clusters=clusters)
        assert str(refused.value) == f"35 heads cannot form {clusters} clusters; give 2 to 34."
