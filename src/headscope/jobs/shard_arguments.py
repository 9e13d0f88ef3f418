"""Who measures which part of a corpus, checked before anything is imported that takes seconds. No torch here."""

from importlib.util import find_spec
from pathlib import Path

from headscope.corpora import Shard
from headscope.errors import HeadscopeError, quote

RAY = "ray"

ENGINES = ("local", RAY)
"""Where a corpus can be measured: by this process, or by the workers of a Ray cluster."""


def parse_shard(shard: str | None, **others: object) -> Shard | None:
    """The shard of a corpus to measure, or None for the whole corpus.

    Args:
        shard: as it is written, such as ``2/8``.
        others: options that are for a whole corpus alone, by name; what is None or False was not given.

    Raises:
        HeadscopeError: it is written in another way, there is no such shard, or one of the others was given.
    """
    if shard is None:
        return None
    if given := next((name for name, value in others.items() if value), None):
        raise HeadscopeError(
            f"--{given} needs the whole corpus, and a shard is a part of it; leave out --{given} or --shard."
        )
    return Shard.parse(shard)


def check_engine(engine: str, workers: int | None, model: object, device: str = "cpu", **others: object) -> None:
    """Refuse an engine that there is not, or with which something cannot be measured.

    Args:
        engine: one of `ENGINES`.
        workers: the number of workers that is asked for; None if none is.
        model: what is measured.
        device: where the model is to run.
        others: options that Ray does not have, by name; what is None or False was not given.

    Raises:
        HeadscopeError: there is no such engine, Ray is not installed, or one of the arguments is not for it.
    """
    if engine not in ENGINES:
        raise HeadscopeError(f"there is no engine {quote(engine)}; name one of {', '.join(ENGINES)}.")
    if engine != RAY:
        if workers is not None:
            raise HeadscopeError("only Ray has workers; add --engine ray, or leave out --workers.")
        return
    if workers is not None and workers < 1:
        raise HeadscopeError(f"{workers} workers measure nothing; give 1 or more.")
    if given := next((name for name, value in others.items() if value), None):
        raise HeadscopeError(f"--{given} does not work with --engine ray; leave out one of them.")
    if not isinstance(model, str | Path):
        raise HeadscopeError(
            "each worker loads the model by itself, and a loaded one was given; give its name or its folder."
        )
    if device not in ("cpu", "cuda"):
        raise HeadscopeError(
            f"Ray gives each worker a device, and {quote(device)} was asked for; give cpu, or cuda for one GPU each."
        )
    if find_spec("ray") is None or find_spec("pyarrow") is None:
        raise HeadscopeError(
            "the engine ray needs Ray, which is not installed; install headscope with the extra `ray`: pip install "
            "'headscope[ray]'."
        )
