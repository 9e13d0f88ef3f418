"""The connection to a Ray cluster, and the room in it (extra ``ray``)."""

import logging
import os
import signal
import socket
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

import ray
import ray.data
from ray._private import ray_constants

from headscope.errors import HeadscopeError, first_line

PATIENCE = 10.0
"""The number of seconds in which a cluster must answer. Ray itself tries for a quarter of an hour."""

TOKEN_ERROR = "AuthenticationError"
"""Ray's name for a missing or wrong token, in the causes of an error or in its text."""

UV_SETTING = "RAY_ENABLE_UV_RUN_RUNTIME_ENV"
"""The environment variable that decides whether workers under `uv run` get a new environment of their own."""


@contextmanager
def connected() -> Iterator[None]:
    """Connect to the Ray cluster that RAY_ADDRESS names; if it names none, start a cluster on this machine.

    Raises:
        HeadscopeError: This process is connected already, or no cluster answers.
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
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.max_consecutive_actor_init_deaths = 0  # such a death comes after all restarts of the worker
    if UV_SETTING not in os.environ:
        # Under `uv run` Ray would make a new environment for each worker. It read its setting when it was imported.
        setattr(ray_constants, UV_SETTING, False)
    # Ray would end the process at SIGTERM, and headscope could not print how to continue.
    ended = signal.getsignal(signal.SIGTERM)
    try:
        with _silenced():
            ray.init(
                address=address or "local", include_dashboard=None if address else False, log_to_driver=False,
                logging_level=logging.CRITICAL,
            )  # fmt: skip
    except (ConnectionError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        # Ray says "Failed to connect" for a wrong token as well; the causes name the reason.
        if TOKEN_ERROR in "".join(traceback.format_exception(error)):
            raise HeadscopeError(
                f"the Ray cluster at {address or 'this machine'} wants a token, and has not got the right one; set "
                "RAY_AUTH_MODE=token, and RAY_AUTH_TOKEN to the token of the cluster (or RAY_AUTH_TOKEN_PATH to a file "
                "that has it)."
            ) from error
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
    """Hide the line in which the compiled part of Ray prints its log level."""
    sys.stderr.flush()
    shown, nothing = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nothing, 2)
        yield
    finally:
        os.dup2(shown, 2)
        os.close(shown)
        os.close(nothing)


def has_gpus(workers: int | None) -> bool:
    """Return True if the cluster has a GPU for each of `workers`, or at least one GPU if `workers` is None."""
    return sum(int(node["Resources"].get("GPU", 0)) for node in ray.nodes() if node["Alive"]) >= (workers or 1)


def divide_cores(workers: int | None, *, gpu: bool) -> tuple[int, int]:
    """Return the number of workers, and the number of cores of each, so that all workers fit into the cluster.

    With GPUs, each worker has one core and one GPU.

    Raises:
        HeadscopeError: There is not a core or a GPU for each worker.
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


def find_missing(workers: int, cores: int, *, gpu: bool) -> str:
    """Return the number of cores or GPUs that workers need but that are in use, such as ``2 cores``; empty if none."""
    kind, named = ("GPU", "GPU") if gpu else ("CPU", "core")
    needed = workers if gpu else workers * cores
    missing = needed - int(ray.available_resources().get(kind, 0))
    return f"{missing} {named}{'' if missing == 1 else 's'}" if missing > 0 else ""
