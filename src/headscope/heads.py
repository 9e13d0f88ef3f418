"""The head table: an ordinary ``xarray.Dataset`` with one entry for each attention head.

``layer`` and ``head`` are coordinates that count from 1, so ``table.sel(layer=8, head=10)`` is the
head that papers call 8-10. Every variable states its units and the source of its definition, and
the attributes of the table state its weights, its corpus and the call that measured it.
"""

import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from functools import partial
from importlib import metadata
from pathlib import Path

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from headscope import netcdf
from headscope.errors import HeadscopeError, TableError, say_no_table
from headscope.files import atomic_write, parse_json
from headscope.first_guesses import explained
from headscope.guards.formats import HEAD_TABLE, open_file
from headscope.layers import ATTRIBUTE as WITHOUT_ATTENTION
from headscope.layers import find_head, read_without_attention, refuse_layer
from headscope.own_files import SEAL

FORMAT_ATTRIBUTE = "headscope_format"
FORMAT = 4
"""The version of the schema, stored in each file. `read_table` rejects a file of another version."""

SUMS = "sums"
"""The group of a file with the variables by fold or permutation. The root group has all other variables."""

_STORED = {"zlib": True, "complevel": 4, "fletcher32": True}

DIMENSIONS: Mapping[str, str] = {
    "layer": "layer, counted from 1 in the order of the forward pass; NaN in layers without attention",
    "head": "attention head, counted from 1",
    "layer_other": "layer of the other of two heads",
    "head_other": "number of the other of two heads",
    "layer_before": "layer of a head of the model before",
    "head_before": "number of a head of the model before",
    "half": "half of the corpus: the documents of the folds with an even or an odd number",
    "attention_type": "encoder, decoder or cross (in encoder-decoder models)",
    "relation": "linguistic relation; `nsubj:*` pools a label with its subtypes, `all` pools all but punct",
    "direction": "dependent_to_head or head_to_dependent",
    "offset": "signed distance in words; -1 is the word before",
    "distance": "signed distance in tokens at which a bucket begins; 4 is 4 and further, up to where the next begins",
    "match": "what a token that comes again is to attend to: where it stood (duplicate), or what followed (induction)",
    "back": "distance in tokens to an earlier token",
    "nearby": "a token at a fixed distance in tokens: the previous token, the next one, or one up to four away",
    "answer": "a token of an answer: the first one, or a later one",
    "role": "role of the heads of a decoder, such as sink, previous token, induction or retrieval",
    "needle": "one of the needles of a text, counted from the end",
    "occurrence": "an earlier place of the same token: the last or the first",
    "decoder_step": "step of a decoder at which a word is looked at: predicting, the one before it, or reading it",
    "shift": "words by which a rule looks before or after the source word that it names",
    "sink": "a token that may be an attention sink: one of the first three, or the first delimiter",
    "beside": "on which side of a token nearby: a token nearer, or a token farther away",
    "token_offset": "signed distance in tokens; -1 is the token before",
    "class": "class of words whose tokens are counted together",
    "token_class": "class of tokens by annotation: noun, verb, pronoun, subject, object, negation, cls or sep",
    "mention": "class of mentions by the part of speech of the head word; `all` also has those without one",
    "target": "what the words of a question that name an aspect attend to (its terms, phrase and others)",
    "length": "signed length of a link in words; -6 and 6 are that and longer",
    "permutation": "one of the permutations of the gold annotation",
    "run": "one of several fine-tuned models, or placebos of an adapter, that differ in their seed",
    "group": "task or control: what runs were fine-tuned on",
    "fold": "part of the corpus; the groups of documents are assigned to the folds by a hash",
    "side": "left or right of a word, or either; then, which of two equally near comes first",
    "word_class": "parts of speech, of which a rule takes the nearest word",
    "before": "words before the cue of a negation that a window has",
    "behind": "words after the cue of a negation that a window has",
    "rule": "a rule of your own",
    "end": "end of a link, from which a rule leads to the other",
    "how": "what takes the place of a disabled head's output: uniform, zero, mean or resample",
    "how_other": "the same, of another way",
    "subset": "all examples of an evaluation, or some: of BLiMP a field, a phenomenon or a paradigm",
    "key_value_head": "key/value head, counted from 1, which several query heads share",
    "pair": "two heads that are disabled together",
    "set": "heads that are disabled together, such as those that lead a relation",
    "set_other": "another set of heads, with which a set is compared",
    "part": "part of what a model reads: system, document 1 and so on, question, template, or own text",
    "slot": "place of a document in a prompt, counted from 1",
    "step": "step of a linkage, in which two clusters of heads are joined",
    "merge": "of a step of a linkage: the two that are joined, their distance, and how many heads they have",
    "probe": "a probe of all heads, or a baseline (`headscope probe`)",
    "baseline": "the probe that another is compared with",
    "controlled": "a probe that is trained on the control task too",
    "seed": "seed with which a probe was trained",
    "pattern": "pattern of attention maps: vertical, diagonal, vertical+diagonal, block or heterogeneous",
    "kept": "shape of the cells of a map that are kept: a_shape, vertical_slash, block_sparse, or any_cells",
    "shape": "one of these shapes",
    "query_bin": "part of a text that the attending token is in, of equal parts counted from 1",
    "key_bin": "part of a text that the attended token is in, of equal parts counted from 1",
    "side_special": "before or behind: special tokens before the first word of a text, and after its last",
    "hidden_layer": "layer whose output a structural probe reads; 0 is the embeddings",
    "regressor": "what attention is regressed on: the constant, in_scope (0 or 1), and the distance in words",
    "regressor_other": "the same, for products of two of them",
}
"""The dimensions that a head table may have, and the meaning of each."""

