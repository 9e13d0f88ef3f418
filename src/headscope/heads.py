"""The head table: an ordinary ``xarray.Dataset`` with one entry for each attention head.

``layer`` and ``head`` are coordinates that count from 1, so ``table.sel(layer=8, head=10)`` is the
head that papers write as 8-10. Every variable carries its units and the source of its definition,
and the attributes of the table say which weights, which corpus and which call it came from.
"""

import io
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import h5py
import numpy as np
import xarray as xr

from headscope.errors import TableError
from headscope.files import atomic_write

FORMAT = 4
"""The version of the schema, stored in each file. A file of another version is refused."""

SUMS = "sums"
"""The group of a file that holds sums by fold and permutations, beside the variables that one reads."""

_COMPRESSED = {"zlib": True, "complevel": 4}

DIMENSIONS: Mapping[str, str] = {
    "layer": "attention layer, counted from 1 in the order of the forward pass",
    "head": "attention head, counted from 1",
    "attention_type": "encoder, decoder or cross (in encoder-decoder models)",
    "relation": "linguistic relation; `nsubj:*` pools a label with its subtypes, `all` pools all but punct",
    "direction": "dependent_to_head or head_to_dependent",
    "offset": "signed distance in words; -1 is the word before",
    "distance": "signed distance in tokens at which a bucket begins; 4 is 4 and further, up to where the next begins",
    "token_offset": "signed distance in tokens; -1 is the token before",
    "class": "class of words whose tokens are counted together",
    "token_class": "class of tokens by annotation: noun, verb, pronoun, subject, object, negation, cls or sep",
    "mention": "class of mentions by the part of speech of the head word; `all` also has those without one",
    "target": "what the words of a question that name an aspect attend to (its terms, phrase and others)",
    "length": "signed length of a link in words; -6 and 6 are that and longer",
    "permutation": "one of the permutations of the gold annotation",
    "run": "one of several fine-tuned models that differ in their seed",
    "group": "task or control: what runs were fine-tuned on",
    "fold": "part of the corpus; the groups of documents are assigned to the folds by a hash",
    "side": "left or right of a word, or either; then, which of two equally near comes first",
    "word_class": "parts of speech, of which a rule takes the nearest word",
    "before": "words before the cue of a negation that a window has",
    "behind": "words behind the cue of a negation that a window has",
    "rule": "a rule of your own",
    "end": "end of a link, from which a rule leads to the other",
    "regressor": "what attention is regressed on: the constant, in_scope (0 or 1), and the distance in words",
    "regressor_other": "the same, for products of two of them",
}
"""The dimensions a head table may have, and what each means."""

REQUIRED_ATTRIBUTES = ("model", "weights_sha256", "corpus", "corpus_sha256", "documents", "tokens", "skipped", "call")
"""Where a table came from. No table is complete without them."""


def variable(
    values: np.ndarray,
    dims: Sequence[str],
    *,
    name: str,
    units: str,
    source: str,
    title: str = "",
    target: str = "",
    baseline: str = "",
) -> xr.Variable:
    """A variable of a head table.

    Args:
        values: the numbers, one axis for each of ``dims``.
        dims: names from `DIMENSIONS`.
        name: what the variable measures, in words.
        units: its unit, such as ``nats`` or ``share of attention``.
        source: paper and section that define it.
        title: a short name under which the page shows each head's value; without one it is only in the files.
        target: what is attended to, where the terminal is to rank the heads by their attention to it.
        baseline: the variable that says what uniform attention would give: itself, or one token as an entropy.
    """
    shown = {"title": title, "target": target, "baseline": baseline}
    attrs = {"long_name": name, "units": units, "source": source} | {key: text for key, text in shown.items() if text}
    return xr.Variable(tuple(dims), values, attrs=attrs)


def check(table: xr.Dataset) -> xr.Dataset:
    """The same table, if it follows the schema.

    Raises:
        TableError: a dimension is unknown, layers or heads are not counted from 1, or units,
            source or provenance are missing.
    """
    for dim in table.dims:
        if dim not in DIMENSIONS and not (dim in table.coords and table[dim].attrs.get("long_name")):
            raise TableError(
                f"the head table has a dimension {str(dim)!r}; known are {', '.join(DIMENSIONS)}, and any whose "
                "coordinate has an attribute long_name."
            )
    for dim in ("layer", "head"):
        if dim not in table.coords:
            raise TableError(
                f"the head table has no coordinate {dim!r}; every head table is indexed by layer and head."
            )
        labels = table[dim].values
        if not np.array_equal(labels, np.arange(1, table.sizes.get(dim, 0) + 1)):
            raise TableError(f"the coordinate {dim!r} of the head table must count 1, 2, 3 ...; it is {labels}.")
    for name, values in table.data_vars.items():
        missing = [key for key in ("units", "source", "long_name") if not values.attrs.get(key)]
        if missing:
            raise TableError(f"the variable {str(name)!r} lacks {' and '.join(missing)}; every number states them.")
    missing = [key for key in REQUIRED_ATTRIBUTES if key not in table.attrs]
    if missing:
        raise TableError(f"the head table does not say where it came from: it lacks {', '.join(missing)}.")
    return table


