"""Adapters by PEFT: a folder stands for its model with the adapter in it, and what does not fit is refused."""

import json
from pathlib import Path

import numpy as np
import peft
import pytest
import torch
import transformers as hf
import xarray as xr

import headscope
import tiny
from headscope.capture.open.loading import load
from headscope.commands.model_options import check_model
from headscope.corpora.document import Document
from headscope.errors import HeadscopeError, ModelError

# PEFT asks transformers for what that has renamed.
pytestmark = pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated:FutureWarning")

DOCUMENTS = [Document(str(number), document.words) for number, document in enumerate(tiny.documents(5))]
WANTED = {"r": 3, "target_modules": ["q_proj", "v_proj"], "init_lora_weights": False}


def save_adapter(folder: Path, base: Path, model: type = hf.AutoModel, **settings) -> Path:
    """An adapter with random weights for the model in a folder."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        adapted = peft.get_peft_model(model.from_pretrained(base), peft.LoraConfig(**{**WANTED, **settings}))
    adapted.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.save(tmp_path_factory.mktemp("base"), "llama")


@pytest.fixture(scope="module")
def adapter(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_adapter(tmp_path_factory.mktemp("adapter"), base)


def measure(model) -> xr.Dataset:
    return headscope.measure(model, DOCUMENTS, "surface")


def test_a_folder_is_measured_as_the_merged_model(base: Path, adapter: Path) -> None:
    """PEFT's own merge, of weights and without layers of its own, is the witness."""
    merged = peft.PeftModel.from_pretrained(hf.AutoModel.from_pretrained(base), adapter).merge_and_unload()
    table, expected = measure(adapter), measure((merged, tiny.make("llama")[1]))
    for name in ("mass_first", "mass_previous", "entropy"):
        np.testing.assert_allclose(table[name], expected[name], atol=1e-5)
        assert float(abs(table[name] - measure(base)[name]).max()) > 0.01
    assert table.attrs["adapter_of"] == str(base)
    assert table.attrs["model"] == str(adapter)
    assert table.attrs["weights_sha256"] != load(base).weights_sha256


def test_a_loaded_model_of_peft_is_the_folder(base: Path, adapter: Path) -> None:
    given = peft.PeftModel.from_pretrained(hf.AutoModel.from_pretrained(base), adapter)
    xr.testing.assert_allclose(
        measure((given, tiny.make("llama")[1])).drop_attrs(), measure(adapter).drop_attrs(), atol=1e-6
    )


def test_a_loaded_model_of_peft_says_what_it_was_tuned_from(base: Path, adapter: Path) -> None:
    """As the folder does, by the file of the weights; and by the weights in memory, which a plain model has too."""
    words = tiny.make("llama")[1]
    given = peft.PeftModel.from_pretrained(hf.AutoModel.from_pretrained(base), adapter)
    table, folder = measure((given, words)), measure(adapter)
    assert table.attrs["adapter_of"] == folder.attrs["adapter_of"] == str(base)
    assert table.attrs["model"] == f"adapter of {base}"
    plain = load((hf.AutoModel.from_pretrained(base), words))
    assert table.attrs["adapter_of_sha256"].split() == [plain.weights_sha256, load(base).weights_sha256]
    assert folder.attrs["adapter_of_sha256"] == load(base).weights_sha256
    other = load(load((given, words)), words)
    assert (other.adapter_of, other.adapter_of_sha256) == (str(base), table.attrs["adapter_of_sha256"])


def test_a_loaded_model_of_peft_is_compared_with_what_it_was_tuned_from(base: Path, adapter: Path) -> None:
    given = peft.PeftModel.from_pretrained(hf.AutoModel.from_pretrained(base), adapter)
    expected = headscope.measure(adapter, DOCUMENTS, "similarity")
    for model in ((given, tiny.make("llama")[1]), load(given, tiny.make("llama")[1])):
        table = headscope.measure(model, DOCUMENTS, "similarity")
        np.testing.assert_allclose(table["similarity"], expected["similarity"], atol=1e-5)
        assert table.attrs["before"] == str(base)


def test_the_model_of_an_adapter_with_a_classifier_is_known(base: Path) -> None:
    words, classifier = tiny.make("llama")[1], hf.AutoModelForSequenceClassification
    config = peft.LoraConfig(**{**WANTED, "task_type": "SEQ_CLS"})
    given = peft.get_peft_model(classifier.from_pretrained(base, pad_token_id=2), config)
    plain = load((hf.AutoModel.from_pretrained(base), words))
    for task in (None, "classification"):
        model = load(given, words, task=task)
        assert model.adapter_of == str(base)
        assert model.adapter_of_sha256.split()[0] == plain.weights_sha256


