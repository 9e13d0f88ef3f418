"""The one maker of tiny models: random weights from a config, a tokenizer built by hand, documents from a seed.

Sizes are different primes, so that a transposed axis cannot pass: 2 layers (3 in the decoder of an encoder-decoder),
5 heads of size 7, an inner width of 37. The exceptions, each forced by the architecture:

- rotary embeddings turn pairs of numbers (and XLNet's sinusoids come in pairs): the head size is 14, not 7;
- grouped queries need a number of heads that the key-value heads divide: 6 = 2 x 3;
- where windows differ from layer to layer there are 3 layers, so that one kind of layer occurs twice;
- where the heads need not fill the model's width they do not: it is 41 in T5, 42 in Llama and its kin.

Weights are far wider than usual. Initialised as for training, attention is uniform to three digits, and a mistake
about heads or keys would pass.
"""

import random
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
import transformers as hf
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import PreTrainedModel, PreTrainedTokenizerFast

import tiny_spans
from headscope.corpora.document import Document, Link, Span

VOCABULARY = 131
BYTE_VOCABULARY = 317  # 256 bytes come first
POSITIONS = 149
WINDOW = 7
LARGEST = 200_000  # parameters

# ---------------------------------------------------------------- documents

WHOLE = ("the", "a", "of", "dog", "cat", "sees", "old", "was", "red", "in", "by", "house")  # a token each
PIECES = ("un", "walk", "read", "quick", "seen", "ing", "ed", "er", "ly", "s")
SPLIT = ("walking", "walked", "readers", "unseen", "quickly", "dogs", "naïve", "a.m.")
LABELS = ("nsubj", "nsubj:pass", "obj", "det", "amod", "case", "obl")
ROLES = ("ARG0", "ARG1", "ARGM-TMP", "C-ARG1")
CENTRALITIES = ("core_element", "core_unexpressed_element", "peripheral_element")
LENGTHS = (13, 2, 7, 17, 5, 1, 11, 3)  # words
PAIR = 3  # every document of 17 words is a pair of segments
TOKENLESS = ("\u200b", "\x7f")  # WordPiece drops both, Unigram the second, byte-level BPE neither


def documents(count: int = 7) -> list[Document]:
    """Documents of 1 to 17 words with a random dependency tree each; two neighbours share a group."""
    return [_document(number) for number in range(count)]


