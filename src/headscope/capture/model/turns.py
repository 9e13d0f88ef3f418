"""Lets threads take turns at changing the configurations of a model, which name its attention implementation.

A configuration belongs to a module of transformers. Several `Model` objects may wrap that module, and several modules
may share a configuration. So threads hold configurations, and two models with separate configurations run in parallel.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Condition, get_ident

from transformers import PreTrainedConfig, PreTrainedModel

_turn = Condition()
_holders: dict[int, int] = {}
"""The thread that holds each configuration, by the configuration's id.

An entry lasts as long as the ``with`` block that holds its configuration, so an id cannot mean another configuration.
"""


def list_configs(module: PreTrainedModel) -> tuple[PreTrainedConfig, ...]:
    """Return the configurations that hold an attention implementation: of the model and of its parts, each once."""
    configs = [part.config for part in module.modules() if isinstance(part, PreTrainedModel)]
    for config in configs:  # the list grows during the loop
        configs += [part for key in config.sub_configs if (part := getattr(config, key)) is not None]
    return tuple({id(config): config for config in configs}.values())


def is_held_here(configs: Sequence[PreTrainedConfig]) -> bool:
    """Return whether this thread holds one of the configurations, so that other threads would wait for it."""
    with _turn:
        return any(_holders.get(id(config)) == get_ident() for config in configs)


@contextmanager
def hold(configs: Sequence[PreTrainedConfig]) -> Iterator[None]:
    """Wait until no other thread holds one of the configurations, and hold all of them inside the ``with`` block.

    After the block, even after an error, each configuration has its former attention implementation again. Blocks of
    one model may be nested in one thread.
    """
    thread = get_ident()
    with _turn:
        # All are held at once, so that two threads cannot wait for each other.
        _turn.wait_for(lambda: all(_holders.get(id(config), thread) == thread for config in configs))
        fresh = [id(config) for config in configs if id(config) not in _holders]
        _holders.update(dict.fromkeys(fresh, thread))
    before = [config._attn_implementation for config in configs]
    try:
        yield
    finally:
        # Setting a configuration also sets its parts; these come later in the list, so they are restored after it.
        for config, name in zip(configs, before, strict=True):
            config._attn_implementation = name
        with _turn:
            for key in fresh:
                del _holders[key]
            _turn.notify_all()