KEY_VALUE_HEADS = "key_value_heads"
"""The attribute of a table with its number of key/value heads per layer, if query heads share them."""

KEY_VALUE_HEADS_BY_LAYER = f"{KEY_VALUE_HEADS}_by_layer"
"""The attribute of a table with the number of key/value heads in each layer, if these numbers differ."""

EDITED = "edited"
"""The attribute of a table that describes the edits of its model: the edited heads, and how they were edited."""

SHARE = "share of attention"
"""The unit of attention weights."""

REQUIRED_ATTRIBUTES = ("model", "weights_sha256", "corpus", "corpus_sha256", "documents", "tokens", "skipped", "call")
"""The attributes that say how a table was measured. Every table needs them."""


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
    """Make a variable of a head table from its values and its description.

    Args:
        values: the numbers, one axis for each of ``dims``.
        dims: names from `DIMENSIONS`.
        name: a description of the variable in words.
        units: the unit of the values, such as ``nats`` or ``share of attention``.
        source: the paper and section that define it.
        title: a short name under which the page shows each head's value. Without a title the value is only in files.
        target: the tokens whose share of a head's attention is measured. The terminal ranks the heads by this share.
        baseline: the name of the variable that has the value under uniform attention, in the same unit; or of the
            entropy of uniform attention, from which the share of one token follows.
    """
    shown = {"title": title, "target": target, "baseline": baseline}
    attrs = {"long_name": name, "units": units, "source": source} | {key: text for key, text in shown.items() if text}
    return xr.Variable(tuple(dims), values, attrs=attrs)


Described = tuple[ArrayLike, Sequence[str], str, str]
"""The numbers of a variable, its dimensions, its description and its unit."""


def describe(values: Mapping[str, Described], source: str) -> dict[str, xr.Variable]:
    """Make variables of a head table, by name, that have the same source."""
    return {
        name: variable(np.asarray(data), dims, name=what, units=units, source=source)
        for name, (data, dims, what, units) in values.items()
    }


def get_share(table: xr.Dataset) -> str:
    """Return the unit of a table's weights: a share of attention, or the unit of the table's view."""
    return str(table.attrs.get("view_units", SHARE))


def require_table(table: object) -> None:
    """Raise an error for an argument that is not a Dataset, such as the path of a head table.

    Raises:
        TableError: the argument is not a Dataset.
    """
    if not isinstance(table, xr.Dataset):
        raise TableError(say_no_table(table))