@pytest.mark.parametrize("method", ["merge_and_unload", "unload"])
def test_a_model_out_of_which_the_adapter_was_taken_has_none(base: Path, adapter: Path, method: str) -> None:
    given = peft.PeftModel.from_pretrained(hf.AutoModel.from_pretrained(base), adapter)
    model = load(getattr(given, method)(), tiny.make("llama")[1])
    assert (model.adapter_of, model.adapter_of_sha256, model.name) == ("", "", str(base))


def test_an_adapter_of_a_model_without_a_name_is_known_by_its_weights() -> None:
    module, words = tiny.make("llama")
    plain = load((module, words)).weights_sha256
    model = load(peft.get_peft_model(module, peft.LoraConfig(**WANTED)), words)
    assert (model.adapter_of, model.adapter_of_sha256) == ("", plain)
    assert model.name == "adapter of LlamaModel"


def test_one_call_compares_an_adapter_with_its_model(base: Path, adapter: Path) -> None:
    table = headscope.measure(adapter, DOCUMENTS, ["similarity", "head_distances_before"])
    before = headscope.runner.measure(load(adapter), DOCUMENTS, ["similarity"], before=base)
    np.testing.assert_allclose(table["similarity"], before["similarity"], atol=1e-6)
    assert table.attrs["before"] == str(base)
    assert float(table["similarity"].min()) < 0.999
    # Between two layers of one number; an adapter of the first layer's queries changes that layer already.
    assert float(table["js_distance_before"].max()) > 0


def test_the_weights_of_the_adapter_are_in_its_hash(base: Path, adapter: Path, tmp_path: Path) -> None:
    other = save_adapter(tmp_path / "other", base, r=5)
    assert load(other).weights_sha256 != load(adapter).weights_sha256 == load(adapter).weights_sha256


def test_a_head_that_came_with_the_adapter_is_not_missing(base: Path, tmp_path: Path) -> None:
    kind = {"model": hf.AutoModelForSequenceClassification, "task_type": "SEQ_CLS"}
    trained = save_adapter(tmp_path / "classifier", base, **kind)
    assert load(trained, task="classification").module.num_labels == 2
    plain = save_adapter(tmp_path / "plain", base)
    with pytest.raises(ModelError, match="lacks 1 of the weights that the task classification calls for"):
        load(plain, task="classification")


@pytest.mark.parametrize("family", ["llama", "bert"])
def test_the_adapter_of_a_classifier_is_measured_without_it(tmp_path: Path, family: str) -> None:
    """Merged by PEFT, and then without the classifier."""
    base, names = tiny.save(tmp_path / "base", family), {"llama": ["q_proj"], "bert": ["query"]}[family]
    settings = {"task_type": "SEQ_CLS", "target_modules": names, "model": hf.AutoModelForSequenceClassification}
    folder = save_adapter(tmp_path / "adapter", base, **settings)
    assert json.loads((folder / "adapter_config.json").read_text())["modules_to_save"]
    classifier = settings["model"].from_pretrained(base)
    merged = peft.PeftModel.from_pretrained(classifier, folder).merge_and_unload()
    table, expected = measure(folder), measure((merged, tiny.make(family)[1]))
    np.testing.assert_allclose(table["entropy"], expected["entropy"], atol=1e-5)
    assert float(abs(table["entropy"] - measure(base)["entropy"]).max()) > 0.01


def test_a_tokenizer_of_its_own_is_taken(base: Path, tmp_path: Path) -> None:
    folder = save_adapter(tmp_path / "adapter", base)
    tokenizer = tiny.make("llama")[1]
    tokenizer.model_max_length = 97
    tokenizer.save_pretrained(folder)
    assert load(folder).tokenizer.model_max_length == 97
    assert load(base).tokenizer.model_max_length == 128


def resize(base: Path, folder: Path, **sizes) -> Path:
    """A folder with an adapter of a model of other sizes that names the model in `base`."""
    plan = tiny.FAMILIES["llama"]
    config = hf.LlamaConfig(**{**plan.settings, "vocab_size": tiny.BYTE_VOCABULARY, **sizes})
    hf.LlamaModel(config).save_pretrained(folder / "other")
    save_adapter(folder / "adapter", folder / "other")
    file = folder / "adapter" / "adapter_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"base_model_name_or_path": str(base)}))
    return folder / "adapter"


