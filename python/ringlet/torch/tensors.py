"""Tensors as Ringlet sees them: their elements in a row, in their own memory where that is possible."""

from __future__ import annotations

from typing import Any, Callable, NamedTuple, Optional, Sequence, Tuple

import torch

import ringlet

from .. import _ringlet
from ..arrays import dtype_name

_View = _ringlet.View

# What is left to do when a tensor has been written.
After = Optional[Callable[[], None]]


def _dtypes() -> dict:
    found = {}
    for dtype in {value for value in vars(torch).values() if isinstance(value, torch.dtype)}:
        try:
            found[dtype] = dtype_name(dtype)
        except (ringlet.InvalidArgument, TypeError):
            pass  # it is moved as bytes
    return found


_DTYPES = _dtypes()


class Flat(NamedTuple):
    """A tensor as Ringlet sees it: its elements in a row, or its bytes if Ringlet has no such dtype."""

    view: Any
    tensor: torch.Tensor  # contiguous
    scale: int  # how many of Ringlet's elements one of the tensor's is


def check(tensor: torch.Tensor) -> None:
    if not tensor.is_cpu:
        raise ringlet.InvalidArgument(f"the tensor is on '{tensor.device}'; Ringlet works in the CPU's memory, so copy it there first")
    if tensor.layout != torch.strided:
        raise ringlet.InvalidArgument(f"the tensor's layout is {tensor.layout}; it has to be strided, or torch.sparse_coo for all_reduce()")


def flat(tensor: torch.Tensor) -> Flat:
    name = _DTYPES.get(tensor.dtype)
    if name is None:
        scale = tensor.itemsize
        return Flat(_View.at(tensor.data_ptr(), "u8", tensor.numel() * scale, tensor), tensor, scale)
    return Flat(_View.at(tensor.data_ptr(), name, tensor.numel(), tensor), tensor, 1)


def is_plain(tensor: torch.Tensor) -> bool:
    """Whether the elements are in the memory as they are, one after the other."""
    return tensor.is_contiguous() and not tensor.is_conj() and not tensor.is_neg()


def to_read(tensor: torch.Tensor) -> Flat:
    """A tensor that is read."""
    check(tensor)
    return flat(tensor if is_plain(tensor) else tensor.detach().resolve_conj().resolve_neg().contiguous())


def to_write(tensor: torch.Tensor, filled: bool = False) -> Tuple[Flat, After]:
    """A tensor that is written, `filled` if it is read, too, and what is to be done after that."""
    check(tensor)
    if is_plain(tensor):
        return flat(tensor), None
    packed = tensor.detach().resolve_conj().resolve_neg().contiguous() if filled else room(tensor.shape, tensor.dtype)
    return flat(packed), lambda: copy(tensor, packed)


def room(shape: Any, dtype: torch.dtype) -> torch.Tensor:
    """A tensor in the CPU's memory, whatever torch's default device is."""
    return torch.empty(shape, dtype=dtype, device="cpu")


def mode_of_caller() -> Any:
    """Returns the context in which any thread may change the tensors of the one that calls this."""
    return torch.inference_mode if torch.is_inference_mode_enabled() else torch.no_grad


def copy(target: torch.Tensor, values: torch.Tensor) -> None:
    target.copy_(values)


def bytes_overlap(a: torch.Tensor, b: torch.Tensor) -> bool:
    first, second = a.data_ptr(), b.data_ptr()
    return first < second + b.numel() * b.itemsize and second < first + a.numel() * a.itemsize


def row_of(tensors: Sequence[torch.Tensor]) -> Optional[torch.Tensor]:
    """The tensors as one, without a copy, if they follow each other in one memory."""
    first = tensors[0]
    place = first.data_ptr()
    for tensor in tensors:
        if tensor.dtype != first.dtype or tensor.data_ptr() != place or not is_plain(tensor):
            return None
        place += tensor.numel() * tensor.itemsize
    storage = first.untyped_storage()
    if any(tensor.untyped_storage().data_ptr() != storage.data_ptr() for tensor in tensors):
        return None
    total = sum(tensor.numel() for tensor in tensors)
    return first.detach().as_strided((total,), (1,))


def joined(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """The tensors one after the other, to be read."""
    for tensor in tensors:
        check(tensor)
    row = row_of(tensors)
    if row is None:
        # Not torch.cat(), which does not know all dtypes.
        row = room(sum(tensor.numel() for tensor in tensors), tensors[0].dtype)
        for tensor, part in zip(tensors, row.split([tensor.numel() for tensor in tensors])):
            part.view(tensor.shape).copy_(tensor.detach())
    return row


def room_for(tensors: Sequence[torch.Tensor]) -> Tuple[torch.Tensor, After]:
    """Room for the tensors one after the other, and what is to be done when it has been written."""
    for tensor in tensors:
        check(tensor)
    row = row_of(tensors)
    if row is not None:
        return row, None
    row = room(sum(tensor.numel() for tensor in tensors), tensors[0].dtype)

    def spread() -> None:
        for tensor, part in zip(tensors, row.split([tensor.numel() for tensor in tensors])):
            tensor.copy_(part.view(tensor.shape))

    return row, spread


def as_reducible(tensor: torch.Tensor, op: str) -> torch.Tensor:
    """The tensor as one that can be computed with: of complex numbers that Ringlet does not have, their parts."""
    if op == "mean" and not (tensor.is_floating_point() or tensor.is_complex()):
        raise ringlet.InvalidArgument(f"a mean of {tensor.dtype}; means are of floating-point dtypes")
    if tensor.dtype in _DTYPES:
        return tensor
    if tensor.is_complex() and op in ("sum", "mean"):
        return torch.view_as_real(tensor)
    raise ringlet.InvalidArgument(f"Ringlet does not compute with {tensor.dtype}; it moves such tensors alone")


def both(first: After, second: After) -> After:
    """One after the other."""
    if first is None or second is None:
        return first or second

    def run() -> None:
        first()
        second()

    return run
