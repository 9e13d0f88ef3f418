"""The tokenizer that a GGUF file declares, with the pre-tokenizer that it names.

For byte-level BPE, a file holds only the name of its pre-tokenizer, which splits a text before pairs are merged.
llama.cpp knows what each name means; transformers uses GPT-2's pre-tokenizer for many names. This module has the
pre-tokenizers of the models' own tokenizers.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenizers import Regex, normalizers, pre_tokenizers
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from headscope.capture.open.gguf_metadata import ADVICE, Metadata
from headscope.errors import ModelError

_DIGIT, _TRIPLE = r"\p{N}", "[0-9][0-9][0-9]"
_ENGLISH = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_SIGN = r"[^\r\n\p{L}\p{N}]?"
_LLAMA3 = rf"{_ENGLISH}|{_SIGN}\p{{L}}+|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{_SPACES}"
_QWEN2 = rf"{_ENGLISH}|{_SIGN}\p{{L}}+|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|{_SPACES}"
_QWEN35 = _QWEN2.replace(r"\p{L}+", r"[\p{L}\p{M}]+").replace(r"[^\s\p{L}\p{N}]", r"[^\s\p{L}\p{M}\p{N}]")
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_SIGNS = rf" ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_SPACES}"
_TEKKEN = rf"{_SIGN}{_UPPER}*{_LOWER}+|{_SIGN}{_UPPER}+{_LOWER}*|\p{{N}}|{_SIGNS}"
_GPT4O = rf"{_SIGN}{_UPPER}*{_LOWER}+{_ENGLISH}?|{_SIGN}{_UPPER}+{_LOWER}*{_ENGLISH}?|\p{{N}}{{1,3}}|{_SIGNS}"
_BLOOM = " ?[^(\\s|[.,!?…。，、।۔،])]+"
_HAN = r"[\x{4E00}-\x{9FA5}\x{800}-\x{4E00}\x{AC00}-\x{D7FF}]+"

_CASED = (  # the letters that DeepSeek LLM keeps together, as ranges of code points
    "41-5A 61-7A B5 C0-D6 D8-F6 F8-1BA 1BC-1BF 1C4-293 295-2AF 370-373 376-377 37B-37D 37F 386 388-38A 38C 38E-3A1 "
    "3A3-3F5 3F7-481 48A-52F 531-556 10A0-10C5 13A0-13F5 13F8-13FD 1C90-1CBA 1CBD-1CBF 1D00-1D2B 1D6B-1D77 1D79-1D9A "
    "1E00-1F15 1F18-1F1D 1F20-1F45 1F48-1F4D 1F50-1F57 1F59 1F5B 1F5D 1F5F-1F7D 1F80-1FB4 1FB6-1FBC 1FBE 1FC2-1FC4 "
    "1FC6-1FCC 1FD0-1FD3 1FD6-1FDB 1FE0-1FEC 1FF2-1FF4 1FF6-1FFC 2102 2107 210A-2113 2115 2119-211D 2124 2126 2128 "
    "212A-212D 212F-2134 2139 213C-213F 2145-2149 214E 2183-2184 2C00-2C7B 2C7E-2CE4 2CEB-2CEE 2CF2-2CF3 A640-A66D "
    "A680-A69B A722-A76F A771-A787 A78B-A78E AB70-ABBF FB00-FB06 FB13-FB17 FF21-FF3A FF41-FF5A 10400-1044F "
    "104B0-104D3 104D8-104FB 10C80-10CB2 10CC0-10CF2 118A0-118DF 1E900-1E943"
)
_CASED_WORD = r"\s?[\x{" + _CASED.replace("-", r"}-\x{").replace(" ", r"}\x{") + "}]+"
_WIDE_SIGNS = r"\s?[!-/:-~\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF5E}\x{2018}-\x{201F}\x{3000}-\x{3002}]+"


@dataclass(frozen=True)
class Splitting:
    """The rules by which a text is split before byte-level BPE.

    Attributes:
        expressions: Regular expressions, applied one after the other; each match becomes a piece of its own.
        keeps_tokens: True if a piece that is a token stays one token, whatever the merges would give.
        begins: True if texts begin with a special token, unless the file says otherwise.
        composes: True if letters and their accents are composed (NFC).
    """

    expressions: tuple[str, ...]
    keeps_tokens: bool = False
    begins: bool = False
    composes: bool = False


_LLAMA3_SPLITTING = Splitting((_LLAMA3,), keeps_tokens=True, begins=True)

SPLITTINGS = {
    "default": Splitting((r"[\p{P}$+<=>^~|]+", _GPT2, r"\p{N}+", _TRIPLE)),
    **dict.fromkeys("gpt-2 phi-2 jais trillion granite-docling exaone4 mellum a.x-4.0".split(), Splitting((_GPT2,))),
    **dict.fromkeys("mpt olmo".split(), Splitting((_GPT2,), composes=True)),
    **dict.fromkeys("smollm starcoder refact codeshell exaone minerva-7b".split(), Splitting((_DIGIT, _GPT2))),
    "command-r": Splitting((_DIGIT, _GPT2), composes=True),
    **dict.fromkeys("llama-bpe llama3 llama-v3 falcon3 lfm2 midm-2.0".split(), _LLAMA3_SPLITTING),
    **dict.fromkeys("dbrx smaug-bpe chatglm-bpe glm4".split(), Splitting((_LLAMA3,))),
    **dict.fromkeys("qwen2 deepseek-r1-qwen".split(), Splitting((_QWEN2,), composes=True)),
    "qwen35": Splitting((_QWEN35,), composes=True),
    **dict.fromkeys("stablelm2 megrez kormo hunyuan solar-open".split(), Splitting((_QWEN2,))),
    "tekken": Splitting((_TEKKEN,), keeps_tokens=True, begins=True),
    **dict.fromkeys("gpt-4o llama4 kanana2".split(), Splitting((_GPT4O,))),
    "deepseek-llm": Splitting((r"[\r\n]", _CASED_WORD, _WIDE_SIGNS, r"\s+$", _HAN, _DIGIT)),
    "deepseek-coder": Splitting((r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", _HAN, _DIGIT)),
    "falcon": Splitting((r"[\p{P}$+<=>^`~|]+", _GPT2, _TRIPLE)),
    **dict.fromkeys("bloom gpt3-finnish poro-chat".split(), Splitting((_BLOOM,))),
    "viking": Splitting((_BLOOM, _DIGIT)),
}
"""The rules for splitting a text, by the name of the pre-tokenizer in a GGUF file."""

_OLDER = {"gpt2": "gpt-2", "falcon": "falcon", "starcoder2": "starcoder", "bloom": "bloom", "qwen2": "qwen2"}
"""The name of the pre-tokenizer of each architecture whose models share one tokenizer, for older files without it."""


def read_tokenizer(metadata: Metadata, empty: Path) -> Any:
    """Read the tokenizer of a GGUF file.

    Args:
        metadata: The keys of the file.
        empty: An empty folder for transformers, which would use other files in the folder as the model's.

    Raises:
        ModelError: The way in which the tokenizer splits a text is unknown.
    """
    file = str(metadata.file)
    if metadata.tokenizer.get("model") != "gpt2":
        return AutoTokenizer.from_pretrained(empty, gguf_file=file)
    splitting = _find_splitting(metadata)
    tokenizer = PreTrainedTokenizerFast.from_pretrained(empty, gguf_file=file)
    backend = tokenizer.backend_tokenizer
    backend.normalizer = normalizers.NFC() if splitting.composes else None
    steps = [pre_tokenizers.Split(Regex(expression), "isolated") for expression in splitting.expressions]
    to_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    backend.pre_tokenizer = pre_tokenizers.Sequence([*steps, to_bytes])
    model = backend.model
    model.ignore_merges = splitting.keeps_tokens
    backend.model = model
    begins = splitting.begins and "bos_token_id" in metadata.tokenizer
    tokenizer.add_bos_token = metadata.tokenizer.get("add_bos_token", begins)
    return tokenizer


def check_saved_tokenizer(metadata: Metadata, tokenizer: Any, folder: Path) -> None:
    """Raise an error if a tokenizer splits texts differently after transformers has saved and loaded it."""
    saved = AutoTokenizer.from_pretrained(folder)
    if metadata.tokenizer.get("model") == "gpt2":
        if _describe(saved) != _describe(tokenizer):
            raise metadata.refuse_declared("tokenizer.ggml.pre", metadata.tokenizer.get("pre"))
    elif "add_space_prefix" in metadata.tokenizer and _is_spaced(saved) != metadata.tokenizer["add_space_prefix"]:
        raise metadata.refuse_declared("tokenizer.ggml.add_space_prefix", metadata.tokenizer["add_space_prefix"])


def _find_splitting(metadata: Metadata) -> Splitting:
    name = metadata.tokenizer.get("pre") or _OLDER.get(metadata.architecture)
    if not name:
        raise ModelError(
            f"the GGUF file {str(metadata.file)!r} declares no tokenizer.ggml.pre, so that it is not known where its "
            f"tokenizer splits a text; {ADVICE}."
        )
    if name not in SPLITTINGS:
        raise ModelError(
            f"the GGUF file {str(metadata.file)!r} declares tokenizer.ggml.pre = {name!r}, and headscope does not know "
            f"where that splits a text; {ADVICE}."
        )
    return SPLITTINGS[name]


def _describe(tokenizer: Any) -> tuple[Any, Any]:
    backend = json.loads(tokenizer.backend_tokenizer.to_str())
    return backend["pre_tokenizer"], backend["model"]["ignore_merges"]


def _is_spaced(tokenizer: Any) -> bool:
    backend = json.loads(tokenizer.backend_tokenizer.to_str())
    steps = json.dumps([backend["normalizer"], backend["pre_tokenizer"]])
    return '"Prepend"' in steps or ('"Metaspace"' in steps and '"never"' not in steps)
