"""What files declare is looked at before room is made for it: sentences on bombs, links, brackets and folders."""

import gzip
import json
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import h5py
import numpy as np
import pytest

from headscope.errors import HeadscopeError, ModelError
from headscope.files import explain_refusal, reading
from headscope.guards.formats import HEAD_LIST, MOST_PACKED, UNPACKED, is_too_much, read_bytes
from headscope.guards.gguf import check_gguf
from mutations import within
from mutations.files import SAMPLES, Samples

MEGABYTES = 120
"""More than broken files may take beside what is imported; each asks for 200 or more."""


@pytest.fixture
def samples(tmp_path: Path) -> Samples:
    return Samples(tmp_path)


def refuse(name: str, path: Path) -> str:
    with pytest.raises(HeadscopeError) as refused:
        SAMPLES[name].read(path)
    return str(refused.value)


def test_a_packed_file_holds_so_much_at_most() -> None:
    assert not is_too_much(UNPACKED, 1)
    assert is_too_much(UNPACKED + 1, 1)
    assert not is_too_much(MOST_PACKED * 10**7, 10**7)
    assert is_too_much(MOST_PACKED * 10**7 + 1, 10**7)


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "heads.json"
    with path.open("wb") as file:
        file.truncate(16_000_001)
    with pytest.raises(HeadscopeError) as refused:
        read_bytes(path, HEAD_LIST)
    assert str(refused.value) == (
        f"{path} has 16,000,001 bytes, and a list of heads has 16,000,000 at most; give a file that is one."
    )


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(HeadscopeError) as refused, reading(tmp_path):
        pass
    assert str(refused.value) == f"{tmp_path} is a folder, and a file is wanted; name one in it."


@pytest.mark.parametrize("kind", ["external link", "soft link", "external storage", "scale", "axes"])
def test_examples_read_no_other_file_and_no_other_numbers(samples: Samples, tmp_path: Path, kind: str) -> None:
    path, content, _ = samples.write("examples")
    path.write_bytes(content)
    with h5py.File(path, "r+") as file:
        name, array = "encoder_weight", file["encoder_weight"]
        if kind == "scale":
            array.attrs["scale_factor"] = 2.0
        elif kind == "axes":
            shape, attributes = array.shape, dict(array.attrs)
            del file[name]
            other = file.create_dataset(name, (shape[0], shape[1], shape[2] - 1), dtype="u1")
            other.attrs["DIMENSION_LIST"] = attributes["DIMENSION_LIST"]
        elif kind == "external storage":
            del file[name]
            (tmp_path / "secret").write_bytes(bytes(1000))
            file.create_dataset(name, (1000,), dtype="u1", external=[(str(tmp_path / "secret"), 0, 1000)])
        else:
            del file[name]
            file[name] = h5py.SoftLink("/none") if kind == "soft link" else h5py.ExternalLink("/dev/zero", "/")
    assert refuse("examples", path) == f"{path} is damaged or incomplete; run `headscope atlas` again."


def test_examples_that_ask_for_too_much(samples: Samples) -> None:
    path, _, _ = samples.write("examples")
    with h5py.File(path, "r+") as file:
        file.create_dataset("more", (4_800_000_000,), dtype="u1", chunks=(1000,))
    assert refuse("examples", path) == (
        f"{path} claims to hold 4.8 GB, which {path.stat().st_size:,} bytes cannot; run `headscope atlas` again."
    )


def test_a_link_in_place_of_the_sums_is_not_followed(samples: Samples) -> None:
    path, content, _ = samples.write("head table")
    path.write_bytes(content[:-48])
    with h5py.File(path, "r+") as file:
        del file["sums"]
        file["sums"] = h5py.ExternalLink("/dev/zero", "/")
    assert refuse("head table", path) == f"{path} is damaged or incomplete; copy it again, or measure again."