def check(table: xr.Dataset) -> xr.Dataset:
    """Return a head table unchanged if it follows the schema; otherwise raise an error.

    Raises:
        TableError: a dimension is unknown, layers or heads are not counted from 1, a variable lacks its units, source
            or description, or the table lacks one of `REQUIRED_ATTRIBUTES`.
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
    for name in table.data_vars:
        values = table.variables[name]
        missing = [key for key in ("units", "source", "long_name") if not values.attrs.get(key)]
        if missing:
            raise TableError(f"the variable {str(name)!r} lacks {' and '.join(missing)}; every number states them.")
    missing = [key for key in REQUIRED_ATTRIBUTES if key not in table.attrs]
    if missing:
        raise TableError(f"the head table does not say where it came from: it lacks {', '.join(missing)}.")
    return table


@explained
def write_table(table: xr.Dataset, path: str | Path) -> Path:
    """Check a head table and write it to a netCDF-4 file, completely or not at all.

    >>> table = headscope.measure("minilm", "grammar:60", "surface")
    >>> path = headscope.write_table(table, "surface.nc")

    Variables by fold or permutation go into the group `SUMS` of the file, so the others form a table that is small
    enough for pandas or R.

    Raises:
        TableError: the table does not follow the schema.
        HeadscopeError: the system does not allow writing the file.
    """
    require_table(table)
    path = netcdf.require_path(path)
    check(table)
    sums = [name for name in table.data_vars if {"fold", "permutation"} & {*table.variables[name].dims}]
    others = table.drop_vars(sums)
    others = others.drop_dims(
        set(others.dims) - {dim for name in others.data_vars for dim in others.variables[name].dims}
    )
    parts = {
        "/": others.assign_attrs({FORMAT_ATTRIBUTE: FORMAT}),
        f"/{SUMS}": table[sums].assign_coords(table.coords).assign_attrs(variables=json.dumps([*table.data_vars])),
    }
    encoding = {
        path: {name: _STORED for name, values in part.data_vars.items() if values.dtype.kind in "iuf" and values.ndim}
        for path, part in parts.items()
    }
    with atomic_write(path) as temporary:
        written = netcdf.encode(parts, encoding)
        with temporary.open("wb") as file:
            file.write(written)
            file.write(SEAL + hashlib.sha256(written).digest())
    return path


@explained
def read_table(path: str | Path) -> xr.Dataset:
    """Read a head table, with its sums by fold, from a file that `write_table` or ``table.to_netcdf`` wrote.

    >>> table = headscope.read_table("heads.nc")
    >>> table["relation_accuracy"].sel(relation="obj", layer=3, head=1)

    ``xarray.open_dataset`` returns the same table without the sums by fold and the permutations. A file that xarray
    wrote has no schema version, so only the version of headscope that measured its table can read it. If `path` is a
    folder, the only table in it is read.

    Raises:
        TableError: the file is missing, is a folder with several tables, is not a head table, has another format, has
            changed since it was written, or claims more data than it can hold.
    """
    path = netcdf.find_file(path)
    writers = "`headscope atlas`, `headscope measure` or `headscope merge`"
    netcdf.check_file(path, f"a head table is written by {writers}")
    try:
        _check_seal(path)
        check_version, advice = partial(_check_version, path), "copy it again, or measure again"
        tree = netcdf.read(path, FORMAT_ATTRIBUTE, check_version, groups=(SUMS,), advice=advice)
        table = tree.to_dataset()
        table.attrs.pop(FORMAT_ATTRIBUTE, None)
        if SUMS in tree.children:  # a user may have left them out to send a smaller file
            inner = tree[SUMS].to_dataset()
            variables = {**table.data_vars, **inner.data_vars}
            ordered = {name: variables[name] for name in parse_json(inner.attrs["variables"])}
            if ordered.keys() != variables.keys():
                raise ValueError("variables are there that are not listed")
            table = xr.Dataset(ordered, coords=inner.coords, attrs=table.attrs)
        _check_kinds(table)
        # Earlier versions stored labels as variables, so two tables could not be subtracted.
        table = table.set_coords([name for name, each in table.data_vars.items() if each.dtype.kind not in "iufb"])
        table.encoding["source"] = str(path)  # error messages name this path
    except HeadscopeError:
        raise
    # HDF5, netCDF and xarray raise errors of their own for a damaged file.
    except Exception as error:
        raise TableError(f"{path} is damaged or incomplete; copy it again, or measure again.") from error
    return check(table)


def _check_seal(path: Path) -> None:
    """Raise an error if a file with a checksum has changed since it was written; a file without one passes."""
    with open_file(path, HEAD_TABLE) as file:
        size = file.seek(0, io.SEEK_END)
        seal_size = len(SEAL) + hashlib.sha256().digest_size
        file.seek(max(size - seal_size, 0))
        seal = file.read()
        file.seek(0)
        if seal.startswith(SEAL) and hashlib.sha256(file.read(size - seal_size)).digest() != seal[len(SEAL) :]:
            raise TableError(
                f"{path} does not have the bytes that were written, as its checksum says; copy it again or measure "
                "again or, if a program has changed it, let that write a new file."
            )


def _check_version(path: Path, version: int | None) -> None:
    """Raise an error for a file that is not a head table, or that this version of headscope cannot read."""
    if version is None and (measured := _read_version(path)):
        if measured != metadata.version("headscope"):
            raise TableError(
                f"{path} is a table of headscope {measured} that xarray wrote, and this is headscope "
                f"{metadata.version('headscope')}; write it by headscope.write_table of the version that measured it."
            )
        return
    if version is None:
        raise TableError(f"{path} is a netCDF file but not a head table; it has no attribute {FORMAT_ATTRIBUTE}.")
    if version != FORMAT:
        raise TableError(
            f"{path} has format {version}, and this headscope reads format {FORMAT}; "
            "measure again, or use the version that wrote it."
        )


def _read_version(path: Path) -> str:
    """Return the version of headscope that measured the table in a file; empty for other files."""
    texts = netcdf.read_texts(path, (*_TEXTS, "versions"))
    versions = parse_json(texts.get("versions", "{}"))
    stated = {"model", "weights_sha256", "corpus", "corpus_sha256", "call"} <= texts.keys()
    return str(versions.get("headscope", "")) if stated and isinstance(versions, dict) else ""


_TEXTS = ("model", "weights_sha256", "corpus", "corpus_sha256", "corpus_notes", "call", EDITED)
_COUNTS = ("documents", "documents_repeated", "tokens")
_JSON = {
    "skipped": dict, "replication_skipped": dict, "versions": dict, "paths": dict, "where": dict, "runs": list,
    "scores": list, "tree_faults": dict, WITHOUT_ATTENTION: dict,
}  # fmt: skip
"""The attributes that are JSON, and the type of each value."""


def _check_kinds(table: xr.Dataset) -> None:
    """Raise an error for a table with values, labels or attributes of a wrong type."""
    for name, values in table.variables.items():
        numeric = values.dtype.kind in "iufb"
        by_head = name in table.data_vars and {"layer", "head", "fold", "permutation", "run"} & {*values.dims}
        if not numeric and (by_head or not all(isinstance(value, str) for value in values.values.flat)):
            raise ValueError(f"{name} does not hold numbers")
        if not all(isinstance(values.attrs.get(key, ""), str) for key in ("long_name", "units", "source")):
            raise ValueError(f"{name} has numbers for its units")
    for dim in ("layer", "head"):
        if f"{dim}_other" in table.dims and not np.array_equal(table[f"{dim}_other"], table[dim]):
            raise ValueError(f"the other of two heads has another {dim}")
    for key, value in table.attrs.items():
        if key in _TEXTS and not isinstance(value, str):
            raise ValueError(f"{key} is no text")
        if key in _COUNTS and not isinstance(value, int | np.integer):
            raise ValueError(f"{key} is no number")
        if key in _JSON and not isinstance(parse_json(value), _JSON[key]):
            raise ValueError(f"{key} is not as it was written")
    read_without_attention(table)
    if not all(isinstance(run, dict) for run in parse_json(table.attrs.get("runs", "[]"))):
        raise ValueError("runs is not as it was written")


@explained
def head(table: xr.Dataset, name: str) -> xr.Dataset:
    """Return the values of the head with a name: ``8-10`` is ``table.sel(layer=8, head=10)``.

    >>> table = headscope.read_table("heads.nc")
    >>> headscope.head(table, "3-1")["relation_accuracy"]

    Raises:
        TableError: the name has another form, `table` has no such head, or the layer has no attention.
    """
    require_table(table)
    layer, number = parse_head(name, table)
    return table.sel(layer=layer, head=number)


def head_name(layer: int, head: int) -> str:
    """Return the name of a head as papers write it: ``8-10`` is the tenth head of the eighth layer."""
    return f"{layer}-{head}"


def parse_head(name: str, table: xr.Dataset) -> tuple[int, int]:
    """Return the layer and the head of a name such as ``8-10``, both counted from 1.

    Raises:
        TableError: the name has another form, `table` has no such head, or the layer has no attention.
    """
    try:
        layer, number = find_head(name, table.sizes["layer"], table.sizes["head"])
        refuse_layer(read_without_attention(table), layer)
        return layer, number
    except HeadscopeError as error:
        raise TableError(str(error)) from None
