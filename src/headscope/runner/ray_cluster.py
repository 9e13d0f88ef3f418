"""The connection to a Ray cluster, and the room in it (extra ``ray``)."""

import logging
import os
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import ray
import ray.data

from headscope.errors import HeadscopeError, first_line

PATIENCE = 10.0
"""Seconds in which a cluster must answer. Ray itself tries for a quarter of an hour."""


@contextmanager
def connected() -> Iterator[None]:
    """The connection to the cluster that RAY_ADDRESS names, or to one that is started here.

    Raises:
        HeadscopeError: this process is connected already, or no cluster answers.
    """
    if ray.is_initialized():
        raise HeadscopeError("this process is connected to a Ray cluster already; call ray.shutdown() first.")
    address = os.environ.get("RAY_ADDRESS", "")
    wanted = "start one there (`ray start --head`), or unset RAY_ADDRESS to have one started on this machine"
    host, _, port = address.rpartition(":")
    if port.isdecimal() and "/" not in host:
        try:
            socket.create_connection((host, int(port)), PATIENCE).close()
        except (OSError, OverflowError) as error:
            reason = first_line(error)
            raise HeadscopeError(f"no Ray cluster answers at RAY_ADDRESS={address} ({reason}); {wanted}.") from error
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)
    ray.data.DataContext.get_current().enable_progress_bars = False
    # Ray would end the process where headscope says how to go on.
    ended = signal.getsignal(signal.SIGTERM)
    try:
        with _silenced():
            ray.init(
                address=address or "local", include_dashboard=None if address else False, log_to_driver=False,
                logging_level=logging.CRITICAL,
            )  # fmt: skip
    except (ConnectionError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        # Ray says "Failed to connect" of a wrong token as well; the reason is below.
        reason = first_line(error.__cause__ or error.__context__ or error)
        raise HeadscopeError(
            f"no connection to a Ray cluster at {address or 'this machine'} ({reason}); {wanted}."
        ) from error
    try:
        if ended is not None and signal.getsignal(signal.SIGTERM) is not ended:
            signal.signal(signal.SIGTERM, ended)
        yield
    finally:
        ray.shutdown()


@contextmanager
def _silenced() -> Iterator[None]:
    """Hide the line in which the compiled part of Ray says at what level it logs."""
    sys.stderr.flush()
    shown, nothing = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nothing, 2)
        yield
    finally:
        os.dup2(shown, 2)
        os.close(shown)
        os.close(nothing)


def divide_cores(workers: int | None, *, gpu: bool) -> tuple[int, int]:
    """The number of workers, and the number of cores that each can have so that all find a place.

    Raises:
        HeadscopeError: there is not a core or a GPU for each.
    """
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    kind, named = ("GPU", "GPUs") if gpu else ("CPU", "cores")
    room = sum(int(node.get(kind, 0)) for node in nodes)
    workers = workers or max(room, 1)
    if workers > room:
        raise HeadscopeError(
            f"{workers} {'worker was' if workers == 1 else 'workers were'} asked for, and the Ray cluster has {room} "
            f"{named}; ask for fewer workers (--workers), or for another device."
        )
    if gpu:
        return workers, 1
    cores = [int(node.get("CPU", 0)) for node in nodes]
    return workers, next(n for n in range(max(cores), 0, -1) if sum(held // n for held in cores) >= workers)
