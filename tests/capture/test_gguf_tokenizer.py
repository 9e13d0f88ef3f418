"""The tokens of a text are those of the tokenizer that a GGUF file was written from, or the file is refused."""

import json
from pathlib import Path

import pytest
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import AutoTokenizer, PreTrainedTokenizerFast

import gguf_files
from headscope.capture.open.loading import load, source
from headscope.errors import ModelError

SIZE = 600
ADVICE = "give the model's hub id, or a folder with config.json, weights and tokenizer."
TEXTS = (
    "CAN'T can't it's IT'S we'LL we'll don't!\nnew",
    "12345 1999 3.14159 x86 a1b2 20 200 2000",
    "a\n\n  b\t c \r\n\r\n   d\n e ",
    "foo.bar(x)==!= ... .pdf (see.this) x=-1; $5 + 10% = ?",
    "naïve Müller cafe\u0301 Straße ΑΒΓδε ЖжЗ",
    "HelloWorld Hello123world iPhone McDonald's JSONParser",
    "中文字、テキスト。 한국어 (abc)中文abc",
    "  two  spaces   here",
    "a µm b µg c ªb d ªc e ² f ½ 2² g ¹ h",  # numbers whose first byte is also that of letters
)

digits, whole = pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)
to_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)


def split(expression: str) -> pre_tokenizers.PreTokenizer:
    return pre_tokenizers.Split(Regex(expression), "isolated")


GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)
QWEN2 = LLAMA3.replace("{1,3}", "")
QWEN35 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)
TEKKEN = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
GPT4O = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
LATIN = split(r"\s?[\p{Lu}\p{Ll}\p{Lt}]+")
PUNCTUATION = split(r"\s?[!-/:-~！-／：-～‘-‟　-。]+")
HAN = split("[一-龥ࠀ-一가-퟿]+")

# As in the tokenizer.json of a model with each.
OWN: dict[str, list[pre_tokenizers.PreTokenizer]] = {
    "gpt-2": [whole],
    "mpt": [whole],
    "smollm": [digits, whole],
    "starcoder": [digits, whole],
    "llama-bpe": [split(LLAMA3), to_bytes],
    "smaug-bpe": [split(LLAMA3), to_bytes],
    "stablelm2": [split(QWEN2), to_bytes],
    "qwen2": [split(QWEN2), to_bytes],
    "qwen35": [split(QWEN35), to_bytes],
    "tekken": [split(TEKKEN), to_bytes],
    "gpt-4o": [split(GPT4O), to_bytes],
    "deepseek-llm": [split(r"[\r\n]"), LATIN, PUNCTUATION, split(r"\s+$"), HAN, digits, to_bytes],
    "deepseek-coder": [split(r"[\r\n]"), split(r"\s?\p{L}+"), split(r"\s?\p{P}+"), HAN, digits, to_bytes],
    "falcon": [
        pre_tokenizers.Punctuation("contiguous"),
        whole,
        pre_tokenizers.Digits(),
        split("[0-9][0-9][0-9]"),
    ],
    "default": [split(r"[\p{P}\$\+<=>\^~\|]+"), split(GPT2), split(r"\p{N}+"), split("[0-9]{3}"), to_bytes],
    "bloom": [split(" ?[^(\\s|[.,!?…。，、।۔،])]+"), to_bytes],
}
COMPOSED = ("mpt", "qwen2", "qwen35")
WHOLE_TOKENS = ("llama-bpe", "tekken")


def train(pre: str) -> PreTrainedTokenizerFast:
    """A tokenizer with this pre-tokenizer; it knows what often stands in the texts above."""
    built = Tokenizer(models.BPE(ignore_merges=pre in WHOLE_TOKENS))
    built.normalizer = normalizers.NFC() if pre in COMPOSED else None
    built.pre_tokenizer = pre_tokenizers.Sequence(OWN[pre])
    built.decoder = decoders.ByteLevel()
    special = ["<s>", "</s>", "<pad>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=SIZE, special_tokens=special, initial_alphabet=alphabet, show_progress=False, min_frequency=1
    )
    built.train_from_iterator(TEXTS, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=built, bos_token="<s>", eos_token="</s>", pad_token="<pad>")


def write(path: Path, tokenizer: PreTrainedTokenizerFast, pre: str | None, **keys: bool | None) -> Path:
    module, _ = gguf_files.make({"qwen2": "qwen2", "qwen35": "qwen3_5"}.get(pre, "llama"))
    module.resize_token_embeddings(SIZE, mean_resizing=False)
    named = {f"tokenizer.ggml.{key}": value for key, value in keys.items()}
    return gguf_files.write(path, module, tokenizer, pre=pre, keys=named)


def read(file: Path) -> PreTrainedTokenizerFast:
    return AutoTokenizer.from_pretrained(source(str(file)))


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("HEADSCOPE_CACHE", str(tmp_path / "cache"))


FIRST = ("smollm", "qwen35", "llama-bpe", "qwen2", "stablelm2", "deepseek-llm", "falcon")