def documents_with_roles(count: int = 7) -> list[Document]:
    """The same documents with predicates of one or two words, each with two roles, some with spans and some without.

    What fills a role has up to five words, perhaps with its predicate among them, and is linked by its last; where it
    is in two pieces, by the last of each. Some are peripheral.
    """
    annotated = []
    for number, document in enumerate(documents(count)):
        rng, length = random.Random(f"roles {number}"), len(document.words)
        links, spans = [], []
        for label in map(str, range(1, length // 2 + 1)):
            predicate = rng.randrange(length)
            if wide := rng.random() < 0.5:
                spans.append(Span(predicate, min(length, predicate + rng.choice((1, 2))), label, "target"))
            for role in rng.sample(ROLES, 2):
                for start in rng.sample(range(length), rng.choice((1, 1, 2))):
                    end = min(length, start + rng.choice((1, 2, 3, 4, 5)))
                    link, kind = Link(end - 1, predicate, role, "role"), rng.choice(CENTRALITIES)
                    if end - 1 == predicate or link in links:  # no reader has such links
                        continue
                    links.append(link)
                    spans += [Span(start, end, f"{label} {role}", part) for part in ("element", kind) if wide]
        annotated.append(replace(document, links=(*document.links, *links), spans=(*document.spans, *spans)))
    return annotated


def tokenless_document() -> Document:
    """A document with a zero-width space and a control character for words, each at both ends of a link."""
    words = ("the", "dog", TOKENLESS[0], "walked", TOKENLESS[1], "by")
    arcs = ((0, 1, "det"), (2, 1, "case"), (3, 2, "obj"), (1, 3, "nsubj"), (4, 3, "obl"), (5, 4, "case"))
    return Document("tokenless", words, tuple(Link(*arc) for arc in arcs), group="tokenless")


def _document(number: int) -> Document:
    rng = random.Random(number)
    length = LENGTHS[number % len(LENGTHS)]
    words = [rng.choice(WHOLE if rng.random() < 0.5 else SPLIT) for _ in range(length)]
    for place in range(5, length, 6):
        words[place] = rng.choice(".,")
    order = rng.sample(range(length), length)  # every word but the first of these hangs from an earlier one
    links = []
    for rank, source in enumerate(order[1:], start=1):
        label = "punct" if words[source] in ".," else rng.choice(LABELS)
        links.append(Link(source, rng.choice(order[:rank]), label))
    boundary = 7 if number % len(LENGTHS) == PAIR else None
    identity, group = f"document-{number}", f"text-{number // 2}"
    kinds = (tiny_spans.negations, tiny_spans.mentions, tiny_spans.aspects)
    spans = (*(span for kind in kinds for span in kind(number, length)), *tiny_spans.needles(number, words))
    label = random.Random(f"label {number}").choice((None, "none", "positive"))
    return Document(identity, tuple(words), tuple(links), spans, label, group=group, boundary=boundary)


# --------------------------------------------------------------- tokenizers


@dataclass(frozen=True)
class Style:
    """An algorithm, the special tokens by role, and where they go; ``:1`` is a token type."""

    algorithm: str
    special: dict[str, str]
    single: str
    pair: str
    types: bool = False
    padding_side: str = "right"


BERT_SPECIAL = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}
BERT_PAIR = "[CLS] $A [SEP] $B:1 [SEP]:1"
ROBERTA_SPECIAL = {"bos": "<s>", "pad": "<pad>", "eos": "</s>", "unk": "<unk>", "mask": "<mask>"}
ROBERTA_SPECIAL |= {"cls": "<s>", "sep": "</s>"}
ROBERTA_PAIR = "<s> $A </s> </s> $B </s>"

BERT = Style("wordpiece", BERT_SPECIAL, "[CLS] $A [SEP]", BERT_PAIR, types=True)
PLAIN_BERT = Style("wordpiece", BERT_SPECIAL, "[CLS] $A [SEP]", "[CLS] $A [SEP] $B [SEP]")
MPNET = Style("wordpiece", ROBERTA_SPECIAL, "<s> $A </s>", ROBERTA_PAIR)
BYTE_BERT = Style("bytes", BERT_SPECIAL, "[CLS] $A [SEP]", BERT_PAIR, types=True)
MODERNBERT = Style("bytes", BERT_SPECIAL, "[CLS] $A [SEP]", "[CLS] $A [SEP] $B [SEP]")
ROBERTA = Style("bytes", ROBERTA_SPECIAL, "<s> $A </s>", ROBERTA_PAIR)
GPT2 = Style("bytes", {"eos": "<|endoftext|>", "bos": "<|endoftext|>", "pad": "<pad>"}, "$A", "$A $B")
LLAMA = Style("bytes", {"bos": "<s>", "eos": "</s>", "pad": "<pad>"}, "<s> $A", "<s> $A <s> $B")
UNIGRAM_BERT = Style("unigram", BERT_SPECIAL, "[CLS] $A [SEP]", BERT_PAIR, types=True)
T5 = Style("unigram", {"pad": "<pad>", "eos": "</s>", "unk": "<unk>"}, "$A </s>", "$A </s> $B </s>")
XLNET = Style(
    "unigram",
    {"unk": "<unk>", "pad": "<pad>", "cls": "<cls>", "sep": "<sep>", "eos": "</s>"},
    "$A <sep> <cls>:2",
    "$A <sep> $B:1 <sep>:1 <cls>:2",
    types=True,
    padding_side="left",
)


def tokenizer(style: Style) -> PreTrainedTokenizerFast:
    """A fast tokenizer in this style, the same on every machine: nothing is trained and nothing is fetched."""
    special = list(dict.fromkeys(style.special.values()))
    built = {"wordpiece": _wordpiece, "bytes": _bytes, "unigram": _unigram}[style.algorithm](special, style)
    built.add_special_tokens(special)
    named = [(token, built.token_to_id(token)) for token in special]
    built.post_processor = processors.TemplateProcessing(single=style.single, pair=style.pair, special_tokens=named)
    names = ["input_ids", "attention_mask"] + ["token_type_ids"] * style.types
    roles = {f"{role}_token": token for role, token in style.special.items()}
    return PreTrainedTokenizerFast(
        tokenizer_object=built,
        model_max_length=128,
        padding_side=style.padding_side,
        model_input_names=names,
        clean_up_tokenization_spaces=False,
        **roles,
    )


def slow_tokenizer() -> Any:
    """A tokenizer in plain Python, which cannot say which word a token is from; transformers 5 keeps a few."""
    return hf.ByT5Tokenizer(extra_ids=0)


LETTERS = "abcdefghijklmnopqrstuvwxyz"


def _wordpiece(special: list[str], style: Style) -> Tokenizer:
    inside = [f"##{piece}" for piece in (*LETTERS, *PIECES[4:])]
    tokens = dict.fromkeys([*special, *".,", *LETTERS, *WHOLE, *PIECES[:4], *inside])
    numbers = {token: number for number, token in enumerate(tokens)}
    unknown = style.special["unk"]
    built = Tokenizer(models.WordPiece(numbers, unk_token=unknown))
    built.normalizer = normalizers.BertNormalizer(lowercase=True)
    built.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    built.decoder = decoders.WordPiece()
    return built


def _bytes(special: list[str], style: Style) -> Tokenizer:
    grown = [*(f"Ġ{word}" for word in (*WHOLE, *PIECES[:4], *".,")), *PIECES[4:-1]]
    merges = list(dict.fromkeys(pair for token in grown for pair in _growing(token)))
    tokens = [*special, *sorted(pre_tokenizers.ByteLevel.alphabet()), *dict.fromkeys(a + b for a, b in merges)]
    built = Tokenizer(models.BPE({token: number for number, token in enumerate(tokens)}, merges))
    built.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    built.decoder = decoders.ByteLevel()
    return built


def _growing(word: str) -> list[tuple[str, str]]:
    """The merges that build a word from the left: w+a, wa+l, wal+k."""
    return [(word[:end], word[end]) for end in range(1, len(word))]


def _unigram(special: list[str], style: Style) -> Tokenizer:
    scores = [(token, 0.0) for token in special]
    scores += [(f"▁{word}", -2.0 - rank / 97) for rank, word in enumerate(WHOLE)]
    scores += [(piece, -3.0 - rank / 89) for rank, piece in enumerate(PIECES[:-1])]
    scores += [(letter, -7.0 - rank / 83) for rank, letter in enumerate((*"▁.,", *LETTERS))]
    built = Tokenizer(models.Unigram(scores, unk_id=special.index(style.special["unk"])))
    built.normalizer = normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC()])
    built.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    built.decoder = decoders.Metaspace()
    return built


