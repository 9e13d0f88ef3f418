"""Who measures a corpus, checked before anything is imported that takes seconds. No torch here."""

from importlib.util import find_spec
from pathlib import Path
from typing import Literal, TypeAlias

from headscope.capture.model.device_names import AUTO, PROCESSOR
from headscope.errors import HeadscopeError, quote

Engine: TypeAlias = Literal["local", "ray"]
RAY: Engine = "ray"
"""Where a corpus can be measured: by this process, or by the workers of a Ray cluster."""


def check_engine(engine: str, workers: int | None, model: object, device: str = AUTO, **others: object) -> None:
    """Raise an error for an engine with which something cannot be measured.

    Args:
        engine: an `Engine`.
        workers: the number of workers; None if none is given.
        model: what is measured.
        device: where the model is to run.
        others: options that Ray does not have, by name; what is None or False was not given.

    Raises:
        HeadscopeError: Ray is not installed, or one of the arguments is not for the engine.
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
