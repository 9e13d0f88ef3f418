"""A model and its tokenizer, identified so that a result can name the weights it came from."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from jaxtyping import Int
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from headscope.capture.model.device_names import Dtype
from headscope.capture.model.direction import sees_ahead
from headscope.capture.model.dispatched import find_device, list_devices, refuse_unplaced
from headscope.capture.model.modality import refuse_other_inputs
from headscope.capture.model.parameters import hash_parameters
from headscope.capture.model.saved import SavedTexts
from headscope.capture.model.shape import WITHOUT_ATTENTION, Shape
from headscope.capture.model.sizes import find_limit, read_first, refuse_form
from headscope.capture.model.tokenizer import refuse_tokenizer
from headscope.errors import ModelError
from headscope.results import Described

_UNLIMITED = 10**6
"""A limit above this number of tokens counts as no limit: tokenizers without a limit state a huge number."""


@dataclass(frozen=True, eq=False, repr=False)
class Model(Described):
    """A transformer ready to be observed.

    Attributes:
        module: The transformers model, in evaluation mode.
        tokenizer: Its tokenizer. It is a fast one, since words must be traced to tokens.
        name: The name by which the user gave the model.
        revision: The commit of a hub model; empty for other models.
        weights_sha256: The SHA-256 of the weights file (of all its parts in the order of their names), or of the
            parameters themselves if the model did not come from a file.
        adapter_of: The name of the model that an adapter was trained for, if the module has an adapter; otherwise
            empty.
        adapter_of_sha256: The SHA-256 of the weights of that model, as far as it is known: of its file, or of the
            parameters of a model in memory, or both with a space between them.
        placebo_of: The SHA-256 of the adapter of which this one is a placebo; otherwise empty.
        saved: The texts whose attention another engine saved, if these are measured in place of a model; otherwise
            None.
        dtype_asked: The numerical type that the user chose for loading; None for the type of the weights.
        gpu_unused: The reason why the model is not on an available GPU, if the user named no device; otherwise empty.
    """

    module: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    name: str
    revision: str
    weights_sha256: str
    adapter_of: str = ""
    adapter_of_sha256: str = ""
    placebo_of: str = ""
    saved: SavedTexts | None = None
    dtype_asked: Dtype | None = None
    gpu_unused: str = ""

    @classmethod
    def from_module(
        cls,
        module: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        name: str = "",
        revision: str = "",
        weights_sha256: str = "",
        adapter_of: str = "",
    ) -> "Model":
        """Wrap a model that is in memory already, with its task head if it has one.

        The module is put into evaluation mode. Without a hash of the weights file, the parameters are hashed.

        Raises:
            ModelError: The model does not read tokens of text, or no layer has attention, or layers have different
                numbers of heads. Or its weights are on several devices without hooks of accelerate. Or the tokenizer is
                a slow one, does not read running text, or has more tokens than the model. Or the two sides of an
                encoder-decoder have two vocabularies.
        """
        name = name or type(module).__name__
        refuse_other_inputs(module, name)
        _refuse_without_attention(module, name)
        try:
            Shape.from_config(module.config)
        except (AttributeError, TypeError) as error:
            raise refuse_form(name, error) from error
        refuse_unplaced(module, name)
        refuse_tokenizer(module, tokenizer, name)
        digest = weights_sha256 or hash_parameters(module, name)
        return cls(module.eval(), tokenizer, name, revision, digest, adapter_of)

    def __repr__(self) -> str:
        """Return the name, the architecture, the sizes and the device of the model in one line."""
        shape = self.shape
        sizes = ", ".join(f"{n} x {shape.heads[kind]} heads ({kind})" for kind, n in shape.layers.items())
        return f"Model({self.name!r}, {type(self.module).__name__}, {sizes}, {self.device})"

    @property
    def title(self) -> str:
        """The name of the model and the class of its module, for messages."""
        return f"{self.name!r} ({type(self.module).__name__})"

    @property
    def device(self) -> torch.device:
        """The device of the weights; if there are several, the device of the first weights, which gets the inputs."""
        return find_device(self.module)

    @property
    def devices(self) -> tuple[torch.device, ...]:
        """The devices on which parts of the model run."""
        return list_devices(self.module)

    def without_head(self) -> "Model":
        """Return the model without its task head, sharing its memory; a model without a head is returned as it is."""
        module = self.module.base_model
        return self if module is self.module else replace(self, module=module)

    def require_weights(self, what: str) -> None:
        """Raise an error if there is only saved attention, for work that needs the model itself.

        Args:
            what: The work, as the error names it.

        Raises:
            ModelError: There is no model, only saved queries, keys and values.
        """
        if self.saved is not None:
            raise ModelError(
                f"{self.name!r} holds saved queries, keys and values, and {what} needs the model that they come from; "
                "give that, or measure the folder with `headscope measure`.",
                lacks_head=True,
            )

    @property
    def layers(self) -> Mapping[str, int]:
        """The number of layers of each attention type: ``encoder``, ``decoder`` (causal) or ``cross``."""
        return self.sizes.layers

    @property
    def attention_layers(self) -> Mapping[str, tuple[int, ...]]:
        """The numbers of the layers with attention, by attention type. In a hybrid model not all layers have it."""
        return self.sizes.attention_layers

    @property
    def shape(self) -> Shape:
        """The layers, heads and vocabulary of the model."""
        return replace(self.sizes, vocabulary=self.tokenizer.get_vocab())

    @cached_property
    def sizes(self) -> Shape:
        """The layers and heads of the model, without the vocabulary, which takes a while to list."""
        return Shape.from_config(self.module.config, causal=self.is_causal)

    @cached_property
    def is_causal(self) -> bool | None:
        """Whether a token sees only itself and earlier tokens, as the mask shows.

        None if that cannot be found out, for an encoder-decoder, and for saved attention.
        """
        if self.saved is not None or self.module.config.is_encoder_decoder:
            return None
        ahead = sees_ahead(self.module)
        return None if ahead is None else not ahead

    @property
    def start_id(self) -> int | None:
        """The id of the token with which the decoder of an encoder-decoder starts; None for other models."""
        config = self.module.config
        if not config.is_encoder_decoder:
            return None
        start: int | None = read_first(config, "decoder_start_token_id", "bos_token_id", "pad_token_id")
        return start

    @property
    def max_tokens(self) -> int | None:
        """The number of tokens of the longest text that the model reads, special tokens included; None for no limit."""
        config = self.module.config
        parts = {id(part): part for part in (getattr(config, side, None) for side in ("encoder", "decoder")) if part}
        limits = [self.tokenizer.model_max_length]
        positions = map(find_limit, parts.values() or [config.get_text_config()])
        reserved = _positions_reserved(self.module) + (self.start_id is not None)
        limits += [limit - reserved for limit in positions if limit is not None]
        limit = min(limits)
        return None if limit > _UNLIMITED else int(limit)

    @cached_property
    def punctuation_ids(self) -> Int[Tensor, " token"]:
        """The ids of the tokens that are a full stop or a comma, with or without the mark of a word's start."""
        vocabulary = self.tokenizer.get_vocab()
        return torch.tensor(
            sorted(i for token, i in vocabulary.items() if token.removesuffix("</w>").strip("Ġ▁ ") in {".", ","}),
            dtype=torch.long,
        )


def _refuse_without_attention(module: PreTrainedModel, name: str) -> None:
    kinds = dict.fromkeys(getattr(module.config.get_text_config(), "layer_types", None) or ())
    if kinds and WITHOUT_ATTENTION.issuperset(kinds):
        raise ModelError(
            f"no layer of {name!r} ({type(module).__name__}) has attention heads, but only "
            f"{', '.join(kinds).replace('_', ' ')}; give a model with heads."
        )


def _positions_reserved(module: PreTrainedModel) -> int:
    """Count the position embeddings that no token gets: RoBERTa counts positions from after its padding index."""
    for name, part in module.named_modules():
        if name.endswith("position_embeddings") and getattr(part, "padding_idx", None) is not None:
            return int(part.padding_idx) + 1
    return 0
