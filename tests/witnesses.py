"""What the reducers must say, worked out by naive loops over the attention that the model itself returns.

Nothing here comes from `headscope.capture` or `headscope.measure`. One document at a time, unpadded, eager attention
with ``output_attentions=True``, plain loops in float64. The definitions are those of Clark et al. 2019, sections 3, 4.
"""

import copy
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import statsmodels.api
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from headscope.corpora.document import Document

CAUSAL = {"gpt2", "llama", "qwen3", "mistral", "gemma2", "gpt_oss", "bloom", "falcon"}  # model types
DIRECTIONS = ("dependent_to_head", "head_to_dependent")
OFFSETS = (-5, -4, -3, -2, -1, 1, 2, 3, 4, 5)
SHARES = ("self", "previous", "next", "cls", "sep", "punctuation", "first", "sep_from_sep", "sep_from_other")
SURFACE = (*(f"mass_{share}" for share in SHARES), "entropy", "entropy_from_cls", "entropy_uniform", "mean_distance")


@dataclass(frozen=True)
class Token:
    """Where a token stands, the word it is from (None: a special token), its kind: cls, sep, punctuation or nothing."""

    position: int
    word: int | None = None
    kind: str = ""


@dataclass(frozen=True)
class Seen:
    """What one stack did on one document: ``weights[layer, head, query, key]``, ``visible[layer, query, key]``."""

    document: Document
    weights: np.ndarray
    visible: np.ndarray
    queries: tuple[Token, ...]
    keys: tuple[Token, ...]


# ------------------------------------------------------- asking the model


def see(model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, document: Document) -> dict[str, Seen]:
    """The attention of each stack of a model: ``encoder``, ``decoder``, ``cross``.

    The decoder of an encoder-decoder reads the start token and then what the encoder read. A token of it has the
    position, the word and the kind of the encoder's token that it repeats; the start token is at -1, has no word and is
    neither a CLS nor a SEP.
    """
    words, cut = list(document.words), document.boundary
    segments = [words] if cut is None else [words[:cut], words[cut:]]
    encoded = tokenizer(*segments, is_split_into_words=True, return_tensors="pt")
    tokens = _tokens(tokenizer, encoded, cut or 0)
    inputs = dict(encoded)
    if model.config.is_encoder_decoder:
        start = torch.tensor([[model.config.decoder_start_token_id]])
        inputs["decoder_input_ids"] = torch.cat([start, encoded["input_ids"]], dim=1)
    output = _ask(model, inputs)
    if not model.config.is_encoder_decoder:
        stack = "decoder" if model.config.model_type in CAUSAL else "encoder"
        return {stack: _seen(model, stack, document, output.attentions, tokens, tokens)}
    started = (Token(position=-1), *tokens)
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


def _tokens(tokenizer: PreTrainedTokenizerFast, encoded, boundary: int) -> tuple[Token, ...]:
    tokens = []
    for position, number in enumerate(encoded["input_ids"][0].tolist()):
        word = encoded.word_ids(0)[position]
        if word is not None and encoded.sequence_ids(0)[position] == 1:
            word += boundary
        kind = ""
        if word is None and number == tokenizer.cls_token_id:
            kind = "cls"
        elif word is None and number == tokenizer.sep_token_id:
            kind = "sep"
        elif word is not None and tokenizer.convert_ids_to_tokens(number).lstrip("Ġ▁") in (".", ","):
            kind = "punctuation"
        tokens.append(Token(position, word, kind))
    return tuple(tokens)


