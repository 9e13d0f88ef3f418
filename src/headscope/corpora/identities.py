"""The hashes of the ids of a large corpus, by which an id that occurs twice is detected in little memory."""

from array import array


class Identities:
    """A set of texts that keeps only their hashes, in 16 to 32 bytes for each text.

    A hash table with open addressing: a hash is in the first free slot from its own index on.
    """

    def __init__(self) -> None:
        self._places = array("q", bytes(8 << 10))
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, text: str) -> bool:
        """Add a text; return True if it is new, False if a text with the same hash was added before.

        A text with the same hash is most likely the same text.
        """
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
