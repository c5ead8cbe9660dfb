"""The collectives of tensor-parallel layers, each with its gradient."""

from __future__ import annotations

from typing import Any, Optional, Sequence

from . import _ringlet
from .arguments import handle_of, shown, wholes
from .arrays import view_to_read
from .errors import InvalidArgument
from .group import Group
from .works import Work


class AllToSharded:
    """Stands before layers whose weights are split along the output: every rank has the same input, whose gradients are summed (f in Megatron-LM).
    With ShardedToAll behind them, a pair of layers needs one all-reduce in each direction. Calls behave as Group's."""

    def __init__(self, group: Group, *, stream: int = 0) -> None:
        handle_of(group, Group, "group")
        self._group = group
        self._stream = stream

    def forward(self, x: Any) -> Any:
        """The input itself."""
        return x

    def backward(self, gradient: Any) -> Any:
        """The sum of the ranks' gradients of the input, with the same bits on every rank. Each rank gives that through its own outputs."""
        return self._group.all_sum(gradient, stream=self._stream)

    def backward_(self, gradient: Any) -> Any:
        return self._group.all_sum_(gradient, stream=self._stream)

    def backward_async(self, gradient: Any) -> Work:
        """The same while the weights' gradients are computed."""
        return self._group.all_sum_async(gradient, stream=self._stream)

    def backward_async_(self, gradient: Any) -> Work:
        return self._group.all_sum_async_(gradient, stream=self._stream)


class ShardedToAll:
    """Stands behind layers whose weights are split along the input: every output is a sum, of which each rank has a part (g in Megatron-LM)."""

    def __init__(self, group: Group, *, stream: int = 0) -> None:
        handle_of(group, Group, "group")
        self._group = group
        self._stream = stream

    def forward(self, partial: Any) -> Any:
        """The sum of the partial outputs of all ranks, with the same bits on every rank. A bias is added afterwards, once."""
        return self._group.all_sum(partial, stream=self._stream)

    def forward_(self, partial: Any) -> Any:
        return self._group.all_sum_(partial, stream=self._stream)

    def forward_async(self, partial: Any) -> Work:
        """The same while this rank computes."""
        return self._group.all_sum_async(partial, stream=self._stream)

    def forward_async_(self, partial: Any) -> Work:
        return self._group.all_sum_async_(partial, stream=self._stream)

    def backward(self, gradient: Any) -> Any:
        """The gradient of the output itself, since every rank has all of it."""
        return gradient


def shard_axis(group: Group, full: Any, axis: int, segments: Optional[Sequence[int]] = None) -> Any:
    """This rank's part of a weight or bias for a sharded layer, as a new array of the same kind.

    Each segment of `axis` (the outputs for AllToSharded, the inputs for ShardedToAll) is cut into equal parts, one per rank, and this rank's are
    put side by side. `segments` are the extents of matrices that were fused into one (queries, keys and values), which add up to the axis'
    extent; by default it is one.
    """
    kind, view = view_to_read(full)
    if not hasattr(axis, "__index__"):
        raise TypeError(f"axis is {shown(axis)}; it is an int")
    place = axis + len(view.shape) if axis < 0 else axis
    if place < 0:
        raise InvalidArgument(f"axis {axis} of an array of shape {tuple(view.shape)}")
    parts = wholes(segments or (), "segments")
    return kind.of_memory(*_ringlet.shard_axis(handle_of(group, Group, "group"), view, place, parts))
