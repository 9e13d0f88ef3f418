"""A GPT-2 whose chosen heads attend by a rule that we chose, and prompts on which every share is known.

As in `planted`, a token is two one-hot vectors side by side, its position and its word, which every layer sees
unchanged. A head that is not planted attends to all that it sees alike. The model goes on with its last token forever.
"""

import random
from collections.abc import Mapping
from typing import Any

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

from planted import STRENGTH, Rule

LAYERS, HEADS, SIZE = 2, 3, 61  # a head's size is the number of positions
MARKER = "amber"
PLAIN = ("river", "mill", "door", "ship", "sage", "coin")
LABELS = ("Instructions:", "Document", "1:", "2:", "3:", "Question:", "Answer:")
WORDS = ("<unk>", "<s>", "</s>", *LABELS, "briefly", "which", "one", MARKER, *PLAIN)
FIRST_OF_DOCUMENTS = 5  # <s> Instructions: briefly Document 1: ...


def word(text: str) -> Rule:
    """To a word, from everywhere."""

    def rule(query: torch.Tensor, key: torch.Tensor) -> None:
        query[0, :SIZE] = 1
        key[0, SIZE + WORDS.index(text)] = 1

    return rule


def place(position: int) -> Rule:
    """To a position, from everywhere, whatever stands there."""

    def rule(query: torch.Tensor, key: torch.Tensor) -> None:
        query[0, :SIZE] = 1
        key[0, position] = 1

    return rule


RULES: dict[tuple[int, int], Rule] = {(1, 2): word(MARKER), (2, 1): place(FIRST_OF_DOCUMENTS)}
"""The head 1-2 reads what the document with the answer says, and 2-1 whatever stands in the first slot."""


def plant(rules: Mapping[tuple[int, int], Rule] = RULES) -> tuple[GPT2LMHeadModel, PreTrainedTokenizerFast]:
    """A model with these rules in these heads (layer and head, counted from 1), and its tokenizer."""
    width = HEADS * SIZE
    assert len(WORDS) <= width - SIZE
    config = GPT2Config(
        vocab_size=len(WORDS), n_embd=width, n_layer=LAYERS, n_head=HEADS, n_inner=7, n_positions=SIZE,
        layer_norm_epsilon=1e-12, bos_token_id=1, eos_token_id=2,
    )  # fmt: skip
    model = GPT2LMHeadModel(config).eval()
    # Two ones among `width` numbers have this mean and spread, whatever the token.
    mean = 2 / width
    spread = (mean * (1 - mean)) ** 0.5
    with torch.no_grad():
        for name, weights in model.named_parameters():
            norm = ".ln_" in name
            weights.fill_(spread if norm and name.endswith("weight") else mean if norm else 0)
        model.transformer.wpe.weight[:, :SIZE] = torch.eye(SIZE)
        model.transformer.wte.weight[:, SIZE : SIZE + len(WORDS)] = torch.eye(len(WORDS))
        for (layer, head), rule in rules.items():
            query, key = torch.zeros(SIZE, width), torch.zeros(SIZE, width)
            rule(query, key)
            columns = torch.arange((head - 1) * SIZE, head * SIZE)
            attention = model.transformer.h[layer - 1].attn.c_attn.weight
            attention[:, columns] = STRENGTH * SIZE**0.5 * query.T
            attention[:, width + columns] = key.T
    return model, tokenizer()


def tokenizer() -> PreTrainedTokenizerFast:
    """One token for each word."""
    built = Tokenizer(models.WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="<unk>"))
    built.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    built.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return PreTrainedTokenizerFast(
        tokenizer_object=built, bos_token="<s>", eos_token="</s>", unk_token="<unk>", model_max_length=SIZE
    )


def prompts(count: int = 13, seed: int = 0, longer: int = 0) -> list[dict[str, Any]]:
    """Prompts of three documents of two to seven words, of which one holds the marker once; it may be longer."""
    sampler = random.Random(seed)
    made = []
    for _ in range(count):
        gold = sampler.randrange(3)
        texts = [sampler.choices(PLAIN, k=sampler.randint(2, 7)) for _ in range(3)]
        texts[gold] += sampler.choices(PLAIN, k=longer)
        texts[gold][sampler.randrange(len(texts[gold]))] = MARKER
        documents = [" ".join(text) for text in texts]
        made.append({"system": "briefly", "documents": documents, "question": "which one", "gold": gold + 1})
    return made
