"""Groups of ranks, and their calls."""

from __future__ import annotations

import os
import weakref
from typing import Any, List, NamedTuple, Optional, Sequence, Tuple

from . import _ringlet
from .arguments import wholes
from .arrays import Array, Given, Same, view_to_read, view_to_write
from .calls import Call, Counts, count_of, rows_of, whole_counts
from .errors import InvalidArgument
from .messages import Messages
from .reductions import Reductions
from .works import Work, nothing

# What is still open when the program ends is left then, so that the other ranks do not take this one for lost.
_open: weakref.WeakSet = weakref.WeakSet()
# A forked process has groups of its own alone.
os.register_at_fork(after_in_child=_open.clear)


class Reformed(NamedTuple):
    """The world of those who go on after a loss, or with new ranks."""

    world: Group
    before: List[int]  # by rank: the rank in the world before, -1 of a rank that has joined
    lost: List[int]  # ranks of that world that are not in this one
    lineage: int  # differs where a world was cut in two that both went on


class Group(Reductions, Messages):
    """A set of ranks that call collectives together: what init() returns, or a part of it that split() or create() makes.

    Every rank starts the operations of one `stream` (0 to 1023) in the same order; those of two streams overlap. `timeout` is how many
    seconds an operation may take from its start; by default it is the group's. All ranks of a collective give arrays of the same dtype and
    number of elements, and each gets the shape that follows from its own array. Where reduce_scatter() or `counts` divide rows, and in
    messages, shapes are the same, too. Each call has a form that ends in `_async`, which returns a Work at once. What returns an array
    returns a new one of the kind that was given (NumPy, PyTorch, JAX, MLX), aligned to 64 bytes where its kind lets that be chosen. Names
    that end in `_` change the given array in place; arrays that others may share (JAX's, MLX's, read-only ones) are refused. An array may
    be read until its operation has ended.
    """

    def __init__(self, handle: Optional[_ringlet.Group] = None) -> None:
        """Without a handle, which init() gives: a group of this process alone."""
        self._handle = _ringlet.Group() if handle is None else handle
        _open.add(self)

    def rank(self) -> int:
        """This process' rank in the group, from 0."""
        return self._handle.rank()

    def size(self) -> int:
        """The number of ranks in the group."""
        return self._handle.size()

    def guests(self) -> int:
        """The number of guests in the group: browsers, which joined through rank 0 of the world."""
        return self._handle.guests()

    def __repr__(self) -> str:
        return f"<ringlet.Group: rank {self.rank()} of {self.size()}>" if self._handle.is_open() else "<ringlet.Group: closed>"

    # What moves without being computed with.

    def all_gather(self, x: Given[Array], *, counts: Counts = None, stream: int = 0, timeout: Optional[float] = None) -> Array:
        """All ranks' arrays, one after the other along axis 0: of equal numbers of elements, or rank r has counts[r] rows. A scalar counts as
        one row."""
        return self._all_gather(x, counts, stream, timeout).wait()

    def all_gather_async(self, x: Given[Array], *, counts: Counts = None, stream: int = 0, timeout: Optional[float] = None) -> Work[Array]:
        return self._all_gather(x, counts, stream, timeout).start()

    def _all_gather(self, x: Any, counts: Counts, stream: int, timeout: Optional[float]) -> Call:
        kind, source = view_to_read(x)
        whole = whole_counts(counts)
        output = kind.empty(source.dtype, self._gathered(source, whole))
        return Call(output.finish, self._handle.all_gather, source, output.view, whole, stream, timeout)

    def gather(
        self, x: Given[Array], root: int = 0, *, counts: Counts = None, stream: int = 0, timeout: Optional[float] = None
    ) -> Optional[Array]:
        """As all_gather(), on rank `root` alone; None on the others."""
        return self._gather(x, root, counts, stream, timeout).wait()

    def gather_async(
        self, x: Given[Array], root: int = 0, *, counts: Counts = None, stream: int = 0, timeout: Optional[float] = None
    ) -> Work[Optional[Array]]:
        return self._gather(x, root, counts, stream, timeout).start()

    def _gather(self, x: Any, root: int, counts: Counts, stream: int, timeout: Optional[float]) -> Call:
        kind, source = view_to_read(x)
        whole = whole_counts(counts)
        output = kind.empty(source.dtype, self._gathered(source, whole)) if self.rank() == root else None
        return Call(output.finish if output else nothing, self._handle.gather, source, output and output.view, root, whole, stream, timeout)

    def scatter(self, x: Given[Array], root: int = 0, *, counts: Counts = None, stream: int = 0, timeout: Optional[float] = None) -> Array:
        """Rank r gets the r-th part of rank `root`'s array along axis 0. The others give an array of the same dtype and number of
        elements, which are ignored. The rows divide evenly by the group's size, or rank r gets counts[r] of them."""
        return self._scatter(x, root, counts, stream, timeout).wait()

    def scatter_async(
        self, x: Given[Array], root: int = 0, *, counts: Counts = None, stream: int = 0, timeout: Optional[float] = None
    ) -> Work[Array]:
        return self._scatter(x, root, counts, stream, timeout).start()

    def _scatter(self, x: Any, root: int, counts: Counts, stream: int, timeout: Optional[float]) -> Call:
        kind, source = view_to_read(x)
        whole = whole_counts(counts)
        rows, rank = rows_of(source), self.rank()
        if whole is None and rows % self.size():
            raise InvalidArgument(f"{rows} rows do not divide by {self.size()} ranks; give counts")
        mine = count_of(whole, rank, self.size()) if whole is not None else rows // self.size()
        output = kind.empty(source.dtype, (mine, *source.shape[1:]))
        return Call(output.finish, self._handle.scatter, source if rank == root else None, output.view, root, whole, stream, timeout)

    def all_to_all(
        self,
        x: Given[Array],
        *,
        send_counts: Counts = None,
        receive_counts: Counts = None,
        stream: int = 0,
        timeout: Optional[float] = None,
    ) -> Array:
        """Sends the r-th part along axis 0 to rank r, and returns what all ranks have sent here, in rank order. The rows divide evenly by the
        group's size, or both counts say how many go to each rank, and come from each."""
        return self._all_to_all(x, send_counts, receive_counts, stream, timeout).wait()

    def all_to_all_async(
        self,
        x: Given[Array],
        *,
        send_counts: Counts = None,
        receive_counts: Counts = None,
        stream: int = 0,
        timeout: Optional[float] = None,
    ) -> Work[Array]:
        return self._all_to_all(x, send_counts, receive_counts, stream, timeout).start()

    def _all_to_all(self, x: Any, send_counts: Counts, receive_counts: Counts, stream: int, timeout: Optional[float]) -> Call:
        if (send_counts is None) != (receive_counts is None):
            raise InvalidArgument("send_counts and receive_counts are given together")
        kind, source = view_to_read(x)
        counts = None if send_counts is None else (wholes(send_counts, "send_counts"), wholes(receive_counts, "receive_counts"))
        rows = rows_of(source)
        if counts is None and rows % self.size():
            raise InvalidArgument(f"{rows} rows do not divide by {self.size()} ranks; give send_counts and receive_counts")
        for name, given in zip(("send_counts", "receive_counts"), counts or ()):
            count_of(given, self.rank(), self.size(), name)
        output = kind.empty(source.dtype, source.shape if counts is None else (sum(counts[1]), *source.shape[1:]))
        return Call(output.finish, self._handle.all_to_all, source, output.view, counts, stream, timeout)

    def broadcast(self, x: Given[Array], root: int = 0, *, stream: int = 0, timeout: Optional[float] = None) -> Array:
        """Rank `root`'s array on every rank. The others give one of the same dtype and number of elements, whose shape they get."""
        return self._broadcast(x, root, stream, timeout).wait()

    def broadcast_async(self, x: Given[Array], root: int = 0, *, stream: int = 0, timeout: Optional[float] = None) -> Work[Array]:
        return self._broadcast(x, root, stream, timeout).start()

    def _broadcast(self, x: Any, root: int, stream: int, timeout: Optional[float]) -> Call:
        kind, source = view_to_read(x)
        output = kind.empty(source.dtype, source.shape)
        if self.rank() == root:
            _ringlet.copy(source, output.view)
        return Call(output.finish, self._handle.broadcast, output.view, root, stream, timeout)

    def broadcast_(self, x: Same, root: int = 0, *, stream: int = 0, timeout: Optional[float] = None) -> Same:
        return self._broadcast_(x, root, stream, timeout).wait()

    def broadcast_async_(self, x: Same, root: int = 0, *, stream: int = 0, timeout: Optional[float] = None) -> Work[Same]:
        return self._broadcast_(x, root, stream, timeout).start()

    def _broadcast_(self, x: Any, root: int, stream: int, timeout: Optional[float]) -> Call:
        return Call(lambda: x, self._handle.broadcast, view_to_write(x), root, stream, timeout)

    def barrier(self, *, stream: int = 0, timeout: Optional[float] = None) -> None:
        """Returns once every rank has called it."""
        self._barrier(stream, timeout).wait()

    def barrier_async(self, *, stream: int = 0, timeout: Optional[float] = None) -> Work[None]:
        return self._barrier(stream, timeout).start()

    def _barrier(self, stream: int, timeout: Optional[float]) -> Call:
        return Call(nothing, self._handle.barrier, stream, timeout)

    # The group itself.

    def split(self, color: int, key: int = -1, *, stream: int = 0, timeout: Optional[float] = None) -> Optional[Group]:
        """A group of the ranks that give the same `color`, ordered by `key`, then by rank; a negative key stands for the rank. None for a
        negative colour. Every rank of this group calls it."""
        part = self._handle.split(color, key, stream, timeout)
        return None if part is None else Group(part)

    def create(self, ranks: Sequence[int], tag: int = 0, *, timeout: Optional[float] = None) -> Group:
        """A group of these ranks of this group, in this order. They alone call it, all with the same ranks and tag; the others take no part.
        Calls with the same tag that have members in common come in the same order on all of them; those with different tags, 0 to 1023, may
        overlap. Members whose ranks differ get MismatchError."""
        return Group(self._handle.create(wholes(ranks, "ranks"), tag, timeout))

    def algorithm(self, operation: str, bytes: int) -> str:
        """The algorithm by which a collective ("all_reduce") moves a buffer of so many bytes."""
        return self._handle.algorithm(operation, bytes)

    def describe_placement(self) -> str:
        """The group's layout in a line for people."""
        return self._handle.describe_placement()

    def links(self) -> str:
        """How this rank's bytes reach the others: "tcp", "memory", "mixed" or "none"."""
        return self._handle.links()

    def link_info(self) -> List[dict]:
        """This rank's links to all others, by rank. Times are in seconds."""
        return self._handle.link_info()

    def close(self) -> None:
        """Leaves the group, once its pending operations have ended. Where others still need this rank they get PeerLost."""
        _open.discard(self)
        self._handle.close()

    def __enter__(self) -> Group:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Elastic groups, which survive the loss of ranks. docs/elastic.md says what is promised.

    def elastic(self) -> bool:
        """Whether this group's world survives the loss of ranks."""
        return self._handle.elastic()

    def epoch(self) -> int:
        """How often the world was formed anew before this group was made."""
        return self._handle.epoch()

    def door(self) -> str:
        """Where processes knock that are to join the group: "host:port". Empty if the group is not elastic."""
        return self._handle.door()

    def reform(self, *, timeout: Optional[float] = None) -> Reformed:
        """Waits until the ranks that are left have agreed on who goes on, and returns their world. Called by all of them once a call has raised
        PeerLost, or after revoke()."""
        return _reformed(self._handle.reform(timeout))

    def agree(self, mine: bool, *, timeout: Optional[float] = None) -> bool:
        """Whether `mine` is true on all ranks: the same answer on all that are left, even if ranks are lost meanwhile."""
        return self._handle.agree(bool(mine), timeout)

    def admit(self, *, timeout: Optional[float] = None) -> Optional[Reformed]:
        """Admits the processes that knock at the door of any rank. All ranks call it together, again and again; it never waits for those that
        join, and returns the world with them once all have met."""
        next_world = self._handle.admit(timeout)
        return None if next_world is None else _reformed(next_world)

    def rejoin(self) -> Group:
        """For a rank that the others have gone on without, which reform() has said: joins them again, and returns the world in which it is a new
        rank. Waits for a minute at most, and may be called again after an error."""
        return Group(self._handle.rejoin())

    def revoke(self) -> None:
        """Ends the epoch on all ranks: all calls raise Cancelled, and reform() follows."""
        self._handle.revoke()

    def leave(self) -> None:
        """Leaves the world without waiting for anybody: all calls of its groups raise Cancelled on this rank from then on."""
        self._handle.leave()

    def _gathered(self, source: _ringlet.View, counts: Optional[List[int]]) -> Tuple[int, ...]:
        shape = source.shape or (1,)
        if counts is None:
            return (shape[0] * self.size(), *shape[1:])
        count_of(counts, self.rank(), self.size())
        return (sum(counts), *shape[1:])


def _reformed(parts: tuple) -> Reformed:
    world, before, lost, lineage = parts
    return Reformed(Group(world), before, lost, lineage)


def leave_all() -> None:
    """At exit: gives the operations that still run a second, then leaves all groups."""
    _ringlet.await_operations(1.0)
    groups = list(_open)
    for group in groups:
        group.leave()
    _ringlet.await_operations(10.0)
    for group in groups:
        group.close()
