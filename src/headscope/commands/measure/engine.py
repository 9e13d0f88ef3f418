"""The check of the engine that measures a corpus, before slow imports. This module needs no torch."""

from importlib.util import find_spec
from pathlib import Path
from typing import Literal, TypeAlias

from headscope.capture.model.device_names import AUTO, PROCESSOR
from headscope.errors import HeadscopeError, quote

Engine: TypeAlias = Literal["local", "ray"]
RAY: Engine = "ray"
"""The engine that measures a corpus on the workers of a Ray cluster; the other engine is the process itself."""


def check_engine(engine: str, workers: int | None, model: object, device: str = AUTO, **others: object) -> None:
    """Raise an error for an engine that cannot be used with the given arguments.

    Args:
        engine: The name of the engine, an `Engine`.
        workers: The number of workers; None if it is not given.
        model: The model to measure.
        device: The device on which the model runs.
        others: Options that Ray does not support, by name; the value is None or False if an option is not given.

    Raises:
        HeadscopeError: Ray is not installed, or the engine does not accept one of the arguments.
    """
    if engine != RAY:
        if workers is not None:
            raise HeadscopeError("only Ray has workers; leave out `workers`, or add `engine` ray.")
        return
    if given := next((name for name, value in others.items() if value), None):
        raise HeadscopeError(f"`{given}` does not work with `engine` ray; leave out one of them.")
    if not isinstance(model, str | Path):
        raise HeadscopeError(
            "each worker loads the model by itself, and a loaded one was given; give its name or its folder."
        )
    if device not in (AUTO, PROCESSOR, "cuda"):
        raise HeadscopeError(
            f"Ray gives each worker a device, and {quote(device)} was asked for; give cpu, or cuda for one GPU each."
        )
    if find_spec("ray") is None or find_spec("pyarrow") is None:
        raise HeadscopeError(
            "the engine ray needs Ray, which is not installed; install headscope with the extra `ray`: pip install "
            "'headscope[ray]'."
        )
