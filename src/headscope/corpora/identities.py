"""The ids of a large corpus, as far as one must know them to see that one is there twice."""

from array import array


class Identities:
    """Texts that have been there, by their hashes, of which each takes 16 to 32 bytes.

    It is a table with open addressing: a hash stands at the first free place from the one that it names.
    """

    def __init__(self) -> None:
        self._places = array("q", bytes(8 << 10))
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, text: str) -> bool:
        """Add a text; True if it was not there before, False if it may have been, since its hash was."""
        value = hash(text) or 1  # a place with 0 is free
        place = self._find(value)
        if self._places[place] == value:
            return False
        self._places[place] = value
        self._count += 1
        if 2 * self._count > len(self._places):
            self._double()
        return True

    def _find(self, value: int) -> int:
        last = len(self._places) - 1
        place = value & last
        while self._places[place] not in (0, value):
            place = (place + 1) & last
        return place

    def _double(self) -> None:
        values = self._places
        self._places = array("q", bytes(16 * len(values)))
        for value in filter(None, values):
            self._places[self._find(value)] = value