@pytest.mark.parametrize(
    ("sizes", "reason"),
    [
        ({"num_hidden_layers": 1}, "it lacks 4 weights, such as layers.1.self_attn.q_proj.lora_A.default.weight"),
        ({"num_hidden_layers": 3}, "it has too many 4 weights, such as layers.2.self_attn.q_proj.lora_A"),
        ({"head_dim": 22}, "size"),
    ],
    ids=["fewer layers", "more layers", "wider heads"],
)
def test_an_adapter_for_another_model_is_refused(base: Path, tmp_path: Path, sizes: dict, reason: str) -> None:
    folder = resize(base, tmp_path, **sizes)
    with pytest.raises(ModelError) as refused:
        load(folder)
    said = str(refused.value)
    assert said.startswith(f"the adapter in {str(folder)!r} does not go into the model {str(base)!r} that its ")
    assert reason in said
    assert said.endswith("; give the adapter that was trained for this model, whole, or name its own model there.")


def test_an_adapter_of_another_architecture_is_refused(base: Path, adapter: Path, tmp_path: Path) -> None:
    file = tmp_path / "adapter_config.json"
    content = json.loads((adapter / "adapter_config.json").read_text())
    file.write_text(json.dumps(content | {"base_model_name_or_path": str(tiny.save(tmp_path / "bert"))}))
    with pytest.raises(ModelError, match="does not go into the model"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "does not name the model that the adapter was trained for; write it there as base_model_name_or_path"),
        ("[]", "does not name the model that the adapter was trained for"),
        ('{"base_model_name_or_path": 7}', "does not name the model that the adapter was trained for"),
        ('{"base_model_name_or_path": "/nowhere"}', "is an adapter of the model '/nowhere': there is no folder"),
    ],
    ids=["damaged", "no object", "a number", "no such model"],
)
def test_what_is_wrong_is_said_before_anything_is_loaded(tmp_path: Path, content: str, said: str) -> None:
    (tmp_path / "adapter_config.json").write_text(content)
    with pytest.raises(ModelError) as refused:
        check_model(tmp_path)
    assert said in str(refused.value)


def test_a_name_that_is_too_long_for_a_folder_is_no_adapter() -> None:
    check_model("a" * 1000)


def test_an_adapter_of_an_adapter_is_refused(adapter: Path, tmp_path: Path) -> None:
    (tmp_path / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": str(adapter)}))
    with pytest.raises(ModelError, match="which is one itself; merge that one into its model"):
        check_model(tmp_path)


def test_without_peft_its_name_is_said(adapter: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    find_spec = headscope.capture.model.model_names.importlib.util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "peft" else find_spec(name))
    with pytest.raises(ModelError) as refused:
        check_model(adapter)
    assert str(refused.value) == (
        f'{str(adapter)!r} is an adapter, which needs peft, which is not installed; run pip install "headscope[lora]".'
    )


def test_a_model_without_an_adapter_has_nothing_to_compare(base: Path) -> None:
    with pytest.raises(HeadscopeError, match="add `runs`, or give the folder of an adapter"):
        headscope.measure(base, DOCUMENTS, "similarity")


PROMPTS = {
    "PROMPT_TUNING": peft.PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=3),
    "PREFIX_TUNING": peft.PrefixTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=3),
    "P_TUNING": peft.PromptEncoderConfig(task_type="CAUSAL_LM", num_virtual_tokens=3, encoder_hidden_size=7),
    "CPT": peft.CPTConfig(
        task_type="CAUSAL_LM", cpt_token_ids=[1, 2], cpt_mask=[1, 1], cpt_tokens_type_mask=[1, 1]
    ),
    "ADAPTION_PROMPT": peft.AdaptionPromptConfig(task_type="CAUSAL_LM", adapter_len=3, adapter_layers=1),
}  # fmt: skip


@pytest.mark.parametrize("kind", PROMPTS)
def test_trained_prompts_are_refused_in_memory_and_on_the_disk(base: Path, tmp_path: Path, kind: str) -> None:
    adapted = peft.get_peft_model(hf.AutoModelForCausalLM.from_pretrained(base), PROMPTS[kind])
    adapted.save_pretrained(tmp_path)
    file = tmp_path / "adapter_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"base_model_name_or_path": str(base)}))
    reason = (
        f"is of trained prompts ({kind}), which stand before a text and are tokens of no word of it, and with them "
        "attention is not measured; give an adapter of weights, such as LoRA, or the model without the adapter."
    )
    for model, name in (
        ((adapted, tiny.make("llama")[1]), "the adapter of the loaded model"),
        (tmp_path, f"the adapter in {str(tmp_path)!r}"),
    ):
        with pytest.raises(ModelError) as refused:
            load(model)
        assert str(refused.value) == f"{name} {reason}"
