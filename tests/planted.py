"""A BERT whose chosen heads attend by a rule that we chose, so that what is found can be checked.

Every token is two one-hot vectors side by side, its position and its word; the layer norms are set
to give them back unchanged and every sub-layer adds nothing, so each layer sees the same. A planted
head's queries and keys are then written by hand. A head that is not planted attends to all alike.
"""

import random
from collections.abc import Callable, Mapping

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

from headscope.capture.model.model import Model
from headscope.corpora.document import Document, Link

LAYERS, HEADS, SIZE = 3, 5, 29  # a head's size is the number of positions
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
KINDS = {"noun": ("dog", "cat", "child"), "verb": ("sees", "likes"), "determiner": ("the", "every"), "adverb": ("now",)}
WORDS = (*SPECIAL, *(word for words in KINDS.values() for word in words), ".")
STRENGTH = 40.0

Rule = Callable[[torch.Tensor, torch.Tensor], None]
"""Fills the queries and keys of a head: each a matrix from (position, word) to the head's size."""


def previous(query: torch.Tensor, key: torch.Tensor) -> None:
    """To the token before."""
    for position in range(1, SIZE):
        query[position - 1, position] = key[position, position] = 1
    key[0, 0] = 1


def separator(query: torch.Tensor, key: torch.Tensor) -> None:
    """To [SEP], from everywhere."""
    query[0, :SIZE] = 1  # whatever the position
    key[0, SIZE + WORDS.index("[SEP]")] = 1


def from_to(source: str, target: str) -> Rule:
    """From words of one kind to words of another."""

    def rule(query: torch.Tensor, key: torch.Tensor) -> None:
        query[0, [SIZE + WORDS.index(word) for word in KINDS[source]]] = 1
        key[0, [SIZE + WORDS.index(word) for word in KINDS[target]]] = 1

    return rule


def plant(rules: Mapping[tuple[int, int], Rule]) -> Model:
    """A model with these rules in these heads (layer and head, counted from 1)."""
    width = HEADS * SIZE
    assert len(WORDS) <= width - SIZE
    config = BertConfig(
        vocab_size=len(WORDS), hidden_size=width, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
        intermediate_size=7, max_position_embeddings=SIZE, type_vocab_size=2, layer_norm_eps=1e-12,
    )  # fmt: skip
    model = BertModel(config, add_pooling_layer=False).eval()
    # Two ones among `width` numbers have this mean and spread, whatever the token.
    mean = 2 / width
    spread = (mean * (1 - mean)) ** 0.5
    with torch.no_grad():
        for name, weights in model.named_parameters():
            weights.fill_(
                spread if name.endswith("LayerNorm.weight") else mean if name.endswith("LayerNorm.bias") else 0
            )
        model.embeddings.position_embeddings.weight[:, :SIZE] = torch.eye(SIZE)
        model.embeddings.word_embeddings.weight[:, SIZE : SIZE + len(WORDS)] = torch.eye(len(WORDS))
        for (layer, head), rule in rules.items():
            attention = model.encoder.layer[layer - 1].attention.self
            rows = slice((head - 1) * SIZE, head * SIZE)
            rule(attention.query.weight[rows], attention.key.weight[rows])
            attention.query.weight[rows] *= STRENGTH * SIZE**0.5
    return Model.from_module(model, tokenizer(), name="planted")


def tokenizer() -> PreTrainedTokenizerFast:
    """One token for each word."""
    built = Tokenizer(models.WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="[UNK]"))
    built.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    built.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=built, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]",
        model_max_length=SIZE,
    )  # fmt: skip


def documents(count: int = 400, seed: int = 0) -> list[Document]:
    """Sentences of a verb, its object and a determiner in any order, with adverbs between, so that no offset helps."""
    sampler = random.Random(seed)
    documents = []
    for number in range(count):
        words = [sampler.choice(KINDS[kind]) for kind in ("verb", "noun", "determiner")]
        order = sampler.sample(range(3), 3)
        places = sorted(sampler.sample(range(sampler.choice([7, 11, 13])), 3))
        sentence = ["now"] * (places[-1] + 1) + ["."]
        place = {}
        for index, where in zip(order, places, strict=True):
            sentence[where] = words[index]
            place[index] = where
        verb, noun, determiner = place[0], place[1], place[2]
        links = (Link(noun, verb, "obj"), Link(determiner, noun, "det"), Link(len(sentence) - 1, verb, "punct"))
        documents.append(Document(f"planted-{number}", tuple(sentence), links))
    return documents


RULES: dict[tuple[int, int], Rule] = {
    (2, 3): from_to("noun", "verb"),
    (3, 5): from_to("noun", "determiner"),
    (1, 4): previous,
    (3, 1): separator,
}
"""Heads of which the tables and the studies must say what they do."""
