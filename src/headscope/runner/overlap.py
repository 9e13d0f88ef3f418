"""Two batches at a time on a GPU: while it works on one, the next is prepared and the one before is summed.

portions --> two lanes in turn, each a thread with a stream of the GPU --> results, in the order of the portions

A thread that reads a number from a GPU waits for everything that was launched before it on the same stream. With one
stream the GPU would then have nothing to do until the next batch is launched. With short batches it would be idle most
of the time.
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
    """Return the GPU on which two batches run at a time; None if batches run one after the other."""
    (device, *others) = model.devices
    if others or device.type != "cuda" or is_held_here(list_configs(model.module)):
        return None
    return device


def run_portions(
    model: Model, portions: Iterable[Portion], run: Callable[[Portion], R], batch_tokens: int | None
) -> Iterator[list[R]]:
    """Yield the results of `run` for each portion in order; a portion that does not fit into memory is run in parts.

    Args:
        model: The model that reads. If it is on one GPU, `run` is called for two portions at a time, each in a thread.
        portions: The portions of batches.
        run: A function that waits for the GPU before it returns, and stores nothing if it fails.
        batch_tokens: The requested number of tokens of a batch; None for the number that fits into memory.
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
    """Run two portions at a time and yield the results in order, until two portions do not fit into memory together."""
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
    """Return the results of the portion that was begun first, and whether both portions fit into memory together."""
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
    """A thread that runs portions on its own stream of a GPU.

    Attributes:
        gpu: The GPU.
        thread: The thread, which runs one portion after the other.
        stream: The stream on which the thread launches.
    """

    gpu: torch.device
    thread: ThreadPoolExecutor
    stream: torch.cuda.Stream

    def begin(self, portion: Portion, run: Callable[[Portion], R], room: Room) -> "Future[list[R]]":
        """Start a portion that was prepared on the current stream, and return a future of its results."""
        laid_out = torch.cuda.current_stream(self.gpu).record_event()

        def run_here() -> list[R]:
            self.stream.wait_event(laid_out)
            with torch.cuda.stream(self.stream):
                return [*replace(room, is_shared=True).run(portion, run)]

        return self.thread.submit(copy_context().run, run_here)
