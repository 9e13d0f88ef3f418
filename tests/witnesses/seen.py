"""What a model did on a document, as the model itself returns it."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from headscope.corpora.document import Document

CAUSAL = {"gpt2", "llama", "qwen3", "mistral", "gemma2", "gpt_oss", "bloom", "falcon"}
CAUSAL |= {"qwen3_5_text", "nemotron_h", "lfm2", "granite_swa", "gemma4_text", "mpt"}  # model types


@dataclass(frozen=True)
class Token:
    """Where a token stands, its word (None: a special token), its kind (cls, sep, punctuation or nothing), and its
    number in the vocabulary.
    """

    position: int
    word: int | None = None
    kind: str = ""
    id: int = -1


@dataclass(frozen=True)
class Seen:
    """What one attention type did on one document: ``weights[layer, head, query, key]``, ``visible[layer, query,
    key]``.
    """

    document: Document
    weights: np.ndarray
    visible: np.ndarray
    queries: tuple[Token, ...]
    keys: tuple[Token, ...]

    @property
    def is_causal(self) -> bool:
        """True of a decoder that is alone: no token sees a later one, and no start token stands before the text."""
        ahead = [(q, k) for q, query in enumerate(self.queries) for k, key in enumerate(self.keys) if k > q]
        return self.queries[0].position == 0 and not any(self.visible[:, q, k].any() for q, k in ahead)


def see(model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, document: Document) -> dict[str, Seen]:
    """The attention of each attention type of a model: ``encoder``, ``decoder``, ``cross``.

    The decoder of an encoder-decoder reads the start token and then what the encoder read. A token of it has the
    position, the word and the kind of the encoder's token that it repeats; the start token is at -1, has no word and is
    neither a CLS nor a SEP. Of a document with a translation the decoder reads that, and the words are those of it.
    """
    words, cut = list(document.words), document.boundary
    segments = [words] if cut is None else [words[:cut], words[cut:]]
    encoded = tokenizer(*map(" ".join, segments), return_tensors="pt")
    tokens = read = _tokens(tokenizer, encoded, segments)
    inputs = dict(encoded)
    if model.config.is_encoder_decoder:
        given = encoded
        if document.translation:
            given = tokenizer(text_target=" ".join(document.translation), return_tensors="pt")
            read = _tokens(tokenizer, given, [document.translation])
        start = torch.tensor([[model.config.decoder_start_token_id]])
        inputs["decoder_input_ids"] = torch.cat([start, given["input_ids"]], dim=1)
    output = _ask(model, inputs)
    if not model.config.is_encoder_decoder:
        attention_type = "decoder" if model.config.model_type in CAUSAL else "encoder"
        return {attention_type: _seen(model, attention_type, document, output.attentions, tokens, tokens)}
    started = (Token(position=-1), *read)
    return {
        "encoder": _seen(model, "encoder", document, output.encoder_attentions, tokens, tokens),
        "decoder": _seen(model, "decoder", document, output.decoder_attentions, started, started),
        "cross": _seen(model, "cross", document, output.cross_attentions, started, tokens),
    }


def _ask(model: PreTrainedModel, inputs: dict[str, torch.Tensor]):
    """The outputs with the weights, from an eager copy of the model that must answer as the model itself does."""
    eager = copy.deepcopy(model)
    if model.config.model_type == "falcon":
        # The method does not switch it. Left at sdpa and asked for weights, it adds its boolean mask to the scores.
        eager.config._attn_implementation = "eager"
    elif model.config._attn_implementation != "eager":
        eager.set_attn_implementation("eager")
    with torch.no_grad():
        untouched = model(**inputs)
        output = eager(**inputs, output_attentions=True)
    torch.testing.assert_close(output.last_hidden_state, untouched.last_hidden_state, atol=1e-4, rtol=1e-4)
    return output


def _tokens(tokenizer: PreTrainedTokenizerFast, encoded, segments: Sequence[Sequence[str]]) -> tuple[Token, ...]:
    tokens = []
    for position, number in enumerate(encoded["input_ids"][0].tolist()):
        word, kind = _find_word(encoded, position, segments), ""
        if word is None and number == tokenizer.cls_token_id:
            kind = "cls"
        elif word is None and number == tokenizer.sep_token_id:
            kind = "sep"
        elif word is not None and tokenizer.convert_ids_to_tokens(number).lstrip("Ġ▁") in (".", ","):
            kind = "punctuation"
        tokens.append(Token(position, word, kind, number))
    return tuple(tokens)


def _find_word(encoded, position: int, segments: Sequence[Sequence[str]]) -> int | None:
    """The word of a token by each of its characters; a space goes with the word behind it, if that is read."""
    side = encoded.sequence_ids(0)[position]
    if side is None:
        return None
    words, text = segments[side], " ".join(segments[side])
    owner = [number for number, word in enumerate(words) for _ in (*word, " ")]
    read = [
        range(*offsets)
        for offsets, other in zip(encoded.encodings[0].offsets, encoded.sequence_ids(0), strict=True)
        if other == side
    ]
    spelt = {owner[at] for token in read for at in token if text[at] != " "}
    start, end = encoded.encodings[0].offsets[position]
    own = [owner[at] for at in range(start, end) if text[at] != " "]
    if own:
        return own[0] + side * len(segments[0])
    behind = owner[end] if end < len(owner) else len(words)
    return behind + side * len(segments[0]) if behind in spelt else None


def _seen(
    model: PreTrainedModel,
    attention_type: str,
    document: Document,
    attentions: Sequence[torch.Tensor],
    queries: tuple[Token, ...],
    keys: tuple[Token, ...],
) -> Seen:
    weights = np.stack([layer[0].double().numpy() for layer in attentions])
    assert weights.shape[2:] == (len(queries), len(keys)), weights.shape
    visible = np.zeros((len(weights), len(queries), len(keys)), dtype=bool)
    for layer in range(len(weights)):
        for query in range(len(queries)):
            for key in range(len(keys)):
                visible[layer, query, key] = _may_see(model.config, attention_type, layer, query, key)
    return Seen(document, weights, visible, queries, keys)


def _may_see(config, attention_type: str, layer: int, query: int, key: int) -> bool:
    kinds = getattr(config, "layer_types", None)
    sliding = kinds[layer] == "sliding_attention" if kinds is not None else config.model_type == "mistral"
    if attention_type == "decoder":
        return key <= query and (not sliding or query - key < config.sliding_window)
    if sliding:  # ModernBERT: so many to the left and so many to the right
        return abs(query - key) <= config.local_attention // 2
    return True
