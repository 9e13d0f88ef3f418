"""The configurations of a model, which name its attention implementation: who changes them takes turns.

A configuration belongs to a module of transformers, which several of our models may wrap, and several modules may
share one. So what is held is the configuration, and two models with configurations of their own run side by side.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Condition, get_ident

from transformers import PreTrainedConfig, PreTrainedModel

_turn = Condition()
_holders: dict[int, int] = {}
"""The thread that holds each configuration, by its id. Nothing stays here: who holds a configuration keeps it alive."""


def list_configs(module: PreTrainedModel) -> tuple[PreTrainedConfig, ...]:
    """Those in which the parts of a model find the name of their attention implementation."""
    configs = [part.config for part in module.modules() if isinstance(part, PreTrainedModel)]
    for config in configs:  # which grows
        configs += [part for key in config.sub_configs if (part := getattr(config, key)) is not None]
    return tuple({id(config): config for config in configs}.values())


def is_held_here(configs: Sequence[PreTrainedConfig]) -> bool:
    """Return whether this thread holds one of the configurations, for which other threads would wait."""
    with _turn:
        return any(_holders.get(id(config)) == get_ident() for config in configs)


@contextmanager
def hold(configs: Sequence[PreTrainedConfig]) -> Iterator[None]:
    """Wait until no other thread holds one of the configurations, and hold all of them during the block.

    Afterwards, even after an error, each has the attention implementation again that it had. Blocks of one model may be
    nested in one thread.
    """
    thread = get_ident()
    with _turn:
        # All at once, so that two threads that hold a part each cannot wait for one another.
        _turn.wait_for(lambda: all(_holders.get(id(config), thread) == thread for config in configs))
        fresh = [id(config) for config in configs if id(config) not in _holders]
        _holders.update(dict.fromkeys(fresh, thread))
    before = [config._attn_implementation for config in configs]
    try:
        yield
    finally:
        # Setting a configuration sets its parts, which come behind it and so are restored last.
        for config, name in zip(configs, before, strict=True):
            config._attn_implementation = name
        with _turn:
            for key in fresh:
                del _holders[key]
            _turn.notify_all()
