"""Calls of groups, which their caller waits for or lets run."""

from __future__ import annotations

from typing import Any, Callable, Generic, List, Optional, Sequence, TypeVar

from . import _ringlet
from .arguments import wholes
from .errors import InvalidArgument
from .works import Work

T = TypeVar("T")
Counts = Optional[Sequence[int]]


class Call(Generic[T]):
    """A call of the binding that is ready to be made: `function`, whose last argument says whether its caller waits at once, with all other
    arguments. `finish` returns the result once the operation has ended."""

    def __init__(self, finish: Callable[..., T], function: Callable[..., _ringlet.Operation], *arguments: Any) -> None:
        self._finish = finish
        self._function = function
        self._arguments = arguments

    def start(self) -> Work[T]:
        """Lets the operation run beside the caller."""
        return self._begin(False)

    def wait(self) -> T:
        """Drives the operation on the caller's thread, so that no other has to wake up for it, and returns its result."""
        return self._begin(True).wait()

    def _begin(self, waits: bool) -> Work[T]:
        return Work(self._function(*self._arguments, waits), self._finish)


class CallFromAny(Call[T]):
    """A receive from any rank: `finish` is given the rank that has sent."""

    def _begin(self, waits: bool) -> Work[T]:
        operation = self._function(*self._arguments, waits)
        return Work(operation, lambda: self._finish(operation.source))


def whole_counts(counts: Counts, name: str = "counts") -> Optional[List[int]]:
    return None if counts is None else wholes(counts, name)


def rows_of(view: _ringlet.View) -> int:
    if not view.shape:
        raise InvalidArgument("a scalar has no rows to divide; give an array with an axis")
    return view.shape[0]


def count_of(counts: List[int], rank: int, size: int, name: str = "counts") -> int:
    """That of a rank, where there is one for each."""
    if len(counts) != size:
        raise InvalidArgument(f"{name} is {counts}; one for each of the {size} ranks is needed")
    return counts[rank]
