"""A BART whose chosen cross-attention heads are the word alignment of made-up pairs, by place or by dictionary.

As in `planted`, a token is two one-hot vectors side by side, its position and its word, which every layer sees
unchanged. A head that is not planted attends to all alike. The words of a translation stand in an order of their own
(`ORDER`), which is the same for all pairs, so that a head can follow it by position; neither the same number nor the
diagonal does.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import BartConfig, BartForConditionalGeneration, PreTrainedTokenizerFast

from headscope.corpora.document import Document, Link
from planted import STRENGTH, Rule

LAYERS, HEADS, SIZE = 2, 5, 17  # a head's size is the number of positions
SPECIAL = ("<pad>", "</s>", "<unk>")
SOURCE, TARGET = ([f"{letter}{number}" for number in range(19)] for letter in "st")
WORDS = (*SPECIAL, *SOURCE, *TARGET)
ORDER = (7, 2, 10, 0, 5, 9, 3, 12, 1, 8, 11, 4, 6)
"""Of each word of a translation the place of the source word that it translates."""


def by_place(ahead: int) -> Rule:
    """To the source word of the word that is read (0), or of the next one (1)."""

    def rule(query: torch.Tensor, key: torch.Tensor) -> None:
        for word, place in enumerate(ORDER):
            # The start token stands before the first word, and so the decoder reads a word one position later.
            query[place, word + 1 - ahead] = 1
            key[place, place] = 1

    return rule


def by_dictionary(query: torch.Tensor, key: torch.Tensor) -> None:
    """To the source word that the word that is read translates."""
    # Each word is a number in binary, of ones and minus ones, so that it is most like itself.
    for number, (source, target) in enumerate(zip(SOURCE, TARGET, strict=True)):
        for bit in range(5):
            sign = 1.0 if number >> bit & 1 else -1.0
            query[bit, SIZE + WORDS.index(target)] = sign
            key[bit, SIZE + WORDS.index(source)] = sign


def same_place(query: torch.Tensor, key: torch.Tensor) -> None:
    """To the source word with the number of the word that is read."""
    for position in range(1, SIZE):
        query[position, position] = key[position, position - 1] = 1


def end(query: torch.Tensor, key: torch.Tensor) -> None:
    """To the end of the source, from everywhere."""
    query[0, :SIZE] = 1
    key[0, SIZE + WORDS.index("</s>")] = 1


RULES: dict[tuple[int, int], Rule] = {(1, 2): by_place(1), (2, 3): by_dictionary, (1, 4): same_place, (2, 5): end}
"""The head 1-2 is the alignment where words are predicted, and 2-3 where they are read; 1-4 and 2-5 are none."""


def plant(
    rules: Mapping[tuple[int, int], Rule] = RULES,
) -> tuple[BartForConditionalGeneration, PreTrainedTokenizerFast]:
    """A model with these rules in these heads of the cross-attention (layer and head, counted from 1)."""
    width = HEADS * SIZE
    assert len(WORDS) <= width - SIZE
    config = BartConfig(
        vocab_size=len(WORDS), d_model=width, encoder_layers=1, decoder_layers=LAYERS, encoder_attention_heads=HEADS,
        decoder_attention_heads=HEADS, encoder_ffn_dim=7, decoder_ffn_dim=7, max_position_embeddings=SIZE,
        pad_token_id=0, bos_token_id=1, eos_token_id=1, decoder_start_token_id=1, forced_eos_token_id=1,
    )  # fmt: skip
    model = BartForConditionalGeneration(config).eval()
    # Two ones among `width` numbers have this mean and spread, whatever the token.
    mean = 2 / width
    spread = (mean * (1 - mean)) ** 0.5
    with torch.no_grad():
        for name, weights in model.named_parameters():
            norm = "layer_norm" in name or "layernorm" in name
            weights.fill_(spread if norm and name.endswith("weight") else mean if norm else 0)
        for side in (model.model.encoder, model.model.decoder):
            side.embed_positions.weight[2:, :SIZE] = torch.eye(SIZE)  # its first two rows are no positions
        model.model.shared.weight[:, SIZE : SIZE + len(WORDS)] = torch.eye(len(WORDS))
        for (layer, head), rule in rules.items():
            attention = model.model.decoder.layers[layer - 1].encoder_attn
            rows = slice((head - 1) * SIZE, head * SIZE)
            rule(attention.q_proj.weight[rows], attention.k_proj.weight[rows])
            attention.q_proj.weight[rows] *= STRENGTH * SIZE**0.5
    return model, tokenizer()


def tokenizer() -> PreTrainedTokenizerFast:
    """One token for each word, and one for the end."""
    built = Tokenizer(models.WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="<unk>"))
    built.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    built.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    return PreTrainedTokenizerFast(
        tokenizer_object=built, pad_token="<pad>", eos_token="</s>", unk_token="<unk>", model_max_length=SIZE
    )


def pairs(count: int = 300, seed: int = 0, order: Sequence[int] = ORDER) -> list[Document]:
    """Sentences of thirteen different words, and translations of the first few in this order; all links are sure."""
    sampler = random.Random(seed)
    made = []
    for number in range(count):
        numbers = sampler.sample(range(len(SOURCE)), len(order))
        length = sampler.choice((5, 7, 11, 13))
        links = tuple(Link(place, word, "sure", kind="alignment") for word, place in enumerate(order[:length]))
        translation = tuple(TARGET[numbers[place]] for place in order[:length])
        source = tuple(SOURCE[number] for number in numbers)
        made.append(Document(f"pair-{number}", source, translation=translation, alignment=links))
    return made


def permute_links(documents: Sequence[Document], seed: int = 0) -> list[Document]:
    """The same pairs, in which each word is linked to a source word at random."""
    sampler = random.Random(seed)
    made = []
    for document in documents:
        links = (replace(link, source=sampler.randrange(len(document.words))) for link in document.alignment)
        made.append(replace(document, alignment=tuple(links)))
    return made


def write(documents: Sequence[Document]) -> str:
    """The pairs in the format `alignments`."""
    lines = []
    for document in documents:
        links = [f"{link.source}{'-' if link.label == 'sure' else 'p'}{link.target}" for link in document.alignment]
        lines.append(f"{' '.join(document.words)} ||| {' '.join(document.translation)} ||| {' '.join(links)}\n")
    return "".join(lines)
