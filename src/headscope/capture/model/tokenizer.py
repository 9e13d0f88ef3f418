"""Which tokenizers a model can be read with: those that say what a token comes from, and whose tokens it knows."""

import inspect

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from headscope.capture.model.modality import count_embeddings
from headscope.errors import ModelError

PAGES = {"boxes": "words with their boxes on a page", "xpaths": "the nodes of a page"}
"""What a tokenizer reads in place of a running text, by the argument that goes with it."""


def refuse_tokenizer(module: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, name: str) -> None:
    """Refuse a tokenizer whose tokens are not known to come from a text, or are none that the model knows.

    Raises:
        ModelError: it is a slow one, reads pages, or has more tokens than the model.
    """
    _refuse_slow(tokenizer, name)
    _refuse_pages(tokenizer, name)
    _refuse_larger_vocabulary(module, tokenizer, name)


def _refuse_slow(tokenizer: PreTrainedTokenizerBase, name: str) -> None:
    # What wraps the tokenizer of another library, such as mistral-common, says neither.
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
            "give the model with one that does: PreTrainedTokenizerFast.from_pretrained loads the same vocabulary."
        )


def _refuse_larger_vocabulary(module: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, name: str) -> None:
    # Of the base vocabulary: tokens added later, for padding, may lie beyond the embeddings and yet never be read.
    embedded = count_embeddings(module)
    if tokenizer.vocab_size > embedded:
        raise ModelError(
            f"the tokenizer of {name!r} knows {tokenizer.vocab_size:,} tokens and the model {embedded:,}; give the "
            "tokenizer that the model was trained with."
        )
