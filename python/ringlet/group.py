"""Groups of ranks, and their calls."""

from __future__ import annotations

import os
import weakref
from typing import Any, List, NamedTuple, Optional, Sequence, Tuple

from . import _ringlet
from .arguments import wholes
from .arrays import view_to_read, view_to_write
from .calls import Call, Counts, rows_of, whole_counts
from .errors import InvalidArgument
from .messages import Messages
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


class Group(Messages):
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

    # Reductions.

    def all_sum(self, x: Any, *, stream: int = 0, timeout: Optional[float] = None) -> Any:
        """The sum over all ranks; every rank gets the same bits."""
        return self._all_reduce(x, "sum", stream, timeout).wait()

    def all_sum_async(self, x: Any, *, stream: int = 0, timeout: Optional[float] = None) -> Work:
        return self._all_reduce(x, "sum", stream, timeout).start()

    def all_sum_(self, x: Any, *, stream: int = 0, timeout: Optional[float] = None) -> Any:
        return self._all_reduce_(x, "sum", stream, timeout).wait()

    def all_sum_async_(self, x: Any, *, stream: int = 0, timeout: Optional[float] = None) -> Work:
        return self._all_reduce_(x, "sum", stream, timeout).start()

    def all_prod(self, x: Any, *, stream: int = 0, timeout: Optional[float] = None) -> Any:
        """The product over all ranks."""
        return self._all_reduce(x, "prod", stream, timeout).wait()

    def all_prod_async(self, x: Any, *, stream: int = 0, timeout: Optional[float] = None) -> Work:
        return self._all_reduce(x, "prod", stream, timeout).start()

    def all_prod_(self, x: Any, *, stream: int = 0, timeout: Optional[float] = None) -> Any:
        return self._all_reduce_(x, "prod", stream, timeout).wait()

    def all_prod_async_(self, x: Any, *, stream: int = 0, timeout: Optional[float] = None) -> Work:
        return self._all_reduce_(x, "prod", stream, timeout).start()

    def all_max(self, x: Any, *, stream: int = 0, timeout: Optional[float] = None) -> Any:
        """The greatest of all ranks, element by element."""
        return self._all_reduce(x, "max", stream, timeout).wait()

    def all_max_async(self, x: Any, *, stream: int = 0, timeout: Optional[float] = None) -> Work:
        return self._all_reduce(x, "max", stream, timeout).start()

    def all_max_(self, x: Any, *, stream: int = 0, timeout: Optional[float] = None) -> Any:
        return self._all_reduce_(x, "max", stream, timeout).wait()

    def all_max_async_(self, x: Any, *, stream: int = 0, timeout: Optional[float] = None) -> Work:
        return self._all_reduce_(x, "max", stream, timeout).start()

    def all_min(self, x: Any, *, stream: int = 0, timeout: Optional[float] = None) -> Any:
        """The least of all ranks, element by element."""
        return self._all_reduce(x, "min", stream, timeout).wait()

    def all_min_async(self, x: Any, *, stream: int = 0, timeout: Optional[float] = None) -> Work:
        return self._all_reduce(x, "min", stream, timeout).start()

    def all_min_(self, x: Any, *, stream: int = 0, timeout: Optional[float] = None) -> Any:
        return self._all_reduce_(x, "min", stream, timeout).wait()

    def all_min_async_(self, x: Any, *, stream: int = 0, timeout: Optional[float] = None) -> Work:
        return self._all_reduce_(x, "min", stream, timeout).start()

    def all_mean(self, x: Any, *, stream: int = 0, timeout: Optional[float] = None) -> Any:
        """The mean over all ranks, of floating dtypes."""
        return self._all_reduce(x, "mean", stream, timeout).wait()

    def all_mean_async(self, x: Any, *, stream: int = 0, timeout: Optional[float] = None) -> Work:
        return self._all_reduce(x, "mean", stream, timeout).start()

    def all_mean_(self, x: Any, *, stream: int = 0, timeout: Optional[float] = None) -> Any:
        return self._all_reduce_(x, "mean", stream, timeout).wait()

    def all_mean_async_(self, x: Any, *, stream: int = 0, timeout: Optional[float] = None) -> Work:
        return self._all_reduce_(x, "mean", stream, timeout).start()

    def all_reduce(self, x: Any, *, op: str = "sum", stream: int = 0, timeout: Optional[float] = None) -> Any:
        """By sum, prod, max or min, mean of floating dtypes, or bit_and, bit_or or bit_xor of bool and integers."""
        return self._all_reduce(x, op, stream, timeout).wait()

    def all_reduce_async(self, x: Any, *, op: str = "sum", stream: int = 0, timeout: Optional[float] = None) -> Work:
        return self._all_reduce(x, op, stream, timeout).start()

    def _all_reduce(self, x: Any, op: str, stream: int, timeout: Optional[float]) -> Call:
        kind, source = view_to_read(x)
        output = kind.empty(source.dtype, source.shape)
        return Call(output.finish, self._handle.all_reduce, op, source, output.view, stream, timeout)

    def all_reduce_(self, x: Any, *, op: str = "sum", stream: int = 0, timeout: Optional[float] = None) -> Any:
        return self._all_reduce_(x, op, stream, timeout).wait()

    def all_reduce_async_(self, x: Any, *, op: str = "sum", stream: int = 0, timeout: Optional[float] = None) -> Work:
        return self._all_reduce_(x, op, stream, timeout).start()

    def _all_reduce_(self, x: Any, op: str, stream: int, timeout: Optional[float]) -> Call:
        view = view_to_write(x)
        return Call(lambda: x, self._handle.all_reduce, op, view, view, stream, timeout)

    def reduce(self, x: Any, root: int = 0, *, op: str = "sum", stream: int = 0, timeout: Optional[float] = None) -> Any:
        """The reduction over all ranks on rank `root`, by any of all_reduce()'s operations; None on the others."""
        return self._reduce(x, root, op, stream, timeout).wait()

    def reduce_async(self, x: Any, root: int = 0, *, op: str = "sum", stream: int = 0, timeout: Optional[float] = None) -> Work:
        return self._reduce(x, root, op, stream, timeout).start()

    def _reduce(self, x: Any, root: int, op: str, stream: int, timeout: Optional[float]) -> Call:
        kind, source = view_to_read(x)
        output = kind.empty(source.dtype, source.shape) if self.rank() == root else None
        return Call(output.finish if output else nothing, self._handle.reduce, op, source, output and output.view, root, stream, timeout)

    def sum_scatter(self, x: Any, *, counts: Counts = None, stream: int = 0, timeout: Optional[float] = None) -> Any:
        """Rank r gets the r-th part along axis 0 of the sum: if the rows do not divide evenly, the first ranks get one more, or rank r gets
        counts[r] of them."""
        return self._reduce_scatter(x, "sum", counts, stream, timeout).wait()

    def sum_scatter_async(self, x: Any, *, counts: Counts = None, stream: int = 0, timeout: Optional[float] = None) -> Work:
        return self._reduce_scatter(x, "sum", counts, stream, timeout).start()

    def reduce_scatter(self, x: Any, *, op: str = "sum", counts: Counts = None, stream: int = 0, timeout: Optional[float] = None) -> Any:
        """As sum_scatter(), by any of all_reduce()'s operations."""
        return self._reduce_scatter(x, op, counts, stream, timeout).wait()

    def reduce_scatter_async(
        self, x: Any, *, op: str = "sum", counts: Counts = None, stream: int = 0, timeout: Optional[float] = None
    ) -> Work:
        return self._reduce_scatter(x, op, counts, stream, timeout).start()

    def _reduce_scatter(self, x: Any, op: str, counts: Counts, stream: int, timeout: Optional[float]) -> Call:
        kind, source = view_to_read(x)
        whole = whole_counts(counts)
        rows, rank, size = rows_of(source), self.rank(), self.size()
        mine = self._count_of(whole, rank) if whole is not None else rows // size + (rank < rows % size)
        output = kind.empty(source.dtype, (mine, *source.shape[1:]))
        return Call(output.finish, self._handle.reduce_scatter, op, source, output.view, whole, stream, timeout)

    # What moves without being computed with.

    def all_gather(self, x: Any, *, counts: Counts = None, stream: int = 0, timeout: Optional[float] = None) -> Any:
        """All ranks' arrays, one after the other along axis 0: of equal numbers of elements, or rank r has counts[r] rows. A scalar counts as
        one row."""
        return self._all_gather(x, counts, stream, timeout).wait()

    def all_gather_async(self, x: Any, *, counts: Counts = None, stream: int = 0, timeout: Optional[float] = None) -> Work:
        return self._all_gather(x, counts, stream, timeout).start()

    def _all_gather(self, x: Any, counts: Counts, stream: int, timeout: Optional[float]) -> Call:
        kind, source = view_to_read(x)
        whole = whole_counts(counts)
        output = kind.empty(source.dtype, self._gathered(source, whole))
        return Call(output.finish, self._handle.all_gather, source, output.view, whole, stream, timeout)

    def gather(self, x: Any, root: int = 0, *, counts: Counts = None, stream: int = 0, timeout: Optional[float] = None) -> Any:
        """As all_gather(), on rank `root` alone; None on the others."""
        return self._gather(x, root, counts, stream, timeout).wait()

    def gather_async(self, x: Any, root: int = 0, *, counts: Counts = None, stream: int = 0, timeout: Optional[float] = None) -> Work:
        return self._gather(x, root, counts, stream, timeout).start()

    def _gather(self, x: Any, root: int, counts: Counts, stream: int, timeout: Optional[float]) -> Call:
        kind, source = view_to_read(x)
        whole = whole_counts(counts)
        output = kind.empty(source.dtype, self._gathered(source, whole)) if self.rank() == root else None
        return Call(output.finish if output else nothing, self._handle.gather, source, output and output.view, root, whole, stream, timeout)

    def scatter(self, x: Any, root: int = 0, *, counts: Counts = None, stream: int = 0, timeout: Optional[float] = None) -> Any:
        """Rank r gets the r-th part of rank `root`'s array along axis 0. The others give an array of the same dtype and number of
        elements, which are ignored. The rows divide evenly by the group's size, or rank r gets counts[r] of them."""
        return self._scatter(x, root, counts, stream, timeout).wait()

    def scatter_async(self, x: Any, root: int = 0, *, counts: Counts = None, stream: int = 0, timeout: Optional[float] = None) -> Work:
        return self._scatter(x, root, counts, stream, timeout).start()

    def _scatter(self, x: Any, root: int, counts: Counts, stream: int, timeout: Optional[float]) -> Call:
        kind, source = view_to_read(x)
        whole = whole_counts(counts)
        rows, rank = rows_of(source), self.rank()
        if whole is None and rows % self.size():
            raise InvalidArgument(f"{rows} rows do not divide by {self.size()} ranks; give counts")
        mine = self._count_of(whole, rank) if whole is not None else rows // self.size()
        output = kind.empty(source.dtype, (mine, *source.shape[1:]))
        return Call(output.finish, self._handle.scatter, source if rank == root else None, output.view, root, whole, stream, timeout)

    def all_to_all(
        self, x: Any, *, send_counts: Counts = None, receive_counts: Counts = None, stream: int = 0, timeout: Optional[float] = None
    ) -> Any:
        """Sends the r-th part along axis 0 to rank r, and returns what all ranks have sent here, in rank order. The rows divide evenly by the
        group's size, or both counts say how many go to each rank, and come from each."""
        return self._all_to_all(x, send_counts, receive_counts, stream, timeout).wait()

    def all_to_all_async(
        self, x: Any, *, send_counts: Counts = None, receive_counts: Counts = None, stream: int = 0, timeout: Optional[float] = None
    ) -> Work:
        return self._all_to_all(x, send_counts, receive_counts, stream, timeout).start()

    def _all_to_all(self, x: Any, send_counts: Counts, receive_counts: Counts, stream: int, timeout: Optional[float]) -> Call:
        if (send_counts is None) != (receive_counts is None):
            raise InvalidArgument("send_counts and receive_counts are given together")
        kind, source = view_to_read(x)
        counts = None if send_counts is None else (wholes(send_counts, "send_counts"), wholes(receive_counts, "receive_counts"))
        rows_of(source)
        output = kind.empty(source.dtype, source.shape if counts is None else (sum(counts[1]), *source.shape[1:]))
        return Call(output.finish, self._handle.all_to_all, source, output.view, counts, stream, timeout)

    def broadcast(self, x: Any, root: int = 0, *, stream: int = 0, timeout: Optional[float] = None) -> Any:
        """Rank `root`'s array on every rank. The others give one of the same dtype and number of elements, whose shape they get."""
        return self._broadcast(x, root, stream, timeout).wait()

    def broadcast_async(self, x: Any, root: int = 0, *, stream: int = 0, timeout: Optional[float] = None) -> Work:
        return self._broadcast(x, root, stream, timeout).start()

    def _broadcast(self, x: Any, root: int, stream: int, timeout: Optional[float]) -> Call:
        kind, source = view_to_read(x)
        output = kind.empty(source.dtype, source.shape)
        if self.rank() == root:
            _ringlet.copy(source, output.view)
        return Call(output.finish, self._handle.broadcast, output.view, root, stream, timeout)

    def broadcast_(self, x: Any, root: int = 0, *, stream: int = 0, timeout: Optional[float] = None) -> Any:
        return self._broadcast_(x, root, stream, timeout).wait()

    def broadcast_async_(self, x: Any, root: int = 0, *, stream: int = 0, timeout: Optional[float] = None) -> Work:
        return self._broadcast_(x, root, stream, timeout).start()

    def _broadcast_(self, x: Any, root: int, stream: int, timeout: Optional[float]) -> Call:
        return Call(lambda: x, self._handle.broadcast, view_to_write(x), root, stream, timeout)

    def barrier(self, *, stream: int = 0, timeout: Optional[float] = None) -> None:
        """Returns once every rank has called it."""
        self._barrier(stream, timeout).wait()

    def barrier_async(self, *, stream: int = 0, timeout: Optional[float] = None) -> Work:
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
        self._count_of(counts, self.rank())
        return (sum(counts), *shape[1:])

    def _count_of(self, counts: List[int], rank: int) -> int:
        if len(counts) != self.size():
            raise InvalidArgument(f"counts is {counts}; one for each of the {self.size()} ranks is needed")
        return counts[rank]


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
