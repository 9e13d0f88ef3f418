"""The formats of files that people hand to one another, except corpora: the reader and the greatest size of each."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path

from headscope.errors import HeadscopeError
from headscope.files import reading

MEGABYTE = 1_000_000

UNPACKED = 64 * MEGABYTE
"""The number of bytes to which any packed file may unpack."""

MOST_PACKED = 50
"""The greatest ratio of unpacked to packed bytes of a file that exceeds `UNPACKED`; known files have at most half."""


@dataclass(frozen=True)
class FileFormat:
    """A format of files.

    Attributes:
        title: its name in a sentence, such as ``a list of heads``.
        reader: the module and the function that reads a file.
        largest: the greatest size of a file in bytes; None if a large file is read in parts.
        most_unpacked: the number of bytes to which an archive may unpack; None if only the ratio to its size is
            limited.
    """

    title: str
    reader: str
    largest: int | None = 16 * MEGABYTE
    most_unpacked: int | None = None


HEAD_TABLE = FileFormat("a head table", "headscope.heads:read_table", None)
EXAMPLES = FileFormat("the examples of an atlas", "headscope.examples:read_examples", None)
HEAD_LIST = FileFormat("a list of heads", "headscope.headlists.list_formats:read_heads")
RUNS = FileFormat("a list of runs", "headscope.runs:read")
MANIFEST = FileFormat("a manifest", "headscope.commands.folder:OutputFolder")
SUMS = FileFormat("the sums of a run", "headscope.runner.checkpoint:load", None)
SHARD = FileFormat("the sums of a shard", "headscope.runner.shards:ShardSums", None)
RECORDING = FileFormat(
    "an archive of scores", "headscope.studies.arrays:read_recording", None,
    most_unpacked=1000 * MEGABYTE,  # the scores of a thousand runs of the largest models take a tenth of it
)  # fmt: skip
SAVED_ATTENTION = FileFormat("a text of saved attention", "headscope.capture.model.saved_text:open_text", None)
CLASSIFIER = FileFormat("a map classifier", "headscope.reducers.support.pattern_network:MapClassifier")
MAPS_TO_LABEL = FileFormat("a folder of maps to label", "headscope.learn.map_labels:read_maps_to_label", None)
MAP_ROWS = FileFormat("a table of maps", "headscope.learn.map_labels:read_maps_to_label")
WORD_VECTORS = FileFormat("a file of word vectors", "headscope.learn.word_vectors:read_vectors", None)
PATTERNS = FileFormat("a file of patterns", "headscope.corpora.spacy_patterns:check")
ADAPTER = FileFormat("the settings of an adapter", "headscope.capture.model.model_names:find_base")
GENERATION = FileFormat(
    "the settings of a generation", "headscope.capture.open.generation_settings:read_generation_settings"
)
GGUF = FileFormat("a GGUF file", "headscope.capture.open.gguf_metadata:Metadata", None)
WEIGHTS = FileFormat("the weights of a model", "headscope.capture.model.weights:refuse_eight_bits", None)
PROBED_MAPS = FileFormat("the attention that probes read", "headscope.learn.probe_data:Block", None)
TRAINER_STATE = FileFormat("the state of a training", "headscope.learn.training:read_step")

FORMATS = (
    HEAD_TABLE, EXAMPLES, HEAD_LIST, RUNS, MANIFEST, SUMS, SHARD, RECORDING, SAVED_ATTENTION, CLASSIFIER,
    MAPS_TO_LABEL, MAP_ROWS, WORD_VECTORS, PATTERNS, ADAPTER, GENERATION, GGUF, WEIGHTS, PROBED_MAPS, TRAINER_STATE,
)  # fmt: skip


@contextmanager
def open_file(path: Path, format: FileFormat) -> Iterator[BufferedReader]:
    """Open a file of a format.

    Raises:
        HeadscopeError: the path is a device, a pipe or a folder, the file is too large, or the system does not allow
            reading it.
    """
    with reading(path) as file:
        size = path.stat().st_size
        if format.largest is not None and size > format.largest:
            raise HeadscopeError(
                f"{path} has {size:,} bytes, and {format.title} has {format.largest:,} at most; give a file that is "
                "one."
            )
        yield file


def read_bytes(path: Path, format: FileFormat) -> bytes:
    """Return the content of a file of a format; raise the errors of `open_file`."""
    with open_file(path, format) as file:
        return file.read()


def is_too_much(unpacked: int, size: int) -> bool:
    """Return whether `unpacked` is too much for a packed file of `size` bytes (`UNPACKED`, `MOST_PACKED`)."""
    return unpacked > max(UNPACKED, MOST_PACKED * size)


def describe_claim(unpacked: int, size: int) -> str:
    """Return the end of an error message on a packed file of `size` bytes that claims to unpack to too much."""
    return f"claims to hold {unpacked / 1e9:,.1f} GB, which {size:,} bytes cannot"
