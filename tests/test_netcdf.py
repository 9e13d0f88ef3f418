"""What is read and written is what xarray reads and writes."""

import io
from pathlib import Path

import h5py
import numpy as np
import pytest
import xarray as xr

from headscope import netcdf

PACKED = {"zlib": True, "complevel": 4, "fletcher32": True}


@pytest.fixture
def parts() -> dict[str, xr.Dataset]:
    """Two groups that share coordinates, with numbers, names, an axis without labels and one of no length."""
    layer = xr.Variable("layer", [1, 2, 3], {"long_name": "layer"})
    root = xr.Dataset(
        {
            "share": (("layer", "relation"), np.arange(6.0).reshape(3, 2) / 7, {"units": "1"}),
            "best": ("relation", ["1-1", "3-2"]),
            "count": ((), 11),
            "drawn": (("layer", "step"), np.arange(15).reshape(3, 5)),
            "none": (("layer", "empty"), np.zeros((3, 0))),
        },
        {"layer": layer, "relation": ["det", "obj"]},
        {"model": "m", "documents": 7},
    )
    inner = xr.Dataset({"sum": (("fold", "layer"), np.eye(5, 3))}, {"layer": layer, "fold": [*range(5)]}, {"of": "all"})
    return {"/": root, "/sums": inner}


@pytest.fixture
def encoding(parts) -> dict:
    """Some variables are packed."""
    return {"/": {"share": PACKED, "drawn": PACKED}, "/sums": {"sum": PACKED}}


def describe(content: bytes) -> list:
    """All that HDF5 has in a file, in order: the objects with their attributes, types, sizes, filters and values."""

    def follow(key: str, value: object) -> object:
        if key == "DIMENSION_LIST":
            return [file[reference].name for references in value for reference in references]
        return [(file[of].name, axis) for of, axis in value] if key == "REFERENCE_LIST" else repr(value)

    def describe_one(name: str, item: h5py.HLObject) -> None:
        described.append((name, [(key, follow(key, value)) for key, value in item.attrs.items()]))
        if isinstance(item, h5py.Dataset):
            filters = (item.chunks, item.compression, item.compression_opts, item.shuffle, item.fletcher32)
            described.append((item.dtype, item.shape, item.maxshape, repr(item.fillvalue), filters, repr(item[()])))

    described: list = []
    with h5py.File(io.BytesIO(content)) as file:
        describe_one("/", file)
        file.visititems(describe_one)
    return described


def test_a_file_holds_what_xarray_writes(parts, encoding) -> None:
    content = io.BytesIO()
    xr.DataTree.from_dict(parts).to_netcdf(content, engine="h5netcdf", encoding=encoding)
    assert describe(bytes(netcdf.encode(parts, encoding))) == describe(content.getvalue())


def test_a_file_is_read_as_xarray_reads_it(parts, encoding, tmp_path: Path) -> None:
    path = tmp_path / "file.nc"
    xr.DataTree.from_dict(parts).to_netcdf(path, engine="h5netcdf", encoding=encoding)
    with h5py.File(path, "a") as file:
        file["more"] = np.eye(2, 7)  # axes without names
    with xr.open_datatree(path, engine="h5netcdf", phony_dims="sort") as opened:
        expected = opened.load()
    tree = netcdf.decode(path)
    assert [node.path for node in tree.subtree] == ["/", "/sums"]
    for node in expected.subtree:
        ours, theirs = tree[node.path].to_dataset(), node.to_dataset()
        xr.testing.assert_identical(ours, theirs)
        assert [*ours.variables] == [*theirs.variables]
        assert [*ours.attrs] == [*theirs.attrs]
        for name, variable in theirs.variables.items():
            assert repr(ours.variables[name].encoding) == repr(variable.encoding), name
