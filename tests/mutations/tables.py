"""Head tables of which a bit has changed, or something was replaced."""

import random
from pathlib import Path

import h5py
import numpy as np
import xarray as xr

from headscope import heads
from headscope.errors import HeadscopeError
from headscope.score import read_scores
from mutations import check_sentence, within

CHECKSUM = 48
"""Bytes at the end of a table; without them, whatever is changed is read."""

_ATTRIBUTES = (
    "", "x", 7, -1.5, [1, 2, 3], ["a", "b"], "[" * 99, "[" * 9999, "[3]", "{}", "9" * 5000, b"\xff\xfe", np.nan, True,
)  # fmt: skip


def flip(path: Path, expected: xr.Dataset, chance: random.Random) -> str:
    """Read a table after one bit has changed: ``refused``, or ``read`` if it is the same.

    Args:
        path: its file.
        expected: the table.
        chance: chooses the bit.

    Raises:
        AssertionError: it is read and is not the same.
    """
    content = bytearray(path.read_bytes())
    content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    other = path.with_name("flipped.nc")
    other.write_bytes(content)
    try:
        with within():
            table = heads.read_table(other)
    except HeadscopeError as error:
        check_sentence(error)
        return "refused"
    xr.testing.assert_identical(table, expected)
    return "read"


def try_table(path: Path, chance: random.Random) -> str:
    """Read a table after something in it was replaced, and its scores: ``read`` or ``refused``."""
    other = path.with_name("crafted.nc")
    other.write_bytes(path.read_bytes()[:-CHECKSUM])
    with h5py.File(other, "r+") as file:
        for _ in range(chance.randint(1, 2)):
            craft(file, chance)
    try:
        with within():
            table = heads.read_table(other)
            for score in read_scores(table):
                for place in score.places(table):
                    score.count(table, place)
    except HeadscopeError as error:
        check_sentence(error)
        return "refused"
    return "read"


def craft(file: h5py.File, chance: random.Random) -> None:
    """Replace an attribute, an array, or a name."""
    names: list[str] = []
    file.visit(names.append)
    item = file[chance.choice(["/", *names])]
    kind = chance.choice(("attribute", "delete attribute", "array", "huge", "link", "group", "values"))
    if kind in ("attribute", "delete attribute"):
        key = chance.choice([key for key in item.attrs if key.islower()] or ["units"])
        if kind == "delete attribute":
            item.attrs.pop(key, None)
        else:
            item.attrs[key] = chance.choice(_ATTRIBUTES)
        return
    name = chance.choice([name for name in names if isinstance(file[name], h5py.Dataset)])
    shape = file[name].shape
    if kind == "values" and 0 < file[name].size < 10**6 and file[name].dtype.kind in "if":
        file[name][...] = chance.choice((-1, 2**31 - 1, 0))
        return
    attributes = dict(file[name].attrs)
    del file[name]
    if kind == "array":
        file[name] = np.full(shape, b"text") if chance.random() < 0.5 else np.zeros((3, *shape))
    elif kind == "huge":
        file.create_dataset(name, (*shape[:-1], 10**10), dtype="f8", chunks=True)
    elif kind == "link":
        file[name] = chance.choice(
            (h5py.SoftLink("/layer"), h5py.ExternalLink("/dev/zero", "/"), h5py.SoftLink("/none"))
        )
        return
    elif kind == "group":
        file.create_group(name)
    else:
        return
    for key in ("units", "long_name", "source"):
        if key in attributes and str(attributes[key]).isascii():
            file[name].attrs[key] = attributes[key]
