"""A decoder of one head, and texts of words that are one token each: what is done a layer costs little memory."""

import numpy as np
import torch
import transformers as hf
from tokenizers import Tokenizer, models, pre_tokenizers

from headscope.capture.model.model import Model
from headscope.corpora import Document, Link

WORDS = tuple(f"w{number}" for number in range(50))


def make_documents(texts: int, length: int, batches: int) -> list[Document]:
    """Documents of words that are one token each, every one linked to the word before it."""
    words = np.random.default_rng(0).choice(WORDS, (batches * texts, length))
    links = tuple(Link(place, place - 1, ("nsubj", "obj")[place % 2]) for place in range(1, length))
    return [Document(str(number), tuple(row), links) for number, row in enumerate(words.tolist())]


def make_model(layers: int) -> Model:
    """A decoder of one head with the same weights each time, so that long texts need little memory."""
    vocabulary = {word: number for number, word in enumerate(("[PAD]", "[UNK]", *WORDS))}
    words = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = hf.PreTrainedTokenizerFast(tokenizer_object=words, unk_token="[UNK]", pad_token="[PAD]")
    config = hf.LlamaConfig(
        vocab_size=len(vocabulary), hidden_size=8, intermediate_size=8, num_hidden_layers=layers,
        num_attention_heads=1, num_key_value_heads=1, max_position_embeddings=8192, pad_token_id=0,
    )  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(0)
        module = hf.LlamaModel(config).eval()
    return Model.from_module(module, tokenizer)
