"""The sizes of blocks of work: on a processor by its cache, on a GPU by its free memory.

Blocks of rows, texts, heads and columns take their sizes from here. A GPU is fast with few large blocks.
"""

from dataclasses import dataclass, fields

import torch

SHARE = 64
"""The bytes that must be free on a GPU for each entry of a block: a pass holds several blocks, at 4 bytes an entry."""


@dataclass(frozen=True)
class BlockSizes:
    """The largest sizes of blocks of work on a device; the defaults are for a processor.

    Attributes:
        weights: The number of attention weights of a block of rows (4 MiB, about a processor's cache).
        swept: The number of attention weights that are computed together and not kept (8 MiB).
        kept: The number of entries of tensors that are kept from one layer to the next, and of logits (16 MiB).
        places: The number of link positions, times the number of all heads.
        held: The number of entries of tensors that are computed along with a block and not kept (64 MiB).
        rows: The number of query rows of a block in `headscope.capture.rows.sweep`. With more rows, more keys are near;
            with fewer, the products are small.
        windowed_rows: The number of query rows of a block in which each row has its own window of keys.
        summed_rows: The number of query rows that are added up in float64.
        texts: The number of texts whose logarithms are taken together. Allocating new memory costs more than the
            logarithms do.
        key_heads: The number of key/value heads for which a few rows are computed in float64 together.
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
        """Return the block sizes of a device; on a GPU they follow the memory that is free now."""
        if device.type != "cuda":
            return cls()
        return cls(*[max(1, find_free_memory(device) // SHARE)] * len(fields(cls)))


def find_free_memory(gpu: torch.device | str) -> int:
    """Return the free bytes of a GPU for this process, including memory that torch reserves but does not use."""
    free, _ = torch.cuda.mem_get_info(gpu)
    return free + torch.cuda.memory_reserved(gpu) - torch.cuda.memory_allocated(gpu)