# ------------------------------------------------------------------- models


@dataclass(frozen=True)
class Family:
    """A bare model and what it is made with. ``attention_types`` gives its layers, so that the maker can check them."""

    model: type[PreTrainedModel]
    config: type[hf.PreTrainedConfig]
    style: Style
    attention_types: dict[str, int]
    settings: dict[str, Any]
    heads: int = 5
    width: int = 35
    spread: float = 0.3  # standard deviation of the weights
    tokens: dict[str, str] = field(default_factory=dict)  # special tokens that only this config names, and their role


def _sizes(layers: int = 2, heads: int = 5, width: int = 35, **others: Any) -> dict[str, Any]:
    """The sizes by the names that most configs use."""
    sizes = {"num_hidden_layers": layers, "num_attention_heads": heads, "hidden_size": width, "intermediate_size": 37}
    return {**sizes, "max_position_embeddings": POSITIONS, **others}


def _grouped(layers: int = 2, key_value: int = 2, **others: Any) -> dict[str, Any]:
    """The sizes of a decoder with grouped queries and rotary embeddings."""
    return _sizes(layers, 6, 42, num_key_value_heads=key_value, head_dim=14, **others)


WINDOWS = {"layer_types": ["sliding_attention", "full_attention", "sliding_attention"], "sliding_window": WINDOW}
SOFTCAP = {"attn_logit_softcapping": 5.0, "query_pre_attn_scalar": 14}
RELATIVE = {"relative_attention": True, "pos_att_type": ["c2p", "p2c"], "max_relative_positions": 23}
ROTARY = {"rope_parameters": {"rope_type": "default", "rope_theta": 10_000.0}}
# The default implementation of experts multiplies in groups, which needs widths that are multiples of 4.
EXPERTS = {"num_local_experts": 2, "num_experts_per_tok": 1, "experts_implementation": "eager"}