def test_a_header_that_is_longer_than_its_file(samples: Samples) -> None:
    path, content, _ = samples.write("saved attention")
    path.write_bytes((2**62).to_bytes(8, "little") + content[8:])
    assert refuse("saved attention", path) == (
        f"the header of {path} claims to have {2**62:,} bytes, and the file has {len(content):,}, of which "
        "16,000,000 at most are a header; save it again."
    )


def test_a_header_with_deep_brackets(samples: Samples) -> None:
    path, content, _ = samples.write("saved attention")
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    header["__metadata__"]["scale"] = "[" * 5000
    changed = json.dumps(header).encode()
    path.write_bytes(len(changed).to_bytes(8, "little") + changed + content[8 + length :])
    assert refuse("saved attention", path) == (
        f"the header of {path} says {'[' * 200} ... for `scale`; give a number, or a list of 2, one for each layer."
    )


ROWS = {
    "a field that is too long": ("labels.csv", "block", "x" * 140_000, (
        "{path}:2 cannot be read as a row (field larger than field limit (131072)); the columns are map, document, "
        "layer, head, label, second.")),
    "a separator that is no number": ("maps.csv", "0 4", "0 x", (
        "{path}:2: separators is '0 x'; it must be positions of tokens from 0 to 4, in their order with spaces "
        "between them.")),
    "a separator behind the text": ("maps.csv", "0 4", "-5 9999", (
        "{path}:2: separators is '-5 9999'; it must be positions of tokens from 0 to 4, in their order with spaces "
        "between them.")),
    "a number of another script": ("maps.csv", "1,2,5", "1,٢,5", (
        "{path}:2: head is '٢'; it must be a whole number.")),
}  # fmt: skip


@pytest.mark.parametrize("case", ROWS)
def test_rows_of_maps(samples: Samples, case: str) -> None:
    name, old, new, sentence = ROWS[case]
    path = samples.write("maps")[0].with_name(name)
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    assert refuse("maps", path) == sentence.format(path=path)


@pytest.mark.parametrize("value", [np.nan, -0.5, 2.0])
def test_weights_of_maps_are_shares(samples: Samples, value: float) -> None:
    path, _, _ = samples.write("maps")
    with np.load(path) as stored:
        arrays = dict(stored)
    arrays["map-2"][1, 1] = value
    np.savez_compressed(path, **arrays)
    assert refuse("maps", path) == (
        f"{path.with_name('maps.csv')}:3: map 2 in maps.npz has values that are no weights, which are from 0 to 1; the "
        "folder is damaged, make it anew."
    )


def test_a_long_line_and_a_bomb_of_lines(samples: Samples) -> None:
    path, _, _ = samples.write("word vectors, gzipped")
    advice = "give word vectors as GloVe has them, plain or .gz."
    path.write_bytes(gzip.compress(b"the 1 2\n" + b"1" * 10**7))
    assert refuse("word vectors, gzipped", path) == f"{path}:2 has a line of more than 1,000,000 bytes; {advice}"
    path.write_bytes(gzip.compress((b"xyz " + b"1" * 900_000 + b"\n") * 72, 9))
    sentence = refuse("word vectors, gzipped", path)
    assert sentence.endswith(f"claims to hold 0.1 GB, which {path.stat().st_size:,} bytes cannot; {advice}")


def test_a_gguf_file_that_declares_numbers_behind_its_end(samples: Samples) -> None:
    path, content, _ = samples.write("GGUF")
    place = content.index(b"token_type") + len(b"token_type") + 8
    path.write_bytes(content[:place] + (2**50).to_bytes(8, "little") + content[place + 8 :])
    assert refuse("GGUF", path) == (
        f"the GGUF file {str(path)!r} is damaged or incomplete (its header ends after the end of the "
        "file); download it again."
    )


ENDLESS = {
    "keys": ((0, 2**60, b""), "it has 1,152,921,504,606,846,976 keys"),
    "tensors": ((2**60, 0, b""), "its header is longer than 48,000,000 bytes"),
    "texts": ((0, 1, struct.pack("<Q1sIIQ", 1, b"a", 9, 8, 2**60)), "its header is longer than 48,000,000 bytes"),
}


