"""Calls that add, multiply or compare what all ranks give."""

from __future__ import annotations

from typing import Any, Optional

from . import _ringlet
from .arrays import Array, Given, Same, view_to_read, view_to_write
from .calls import Call, Counts, count_of, rows_of, whole_counts
from .works import Work, nothing


class Reductions:
    """A group's calls that reduce."""

    _handle: _ringlet.Group

    def all_sum(self, x: Given[Array], *, stream: int = 0, timeout: Optional[float] = None) -> Array:
        """The sum over all ranks; every rank gets the same bits."""
        return self._all_reduce(x, "sum", stream, timeout).wait()

    def all_sum_async(self, x: Given[Array], *, stream: int = 0, timeout: Optional[float] = None) -> Work[Array]:
        return self._all_reduce(x, "sum", stream, timeout).start()

    def all_sum_(self, x: Same, *, stream: int = 0, timeout: Optional[float] = None) -> Same:
        return self._all_reduce_(x, "sum", stream, timeout).wait()

    def all_sum_async_(self, x: Same, *, stream: int = 0, timeout: Optional[float] = None) -> Work[Same]:
        return self._all_reduce_(x, "sum", stream, timeout).start()

    def all_prod(self, x: Given[Array], *, stream: int = 0, timeout: Optional[float] = None) -> Array:
        """The product over all ranks."""
        return self._all_reduce(x, "prod", stream, timeout).wait()

    def all_prod_async(self, x: Given[Array], *, stream: int = 0, timeout: Optional[float] = None) -> Work[Array]:
        return self._all_reduce(x, "prod", stream, timeout).start()

    def all_prod_(self, x: Same, *, stream: int = 0, timeout: Optional[float] = None) -> Same:
        return self._all_reduce_(x, "prod", stream, timeout).wait()

    def all_prod_async_(self, x: Same, *, stream: int = 0, timeout: Optional[float] = None) -> Work[Same]:
        return self._all_reduce_(x, "prod", stream, timeout).start()

    def all_max(self, x: Given[Array], *, stream: int = 0, timeout: Optional[float] = None) -> Array:
        """The greatest of all ranks, element by element."""
        return self._all_reduce(x, "max", stream, timeout).wait()

    def all_max_async(self, x: Given[Array], *, stream: int = 0, timeout: Optional[float] = None) -> Work[Array]:
        return self._all_reduce(x, "max", stream, timeout).start()

    def all_max_(self, x: Same, *, stream: int = 0, timeout: Optional[float] = None) -> Same:
        return self._all_reduce_(x, "max", stream, timeout).wait()

    def all_max_async_(self, x: Same, *, stream: int = 0, timeout: Optional[float] = None) -> Work[Same]:
        return self._all_reduce_(x, "max", stream, timeout).start()

    def all_min(self, x: Given[Array], *, stream: int = 0, timeout: Optional[float] = None) -> Array:
        """The least of all ranks, element by element."""
        return self._all_reduce(x, "min", stream, timeout).wait()

    def all_min_async(self, x: Given[Array], *, stream: int = 0, timeout: Optional[float] = None) -> Work[Array]:
        return self._all_reduce(x, "min", stream, timeout).start()

    def all_min_(self, x: Same, *, stream: int = 0, timeout: Optional[float] = None) -> Same:
        return self._all_reduce_(x, "min", stream, timeout).wait()

    def all_min_async_(self, x: Same, *, stream: int = 0, timeout: Optional[float] = None) -> Work[Same]:
        return self._all_reduce_(x, "min", stream, timeout).start()

    def all_mean(self, x: Given[Array], *, stream: int = 0, timeout: Optional[float] = None) -> Array:
        """The mean over all ranks, of floating dtypes."""
        return self._all_reduce(x, "mean", stream, timeout).wait()

    def all_mean_async(self, x: Given[Array], *, stream: int = 0, timeout: Optional[float] = None) -> Work[Array]:
        return self._all_reduce(x, "mean", stream, timeout).start()

    def all_mean_(self, x: Same, *, stream: int = 0, timeout: Optional[float] = None) -> Same:
        return self._all_reduce_(x, "mean", stream, timeout).wait()

    def all_mean_async_(self, x: Same, *, stream: int = 0, timeout: Optional[float] = None) -> Work[Same]:
        return self._all_reduce_(x, "mean", stream, timeout).start()

    def all_reduce(self, x: Given[Array], *, op: str = "sum", stream: int = 0, timeout: Optional[float] = None) -> Array:
        """By sum, prod, max or min, mean of floating dtypes, or bit_and, bit_or or bit_xor of bool and integers."""
        return self._all_reduce(x, op, stream, timeout).wait()

    def all_reduce_async(self, x: Given[Array], *, op: str = "sum", stream: int = 0, timeout: Optional[float] = None) -> Work[Array]:
        return self._all_reduce(x, op, stream, timeout).start()

    def _all_reduce(self, x: Any, op: str, stream: int, timeout: Optional[float]) -> Call:
        kind, source = view_to_read(x)
        output = kind.empty(source.dtype, source.shape)
        return Call(output.finish, self._handle.all_reduce, op, source, output.view, stream, timeout)

    def all_reduce_(self, x: Same, *, op: str = "sum", stream: int = 0, timeout: Optional[float] = None) -> Same:
        return self._all_reduce_(x, op, stream, timeout).wait()

    def all_reduce_async_(self, x: Same, *, op: str = "sum", stream: int = 0, timeout: Optional[float] = None) -> Work[Same]:
        return self._all_reduce_(x, op, stream, timeout).start()

    def _all_reduce_(self, x: Any, op: str, stream: int, timeout: Optional[float]) -> Call:
        view = view_to_write(x)
        return Call(lambda: x, self._handle.all_reduce, op, view, view, stream, timeout)

    def reduce(
        self, x: Given[Array], root: int = 0, *, op: str = "sum", stream: int = 0, timeout: Optional[float] = None
    ) -> Optional[Array]:
        """The reduction over all ranks on rank `root`, by any of all_reduce()'s operations; None on the others."""
        return self._reduce(x, root, op, stream, timeout).wait()

    def reduce_async(
        self, x: Given[Array], root: int = 0, *, op: str = "sum", stream: int = 0, timeout: Optional[float] = None
    ) -> Work[Optional[Array]]:
        return self._reduce(x, root, op, stream, timeout).start()

    def _reduce(self, x: Any, root: int, op: str, stream: int, timeout: Optional[float]) -> Call:
        kind, source = view_to_read(x)
        output = kind.empty(source.dtype, source.shape) if self._handle.rank() == root else None
        return Call(output.finish if output else nothing, self._handle.reduce, op, source, output and output.view, root, stream, timeout)

    def sum_scatter(self, x: Given[Array], *, counts: Counts = None, stream: int = 0, timeout: Optional[float] = None) -> Array:
        """Rank r gets the r-th part along axis 0 of the sum: if the rows do not divide evenly, the first ranks get one more, or rank r gets
        counts[r] of them."""
        return self._reduce_scatter(x, "sum", counts, stream, timeout).wait()

    def sum_scatter_async(self, x: Given[Array], *, counts: Counts = None, stream: int = 0, timeout: Optional[float] = None) -> Work[Array]:
        return self._reduce_scatter(x, "sum", counts, stream, timeout).start()

    def reduce_scatter(
        self, x: Given[Array], *, op: str = "sum", counts: Counts = None, stream: int = 0, timeout: Optional[float] = None
    ) -> Array:
        """As sum_scatter(), by any of all_reduce()'s operations."""
        return self._reduce_scatter(x, op, counts, stream, timeout).wait()

    def reduce_scatter_async(
        self, x: Given[Array], *, op: str = "sum", counts: Counts = None, stream: int = 0, timeout: Optional[float] = None
    ) -> Work[Array]:
        return self._reduce_scatter(x, op, counts, stream, timeout).start()

    def _reduce_scatter(self, x: Any, op: str, counts: Counts, stream: int, timeout: Optional[float]) -> Call:
        kind, source = view_to_read(x)
        whole = whole_counts(counts)
        rows, rank, size = rows_of(source), self._handle.rank(), self._handle.size()
        mine = count_of(whole, rank, size) if whole is not None else rows // size + (rank < rows % size)
        output = kind.empty(source.dtype, (mine, *source.shape[1:]))
        return Call(output.finish, self._handle.reduce_scatter, op, source, output.view, whole, stream, timeout)