# fmt: off
FAMILIES: dict[str, Family] = {
    "bert": Family(hf.BertModel, hf.BertConfig, BERT, {"encoder": 2}, _sizes()),
    "roberta": Family(hf.RobertaModel, hf.RobertaConfig, ROBERTA, {"encoder": 2}, _sizes(max_position_embeddings=151)),
    "distilbert": Family(
        hf.DistilBertModel, hf.DistilBertConfig, PLAIN_BERT, {"encoder": 2},
        {"n_layers": 2, "n_heads": 5, "dim": 35, "hidden_dim": 37, "max_position_embeddings": POSITIONS}),
    "electra": Family(hf.ElectraModel, hf.ElectraConfig, BERT, {"encoder": 2}, _sizes(embedding_size=11)),
    "albert": Family(hf.AlbertModel, hf.AlbertConfig, BERT, {"encoder": 2}, _sizes(embedding_size=11)),
    "modernbert": Family(
        hf.ModernBertModel, hf.ModernBertConfig, MODERNBERT, {"encoder": 3},
        _sizes(3, width=70, local_attention=WINDOW),
        width=70, spread=0.25, tokens={"cls_token_id": "cls", "sep_token_id": "sep"}),
    "gpt2": Family(
        hf.GPT2Model, hf.GPT2Config, GPT2, {"decoder": 2},
        {"n_layer": 2, "n_head": 5, "n_embd": 35, "n_inner": 37, "n_positions": POSITIONS}),
    "llama": Family(hf.LlamaModel, hf.LlamaConfig, LLAMA, {"decoder": 2}, _grouped(), heads=6, width=42),
    "qwen3": Family(hf.Qwen3Model, hf.Qwen3Config, GPT2, {"decoder": 2}, _grouped(key_value=3), heads=6, width=42),
    "mistral": Family(
        hf.MistralModel, hf.MistralConfig, LLAMA, {"decoder": 2}, _grouped(sliding_window=WINDOW), heads=6, width=42),
    "gemma2": Family(
        hf.Gemma2Model, hf.Gemma2Config, LLAMA, {"decoder": 3}, _grouped(3, **WINDOWS, **SOFTCAP), heads=6, width=42),
    "gpt_oss": Family(
        hf.GptOssModel, hf.GptOssConfig, GPT2, {"decoder": 3}, _grouped(3, **WINDOWS, **ROTARY, **EXPERTS),
        heads=6, width=42, spread=0.2),
    "t5": Family(
        hf.T5Model, hf.T5Config, T5, {"encoder": 2, "decoder": 3, "cross": 3},
        {"num_layers": 2, "num_decoder_layers": 3, "num_heads": 5, "d_kv": 7, "d_model": 41, "d_ff": 37,
         "relative_attention_num_buckets": 149, "relative_attention_max_distance": 151},  # 37 exact: no ties
        width=41, spread=0.2, tokens={"decoder_start_token_id": "pad"}),
    "bart": Family(
        hf.BartModel, hf.BartConfig, ROBERTA, {"encoder": 2, "decoder": 3, "cross": 3},
        {"encoder_layers": 2, "decoder_layers": 3, "encoder_attention_heads": 5, "decoder_attention_heads": 5,
         "d_model": 35, "encoder_ffn_dim": 37, "decoder_ffn_dim": 37, "max_position_embeddings": POSITIONS},
        tokens={"decoder_start_token_id": "eos"}),
}

