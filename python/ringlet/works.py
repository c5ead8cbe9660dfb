"""Operations that run while the program goes on."""

from __future__ import annotations

import asyncio
import threading
from typing import Any, Callable, Generator, Generic, Optional, TypeVar

from . import _ringlet
from .errors import Error

T = TypeVar("T")


class Work(Generic[T]):
    """The handle of an operation that was started. It need not be kept: the operation goes on without it, and its arrays are kept for it."""

    def __init__(self, operation: _ringlet.Operation, finish: Callable[[], T]) -> None:
        self._operation = operation
        self._finish: Optional[Callable[[], T]] = finish
        self._result: Optional[T] = None

    def wait(self, timeout: Optional[float] = None) -> T:
        """Waits until the operation has ended, and returns its result. Raises its error.

        If `timeout` seconds pass before, it raises Python's TimeoutError, and the operation goes on. (ringlet.Timeout, which is no
        TimeoutError, is the error of an operation whose own deadline has passed.) Ctrl-C ends the waiting, but not the operation.
        """
        if not self._operation.wait(timeout):
            raise TimeoutError(f"the operation still runs after {timeout} s")
        if self._finish is not None:
            self._result, self._finish = self._finish(), None
        return self._result  # type: ignore[return-value]

    def done(self) -> bool:
        """Whether the operation has ended, in success or failure. Does not wait."""
        return self._operation.done()

    def on_done(self, function: Callable[[Optional[Error]], object]) -> None:
        """Calls `function` once the operation has ended, or soon if it has already, with the operation's error, or None.

        It runs on a thread that the process has for such calls alone, one after the other, also if this work is gone by then; until the
        program ends.
        """
        self._operation.on_done(function)

    def __await__(self) -> Generator[Any, None, T]:
        if not self._operation.done():
            loop = asyncio.get_running_loop()
            ended = loop.create_future()
            _watcher.watch(self._operation, loop, ended)
            yield from ended
        return self.wait()


class _Watcher:
    """One thread that waits for all operations that are awaited, and tells their event loops."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._watched: list = []
        self._thread: Optional[threading.Thread] = None
        self._stopped = False

    def watch(self, operation: _ringlet.Operation, loop: asyncio.AbstractEventLoop, ended: asyncio.Future) -> None:
        with self._changed:
            self._watched.append((operation, loop, ended))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="ringlet-awaited", daemon=True)
                self._thread.start()
            self._changed.notify()

    def stop(self) -> None:
        """At exit: the thread must not run when the interpreter is gone."""
        with self._changed:
            self._stopped = True
            self._changed.notify()
            thread = self._thread
        if thread is not None:
            thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._watched or self._stopped)
                if self._stopped:
                    return
                watched = list(self._watched)
            try:
                watched[0][0].wait(0.002)
            except Error:
                pass  # it is raised where the work is awaited
            over = [entry for entry in watched if entry[0].done()]
            with self._changed:
                self._watched = [entry for entry in self._watched if entry not in over]
            for _, loop, ended in over:
                try:
                    loop.call_soon_threadsafe(_end, ended)
                except RuntimeError:
                    pass  # the loop is closed


def nothing() -> None:
    """The result of what has none."""


def _end(ended: asyncio.Future) -> None:
    if not ended.done():
        ended.set_result(None)


_watcher = _Watcher()
stop_watching = _watcher.stop
