"""Folders and files of models in formats that transformers does not load: one sentence, and nothing is downloaded."""

import shutil
from pathlib import Path

import pytest

import headscope
import tiny
from headscope.capture.model import model_names
from headscope.capture.model.model_names import check_name
from headscope.errors import ModelError

HAS_NONE = "the folder '{folder}' has no weights that transformers loads"
EXPORTED = "which has no attention to observe; give the hub id or the folder of the model that was exported."
JOIN = "with `llama-gguf-split --merge FIRST-PART JOINED.gguf`, and give the joined file."


@pytest.fixture(autouse=True)
def _no_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: str) -> bool:
        raise AssertionError(f"the hub was asked for {name}")

    monkeypatch.setattr(model_names, "_is_at_hub", fail)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a model without its weights."""
    path = tiny.save(tmp_path / "model")
    for file in path.glob("*.safetensors"):
        file.unlink()
    return path


def write(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(b"GGUF")


def refuse(path: Path) -> str:
    with pytest.raises(ModelError) as refused:
        check_name(str(path))
    return str(refused.value)


@pytest.mark.parametrize(
    ("files", "sentence"),
    [
        (["a.gguf"], ", and GGUF files are given by their own names; give the file itself: '{folder}/a.gguf'."),
        (["b.Q8_0.GGUF", "b.Q4_0.gguf"], ", and GGUF files are given by their own names; give one of its 2 GGUF files: "
         "'{folder}/b.Q4_0.gguf'."),
        (["model.onnx", "model.onnx_data"], ", but those of an export to ONNX (model.onnx), " + EXPORTED),
        (["onnx/model_int8.onnx", "training_args.bin"], ", but those of an export to ONNX (onnx/model_int8.onnx), "
         + EXPORTED),
        (["openvino_model.xml", "openvino_model.bin", "openvino_tokenizer.bin"],
         ", but those of an export to OpenVINO (openvino_model.xml), " + EXPORTED),
        (["tf_model.h5"], ", but those of an export to TensorFlow (tf_model.h5), " + EXPORTED),
        (["flax_model.msgpack"], ", but those of an export to Flax (flax_model.msgpack), " + EXPORTED),
    ],
)  # fmt: skip
@pytest.mark.parametrize("bare", [False, True])
def test_a_folder_of_another_format_is_named(folder: Path, files: list[str], sentence: str, bare: bool) -> None:
    if bare:
        shutil.rmtree(folder)
        folder.mkdir()
    write(folder, *files)
    assert refuse(folder) == (HAS_NONE + sentence).format(folder=folder)
    with pytest.raises(ModelError, match="has no weights that transformers loads"):
        headscope.load(folder)


def test_with_weights_beside_it_another_format_is_no_matter(tmp_path: Path) -> None:
    path = tiny.save(tmp_path / "model")
    write(path, "model.onnx", "a.gguf", "tf_model.h5")
    assert len(headscope.load(path).layers) == 1


def test_a_folder_with_nothing_is_left_to_the_loader(folder: Path) -> None:
    check_name(str(folder))
    with pytest.raises(ModelError, match=r"^no model could be loaded from"):
        headscope.load(folder)


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (["m-00001-of-00003.gguf"], "part 1 of 3 of a split GGUF file, of which 2 are missing here, and one whole file "
         f"is read; download them, and join all {JOIN}"),
        (["m-00002-of-00003.gguf", "m-00001-of-00003.gguf"], "part 2 of 3 of a split GGUF file, of which 1 is missing "
         f"here, and one whole file is read; download them, and join all {JOIN}"),
        (["m-00001-of-00002.GGUF", "m-00002-of-00002.GGUF"], "part 1 of 2 of a split GGUF file, and one whole file is "
         f"read; join all {JOIN}"),
    ],
)  # fmt: skip
def test_a_part_of_a_gguf_file_is_named(tmp_path: Path, names: list[str], sentence: str) -> None:
    write(tmp_path, *names)
    assert refuse(tmp_path / names[0]) == f"'{tmp_path / names[0]}' is {sentence}"


def test_a_name_of_headscope_is_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "minilm").mkdir()
    write(tmp_path / "minilm", "a.gguf")
    monkeypatch.chdir(tmp_path)
    check_name("minilm")


def test_a_part_that_is_the_whole_is_read(tmp_path: Path) -> None:
    write(tmp_path, "m-00001-of-00001.gguf")
    check_name(str(tmp_path / "m-00001-of-00001.gguf"))


def test_a_part_under_another_name_is_known_by_what_it_declares(tmp_path: Path) -> None:
    gguf = pytest.importorskip("gguf", reason="GGUF files need the extra `gguf`")
    writer = gguf.GGUFWriter(tmp_path / "mine.gguf", "llama")
    writer.add_uint16("split.no", 1)
    writer.add_uint16("split.count", 3)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    with pytest.raises(ModelError, match="is part 2 of 3 of a split GGUF file, and one whole file is read; join all"):
        headscope.load(tmp_path / "mine.gguf")
