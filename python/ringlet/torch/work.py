"""What an operation that runs is to torch."""

from __future__ import annotations

import sys
import threading
import time
from datetime import timedelta
from types import FrameType
from typing import Any, Callable, List, Optional, Sequence

import torch
import torch.distributed as dist

from .. import _ringlet
from ..errors import Error, Timeout
from .arguments import seconds_of
from .profiling import Event
from .tensors import mode_of_caller
from .tracing import untraced_class

_NO_TIMEOUT = timedelta(0)

# Hooks of torch's whose call-backs start collectives in the group of the hook's own, and wait for them.
_NESTING_HOOKS = "torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook"

# The library's thread that ends works, and so runs the call-backs of their futures.
_ending_thread: Optional[int] = None


def _is_ending_thread() -> bool:
    return threading.get_ident() == _ending_thread


def told(error: Error) -> Error:
    """The error as torch's users know it: they look for these words."""
    if isinstance(error, Timeout) and "timed out" not in str(error).lower():
        return Timeout(f"Ringlet: Timed out waiting for others: {error}", error.rank)
    return error


class _Ending:
    """What is left to do when the operations of a work have ended, which whoever sees that first does, once."""

    __slots__ = ("operations", "error", "_finish", "_lock", "_changing")

    def __init__(self, operations: Sequence[_ringlet.Operation], finish: Optional[Callable[[], None]]) -> None:
        self.operations = operations
        self.error: Optional[BaseException] = None
        self._finish = finish
        self._lock = threading.Lock() if finish is not None else None
        self._changing = mode_of_caller() if finish is not None else None

    @property
    def needed(self) -> bool:
        return self._finish is not None

    def settle(self) -> None:
        """Called when all operations have ended well."""
        if self._lock is None:
            return
        with self._lock:
            if self._finish is None or self._changing is None:
                return
            try:
                with self._changing():
                    self._finish()
            except Exception as error:
                self.error = error
            # Not before: others see by this that the results are where they belong.
            self._finish = None

    def when_done(self, function: Callable[[Optional[BaseException]], None]) -> None:
        """Calls `function` on the library's thread when all has been done, with the first error."""
        left = len(self.operations)
        first: Optional[BaseException] = None

        def one_ended(error: Optional[Error]) -> None:
            nonlocal left, first
            global _ending_thread
            _ending_thread = threading.get_ident()
            left -= 1
            if error is not None and first is None:
                first = told(error)
            if left == 0:
                if first is None:
                    self.settle()
                function(first or self.error)

        for operation in self.operations:
            operation.on_done(one_ended)
        if not self.operations:
            self.settle()
            function(self.error)


