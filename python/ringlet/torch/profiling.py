"""What torch's profiler sees of operations."""

from __future__ import annotations

import threading
from typing import Any, Optional, Sequence

import torch


class Event:
    """An event of the profiler's that has begun. It ends on the library's thread, with the profiler's state of the thread where it began."""

    def __init__(self, name: str, inputs: Sequence[Any]) -> None:
        self._handle = torch._C._autograd._record_function_with_args_enter(name, *inputs)
        self._over = threading.Event()
        self._ended: Optional[torch.futures.Future] = None

    def cancel(self) -> None:
        """Ends it here: what it stood for has not begun."""
        torch._C._autograd._record_function_with_args_exit(self._handle)

    def end_later(self) -> None:
        """Has it end with end()."""
        self._ended = torch.futures.Future()
        torch.ops.profiler._call_end_callbacks_on_jit_fut(self._handle, self._ended)

    def end(self) -> None:
        if self._ended is not None:
            self._ended.set_result(None)
        self._over.set()

    def wait(self) -> None:
        self._over.wait()


def begin_event(name: str, inputs: Sequence[Any]) -> Optional[Event]:
    """An event, if the profiler runs."""
    return Event(name, inputs) if torch._C._autograd._profiler_enabled() else None