@pytest.mark.parametrize("case", ENDLESS)
def test_a_gguf_file_of_zeros_is_not_read_to_its_end(tmp_path: Path, case: str) -> None:
    (tensors, keys, header), reason = ENDLESS[case]
    path = tmp_path / "zeros.gguf"
    with path.open("wb") as file:
        file.write(b"GGUF" + struct.pack("<IQQ", 3, tensors, keys) + header)
        file.truncate(10**9)
    with within(60), pytest.raises(ModelError) as refused:
        check_gguf(path)
    assert f"({reason})" in str(refused.value)


def test_a_table_of_thousands_of_arrays_is_refused(samples: Samples) -> None:
    path, content, _ = samples.write("head table")
    path.write_bytes(content[:-48])
    with h5py.File(path, "r+") as file:
        for number in range(2001):
            file[f"x{number}"] = 0.0
    assert refuse("head table", path) == f"{path} is damaged or incomplete; copy it again, or measure again."


def test_weights_of_a_classifier_are_finite(samples: Samples) -> None:
    path, content, _ = samples.write("classifier")
    path.write_bytes(content[:-2000] + b"\x00\x7e" * 1000)
    assert refuse("classifier", path) == (
        f"{path} holds no weights of a map classifier; give a file that `headscope patterns --labels` wrote, such as "
        "classifier.safetensors."
    )


def test_what_the_system_refuses_is_a_sentence() -> None:
    full = explain_refusal(OSError(28, "No space left on device", "a.nc"))
    assert str(full) == (
        "a.nc could not be written (No space left on device); free some space or choose another place."
    )
    long = explain_refusal(OSError(36, "File name too long", "a"))
    assert str(long) == "a cannot be read or written (File name too long); check the name and whose it is."
    assert explain_refusal(ConnectionResetError(104, "Connection reset by peer")) is None


def test_printing_to_a_full_disk_is_a_sentence() -> None:
    code = "import sys; sys.argv = ['headscope', 'list']; from headscope.cli import main; main()"
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([sys.executable, "-c", code], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    sentence = "what is printed could not be written (No space left on device); free some space or print it elsewhere."
    assert (done.returncode, done.stderr) == (2, f"headscope: {sentence}\n")


MEASURE = """
import resource, sys
from pathlib import Path
from headscope.errors import HeadscopeError
from headscope.examples import read_examples
from headscope.heads import read_table
from headscope.learn.map_labels import read_maps_to_label
from headscope.learn.word_vectors import read_vectors
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1000
before = peak()
table, examples, maps, vectors = map(Path, sys.argv[1:])
for read in (
    lambda: read_table(table), lambda: read_examples(examples), lambda: read_maps_to_label(maps.parent),
    lambda: read_vectors(vectors, ["dog"]),
):
    try:
        read()
    except HeadscopeError:
        print("refused")
print(peak() - before)
"""


@pytest.mark.full
def test_no_bomb_takes_much_memory(samples: Samples) -> None:
    table, content, _ = samples.write("head table")
    table.write_bytes(content[:-48])
    examples, maps = samples.write("examples")[0], samples.write("maps")[0]
    for path in (table, examples):
        with h5py.File(path, "r+") as file:
            file.create_dataset("more", (900_000_000,), dtype="u1", chunks=(10**6,))
    with zipfile.ZipFile(maps, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (25000000,), }".ljust(117) + b"\n"
        with archive.open("map-1.npy", "w") as member:
            member.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
            for _ in range(200):
                member.write(bytes(10**6))
    vectors = samples.write("word vectors, gzipped")[0]
    with gzip.open(vectors, "wb", compresslevel=1) as file:
        for _ in range(200):
            file.write(b"1" * 10**6)
    paths = map(str, (table, examples, maps, vectors))
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, *paths], capture_output=True, text=True, check=True, timeout=100
    )
    *results, more = done.stdout.split()
    assert results == ["refused"] * 4
    assert int(more) < MEGABYTES
