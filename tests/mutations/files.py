"""A sample of each format that people hand to one another, how it is read, and what is wrong with a broken one.

`SAMPLES` has a row for each of `headscope.guards.formats.FORMATS`; a format without one fails a test.
"""

import gzip
import io
import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import torch
import xarray as xr
from safetensors.torch import save_file

import tiny
from analyse.tables import RELATIONS, head_table
from analyse.tables import texts as make_texts
from analyse.test_need import NEED_OF_A_WAY, make_effects
from headscope import heads, runs
from headscope.capture.model.model import Model
from headscope.capture.model.model_names import find_base
from headscope.capture.model.saved_text import open_text
from headscope.capture.open.generation_settings import read_generation_settings
from headscope.capture.open.gguf import _explain
from headscope.capture.open.gguf_metadata import Metadata
from headscope.capture.open.loading import load
from headscope.commands.folder import OutputFolder
from headscope.commands.output import Contents
from headscope.commands.tables import open_effects, open_probes
from headscope.corpora import Shard, summarize
from headscope.corpora.spacy_patterns import check
from headscope.errors import HeadscopeError
from headscope.examples import CLEAR, Example, pack, read_examples, unpack, write_examples
from headscope.guards import formats
from headscope.guards.formats import FileFormat
from headscope.headlists.list_formats import read_heads
from headscope.learn.map_classifier import write_classifier
from headscope.learn.map_labels import read_maps_to_label, write_labels, write_maps
from headscope.learn.map_sample import HeadMap, MapName
from headscope.learn.probe_data import Block
from headscope.learn.training import read_step
from headscope.learn.word_vectors import read_vectors
from headscope.reducers.support.pattern_network import MapClassifier, MapNetwork
from headscope.runner import Run, ShardSums
from headscope.runner.checkpoint import RunSums, save
from headscope.runner.checkpoint import load as load_sums
from headscope.studies import STUDIES
from headscope.studies.arrays import read_recording
from mutations import check_sentence, damage, within
from mutations.bytes import craft_arrays, craft_tensors, craft_text, mutate
from mutations.lists import write_runs
from mutations.tables import craft
from probe_tables import make_probes
from test_examples import make_text

Craft = Callable[[bytes, random.Random], bytes]


@dataclass(frozen=True)
class Sample:
    """A file of a format.

    Attributes:
        format: of the file.
        make: writes it, and what belongs to it, to a folder; returns its path.
        read: reads it by its path, as a command does.
        craft: makes a broken one in the way of its format.
        sealed: whether a checksum covers every byte, so that what is read has the same numbers.
    """

    format: FileFormat
    make: Callable[[Path], Path]
    read: Callable[[Path], Any]
    craft: Craft
    sealed: bool = False


