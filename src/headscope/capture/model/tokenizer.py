"""Checks of tokenizers: a tokenizer must give the characters of each token, and the model must know its tokens."""

import inspect

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from headscope.capture.model.modality import count_embeddings
from headscope.errors import ModelError

PAGES = {"boxes": "words with their boxes on a page", "xpaths": "the nodes of a page"}
"""The input of a tokenizer that reads pages, by the argument that marks such a tokenizer."""


def refuse_tokenizer(module: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, name: str) -> None:
    """Raise an error if a tokenizer gives no character positions, or the model lacks embeddings for its tokens.

    Raises:
        ModelError: The tokenizer is a slow one, reads pages, or has more tokens than the model. Or the model needs two
            tokenizers.
    """
    _refuse_slow(tokenizer, name)
    _refuse_pages(tokenizer, name)
    _refuse_two_vocabularies(module, name)
    _refuse_larger_vocabulary(module, tokenizer, name)


def _refuse_slow(tokenizer: PreTrainedTokenizerBase, name: str) -> None:
    # A wrapper of another library's tokenizer (mistral-common) lacks `is_fast`.
    if not getattr(tokenizer, "is_fast", False):
        raise ModelError(
            f"the tokenizer of {name!r} ({type(tokenizer).__name__}) is a slow one, which cannot say which word a "
            "token comes from; give a model with a tokenizer.json."
        )


def _refuse_pages(tokenizer: PreTrainedTokenizerBase, name: str) -> None:
    parameters = inspect.signature(type(tokenizer).__call__).parameters
    if pages := next((pages for argument, pages in PAGES.items() if argument in parameters), None):
        raise ModelError(
            f"the tokenizer of {name!r} ({type(tokenizer).__name__}) reads {pages} and no running text; in Python, "
            "give the model with a tokenizer of text, such as PreTrainedTokenizerFast.from_pretrained(folder), which "
            "has the same vocabulary."
        )


def _refuse_two_vocabularies(module: PreTrainedModel, name: str) -> None:
    decoder = module.get_decoder() if module.config.is_encoder_decoder else None
    if not isinstance(decoder, PreTrainedModel):
        return
    embedded, decoded = count_embeddings(module), count_embeddings(decoder)
    if decoded not in (0, embedded):
        raise ModelError(
            f"the encoder of {name!r} ({type(module).__name__}) knows {embedded:,} tokens and its decoder {decoded:,}, "
            "and headscope gives both the tokens of one tokenizer; give a model with one vocabulary."
        )


def _refuse_larger_vocabulary(module: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, name: str) -> None:
    # Only the base vocabulary counts: tokens added later, for padding, may lie beyond the embeddings and are never
    # read.
    embedded = count_embeddings(module)
    if tokenizer.vocab_size > embedded:
        raise ModelError(
            f"the tokenizer of {name!r} knows {tokenizer.vocab_size:,} tokens and the model {embedded:,}; give the "
            "tokenizer that the model was trained with."
        )
