"""A small tokenizer of every fast class of transformers, built from the class's own defaults, without a network.

A class brings its rules (how it normalises, splits and frames a text) and is given a vocabulary: byte pairs that bridge
characters, pieces behind `▁`, word pieces, or byte pairs that end in `</w>`. Its special tokens stand first, in the
order that the class has by default, since many classes take the unknown token from a fixed place. Nothing is trained:
what a trainer makes for Llama and Gemma has no bytes to fall back on, and no real vocabulary is so.
"""

import importlib
import inspect
import json
import string
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import transformers
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

import charsmap

WORDS = ("In", "in", "the", "They", "they", "don", "dog", "visit", "19", "84", "caf", "U.S", "u.s")
CHARACTERS = string.ascii_letters + string.digits + ".,'\"!?é中"
"""Each has a token in a vocabulary without bytes; other characters, such as emoji, are unknown to it."""


def list_classes() -> Mapping[str, type[PreTrainedTokenizerBase]]:
    """Every tokenizer class of transformers by its name, but for those that need a package which is not installed."""
    kinds: dict[str, type[PreTrainedTokenizerBase]] = {}
    root = Path(transformers.__file__).parent
    for file in sorted([*root.glob("tokenization_*.py"), *root.glob("models/*/tokenization_*.py")]):
        try:
            module = importlib.import_module(".".join(("transformers", *file.relative_to(root).with_suffix("").parts)))
        except (ImportError, NameError):  # what is not installed may be used as if it were
            continue
        for _, kind in inspect.getmembers(module, inspect.isclass):
            if issubclass(kind, PreTrainedTokenizerBase) and kind.__module__ == module.__name__:
                kinds[kind.__name__] = kind
    return kinds


# ------------------------------------------------------------ vocabularies


def spell_bytes(text: str) -> str:
    """The characters that stand for the bytes of a text in a byte-level vocabulary."""
    return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False).pre_tokenize_str(text)[0][0]


def make_bytes(special: list[str]) -> dict[str, Any]:
    """256 bytes and merges: one has the end of a character and the beginning of the next, one half of an emoji."""
    bridge, half = spell_bytes("中文")[2:4], spell_bytes("😀")[:2]
    merges = grow([*(f"Ġ{word}" for word in WORDS), *WORDS, "'t", "ĠĠ", "ĊĊ", bridge, half])
    return {"vocab": extend(special, sorted(pre_tokenizers.ByteLevel.alphabet()), merges), "merges": merges}


def make_word_ends(special: list[str], characters: Iterable[str] = CHARACTERS) -> dict[str, Any]:
    """Characters, the same at the end of a word, and merges."""
    letters = [*characters]
    merges = grow(WORDS, end="</w>")
    return {"vocab": extend(special, letters, (f"{letter}</w>" for letter in letters), merges), "merges": merges}


def make_byte_ends(special: list[str]) -> dict[str, Any]:
    """Bytes in place of characters, as CLIP has them."""
    return make_word_ends(special, sorted(pre_tokenizers.ByteLevel.alphabet()))


def make_pieces(special: list[str]) -> dict[str, Any]:
    """Characters and merges, with `▁` for a space."""
    merges = grow([*(f"▁{word}" for word in WORDS), *WORDS, "'t", "▁▁"])
    return {"vocab": extend(special, "▁", CHARACTERS, merges), "merges": merges}


def make_pieces_and_bytes(special: list[str]) -> dict[str, Any]:
    """The same with a token for each byte of a character that has none."""
    return make_pieces([*special, *(f"<0x{byte:02X}>" for byte in range(256))])


def make_unigram(special: list[str]) -> dict[str, Any]:
    """Pieces with their scores."""
    scores = dict.fromkeys(special, 0.0)
    scores |= {f"▁{word}": -2 - rank / 97 for rank, word in enumerate(WORDS)}
    scores |= {piece: -3 - rank / 89 for rank, piece in enumerate((*WORDS, "'t"))}
    scores |= {letter: -7 - rank / 83 for rank, letter in enumerate(("▁", *CHARACTERS))}
    return {"vocab": [*scores.items()]}


def make_normalized(special: list[str]) -> dict[str, Any]:
    """Pieces with their scores, and a table of characters that are read as others."""
    return {**make_unigram(special), "_spm_precompiled_charsmap": charsmap.build_charsmap()}


