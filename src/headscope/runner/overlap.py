"""Two batches at a time on a GPU: while it works on one, the next is laid out and the one before is added up.

portions --> two lanes in turn, each a thread with a stream of the GPU --> results, in the order of the portions

Whoever reads a number from a GPU waits for all that was launched before it on the same stream. With one stream the GPU
would then have nothing to do until the next batch is launched, and of short batches it would stand still most of the
time.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from contextvars import copy_context
from dataclasses import dataclass, replace
from itertools import cycle
from typing import TypeVar

import torch

from headscope.capture.model.forward import is_out_of_memory
from headscope.capture.model.model import Model
from headscope.capture.model.turns import is_held_here, list_configs
from headscope.capture.passes.room import Room
from headscope.capture.passes.stream import Portion

R = TypeVar("R")

LANES = 2

_make_stream: Callable[[torch.device], torch.cuda.Stream] = torch.cuda.Stream


def find_gpu(model: Model) -> torch.device | None:
    """Return the GPU on which two batches are run at a time; None where batches are run one after the other."""
    (device, *others) = model.devices
    if others or device.type != "cuda" or is_held_here(list_configs(model.module)):
        return None
    return device


def run_portions(
    model: Model, portions: Iterable[Portion], run: Callable[[Portion], R], batch_tokens: int | None
) -> Iterator[list[R]]:
    """Yield what a function returns of each portion, or of each of its parts where the whole does not fit, in order.

    Args:
        model: that reads; where it is on one GPU, `run` is called for two portions at a time, each in a thread.
        portions: of batches.
        run: must leave nothing on the GPU to be waited for, and keep nothing of a call that fails.
        batch_tokens: the tokens that were asked for; None for what fits.
    """
    gpu = find_gpu(model)
    room = Room.measure(model, batch_tokens, 1 if gpu is None else LANES)
    rest = iter(portions)
    if gpu is not None:
        yield from _run_overlapped(gpu, rest, run, room)
    for portion in rest:
        yield [*room.run(portion, run)]


def _run_overlapped(
    gpu: torch.device, portions: Iterator[Portion], run: Callable[[Portion], R], room: Room
) -> Iterator[list[R]]:
    """Do what `run_portions` does, up to the first portions that do not fit into memory together."""
    begun = deque[tuple[Portion, Future[list[R]]]]()
    with ExitStack() as threads:
        lanes = [_Lane(gpu, threads.enter_context(ThreadPoolExecutor(1)), _make_stream(gpu)) for _ in range(LANES)]
        for portion, lane in zip(portions, cycle(lanes), strict=False):
            begun.append((portion, lane.begin(portion, run, room)))
            if len(begun) == LANES:
                results, fits = _finish(begun, run, room)
                yield results
                if not fits:
                    break
        while begun:
            results, _ = _finish(begun, run, room)
            yield results


def _finish(
    begun: deque[tuple[Portion, "Future[list[R]]"]], run: Callable[[Portion], R], room: Room
) -> tuple[list[R], bool]:
    """Return the results of the portion that was begun first, and whether it fit into memory beside the next."""
    portion, future = begun.popleft()
    try:
        return future.result(), True
    except Exception as error:
        if not is_out_of_memory(error):
            raise
    wait([other for _, other in begun])
    room.clear()
    return [*room.run(portion, run)], False


@dataclass(frozen=True)
class _Lane:
    """A thread with a stream of a GPU.

    Attributes:
        gpu: the GPU.
        thread: runs one portion after the other.
        stream: on which the thread launches.
    """

    gpu: torch.device
    thread: ThreadPoolExecutor
    stream: torch.cuda.Stream

    def begin(self, portion: Portion, run: Callable[[Portion], R], room: Room) -> "Future[list[R]]":
        """Return what will be the results of a portion, which is laid out on the stream of all others."""
        laid_out = torch.cuda.current_stream(self.gpu).record_event()

        def run_here() -> list[R]:
            self.stream.wait_event(laid_out)
            with torch.cuda.stream(self.stream):
                return [*replace(room, is_shared=True).run(portion, run)]

        return self.thread.submit(copy_context().run, run_here)