@pytest.mark.parametrize("pre", [pre if pre in FIRST else pytest.param(pre, marks=pytest.mark.full) for pre in OWN])
def test_tokens_are_those_of_the_tokenizer_it_was_written_from(tmp_path, pre) -> None:
    own = train(pre)
    tokenizer = read(write(tmp_path / "tiny.gguf", own, pre, add_bos_token=False))
    assert [tokenizer(text)["input_ids"] for text in TEXTS] == [own(text)["input_ids"] for text in TEXTS]


def test_another_pre_tokenizer_would_be_noticed(tmp_path) -> None:
    own = train("stablelm2")
    tokenizer = read(write(tmp_path / "tiny.gguf", own, "gpt-2", add_bos_token=False))
    assert [tokenizer(text)["input_ids"] for text in TEXTS] != [own(text)["input_ids"] for text in TEXTS]


def test_a_piece_that_is_a_token_stays_one(tmp_path) -> None:
    """Also if no merge leads to it, as with Llama 3."""
    own = train("llama-bpe")
    content = json.loads(own.backend_tokenizer.to_str())
    content["model"]["vocab"]["Ġxylophone"] = len(own)
    own = PreTrainedTokenizerFast(tokenizer_object=Tokenizer.from_str(json.dumps(content)), **own.special_tokens_map)
    tokenizer = read(write(tmp_path / "tiny.gguf", own, "llama-bpe", add_bos_token=False))
    assert tokenizer.tokenize("a xylophone") == ["a", "Ġxylophone"]


@pytest.mark.parametrize(
    ("pre", "begins", "first"), [("llama-bpe", None, 0), ("llama-bpe", False, 85), ("smollm", None, 85)]
)
def test_texts_begin_as_declared_or_as_is_usual(tmp_path, pre, begins, first) -> None:
    tokenizer = read(write(tmp_path / "tiny.gguf", train(pre), pre, add_bos_token=begins))
    assert tokenizer("x")["input_ids"][0] == (first and tokenizer.vocab["x"])


@pytest.mark.parametrize("architecture", ["gpt2", "starcoder2"])
def test_an_older_file_has_the_pre_tokenizer_of_its_architecture(tmp_path, architecture) -> None:
    file = gguf_files.write(tmp_path / "tiny.gguf", *gguf_files.make(architecture), pre=None)
    kinds = [
        step["type"] for step in json.loads(read(file).backend_tokenizer.to_str())["pre_tokenizer"]["pretokenizers"]
    ]
    assert kinds == (["Split", "ByteLevel"] if architecture == "gpt2" else ["Split", "Split", "ByteLevel"])


# ------------------------------------------------------------------ refused


def refuse(file: Path) -> str:
    with pytest.raises(ModelError) as refused:
        source(str(file))
    return str(refused.value)


def test_a_pre_tokenizer_that_is_not_known_is_refused(tmp_path) -> None:
    file = gguf_files.write(tmp_path / "tiny.gguf", *gguf_files.make("llama"), pre="superbpe")
    assert refuse(file) == (
        f"the GGUF file {str(file)!r} declares tokenizer.ggml.pre = 'superbpe', and headscope does not know where that "
        f"splits a text; {ADVICE}"
    )
    file = gguf_files.write(tmp_path / "tiny.gguf", *gguf_files.make("llama"), pre=None)
    assert refuse(file) == (
        f"the GGUF file {str(file)!r} declares no tokenizer.ggml.pre, so that it is not known where its tokenizer "
        f"splits a text; {ADVICE}"
    )


def test_a_pre_tokenizer_that_transformers_replaces_by_another_is_refused(tmp_path) -> None:
    """All models of the type qwen2 have the tokenizer of Qwen2."""
    file = gguf_files.write(tmp_path / "tiny.gguf", *gguf_files.make("qwen2"), pre="gpt-2")
    assert refuse(file) == (
        f"the GGUF file {str(file)!r} declares tokenizer.ggml.pre = 'gpt-2', which would get lost on the way to "
        f"transformers, and other attention would be measured; {ADVICE}"
    )


@pytest.mark.parametrize(("architecture", "spaced"), [("llama", True), ("llama", None), ("gemma2", False)])
def test_a_space_before_a_text_is_that_of_sentencepiece(tmp_path, architecture, spaced) -> None:
    keys = {"tokenizer.ggml.add_space_prefix": spaced, "tokenizer.ggml.unknown_token_id": 2}
    model = gguf_files.make(architecture)
    file = gguf_files.write(tmp_path / "tiny.gguf", *model, pre="default", keys=keys, sentencepiece=True)
    assert (load(file).tokenizer.tokenize("dog")[0][0] == "▁") == (spaced is not False)


def test_a_space_that_transformers_would_put_before_a_text_is_refused(tmp_path) -> None:
    keys = {"tokenizer.ggml.add_space_prefix": False}
    model = gguf_files.make("llama")
    file = gguf_files.write(tmp_path / "tiny.gguf", *model, pre="default", keys=keys, sentencepiece=True)
    assert refuse(file) == (
        f"the GGUF file {str(file)!r} declares tokenizer.ggml.add_space_prefix = False, which would get lost on the "
        f"way to transformers, and other attention would be measured; {ADVICE}"
    )