def _seen(
    model: PreTrainedModel,
    stack: str,
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
                visible[layer, query, key] = _may_see(model.config, stack, layer, query, key)
    return Seen(document, weights, visible, queries, keys)


def _may_see(config, stack: str, layer: int, query: int, key: int) -> bool:
    kinds = getattr(config, "layer_types", None)
    sliding = kinds[layer] == "sliding_attention" if kinds is not None else config.model_type == "mistral"
    if stack == "decoder":
        return key <= query and (not sliding or query - key < config.sliding_window)
    if sliding:  # ModernBERT: so many to the left and so many to the right
        return abs(query - key) <= config.local_attention // 2
    return True


# ----------------------------------------------------- surface, section 3


def surface(documents: Iterable[Seen]) -> dict[str, np.ndarray]:
    """Each statistic per layer and head: the mean over the documents in which it is defined; NaN if it is in none."""
    each = [surface_of(seen) for seen in documents]
    means = {}
    for name in SURFACE:
        defined = [values[name] for values in each if not np.isnan(values[name]).any()]
        means[name] = sum(defined) / len(defined) if defined else np.full_like(each[0][name], math.nan)
    return means


def surface_of(seen: Seen) -> dict[str, np.ndarray]:
    """Each statistic of one document per layer and head; NaN where the document does not define it.

    Where no token is a CLS (a SEP), mass on it is undefined. Mass on punctuation is not: a text without any has 0.
    """
    layers, heads = seen.weights.shape[:2]
    values = {name: np.full((layers, heads), math.nan) for name in SURFACE}
    for layer in range(layers):
        for head in range(heads):
            rows = seen.weights[layer, head]
            found = {f"mass_{share}": value for share, value in _shares(rows, seen.queries, seen.keys).items()}
            entropies = [-sum(a * math.log(a) for a in row if a > 0) for row in rows]
            found["entropy"] = _mean(entropies)
            from_cls = [entropies[q] for q, token in enumerate(seen.queries) if token.kind == "cls"]
            found["entropy_from_cls"] = _mean(from_cls)
            found["entropy_uniform"] = _mean([math.log(sum(row)) for row in seen.visible[layer].tolist()])
            found["mean_distance"] = _mean(
                [
                    sum(a * abs(key.position - query.position) for a, key in zip(row, seen.keys, strict=True))
                    for query, row in zip(seen.queries, rows, strict=True)
                ]
            )
            for name in SURFACE:
                values[name][layer, head] = found[name]
    return values


def masses(documents: Sequence[Seen], count) -> np.ndarray:
    """Per layer and head the mean over documents of the mean over queries of the attention to keys that count.

    Args:
        documents: what was seen of each.
        count: told a document, a query and a key; says whether the key counts, or None where the query does not.
    """
    each = []
    for seen in documents:
        layers, heads = seen.weights.shape[:2]
        value = np.full((layers, heads), math.nan)
        said = [[count(seen.document, query, key) for key in seen.keys] for query in seen.queries]
        for layer in range(layers):
            for head in range(heads):
                rows = zip(said, seen.weights[layer, head], strict=True)
                sums = [
                    sum(a for a, one in zip(row, ones, strict=True) if one) for ones, row in rows if None not in ones
                ]
                value[layer, head] = _mean(sums)
        if not np.isnan(value).any():
            each.append(value)
    return sum(each) / len(each)


def _shares(rows: np.ndarray, queries: Sequence[Token], keys: Sequence[Token]) -> dict[str, float]:
    """The share of attention on each class of key, the mean over the queries."""

    def beside(step: int) -> float:
        weights = []
        for query, row in zip(queries, rows, strict=True):
            weights += [row[k] for k, key in enumerate(keys) if key.position == query.position + step]
        return _mean(weights)  # only the queries that have such a key

    def on(kind: str, asking: Sequence[int]) -> float:
        chosen = [k for k, key in enumerate(keys) if key.kind == kind]
        if not chosen and kind != "punctuation":
            return math.nan
        return _mean([sum(rows[q][k] for k in chosen) for q in asking])

    everyone = range(len(queries))
    separators = [q for q in everyone if queries[q].kind == "sep"]
    others = [q for q in everyone if queries[q].kind != "sep"]
    return {
        "self": beside(0),
        "previous": beside(-1),
        "next": beside(1),
        "cls": on("cls", everyone),
        "sep": on("sep", everyone),
        "punctuation": on("punctuation", everyone),
        "first": _mean([row[0] for row in rows]),
        "sep_from_sep": on("sep", separators),
        "sep_from_other": on("sep", others),
    }


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if len(values) else math.nan


# ------------------------------------------- relations, sections 4.1 and 4.2


@dataclass(frozen=True)
class Relation:
    """One row: for each of its links its document, and who found it: ``hits[link, layer, head, direction]``.

    ``offset[k]`` is the accuracy of always answering that the head is the word k further on.
    """

    hits: np.ndarray
    clusters: tuple[str, ...]
    offset: dict[int, float]

    @property
    def count(self) -> int:
        return len(self.hits)

    @property
    def accuracy(self) -> np.ndarray:
        return sum(self.hits.astype(float)) / self.count

    def error(self, layer: int, head: int, direction: int) -> float:
        return clustered_error(self.hits[:, layer, head, direction], self.clusters)


def relations(documents: Iterable[Seen]) -> dict[str, Relation]:
    """The rows of a corpus: every exact label, ``nsubj:*`` where nsubj has a subtype, and ``all`` but punctuation."""
    links = [
        (link, seen.document.id, found)
        for seen in documents
        for link, found in zip(_dependencies(seen.document), hits_of(seen), strict=True)
    ]
    pooled = {_base(link.label) for link, _, _ in links if ":" in link.label}
    rows: dict[str, list] = {}
    for entry in links:
        label = entry[0].label
        for row in rows_of(label, pooled):
            rows.setdefault(row, []).append(entry)
    table = {}
    for row, entries in rows.items():
        offset = {k: _mean([float(link.target == link.source + k) for link, _, _ in entries]) for k in OFFSETS}
        hits = np.stack([hit for _, _, hit in entries])
        table[row] = Relation(hits, tuple(document for _, document, _ in entries), offset)
    return table


def rows_of(label: str, pooled: set[str]) -> list[str]:
    """The rows that a link with this label counts in; ``pooled`` are the labels that have a subtype in the corpus."""
    rows = [label]
    if _base(label) in pooled:
        rows.append(f"{_base(label)}:*")
    if _base(label) != "punct":
        rows.append("all")
    return rows


def hits_of(seen: Seen) -> list[np.ndarray]:
    """For each dependency link of a document, whether each head finds it: ``(layer, head, direction)``."""
    layers, heads = seen.weights.shape[:2]
    links = _dependencies(seen.document)
    hits = [np.zeros((layers, heads, len(DIRECTIONS)), dtype=bool) for _ in links]
    for layer in range(layers):
        for head in range(heads):
            words = word_weights(seen.weights[layer, head], seen.queries, seen.keys, len(seen.document.words))
            for link, hit in zip(links, hits, strict=True):
                row = [words[link.source, other] for other in range(len(words))]
                column = [words[other, link.source] for other in range(len(words))]
                hit[layer, head] = [best_other(line, link.source) == link.target for line in (row, column)]
    return hits


def word_weights(rows: np.ndarray, queries: Sequence[Token], keys: Sequence[Token], count: int) -> np.ndarray:
    """Attention between words: to a word the sum over its tokens, from it the mean. A word without tokens has zeros."""
    weights = np.zeros((count, count))
    for source in range(count):
        tokens = [q for q, token in enumerate(queries) if token.word == source]
        for target in range(count):
            columns = [k for k, token in enumerate(keys) if token.word == target]
            if tokens:
                weights[source, target] = _mean([sum(rows[q][k] for k in columns) for q in tokens])
    return weights


def best_other(weights: Sequence[float], word: int) -> int | None:
    """The other word with the largest weight, the first of equals; None where no other word has any."""
    best = None
    for other, weight in enumerate(weights):
        if other != word and weight > (0 if best is None else weights[best]):
            best = other
    return best


def clustered_error(correct: Sequence[bool], clusters: Sequence[str]) -> float:
    """The standard error of an accuracy whose links come in clusters; NaN where there is only one cluster.

    statsmodels' sandwich with its default small-sample factor: G / (G - 1) * (N - 1) / (N - K) on the variance, for G
    clusters, N links and K parameters. There is one parameter, the mean, so the factor is G / (G - 1).
    """
    names = sorted(set(clusters))
    if len(names) < 2:
        return math.nan
    groups = np.array([names.index(cluster) for cluster in clusters])
    ordinary = statsmodels.api.OLS(np.asarray(correct, dtype=float), np.ones(len(groups)))
    return float(ordinary.fit(cov_type="cluster", cov_kwds={"groups": groups}).bse[0])


def _dependencies(document: Document) -> list:
    return [link for link in document.links if link.kind == "dependency"]


def _base(label: str) -> str:
    return label.split(":")[0]
