"""How much is worked out at once: on a processor what suits its cache, on a GPU what is free of its memory.

Blocks of rows, texts, heads and columns take their sizes from here. A GPU is fast where it gets few large ones.
"""

from dataclasses import dataclass, fields

import torch

SHARE = 64
"""Bytes that must be free on a GPU for each number of a block: a pass holds several blocks of four bytes each."""


@dataclass(frozen=True)
class BlockSizes:
    """The largest blocks of a device; by default those of a processor.

    Attributes:
        weights: attention weights of a block of rows (4 MiB, about a processor's cache).
        swept: those of a block where nothing of them is kept, and other single weights (8 MiB).
        kept: numbers that are kept from one layer to the next, and logits (16 MiB).
        places: places of links, with all heads.
        held: numbers that are made beside a block and not kept (64 MiB).
        rows: query rows that are swept together. More make more keys near, fewer make small products.
        windowed_rows: query rows that see their own window of keys.
        summed_rows: query rows that are added up in float64.
        texts: texts whose logarithms are taken together: memory that is new each time costs more than these.
        key_heads: those for which a few rows are worked out in float64.
    """

    weights: int = 1 << 20
    swept: int = 1 << 21
    kept: int = 1 << 22
    places: int = 1 << 23
    held: int = 1 << 24
    rows: int = 64
    windowed_rows: int = 512
    summed_rows: int = 1024
    texts: int = 1
    key_heads: int = 1

    @classmethod
    def measure(cls, device: torch.device) -> "BlockSizes":
        """Return those of a device, as much of its memory as is free now."""
        if device.type != "cuda":
            return cls()
        return cls(*[max(1, find_free_memory(device) // SHARE)] * len(fields(cls)))


def find_free_memory(gpu: torch.device | str) -> int:
    """Return the bytes of a GPU that are free for this process, with those that torch holds and does not use."""
    free, _ = torch.cuda.mem_get_info(gpu)
    return free + torch.cuda.memory_reserved(gpu) - torch.cuda.memory_allocated(gpu)