def make_word_pieces(special: list[str]) -> dict[str, Any]:
    """Words, and characters at the beginning of a word and inside."""
    tokens = (*WORDS, *CHARACTERS)
    return {"vocab": extend(special, tokens, (f"##{token}" for token in tokens))}


def extend(*groups: Iterable[str | tuple[str, str]]) -> dict[str, int]:
    """A vocabulary of these tokens, some of them written as what is merged."""
    tokens = dict.fromkeys("".join(token) for group in groups for token in group)
    return {token: number for number, token in enumerate(tokens)}


def grow(tokens: Iterable[str], end: str = "") -> list[tuple[str, str]]:
    """The merges that build each token from the left (t+h, th+e), the last of which has the end of a word."""
    pairs = []
    for token in tokens:
        letters = [*token[:-1], token[-1] + end]
        pairs += [("".join(letters[:place]), letters[place]) for place in range(1, len(letters))]
    return [*dict.fromkeys(pairs)]


# -------------------------------------------------------------- tokenizers

CLASSES: dict[Callable[[list[str]], dict[str, Any]], str] = {
    make_bytes: (
        "BlenderbotTokenizer CodeGenTokenizer CohereTokenizer DebertaTokenizer GPT2Tokenizer GPTNeoXTokenizer "
        "LukeTokenizer NougatTokenizer Qwen2Tokenizer Qwen3_5Tokenizer RobertaTokenizer WhisperTokenizer"
    ),
    make_word_ends: "HerbertTokenizer OpenAIGPTTokenizer",
    make_byte_ends: "CLIPTokenizer",
    make_pieces: "NllbTokenizer ReformerTokenizer SeamlessM4TTokenizer",
    make_pieces_and_bytes: "CodeLlamaTokenizer GemmaTokenizer LlamaTokenizer Siglip2Tokenizer Tipsv2Tokenizer",
    make_unigram: "BarthezTokenizer BigBirdTokenizer DebertaV2Tokenizer MBartTokenizer MLukeTokenizer",
    make_normalized: (
        "AlbertTokenizer CamembertTokenizer FNetTokenizer LasrTokenizer MBart50Tokenizer PegasusTokenizer "
        "RemBertTokenizer T5Tokenizer VideoPrismTokenizer XGLMTokenizer XLMRobertaTokenizer XLNetTokenizer"
    ),
    make_word_pieces: (
        "BertTokenizer ConvBertTokenizer DPRContextEncoderTokenizer DPRContextEncoderTokenizerFast "
        "DPRQuestionEncoderTokenizer DPRQuestionEncoderTokenizerFast DPRReaderTokenizer DPRReaderTokenizerFast "
        "DistilBertTokenizer FunnelTokenizer MPNetTokenizer SplinterTokenizer"
    ),
}
"""Classes with rules of their own, by the vocabulary that fits them."""

PAGES = {
    "LayoutLMv2Tokenizer": make_word_pieces,
    "LayoutLMv3Tokenizer": make_bytes,
    "LayoutXLMTokenizer": make_unigram,
    "MarkupLMTokenizer": make_bytes,
    "UdopTokenizer": make_unigram,
}
"""Classes that read the words of a page, and no running text."""

NOT_BUILT = {
    "CpmTokenizerFast": "converts a SentencePiece file, and needs the packages sentencepiece and rjieba",
    "RoFormerTokenizer": "splits texts with the package rjieba",
}

MAKERS = {name: make for make, names in CLASSES.items() for name in names.split()} | PAGES

SPECIAL = {
    "BarthezTokenizer": "<s> <pad> </s> <unk> <mask>",
    "HerbertTokenizer": "<s> <pad> </s> <unk> <mask>",
    "LasrTokenizer": "<pad> <s> </s> <unk>",
    "PegasusTokenizer": "<pad> </s> <mask_1> <mask_2> <unk>",
    "RemBertTokenizer": "<pad> </s> <unk> [CLS] [SEP] [MASK]",
    "SeamlessM4TTokenizer": "<pad> <unk> <s> </s> __eng__ __fra__",
    "WhisperTokenizer": "<|endoftext|> <|startoftranscript|> <|en|> <|transcribe|> <|notimestamps|>",
}
"""The special tokens in the order that the rules of a class take for granted, where its default is another."""

OPTIONS: dict[str, dict[str, Any]] = {"MarkupLMTokenizer": {"tags_dict": {"div": 0, "p": 1}}}


