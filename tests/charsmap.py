"""The table by which SentencePiece normalises characters, as a tokenizer.json holds it, of a few rules.

Real ones have thousands of rules. Their form: the length of a double array in bytes, the array (a trie over UTF-8 whose
leaves are places in a text), and the text, in which every replacement ends in a zero.
"""

import struct
from collections.abc import Mapping
from itertools import count

RULES = {"\u00a0": " ", "\u3000": " ", "\n": " ", "\t": " ", "e\u0301": "é", "ﬁ": "fi", "…": "...", "Ａ": "A"}
WIDTH = 256  # so far apart are the children of two nodes, one for each byte


def build_charsmap(rules: Mapping[str, str] = RULES) -> bytes:
    """The table of these rules, none of whose characters begin those of another."""
    text = b"".join(replacement.encode() + b"\0" for replacement in rules.values())
    places, first = {}, 0
    for characters, replacement in rules.items():
        places[characters.encode()] = first
        first += len(replacement.encode()) + 1
    prefixes = sorted({characters[:end] for characters in places for end in range(len(characters) + 1)})
    bases = dict(zip(prefixes, count(WIDTH, WIDTH), strict=False))
    units = [0] * (WIDTH * (len(prefixes) + 1))
    for prefix in prefixes:
        place = bases[prefix[:-1]] ^ prefix[-1] if prefix else 0
        # A unit: the byte that leads to it, whether a rule ends there, and how its place differs from its children's.
        units[place] = (bases[prefix] ^ place) << 10 | (prefix in places) << 8 | (prefix[-1] if prefix else 0)
        if prefix in places:
            units[bases[prefix]] = places[prefix]
    array = struct.pack(f"<{len(units)}I", *units)
    return struct.pack("<I", len(array)) + array + text