@untraced_class
class Work(dist.Work):
    """Operations that run, which are over when all of them are. If it is dropped they go on, and their tensors are kept for them.

    `finish` is called once, after the operations have ended well: it puts results where they belong. `source` is the rank that a receive
    receives from; -1 of others, None if it shows in the operation.
    """

    def __init__(
        self,
        operations: Sequence[_ringlet.Operation],
        results: List[Any],
        finish: Optional[Callable[[], None]] = None,
        source: Optional[int] = -1,
    ) -> None:
        super().__init__()
        self._ending = _Ending(operations, finish)
        self._results = results
        self._source = source
        self._future: Optional[torch.futures.Future] = None
        self._future_has_ended: Optional[threading.Event] = None
        self._event: Optional[Event] = None

    def __del__(self) -> None:
        ending = getattr(self, "_ending", None)
        if ending is not None and ending.needed:
            ending.when_done(lambda error: None)

    def record(self, event: Event) -> None:
        """Has the profiler's event end with the operations."""
        event.end_later()
        self._event = event
        self.when_done(lambda error: event.end())

    def wait(self, timeout: timedelta = _NO_TIMEOUT) -> bool:
        seconds = seconds_of(timeout) if timeout else 0.0
        deadline = time.monotonic() + seconds if seconds > 0 else None
        for operation in self._ending.operations:
            try:
                if not operation.wait(None if deadline is None else max(deadline - time.monotonic(), 0)):
                    raise Timeout(f"Ringlet: Timed out after {seconds} s; the operation still runs")
            except Error as error:
                self._wait_for_followers(deadline)
                raise told(error) from None
        self._ending.settle()
        self._wait_for_followers(deadline)
        if self._ending.error is not None:
            raise self._ending.error
        return True

    def _wait_for_followers(self, deadline: Optional[float]) -> None:
        """Waits for what the library's thread does when the operations have ended."""
        if _is_ending_thread():
            return
        if self._event is not None:
            self._event.wait()
        if self._future_has_ended is not None:
            self._future_has_ended.wait(None if deadline is None else max(deadline - time.monotonic(), 0))

    def when_done(self, function: Callable[[Optional[BaseException]], None]) -> None:
        """Calls `function` on the library's thread when the work is over, with its error, or None."""
        self._ending.when_done(function)

    def get_future(self) -> torch.futures.Future:
        if self._future is None:
            is_over = self._is_waited_for_at_once(sys._getframe().f_back) or self.is_completed()
            error = self._failure() if is_over else None
            has_ended = self._future_has_ended = threading.Event()
            ended: torch.futures.Future = torch.futures.Future()
            failure: List[BaseException] = []
            results = self._results

            def value(_: Any) -> Any:
                # What a callback raises becomes the future's own error, in C++ too.
                if failure:
                    raise failure[0]
                return results

            def end(error: Optional[BaseException]) -> None:
                if error is not None:
                    failure.append(error)
                ended.set_result(None)
                has_ended.set()

            self._future = ended.then(value)
            if is_over:
                end(error)
            else:
                self.when_done(end)
        return self._future

    def _is_waited_for_at_once(self, caller: Optional[FrameType]) -> bool:
        """Whether get_future() waits: in call-backs, since the thread that would end the future is theirs; and in hooks that nest, so that
        all collectives start on the program's thread, in the same order on all ranks."""
        return _is_ending_thread() or (caller is not None and caller.f_globals.get("__name__") == _NESTING_HOOKS)

    def _failure(self) -> Optional[BaseException]:
        try:
            self.wait()
        except Exception as error:
            return error
        return None

    def is_completed(self) -> bool:
        # The value of a completed work's future can be taken.
        if not self._is_over():
            return False
        return self._future_has_ended is None or self._future_has_ended.is_set() or _is_ending_thread()

    def _is_over(self) -> bool:
        operations = self._ending.operations
        if not all(operation.done() for operation in operations):
            return False
        if self._ending.needed:
            # Who polls reads the results without a call of wait().
            try:
                if not all(operation.wait(0) for operation in operations):
                    return False  # another thread is about to see the end
            except Error:
                return True  # wait() raises it
            self._ending.settle()
        return True

    def is_success(self) -> bool:
        return self.is_completed() and self.exception() is None

    def exception(self) -> Optional[BaseException]:
        return self._failure() if self.is_completed() else None

    def result(self) -> List[Any]:
        return self._results

    def synchronize(self) -> None:
        self.wait()

    def block_current_stream(self) -> None:
        self.wait()

    def source_rank(self) -> int:
        return self._ending.operations[0].source if self._source is None else self._source

    _source_rank = source_rank


@untraced_class
class LaterWork(Work):
    """A work whose operations are started one after the other, by call-backs."""

    def __init__(self, results: List[Any]) -> None:
        super().__init__([], results)
        self._over = threading.Event()
        self._error: Optional[BaseException] = None
        self._lock = threading.Lock()
        self._waiting: List[Callable[[Optional[BaseException]], None]] = []
        self._ending = self  # type: ignore[assignment]

    # What Work asks of an ending.
    operations: Sequence[_ringlet.Operation] = ()
    needed = False

    @property
    def error(self) -> Optional[BaseException]:
        return self._error

    def settle(self) -> None:
        pass

    def when_done(self, function: Callable[[Optional[BaseException]], None]) -> None:
        with self._lock:
            if not self._over.is_set():
                self._waiting.append(function)
                return
        function(self._error)

    def end(self, error: Optional[BaseException] = None) -> None:
        """Ends the work. Called once."""
        with self._lock:
            self._error = error
            self._over.set()
        for function in self._waiting:
            function(error)
        self._waiting.clear()

    def wait(self, timeout: timedelta = _NO_TIMEOUT) -> bool:
        seconds = seconds_of(timeout) if timeout else 0.0
        if not self._over.wait(seconds if seconds > 0 else None):
            raise Timeout(f"Ringlet: Timed out after {seconds} s; the operation still runs")
        return super().wait()

    def _is_over(self) -> bool:
        return self._over.is_set()

    def _is_waited_for_at_once(self, caller: Optional[FrameType]) -> bool:
        return False  # in a call-back that would keep its own ones from running