def write_table(table: xr.Dataset, path: str | Path) -> Path:
    """Check `table` and write it as netCDF-4, whole or not at all.

    Variables by fold or permutation are in the group `SUMS` of the file, so that the others are a table of a size that
    pandas or R can hold.

    Raises:
        TableError: the table does not follow the schema.
        HeadscopeError: the disk refuses the file.
    """
    path = Path(path)
    check(table)
    sums = [name for name, values in table.data_vars.items() if {"fold", "permutation"} & {*values.dims}]
    others = table.drop_vars(sums)
    others = others.drop_dims(set(others.dims) - {dim for values in others.data_vars.values() for dim in values.dims})
    parts = {
        "/": others.assign_attrs(headscope_format=FORMAT),
        f"/{SUMS}": table[sums].assign_coords(table.coords).assign_attrs(variables=json.dumps([*table.data_vars])),
    }
    encoding = {
        path: {name: _COMPRESSED for name, values in part.data_vars.items() if values.dtype.kind in "iuf"}
        for path, part in parts.items()
    }
    # HDF5 does not survive a disk that refuses a write: it takes the process with it. So it writes to memory.
    content = io.BytesIO()
    with atomic_write(path) as temporary:
        xr.DataTree.from_dict(parts).to_netcdf(content, engine="h5netcdf", encoding=encoding)
        temporary.write_bytes(content.getbuffer())
    return path


def read_table(path: str | Path) -> xr.Dataset:
    """The head table in a file that `write_table` wrote, with its sums.

    ``xarray.open_dataset`` gives the same table without the sums by fold and the permutations.

    Raises:
        TableError: there is no such file, it is not a head table, or it has another format.
    """
    path = Path(path)
    if not path.is_file() or not h5py.is_hdf5(path):
        fault = f"{path} is not a netCDF-4 file" if path.is_file() else f"there is no file {path}"
        raise TableError(f"{fault}; a head table is written by `headscope atlas` or `headscope measure`.")
    try:
        # HDF5 that is not netCDF has unnamed axes; these get names, and the missing attribute is reported below.
        with xr.open_datatree(path, engine="h5netcdf", phony_dims="sort") as opened:
            tree = opened.load()
    except OSError as error:
        raise TableError(f"{path} is damaged or incomplete; copy it again, or measure again.") from error
    version = tree.attrs.pop("headscope_format", None)
    if version is None:
        raise TableError(f"{path} is a netCDF file but not a head table; it has no attribute headscope_format.")
    if int(version) != FORMAT:
        raise TableError(
            f"{path} has format {int(version)}, and this headscope reads format {FORMAT}; "
            "measure again, or use the version that wrote it."
        )
    table = tree.to_dataset()
    if SUMS in tree.children:  # a user may have left them out to send a smaller file
        inner = tree[SUMS].to_dataset()
        variables = {**table.data_vars, **inner.data_vars}
        ordered = {name: variables[name] for name in json.loads(inner.attrs["variables"])}
        table = xr.Dataset(ordered, coords=inner.coords, attrs=table.attrs)
    table.encoding["source"] = str(path)  # as xarray has it, for messages
    return check(table)


def head(table: xr.Dataset, name: str) -> xr.Dataset:
    """The values of one head, by its name: of ``8-10`` what ``table.sel(layer=8, head=10)`` gives.

    Raises:
        TableError: the name is not of that form, or `table` has no such head.
    """
    layer, number = parse_head(name, table)
    return table.sel(layer=layer, head=number)


def head_name(layer: int, head: int) -> str:
    """The papers' name of a head: ``8-10`` is the tenth head of the eighth layer."""
    return f"{layer}-{head}"


def parse_head(name: str, table: xr.Dataset) -> tuple[int, int]:
    """Layer and head of a name such as ``8-10``, both counted from 1.

    Raises:
        TableError: the name is not of that form, or `table` has no such head.
    """
    match = re.fullmatch(r"\s*(\d+)-(\d+)\s*", name)
    layers, heads = table.sizes["layer"], table.sizes["head"]
    last = head_name(layers, heads)
    if not match:
        raise TableError(f"{name!r} is not a head; write layer-head, both counted from 1, such as 1-1 or {last}.")
    layer, head = int(match[1]), int(match[2])
    if not (1 <= layer <= layers and 1 <= head <= heads):
        sizes = f"{layers} layers of {heads} heads, 1-1 to {last}"
        raise TableError(f"there is no head {layer}-{head}; the model has {sizes}.")
    return layer, head
