"""The ids of a large corpus, as far as they are needed to detect that an id occurs twice."""

from array import array


class Identities:
    """Texts that occurred before, by their hashes, which take 16 to 32 bytes each.

    A hash table with open addressing: a hash is in the first free slot from its own index on.
    """

    def __init__(self) -> None:
        self._places = array("q", bytes(8 << 10))
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, text: str) -> bool:
        """Add a text; return True if it is new, False if its hash occurred before, so that it may have too."""
        value = hash(text) or 1  # 0 marks a free slot
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