def freeze(value: Any) -> Any:
    """Return what is read as something that can be compared, with every number in it."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tolist() if value.dtype == object else value.tobytes()
    if isinstance(value, torch.Tensor):
        return freeze(value.numpy())
    if isinstance(value, xr.Dataset):
        return freeze({name: (each.dims, each.values, each.attrs) for name, each in value.variables.items()})
    if isinstance(value, torch.nn.Module):
        return freeze(dict(value.state_dict()))
    if is_dataclass(value):
        return {each.name: freeze(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): freeze(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [freeze(each) for each in value]
    return value if isinstance(value, str | int | type(None)) else repr(value)


def _write(name: str, content: str | bytes) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def _damage(content: bytes, chance: random.Random) -> bytes:
    return damage(content.decode(), chance)


def _damage_packed(content: bytes, chance: random.Random) -> bytes:
    text = gzip.decompress(content)
    longest = chance.random() < 0.1
    return gzip.compress(b"dog " + b"1" * 10**7 if longest else damage(text.decode(), chance), 1)


def _craft_netcdf(content: bytes, chance: random.Random) -> bytes:
    """Without its checksum, so that whatever is changed is read."""
    end = content.rfind(heads.SEAL)
    written = io.BytesIO(content if end < 0 else content[:end])
    with h5py.File(written, "r+") as file:
        for _ in range(chance.randint(1, 2)):
            craft(file, chance)
    return written.getvalue()


# ------------------------------------------------------------- how a sample of each is made and read


def _make_table(folder: Path) -> Path:
    return heads.write_table(head_table(make_texts(np.random.default_rng(89)), RELATIONS), folder / "heads.nc")


def _make_probes(folder: Path) -> Path:
    return heads.write_table(make_probes(), folder / "probe.nc")


def _make_effects(folder: Path) -> Path:
    table = make_effects([[head for _, head in NEED_OF_A_WAY.values()]], documents=7, tokens=70, skipped="{}")
    for name, values in table.data_vars.items():
        values.attrs = {"long_name": str(name), "units": "nats", "source": "test"}
    return heads.write_table(table, folder / "effects.nc")


def _make_distances(folder: Path) -> Path:
    whole = head_table(make_texts(np.random.default_rng(89)), RELATIONS)
    table = xr.Dataset(coords={dim: whole[dim] for dim in ("layer", "head")}, attrs=whole.attrs)
    del table.attrs["scores"]
    size = (table.sizes["layer"], table.sizes["head"]) * 2
    values = np.random.default_rng(7).random(size)
    dims = ("layer", "head", "layer_other", "head_other")
    table["js_distance"] = heads.variable(values, dims, name="distance", units="nats", source="test")
    others = {f"{dim}_other": table[dim].values for dim in ("layer", "head")}
    return heads.write_table(table.assign_coords(others), folder / "head-distances.nc")


def _make_examples(folder: Path) -> Path:
    texts = [make_text("a", ["She", "saw", "her", "dog"]), make_text("b", ["Yes", "."], seed=1)]
    return write_examples(pack(texts, [Example("relation:obj", CLEAR, 1, 2.0, 3.0)], {"model": "m"}), folder / "e.nc")


def _read_examples(path: Path) -> Any:
    dataset = read_examples(path)
    return unpack(dataset), dataset.attrs


def _make_list(folder: Path) -> Path:
    return _write("heads.json", json.dumps({"0-0": [0.5, 0.25], "0-1": [0.125, 1.0], "1-0": [0.5], "1-1": [0.75]}))(
        folder
    )


def _make_manifest(folder: Path) -> Path:
    hashes = {"heads.nc": "a" * 64, "figures/a.png": "b" * 64}
    return _write("manifest.json", json.dumps({"about": {"seed": 1}, "sha256": hashes}))(folder)


def _make_sums(folder: Path) -> Path:
    sums = RunSums({("seen", "words"): np.array(3), ("sums", "encoder", "a", "b"): np.arange(35.0).reshape(5, 7)})
    save(sums, folder / "sums.npz", identity={"about": {"model": "a"}})
    return folder / "sums.npz"


def _make_shard(folder: Path) -> Path:
    module, tokenizer = tiny.make("bert")
    model, documents = Model.from_module(module, tokenizer, name="bert"), tiny.documents_with_roles(5)
    run = Run.open(model, documents, ["surface"], summary=summarize(documents)).select(Shard(1, 1))
    ShardSums.of_run(run, run.add_up()).write(folder / "shard.npz")
    return folder / "shard.npz"


def _make_recording(folder: Path) -> Path:
    draw = np.random.default_rng(3)
    shapes = {"story_pretrained": (), "story_neg": (2,), "story_control": (2,)}
    path = folder / "mine.npz"
    np.savez_compressed(path, **{name: draw.random((*runs, 3, 5, 3)) for name, runs in shapes.items()})
    return path


def _make_saved(folder: Path) -> Path:
    draw = torch.Generator().manual_seed(5)
    tensors = {f"layers.{n}.{part}": torch.randn(2, 5, 3, generator=draw) for n in (1, 2) for part in ("query", "key")}
    tensors |= {f"layers.{n}.value": torch.randn(2, 5, 7, generator=draw) for n in (1, 2)}
    about = {
        "words": ["a", "dog", "ran"], "tokens": ["<s>", "a", "dog", "ran", "."], "word_of_token": [-1, 0, 1, 2, -1],
        "scale": 0.5, "window": [None, 3], "special": {"cls": "<s>"},
    }  # fmt: skip
    header = {name: json.dumps(value) for name, value in about.items()}
    header |= {"format": "headscope-attention-1", "id": "a", "mask": "causal"}
    save_file(tensors, folder / "a.safetensors", header)
    return folder / "a.safetensors"


def _read_saved(path: Path) -> Any:
    name, text = open_text(path)
    return name, freeze(text), {key: text.read(key) for key in ("layers.1.query", "layers.2.value")}


def _make_classifier(folder: Path) -> Path:
    torch.manual_seed(3)
    write_classifier(MapNetwork(), folder / "classifier-a.safetensors")
    return folder / "classifier-a.safetensors"


def _make_maps(folder: Path) -> Path:
    draw = np.random.default_rng(2)
    maps = [HeadMap(MapName(f"text, {n}", n, n + 1), draw.random((n + 4, n + 4)), (0, n + 3)) for n in (1, 2, 3)]
    write_maps(folder / "maps", maps, {"model": "tiny", "corpus": "texts", "seed": 3})
    write_labels(folder / "maps", read_maps_to_label(folder / "maps").give(1, "block").give(2, "vertical", second=True))
    return folder / "maps" / "maps.npz"


def _beside(name: str) -> Callable[[Path], Path]:
    return lambda folder: _make_maps(folder).with_name(name)


def _read_maps(path: Path) -> Any:
    return read_maps_to_label(path.parent)


_VECTORS = "".join(f"{word} {n}.5 -{n} 1e-{n}\n" for n, word in enumerate(("the", "dog", "saw", "é"), 1))


def _read_vectors(path: Path) -> Any:
    return read_vectors(path, ["dog", "saw", "The"])


def _read_folder(path: Path) -> Any:
    return find_base(str(path.parent))


def _make_generation(folder: Path) -> Path:
    _write("config.json", '{"model_type": "bert"}')(folder)
    return _write("generation_config.json", '{"temperature": 0.5, "do_sample": true, "eos_token_id": [2, 3]}')(folder)


def _make_gguf(folder: Path) -> Path:
    import gguf

    path = folder / "tiny.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_uint32("llama.block_count", 2)
    writer.add_float32("llama.rope.freq_base", 503.0)
    writer.add_array("tokenizer.ggml.tokens", ["a", "b", "c"])
    writer.add_array("tokenizer.ggml.token_type", [1, 2, 3])
    for name in ("rope_freqs.weight", "token_embd.weight"):
        writer.add_tensor(name, np.arange(15, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _read_gguf(path: Path) -> Any:
    try:
        return Metadata.read(path)
    except HeadscopeError:
        raise
    except Exception as error:  # as the conversion does
        raise _explain(path, error) from error


def _make_weights(folder: Path) -> Path:
    return tiny.save(folder / "model") / "model.safetensors"


def _read_weights(path: Path) -> Any:
    return load(path.parent).module


def _make_probed(folder: Path) -> Path:
    np.save(folder / "00-0000.npy", np.random.default_rng(3).random((2, 3, 5, 7)).astype(np.float16))
    return folder / "00-0000.npy"


def _read_manifest(path: Path) -> Any:
    folder = OutputFolder(Contents("the atlas", path.name), path.parent)
    folder.check()
    return path.read_bytes()


_NO_QUESTIONS: Any = None
_PATTERN = {"patterns": {"determiner": {"tokens": [{"POS": "DET"}, {"POS": "NOUN"}], "source": 0, "target": 1}}}

SAMPLES: Mapping[str, Sample] = {
    "head table": Sample(formats.HEAD_TABLE, _make_table, heads.read_table, _craft_netcdf, sealed=True),
    "table of probes": Sample(formats.HEAD_TABLE, _make_probes, open_probes, _craft_netcdf, sealed=True),
    "table of effects": Sample(formats.HEAD_TABLE, _make_effects, open_effects, _craft_netcdf, sealed=True),
    "distances of heads": Sample(formats.HEAD_TABLE, _make_distances, heads.read_table, _craft_netcdf, sealed=True),
    "examples": Sample(formats.EXAMPLES, _make_examples, _read_examples, _craft_netcdf),
    "list of heads": Sample(formats.HEAD_LIST, _make_list, read_heads, craft_text),
    "table of DuoAttention": Sample(
        formats.HEAD_LIST, _write("heads.tsv", "0.5\t0.25\n0.125\t1.0\n1e-1\t0\n"), read_heads, _damage
    ),
    "list of runs": Sample(formats.RUNS, write_runs, lambda path: runs.read(path.parent), craft_text),
    "manifest": Sample(formats.MANIFEST, _make_manifest, _read_manifest, craft_text),
    "checkpoint": Sample(formats.SUMS, _make_sums, load_sums, craft_arrays, sealed=True),
    "shard": Sample(formats.SHARD, _make_shard, ShardSums.read, craft_arrays, sealed=True),
    "recorded scores": Sample(
        formats.RECORDING, _make_recording,
        lambda path: read_recording(STUDIES["zhao2020"], STUDIES["zhao2020"].recording, path)[0], craft_arrays,
    ),
    "saved attention": Sample(formats.SAVED_ATTENTION, _make_saved, _read_saved, craft_tensors),
    "classifier": Sample(formats.CLASSIFIER, _make_classifier, MapClassifier.read, craft_tensors),
    "maps": Sample(formats.MAPS_TO_LABEL, _make_maps, _read_maps, craft_arrays),
    "rows of maps": Sample(formats.MAP_ROWS, _beside("maps.csv"), _read_maps, _damage),
    "labels of maps": Sample(formats.MAP_ROWS, _beside("labels.csv"), _read_maps, _damage),
    "origin of maps": Sample(formats.MAP_ROWS, _beside("maps.json"), _read_maps, craft_text),
    "word vectors": Sample(formats.WORD_VECTORS, _write("glove.txt", _VECTORS), _read_vectors, _damage),
    "word vectors, gzipped": Sample(
        formats.WORD_VECTORS, _write("glove.txt.gz", gzip.compress(_VECTORS.encode() * 9)), _read_vectors,
        _damage_packed,
    ),
    "patterns": Sample(formats.PATTERNS, _write("patterns.json", json.dumps(_PATTERN)), check, craft_text),
    "adapter": Sample(
        formats.ADAPTER, _write("adapter_config.json", '{"base_model_name_or_path": "minilm", "r": 8}'), _read_folder,
        craft_text,
    ),
    "generation": Sample(
        formats.GENERATION, _make_generation, lambda path: read_generation_settings(str(path.parent)), craft_text
    ),
    "GGUF": Sample(formats.GGUF, _make_gguf, _read_gguf, mutate),
    "weights": Sample(formats.WEIGHTS, _make_weights, _read_weights, craft_tensors),
    "maps of probes": Sample(
        formats.PROBED_MAPS, _make_probed, lambda path: Block(_NO_QUESTIONS, path).load_maps(), mutate
    ),
    "state of a training": Sample(
        formats.TRAINER_STATE, _write("checkpoint-5/trainer_state.json", '{"global_step": 5, "epoch": 1.0}'),
        lambda path: read_step(path.parent), craft_text,
    ),
}  # fmt: skip


class Samples:
    """The samples, each written once, to a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._written: dict[str, tuple[Path, bytes, Any]] = {}

    def write(self, name: str) -> tuple[Path, bytes, Any]:
        """Write a sample; return its path, its content, and what is read from it."""
        if name not in self._written:
            folder = self.folder / name
            folder.mkdir()
            path = SAMPLES[name].make(folder)
            self._written[name] = path, path.read_bytes(), freeze(SAMPLES[name].read(path))
        return self._written[name]

    def attempt(self, name: str, chance: random.Random) -> str:
        """Read a broken file: ``refused``, ``same`` if it is read with the same values, or ``other``.

        Raises:
            AssertionError: other values are read from a file with a checksum.
        """
        path, content, expected = self.write(name)
        sample = SAMPLES[name]
        crafted = chance.random() < 0.4
        path.write_bytes((sample.craft if crafted else mutate)(content, chance))
        try:
            with within():
                value = freeze(sample.read(path))
        except HeadscopeError as error:
            check_sentence(error)
            return "refused"
        finally:
            path.write_bytes(content)
        if value == expected:
            return "same"
        if value is None:  # of a checkpoint: it is incomplete, and no training goes on from it
            return "refused"
        assert crafted or not sample.sealed, f"{name}: other numbers are read than were written"
        return "other"