UNSUPPORTED: dict[str, Family] = {  # these do not use transformers' attention interface
    "deberta": Family(hf.DebertaModel, hf.DebertaConfig, BYTE_BERT, {"encoder": 2}, _sizes(**RELATIVE)),
    "deberta_v2": Family(hf.DebertaV2Model, hf.DebertaV2Config, UNIGRAM_BERT, {"encoder": 2}, _sizes(**RELATIVE)),
    "xlnet": Family(
        hf.XLNetModel, hf.XLNetConfig, XLNET, {"encoder": 2},
        {"n_layer": 2, "n_head": 5, "d_model": 70, "d_inner": 37, "mem_len": None}, width=70, spread=0.2),
    "bloom": Family(
        hf.BloomModel, hf.BloomConfig, GPT2, {"decoder": 2}, {"n_layer": 2, "n_head": 5, "hidden_size": 35}),
    "falcon": Family(
        hf.FalconModel, hf.FalconConfig, GPT2, {"decoder": 2},
        {"num_hidden_layers": 2, "num_attention_heads": 5, "hidden_size": 70, "ffn_hidden_size": 37,
         "multi_query": False, "max_position_embeddings": POSITIONS}, width=70, spread=0.2),
    "mpnet": Family(hf.MPNetModel, hf.MPNetConfig, MPNET, {"encoder": 2}, _sizes(max_position_embeddings=151)),
}
# fmt: on


def save(folder: Path, family: str = "bert") -> Path:
    """A tiny model of this family and its tokenizer, on disk."""
    for part in make(family):
        part.save_pretrained(folder)
    return folder


def save_other(folder: Path, family: str = "bert") -> Path:
    """The same as `save`, but for the weights."""
    module, tokenizer = make(family)
    for weights in module.parameters():
        weights.data.mul_(1.25)
    for part in (module, tokenizer):
        part.save_pretrained(folder)
    return folder


def make(family: str, seed: int = 0) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """A tiny model of this family, in evaluation mode, and the tokenizer that goes with it."""
    plan = {**FAMILIES, **UNSUPPORTED}[family]
    model, words = build(plan, family, seed)
    config = model.config
    layers = {"encoder": config.num_hidden_layers, "decoder": config.num_hidden_layers}
    if config.is_encoder_decoder:
        deep = config.decoder_layers if family == "bart" else config.num_decoder_layers
        layers |= {"decoder": deep, "cross": deep}
    assert {kind: layers[kind] for kind in plan.attention_types} == plan.attention_types, (family, layers)
    return model, words


def build(plan: Family, family: str, seed: int = 0) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """A tiny model by its plan, in evaluation mode, and the tokenizer that goes with it."""
    words = tokenizer(plan.style)
    vocabulary = BYTE_VOCABULARY if plan.style.algorithm == "bytes" else VOCABULARY
    assert len(words) <= vocabulary, (family, len(words))
    roles = {"pad_token_id": "pad", "bos_token_id": "bos", "eos_token_id": "eos", **plan.tokens}
    numbers = {name: words.vocab.get(plan.style.special.get(role, "")) for name, role in roles.items()}  # or None
    config = plan.config(**plan.settings, **numbers, vocab_size=vocabulary)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = plan.model(config).eval()
    _spread_out(model, seed, plan.spread)
    assert config.num_attention_heads == plan.heads, (family, config.num_attention_heads)
    assert config.hidden_size == plan.width, (family, config.hidden_size)
    assert model.num_parameters() < LARGEST, (family, model.num_parameters())
    return model, words


def make_uniform() -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """A tiny BERT whose queries are all zero, so that every token attends to all tokens alike."""
    model, words = make("bert")
    with torch.no_grad():
        for layer in model.encoder.layer:
            layer.attention.self.query.weight.zero_()
            layer.attention.self.query.bias.zero_()
    return model, words


def _spread_out(model: PreTrainedModel, seed: int, spread: float) -> None:
    """New random weights: matrices wide, so that attention is peaked; norms and biases a little off."""
    generator = torch.Generator().manual_seed(seed)
    embeddings = {id(module.weight) for module in model.modules() if isinstance(module, torch.nn.Embedding)}
    with torch.no_grad():
        for name, weights in model.named_parameters():
            noise = torch.randn(weights.shape, generator=generator)
            if weights.ndim > 1:
                weights.copy_(noise * (1.0 if id(weights) in embeddings else spread))
            elif name.endswith("q_norm.weight"):  # Qwen3 normalises its queries: wide matrices do not reach the scores
                weights.copy_(3 + noise)
            else:
                weights.add_(noise * (1.0 if name.endswith("sinks") else 0.1))
