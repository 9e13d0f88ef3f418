"""Turns for work that cannot run twice at once, such as questions to a model.

work --`Turns.do`--> is done when all before it is; refused where too much waits, dropped where nobody waits for it
"""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from queue import SimpleQueue
from typing import Any, TypeVar

MOST_WAITING = 16
"""How many may wait for their turn."""

LOOK_SECONDS = 0.2
"""Seconds between two looks whether a client that waits is still there."""

Result = TypeVar("Result")


class BusyError(Exception):
    """Too many wait already; the message says so."""


class ClientLeftError(Exception):
    """Who waited has left."""


class Turns:
    """Does one piece of work after another, in the order in which they came.

    One thread does all of it, since each that computes with torch would keep memory of its own.
    """

    def __init__(self) -> None:
        self._queue: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        self._open: set[Future[Any]] = set()
        self._entrance = threading.Lock()
        threading.Thread(target=self._work, daemon=True).start()

    def __len__(self) -> int:
        """Return how many work or wait."""
        return len(self._open)

    def do(self, work: Callable[[], Result], has_left: Callable[[], bool]) -> Result:
        """Wait for the turn, and return the result of the work.

        Args:
            work: that is done.
            has_left: says whether nobody waits any more.

        Raises:
            BusyError: too many wait.
            ClientLeftError: nobody waits any more.
        """
        future: Future[Result] = Future()
        until = time.monotonic() + 2 * LOOK_SECONDS  # those who have left are gone by then
        while not self._enter(future):
            if time.monotonic() > until:
                raise BusyError(f"busy: {MOST_WAITING} questions wait for their answers; ask again in a moment.")
            time.sleep(LOOK_SECONDS / 4)
        future.add_done_callback(self._open.discard)
        self._queue.put((future, work))
        while not wait([future], LOOK_SECONDS).done:
            if has_left() and future.cancel():
                raise ClientLeftError
        return future.result()

    def close(self) -> None:
        """End the thread when it has done the waiting work."""
        self._queue.put(None)

    def _enter(self, future: Future[Any]) -> bool:
        """Return whether there was room to wait, which is then taken."""
        with self._entrance:
            has_room = len(self._open) <= MOST_WAITING
            if has_room:
                self._open.add(future)
            return has_room

    def _work(self) -> None:
        for future, work in iter(self._queue.get, None):
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(work())
                except BaseException as error:  # which is for who waits
                    future.set_exception(error)
            del future, work  # while the queue is empty, nothing is kept
