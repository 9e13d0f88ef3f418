"""Contents of any kind, of which bytes are cut, changed, swapped, doubled or replaced, and what containers declare."""

import io
import json
import random
import struct
import zipfile
from collections.abc import Callable

import numpy as np

from mutations.lists import craft_json

_HUGE = (0, 1, 2**31 - 1, 2**32 - 1, 2**40, 2**63 - 1, 2**64 - 1)
_FLOATS = (float("nan"), float("inf"), -float("inf"), 1e308, -1.0)
_DEEP = (b"[" * 5000, b'{"a":' * 3000, b"(" * 5000, b"<a>" * 3000)
_OTHERS = (
    b"", b"\n", b"\x00" * 64, b"PK\x03\x04", b"PK\x05\x06" + bytes(18), b"\x1f\x8b\x08", b"\x89HDF\r\n\x1a\n", b"GGUF",
    b"\x93NUMPY\x01\x00", b"\xff" * 64, b"null", b"[]", b"{}", b"NaN", b"9" * 5000,
)  # fmt: skip
"""What is no file of a format, or the beginning of one."""


def _place(content: bytes, chance: random.Random) -> tuple[int, int]:
    start, end = sorted(chance.randrange(len(content) + 1) for _ in range(2))
    return start, end


def cut(content: bytes, chance: random.Random) -> bytes:
    """Leave out the beginning, the end, or a part between."""
    start, end = _place(content, chance)
    return chance.choice((content[:start], content[end:], content[:start] + content[end:]))


def flip_bits(content: bytes, chance: random.Random) -> bytes:
    """Change one to three bits."""
    changed = bytearray(content)
    for _ in range(chance.randint(1, 3) if content else 0):
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def swap(content: bytes, chance: random.Random) -> bytes:
    """Let two parts change places."""
    first, second, third = sorted(chance.randrange(len(content) + 1) for _ in range(3))
    return content[:first] + content[second:third] + content[first:second] + content[third:]


def double(content: bytes, chance: random.Random) -> bytes:
    """Repeat a line, or any part."""
    if chance.random() < 0.5:
        lines = content.splitlines(keepends=True)
        place = chance.randrange(len(lines) + 1)
        return b"".join([*lines[:place], *lines[place : place + 1] * 2, *lines[place + 1 :]])
    start, end = _place(content, chance)
    return content[:end] + content[start:]


def declare(content: bytes, chance: random.Random) -> bytes:
    """Write another number of four or eight bytes over one, as sizes are written."""
    number, width = chance.choice(_HUGE), chance.choice("IQ")
    size = struct.calcsize(width)
    place = chance.randrange(0, max(1, min(len(content), chance.choice((64, 10**9)))), chance.choice((1, size)))
    return content[:place] + struct.pack(f"<{width}", number % 2 ** (8 * size)) + content[place + size :]


def spoil(content: bytes, chance: random.Random) -> bytes:
    """Write a number that is none over a number."""
    number, width = chance.choice(_FLOATS), chance.choice("fd")
    packed = np.array(number).astype(f"<{width}" if abs(number) < 1e38 or number != number else "<d").tobytes()
    place = chance.randrange(0, max(1, len(content)), 4)
    return content[:place] + packed + content[place + len(packed) :]


def nest(content: bytes, chance: random.Random) -> bytes:
    """Put in thousands of brackets."""
    place = chance.randrange(len(content) + 1)
    return content[:place] + chance.choice(_DEEP) + content[place:]


def replace_all(content: bytes, chance: random.Random) -> bytes:
    """Take something else in place of it, or put that before it."""
    return chance.choice(_OTHERS) + (content if chance.random() < 0.3 else b"")


def respell(content: bytes, chance: random.Random) -> bytes:
    """Write a text as other systems do: with other ends of lines, a mark at its beginning, or in Latin-1."""
    place = chance.randrange(len(content) + 1)
    return chance.choice(
        (
            content.replace(b"\n", b"\r\n"), content.replace(b"\n", b"\r"), b"\xef\xbb\xbf" + content,
            content[:place] + b"\xe9" + content[place:], content[:place] + b"\x00" + content[place:],
            content.decode("latin-1").encode("utf-16"),
        )
    )  # fmt: skip


MUTATIONS: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    cut, flip_bits, swap, double, declare, spoil, nest, replace_all, respell,
)  # fmt: skip


def mutate(content: bytes, chance: random.Random) -> bytes:
    """Return a content after one mutation, rarely two."""
    for _ in range(1 if chance.random() < 0.8 else 2):
        content = chance.choice(MUTATIONS)(content, chance)
    return content


def craft_text(content: bytes, chance: random.Random) -> bytes:
    """Return a text in JSON of which a part is replaced, left out or renamed."""
    return craft_json(json.loads(content), chance)


def craft_tensors(content: bytes, chance: random.Random) -> bytes:
    """Return a file of safetensors with another header: its length fits."""
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    about = header.get("__metadata__", {})
    if about and chance.random() < 0.6:
        key = chance.choice([*about])
        if about[key].startswith(("[", "{")) and chance.random() < 0.6:
            about[key] = craft_json(json.loads(about[key]), chance).decode(errors="replace")
        else:
            about[key] = chance.choice(("", "x", "[" * 5000, "null", "NaN", "9" * 5000, "-1", "[]"))
        crafted = json.dumps(header).encode()
    elif chance.random() < 0.5:
        tensor = header[chance.choice([key for key in header if key != "__metadata__"])]
        field, values = chance.choice(
            (("dtype", ("F64", "I64", "F8_E4M3", "BOOL", "C64", "x")), ("shape", ([], [0], [2**40], [-1], [1, 1]))),
        )
        tensor[field] = chance.choice(values)
        crafted = json.dumps(header).encode()
    else:
        crafted = craft_json(header, chance)
    return len(crafted).to_bytes(8, "little") + crafted + content[8 + length :]


def craft_arrays(content: bytes, chance: random.Random) -> bytes:
    """Return an archive of arrays with another array, or another header of one."""
    with np.load(io.BytesIO(content)) as stored:
        arrays = dict(stored)
    name = chance.choice([*arrays])
    array = arrays[name]
    written = io.BytesIO()
    if chance.random() < 0.7:
        arrays[name] = chance.choice(
            (
                np.zeros(0), np.full(np.shape(array), np.nan), np.full(np.shape(array), -3), np.array(7), np.array("x"),
                np.zeros((*np.shape(array), 2)), np.array(["a"] * 3), np.zeros(np.shape(array), bool),
                np.zeros(3, [("a", "f8"), ("b", "i4")]), np.zeros(np.shape(array), "c16"),
                np.zeros(10**7, "u1"), np.array("[" * 5000), np.array("{}"), np.array(np.nan),
            )
        )  # fmt: skip
        if chance.random() < 0.2:
            arrays[chance.choice(("", "x", "../x", "map-9", '["seen"]'))] = arrays.pop(name)
        np.savez_compressed(written, **arrays) if chance.random() < 0.5 else np.savez(written, **arrays)
        return written.getvalue()
    shape = chance.choice(("(10**12,)", "(1000000000000,)", "(-1,)", "(3, 3", "()", "(1.5,)", "(True,)"))
    kind = chance.choice(("<f8", "|O", "<M8[s]", "x", "|V0", "|S0"))
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    with zipfile.ZipFile(written, "w") as archive:
        for other in arrays:
            member = io.BytesIO()
            np.save(member, arrays[other])
            lied = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + bytes(64)
            archive.writestr(f"{other}.npy", lied if other == name else member.getvalue())
    return written.getvalue()
