"""What identifies a model: each part changed by itself is noticed by whatever joins or continues sums."""

import copy
import io
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import transformers as hf
import xarray as xr
from rich.console import Console
from safetensors.torch import load_file, save_file
from tokenizers import normalizers

import headscope
import tiny
from headscope import HeadscopeError
from headscope.capture.model.hashes import hash_config, hash_tokenizer
from headscope.capture.open.loading import load
from headscope.identity import MODEL_PARTS, name_differences
from headscope.runner.provenance import identify_model
from headscope.view.check_report import print_check
from headscope.view.comparison_report import render_markdown
from headscope.view.comparison_summary import print_comparisons
from interruptions import interrupt_measuring

CORPUS = "grammar:29"


def edit_json(path: Path, **changes: object) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def change_weights(folder: Path) -> None:
    file = folder / "model.safetensors"
    save_file({name: value * 1.01 for name, value in load_file(file).items()}, file, metadata={"format": "pt"})


def change_tokenizer(folder: Path) -> None:
    """Lower-case texts, as the tokenizer of a sister model does."""
    tokenizer = hf.AutoTokenizer.from_pretrained(folder)
    tokenizer.backend_tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.save_pretrained(folder)


CHANGES: dict[str, tuple[Callable[[Path], None], str]] = {
    "weights": (change_weights, "weights_sha256"),
    "number of heads": (lambda folder: edit_json(folder / "config.json", num_attention_heads=7), "config_sha256"),
    "activation": (lambda folder: edit_json(folder / "config.json", hidden_act="relu"), "config_sha256"),
    "tokenizer": (change_tokenizer, "tokenizer_sha256"),
    "limit of the tokenizer": (
        lambda folder: edit_json(folder / "tokenizer_config.json", model_max_length=53), "tokenizer_sha256"
    ),
    "numerical type": (lambda folder: edit_json(folder / "config.json", dtype="float16"), "dtype"),
}  # fmt: skip


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.save(tmp_path_factory.mktemp("original"))


@pytest.fixture(scope="module")
def atlas(original: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("atlas")
    headscope.atlas(original, "grammar:13", out, permutations=0, map_documents=0, examples=0, progress=False)
    return out


@pytest.mark.parametrize("part", CHANGES)
def test_each_part_by_itself_is_refused_by_what_joins_or_continues(
    part: str, original: Path, atlas: Path, tmp_path: Path, monkeypatch
) -> None:
    change, attribute = CHANGES[part]
    other = tiny.save(tmp_path / "other")
    change(other)
    ours, theirs = (identify_model(load(folder)) for folder in (original, other))
    assert [name for name in MODEL_PARTS if ours[name] != theirs[name]] == [attribute]

    shards = [tmp_path / "1.npz", tmp_path / "2.npz"]
    for number, (folder, path) in enumerate(zip((original, other), shards, strict=True), start=1):
        headscope.measure_shard(folder, CORPUS, "surface", f"{number}/2", out=path, progress=False)
    with pytest.raises(HeadscopeError, match=rf"shards of different runs \(they differ in {attribute}"):
        headscope.merge(shards)

    out = tmp_path / "heads.nc"
    interrupt_measuring(monkeypatch, original, CORPUS, out=out, batch_tokens=23)
    with pytest.raises(HeadscopeError, match=rf"left by another run \(its (model, )?{attribute} differ from"):
        headscope.measure(other, CORPUS, "surface", out=out, batch_tokens=23, resume=True)

    with pytest.raises(HeadscopeError) as refused:
        headscope.explore(atlas, model=other, no_browser=True)
    assert re.search(rf", which differs from .* in its {MODEL_PARTS[attribute]}; name the model", str(refused.value))


@pytest.fixture(scope="module")
def before(original: Path) -> xr.Dataset:
    return measure_relations(original)


def measure_relations(folder: Path) -> xr.Dataset:
    return headscope.measure(folder, CORPUS, "relations", permutations=0, progress=False)


def print_lines(show: Callable[[xr.Dataset, Console], None], table: xr.Dataset) -> str:
    lines = io.StringIO()
    show(table, Console(file=lines, width=200))
    return lines.getvalue()


@pytest.mark.parametrize("part", ["weights", "activation", "tokenizer", "numerical type"])
def test_what_compares_two_models_says_in_which_parts_they_differ(part: str, before: xr.Dataset, tmp_path) -> None:
    change, attribute = CHANGES[part]
    other = tiny.save(tmp_path / "other")
    change(other)
    after = measure_relations(other)
    for new, sentence in ((after, f"differ in {MODEL_PARTS[attribute]}."), (before, "are the same.")):
        checked = headscope.check(new, before, every=True, progress=False).table
        assert f"The two models {sentence}" in print_lines(print_check, checked)

    if part != "weights":
        change_weights(other)
        after = measure_relations(other)
    obj = {"relation": "obj", "direction": "dependent_to_head"}
    comparison = headscope.analyse.compare_variable(before, after, variable="relation_accuracy", where=obj)
    sentence = f"differ in weights and {MODEL_PARTS[attribute]}: a change need not come from the weights."
    for text in (
        print_lines(lambda each, console: print_comparisons([each], console), comparison),
        render_markdown([comparison]),
    ):
        assert (sentence in text) == (" differ in weights" in text) == (part != "weights")


def test_what_changes_no_number_is_no_part() -> None:
    module, tokenizer = tiny.make("bert")
    config = copy.deepcopy(module.config)
    config.use_cache, config.id2label, config.architectures = False, {0: "no"}, ["BertForMaskedLM"]
    config._attn_implementation = "eager"
    assert hash_config(config) == hash_config(module.config)
    before = hash_tokenizer(tokenizer)
    tokenizer(["the dog", "a"], padding=True, truncation=True, max_length=3)
    assert hash_tokenizer(tokenizer) == before


@pytest.mark.parametrize("family", ["bert", "bart", "gpt2"])
def test_a_model_is_the_same_in_memory_and_on_disk(family: str, tmp_path: Path) -> None:
    in_memory = identify_model(load(tiny.make(family)))
    on_disk = identify_model(load(tiny.save(tmp_path, family)))
    assert {part for part in MODEL_PARTS if in_memory[part] != on_disk[part]} <= {"weights_sha256", "tokenizer_sha256"}
    assert in_memory["config_sha256"] == on_disk["config_sha256"]


def test_settings_in_memory_count() -> None:
    module, tokenizer = tiny.make("bert")
    changed = copy.deepcopy(tokenizer)
    changed.backend_tokenizer.normalizer = normalizers.Lowercase()
    tables = [headscope.measure((module, each), CORPUS, "surface", progress=False) for each in (tokenizer, changed)]
    assert name_differences(tables[0].attrs, tables[1].attrs) == "tokenizer"
    module.config.layer_norm_eps = 0.1
    table = headscope.measure((module, changed), CORPUS, "surface", progress=False)
    assert name_differences(tables[0].attrs, table.attrs) == "configuration and tokenizer"


def test_a_part_that_an_older_table_does_not_state_is_not_compared() -> None:
    attributes = {"weights_sha256": "a", "dtype": "float32", "config_sha256": "b"}
    assert name_differences(attributes, {"weights_sha256": "a"}) == ""
    assert name_differences({}, attributes) == "weights"
