"""A queue for work that cannot run twice at once, such as questions to a model.

work --`Turns.do`--> is done when all before it is; refused where too much waits, dropped where nobody waits for it
"""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from queue import SimpleQueue
from typing import Any, TypeVar

MOST_WAITING = 16
"""The maximum number of pieces of work that wait for their turn."""

LOOK_SECONDS = 0.2
"""The time in seconds between two checks whether a waiting client is still connected."""

Result = TypeVar("Result")


class BusyError(Exception):
    """The error for work that finds too many others waiting; the message is for the user."""


class ClientLeftError(Exception):
    """The error for work whose client has left before its turn."""


class Turns:
    """A queue that does one piece of work after another, in the order of arrival.

    One thread does all the work, since each thread that computes with torch would keep memory of its own.
    """

    def __init__(self) -> None:
        self._queue: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        self._open: set[Future[Any]] = set()
        self._entrance = threading.Lock()
        threading.Thread(target=self._work, daemon=True).start()

    def __len__(self) -> int:
        """Return the number of pieces of work that run or wait."""
        return len(self._open)

    def do(self, work: Callable[[], Result], has_left: Callable[[], bool]) -> Result:
        """Wait for the turn, do the work, and return its result.

        Args:
            work: A function that does the work.
            has_left: A function that returns True if nobody waits for the result any more.

        Raises:
            BusyError: Too many others wait.
            ClientLeftError: The client left before its turn.
        """
        future: Future[Result] = Future()
        until = time.monotonic() + 2 * LOOK_SECONDS  # by then, clients that have left are removed
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
        """End the thread after it has done the waiting work."""
        self._queue.put(None)

    def _enter(self, future: Future[Any]) -> bool:
        """Add the work to the queue if there is room, and return whether there was."""
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
                except BaseException as error:  # the waiting client gets the error
                    future.set_exception(error)
            del future, work  # keep nothing in memory while the queue is empty
