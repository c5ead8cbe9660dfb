"""Operations that run while the program goes on."""

from __future__ import annotations

import asyncio
import os
from typing import Any, Callable, Generator, Generic, Optional, TypeVar

from . import _ringlet
from .errors import Error

T = TypeVar("T")

os.register_at_fork(after_in_child=_ringlet.begin_process)


class Work(Generic[T]):
    """The handle of an operation that was started. It need not be kept: the operation goes on without it, and its arrays are kept for it."""

    def __init__(self, operation: _ringlet.Operation, finish: Callable[[], T]) -> None:
        self._operation = operation
        self._finish: Optional[Callable[[], T]] = finish
        self._result: Optional[T] = None

    def __repr__(self) -> str:
        return f"<ringlet.Work: {'ended' if self.done() else 'running'}>"

    def wait(self, timeout: Optional[float] = None) -> T:
        """Waits until the operation has ended, and returns its result. Raises its error.

        If `timeout` seconds pass before, it raises Python's TimeoutError, and the operation goes on. (ringlet.Timeout, which is no
        TimeoutError, is the error of an operation whose own deadline has passed.) Ctrl-C ends the waiting, but not the operation.
        """
        if timeout is None:
            self._operation.wait(None)
        elif not self._operation.wait(timeout):
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
            self._operation.on_done(lambda _: _end_soon(loop, ended))
            yield from ended
        return self.wait()


def nothing() -> None:
    """The result of what has none."""


def _end_soon(loop: asyncio.AbstractEventLoop, ended: asyncio.Future) -> None:
    try:
        loop.call_soon_threadsafe(_end, ended)
    except RuntimeError:
        pass  # the loop is closed


def _end(ended: asyncio.Future) -> None:
    if not ended.done():
        ended.set_result(None)
