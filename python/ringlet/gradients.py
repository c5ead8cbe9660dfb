"""Averages of gradients, and their norm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, List, Optional, Tuple

from . import _ringlet
from .arguments import handle_of, shown
from .arrays import Same, dtype_name, view_to_write
from .errors import InvalidArgument
from .group import Group
from .trees import CopiedTree, tree_to_write


@dataclass(frozen=True)
class Wire:
    """How real arrays cross the network when they are averaged, the same on all ranks: "f16", "bf16", or in blocks with one scale, "int8" (1.02
    bytes per element) or "int4" (0.53). NaNs and infinities are kept, and all ranks end with the same bits. FSDP takes it as `reduce_dtype`.

    Of blocks: with `feedback` each rank keeps what its rounding leaves out, of its gradients and of means whose parts it owns, and adds it
    to those of its next step; arrays with fewer than `least_elements` elements are sent as bf16.
    """

    name: str
    feedback: bool = False
    least_elements: int = 16 << 10


def average_gradients(
    gradients: Same,
    group: Group,
    *,
    all_reduce_size: int = 32 << 20,
    first_bucket_size: Optional[int] = None,
    communication_type: Any = None,
    weight: Optional[float] = None,
    stream: int = 0,
) -> Same:
    """MLX's nn.average_gradients: a tree of the means over the group. Names, order, dtypes and shapes are the same on all ranks.

    Tensors are moved in buckets of `all_reduce_size` bytes, as `communication_type` says ("f16", "bf16", "int8", "int4" or a Wire; by default
    in their own dtype). With `weight`, such as this rank's number of samples, the result is sum(weight * gradient) / sum(weight).
    """
    copied = CopiedTree(gradients)
    _average(copied.tree, group, all_reduce_size, first_bucket_size, communication_type, weight, stream)
    return copied.finish()


def average_gradients_(
    gradients: Same,
    group: Group,
    *,
    all_reduce_size: int = 32 << 20,
    first_bucket_size: Optional[int] = None,
    communication_type: Any = None,
    weight: Optional[float] = None,
    stream: int = 0,
) -> Same:
    """The same in place, of arrays that may be changed: NumPy's and PyTorch's."""
    _average(tree_to_write(gradients), group, all_reduce_size, first_bucket_size, communication_type, weight, stream)
    return gradients


def _average(tree: _ringlet.Tree, group: Group, size: int, first: Optional[int], kind: Any, weight: Optional[float], stream: int) -> None:
    handle = handle_of(group, Group, "group")
    _ringlet.average_gradients(handle, tree, size, first, to_wire(kind), weight, stream)


class GradientAverager:
    """Averages gradients, in place, while they are still being computed: a bucket starts as soon as it is full. The arrays are NumPy's or PyTorch's
    and may not be touched from add() until finish() has returned. Used by one thread at a time."""

    def __init__(
        self,
        group: Group,
        *,
        all_reduce_size: int = 32 << 20,
        first_bucket_size: Optional[int] = None,
        communication_type: Any = None,
        weight: Optional[float] = None,
        stream: int = 0,
    ) -> None:
        handle, wire = handle_of(group, Group, "group"), to_wire(communication_type)
        self._handle = _ringlet.GradientAverager(handle, all_reduce_size, first_bucket_size, wire, weight, stream)

    def add(self, gradient: Any) -> None:
        """Adds the next gradient; every rank adds them in the same order."""
        self._handle.add(view_to_write(gradient))

    def finish(self) -> None:
        """Ends the step: waits until every gradient is its average."""
        self._handle.finish()

    def set_weight(self, weight: Optional[float]) -> None:
        """Sets this rank's share of the averages from the next step on."""
        self._handle.set_weight(weight)

    def collectives(self) -> int:
        """The number of collectives of this step so far, or of the last one."""
        return self._handle.collectives()


class GradientBucketer:
    """The same for a tree of arrays that is used in every step, whose gradients are reported in any order, such as by PyTorch's
    register_post_accumulate_grad_hook(). Making one is a collective."""

    def __init__(
        self,
        group: Group,
        gradients: Any,
        *,
        all_reduce_size: int = 32 << 20,
        first_bucket_size: Optional[int] = 1 << 20,
        communication_type: Any = None,
        weight: Optional[float] = None,
        allow_missing: bool = True,
        stream: int = 0,
    ) -> None:
        handle, tree, wire = handle_of(group, Group, "group"), tree_to_write(gradients), to_wire(communication_type)
        self._handle = _ringlet.GradientBucketer(handle, tree, all_reduce_size, first_bucket_size, wire, weight, stream, allow_missing)

    def ready(self, name: str) -> None:
        """Reports that a gradient ("layers.0.weight") is complete; it may not be touched until finish() has returned."""
        self._handle.ready(name)

    def finish(self) -> None:
        """Ends the step: waits for all averages. Gradients that were not reported count as zeros; if `allow_missing` is off, that is an error."""
        self._handle.finish()

    def averaged(self) -> List[str]:
        """After finish(): the names of the gradients that at least one rank reported in the step."""
        return self._handle.averaged()

    def set_weight(self, weight: Optional[float]) -> None:
        """Sets this rank's share of the averages from the next step on."""
        self._handle.set_weight(weight)

    def collectives(self) -> int:
        """The number of collectives of this step so far, or of the last one."""
        return self._handle.collectives()


def to_wire(kind: Any, name: str = "communication_type") -> Optional[_ringlet.Wire]:
    """The library's object for what a caller gives as communication_type."""
    if kind is None:
        return None
    wire = kind if isinstance(kind, Wire) else Wire(kind if kind in _BLOCKS else _dtype(kind, name, "'f16', 'bf16'"))
    return _ringlet.Wire(wire.name, wire.feedback, wire.least_elements)


def to_reduce_wire(kind: Any) -> Optional[_ringlet.Wire]:
    """The same for what a caller gives as reduce_dtype, which may be any floating dtype, too."""
    if kind is None or isinstance(kind, Wire) or kind in _BLOCKS:
        return to_wire(kind)
    return _ringlet.Wire.of_dtype(_dtype(kind, "reduce_dtype", "a floating dtype"))


_BLOCKS = ("int8", "int4")


def _dtype(kind: Any, name: str, possible: str) -> str:
    try:
        return dtype_name(kind)
    except InvalidArgument:
        raise InvalidArgument(f"{name} is {shown(kind)}; it is {possible}, 'int8', 'int4' or a Wire") from None


def clip_grad_norm(gradients: Same, max_norm: float) -> Tuple[Same, float]:
    """MLX's optimizers.clip_grad_norm: the gradients scaled so that their norm is at most `max_norm`, and their norm before."""
    copied = CopiedTree(gradients)
    norm = _ringlet.clip_grad_norm(copied.tree, max_norm)
    return copied.finish(), norm


def clip_grad_norm_(gradients: Any, max_norm: float) -> float:
    """The same in place; returns the norm before."""
    return _ringlet.clip_grad_norm(tree_to_write(gradients), max_norm)


def clip_grad_norm_sharded(gradients: Same, max_norm: float, group: Group, *, stream: int = 0) -> Tuple[Same, float]:
    """MLX's nn.utils.clip_grad_norm_sharded: as clip_grad_norm(), by the norm of all ranks' shards together."""
    copied = CopiedTree(gradients)
    norm = _ringlet.clip_grad_norm_sharded(handle_of(group, Group, "group"), copied.tree, max_norm, stream)
    return copied.finish(), norm