def make(name: str) -> PreTrainedTokenizerFast:
    """A small tokenizer of a class, or of a kind of tokenizer.json."""
    if name in FILES:
        kind, build = FILES[name]
        return getattr(transformers, kind)(tokenizer_object=build(), unk_token="<unk>", eos_token="</s>")
    kind, options = getattr(transformers, name), OPTIONS.get(name, {})
    if name == "EsmcTokenizer":  # amino acids are its vocabulary, which cannot be chosen
        return kind()
    if name in SPECIAL:
        special = SPECIAL[name].split()
    else:
        default = kind(**options)
        vocabulary = json.loads(default.backend_tokenizer.to_str())["model"]["vocab"]
        special = [token if isinstance(token, str) else token[0] for token in vocabulary]
        special += default.all_special_tokens
    return kind(**MAKERS[name](special), **options)


# ------------------------------------------------- tokenizers of a file alone


def build_pairs(vocabulary: dict[str, Any], **settings: Any) -> Tokenizer:
    """A tokenizer of byte pairs without rules."""
    return Tokenizer(models.BPE(vocabulary["vocab"], vocabulary["merges"], **settings))


def build_llama2() -> Tokenizer:
    """The rules of Llama 2 and Mistral in their own files: `▁` is put before a text and in place of each space."""
    built = build_pairs(
        make_pieces_and_bytes(["<unk>", "<s>", "</s>"]), unk_token="<unk>", fuse_unk=True, byte_fallback=True
    )
    built.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    built.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    built.post_processor = processors.TemplateProcessing("<s> $A", "<s> $A <s>:1 $B:1", [("<s>", 1)])
    return built


LLAMA3 = "|".join(
    (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    )
)
DEEPSEEK = (
    r"\p{N}{1,3}",
    r"[一-龥぀-ゟ゠-ヿ]+",
    r"[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s+(?!\S)|\s+",
)


def build_llama3() -> Tokenizer:
    """The rules of Llama 3: words of the vocabulary are not merged, and digits go by threes."""
    built = build_pairs(make_bytes(["<unk>", "<s>", "</s>"]), ignore_merges=True)
    built.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(LLAMA3), "isolated"), pre_tokenizers.ByteLevel(False, use_regex=False)]
    )
    built.decoder = decoders.ByteLevel()
    template = processors.TemplateProcessing("<s> $A", "<s> $A <s>:1 $B:1", [("<s>", 1)])
    built.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), template])
    return built


def build_deepseek() -> Tokenizer:
    """The rules of DeepSeek: digits, then runs of Chinese characters, then words."""
    built = build_pairs(make_bytes(["<unk>", "<s>", "</s>"]))
    splits = [pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in DEEPSEEK]
    built.pre_tokenizer = pre_tokenizers.Sequence([*splits, pre_tokenizers.ByteLevel(False, use_regex=False)])
    built.decoder = decoders.ByteLevel()
    return built


def build_bloom() -> Tokenizer:
    """The rules of BLOOM: byte-level pairs whose offsets are trimmed behind a pattern of their own."""
    built = build_pairs(make_bytes(["<unk>", "<s>", "</s>"]))
    pattern = Regex(r" ?[^(\s|[.,!?…。，、।۔،])]+")
    built.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(pattern, "isolated"), pre_tokenizers.ByteLevel(False, use_regex=False)]
    )
    built.post_processor = processors.ByteLevel(trim_offsets=True)
    built.decoder = decoders.ByteLevel()
    return built


def build_words() -> Tokenizer:
    """Whole words and punctuation, and one token for all others."""
    built = Tokenizer(models.WordLevel(make_word_pieces(["<unk>", "</s>"])["vocab"], "<unk>"))
    built.pre_tokenizer = pre_tokenizers.Whitespace()
    return built


FILES: dict[str, tuple[str, Callable[[], Tokenizer]]] = {
    "Llama 2": ("PreTrainedTokenizerFast", build_llama2),
    "Llama 3": ("PreTrainedTokenizerFast", build_llama3),
    "DeepSeek": ("PreTrainedTokenizerFast", build_deepseek),
    "BLOOM": ("PreTrainedTokenizerFast", build_bloom),
    "words": ("PreTrainedTokenizerFast", build_words),
    "ParakeetTokenizer": ("ParakeetTokenizer", build_llama2),
}
"""Tokenizers whose class has no rules: the class, and what their file holds."""
