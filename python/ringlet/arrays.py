"""What arrays go in and come out: NumPy's, PyTorch's, JAX's, MLX's, and plain buffers. Each kind is a class with the same methods."""

from __future__ import annotations

from array import array as _BuiltinArray
import sys
from typing import TYPE_CHECKING, Any, Optional, Protocol, Sequence, TypeVar, Union

import numpy as np

from . import _ringlet
from .arguments import shown
from .errors import InvalidArgument

Same = TypeVar("Same")

if TYPE_CHECKING:
    from typing_extensions import TypeVar as _TypeVar

    class _Exported(Protocol):
        def __dlpack_device__(self) -> Any:
            ...

    # An array of which a call makes another one of its kind. Of what is none, such as a number, type checkers learn nothing.
    Array = _TypeVar("Array", bound=_Exported, default=Any)
else:
    # Before Python 3.13 a TypeVar has no default.
    Array = TypeVar("Array")

# Buffers by their classes: a type for all of them would be that of NumPy's arrays, too, which are to be taken for an Array.
Given = Union[Array, complex, np.generic, bytes, bytearray, memoryview, _BuiltinArray]

# Ringlet's names of dtypes, and the others'.
_NUMPY = {
    "bool": "bool",
    "u8": "uint8",
    "u16": "uint16",
    "u32": "uint32",
    "u64": "uint64",
    "i8": "int8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
    "f16": "float16",
    "bf16": "bfloat16",
    "f32": "float32",
    "f64": "float64",
    "complex64": "complex64",
    "complex128": "complex128",
}
_NAMES = {name: dtype for dtype, name in _NUMPY.items()}
_MLX = dict(_NUMPY, bool="bool_")


def numpy_dtype(name: str) -> np.dtype:
    """NumPy's dtype for one of Ringlet's names. bf16 is ml_dtypes'."""
    if name != "bf16":
        return np.dtype(_NUMPY[name])
    try:
        import ml_dtypes
    except ImportError:
        raise InvalidArgument("NumPy has no bf16 of its own; install the package ml_dtypes") from None
    return np.dtype(ml_dtypes.bfloat16)


def dtype_name(dtype: Any) -> str:
    """Ringlet's name for a dtype of any kind: a name of Ringlet's or NumPy's, or NumPy's, PyTorch's, JAX's or MLX's object."""
    if isinstance(dtype, str) and dtype in _NUMPY:
        return dtype
    if type(dtype).__module__.startswith(("torch", "mlx")):
        text: Optional[str] = str(dtype).rpartition(".")[2].rstrip("_")
    else:
        text = _name_of_numpy(dtype)
    if text is None or text not in _NAMES:
        raise InvalidArgument(f"there is no dtype {shown(dtype)}; there are {', '.join(_NUMPY)}")
    return _NAMES[text]


def _name_of_numpy(dtype: Any) -> Optional[str]:
    # NumPy takes None for float64.
    if dtype is None or (isinstance(dtype, str) and dtype in _NAMES):
        return dtype
    try:
        found = np.dtype(dtype)
    except TypeError:
        return None
    if found.fields is None and not found.isnative:
        raise InvalidArgument(f"the dtype {shown(dtype)} has the other byte order; Ringlet has this machine's alone")
    return found.name


class Output:
    """A result in the making: `view` is written to, and finish() makes the array of it."""

    __slots__ = ("view", "_array", "_wrap")

    def __init__(self, view: _ringlet.View, array: Any, wrap: Any = None) -> None:
        self.view = view
        self._array = array
        self._wrap = wrap

    def finish(self) -> Any:
        return self._array if self._wrap is None else self._wrap(self._array)


def _memory(count: int, itemsize: int) -> _ringlet.Memory:
    return _ringlet.Memory(count * itemsize)


def _view_of_nothing(dtype: str, shape: Sequence[int]) -> _ringlet.View:
    """The view of a result without elements, which needs no dtype of NumPy's."""
    return _ringlet.View(_ringlet.Memory.array(_memory(0, 1), dtype, list(shape)), write=True)


def _count(shape: Sequence[int]) -> int:
    count = 1
    for extent in shape:
        count *= extent
    return count


def array_of(memory: _ringlet.Memory, dtype: str, shape: Sequence[int]) -> np.ndarray:
    """A NumPy array of this memory."""
    of_numpy = numpy_dtype(dtype)
    return np.frombuffer(memory, of_numpy).reshape(shape) if len(memory) else np.empty(shape, of_numpy)


class NumpyKind:
    """NumPy's arrays, its scalars and Python's numbers, and objects with a buffer or another library's DLPack, whose results are NumPy's."""

    writable = True

    @staticmethod
    def source(array: Any) -> Any:
        if isinstance(array, np.ndarray) or not isinstance(array, (np.generic, bool, int, float, complex)):
            return array
        # The memory of a scalar is not its own.
        return np.asarray(array)

    @staticmethod
    def empty(dtype: str, shape: Sequence[int]) -> Output:
        array = array_of(_memory(_count(shape), numpy_dtype(dtype).itemsize), dtype, shape)
        return Output(_ringlet.View(array, write=True), array)

    @staticmethod
    def of_memory(memory: _ringlet.Memory, dtype: str, shape: Sequence[int]) -> np.ndarray:
        return array_of(memory, dtype, shape)


class TorchKind:
    """PyTorch's tensors in the CPU's memory."""

    writable = True

    @staticmethod
    def source(array: Any) -> Any:
        try:
            if array.device.type != "cpu":
                raise InvalidArgument(f"the tensor is on '{array.device}'; copy it to the CPU first")
            # A tensor that requires a gradient is not exported, though its memory may be used. A conjugate is only marked as such.
            return array.detach().resolve_conj().resolve_neg() if array.requires_grad or array.is_conj() or array.is_neg() else array
        except AttributeError:
            # Asking torch whether it is a tensor takes a microsecond.
            has_parameters = "; dict(model.named_parameters()) are its arrays" if hasattr(array, "named_parameters") else ""
            raise TypeError(f"a {type(array).__name__} is no array{has_parameters}") from None

    @staticmethod
    def empty(dtype: str, shape: Sequence[int]) -> Output:
        memory = _memory(_count(shape), getattr(sys.modules["torch"], _NUMPY[dtype]).itemsize)
        array = TorchKind.of_memory(memory, dtype, shape)
        return Output(_ringlet.View(array, write=True), array)

    @staticmethod
    def of_memory(memory: _ringlet.Memory, dtype: str, shape: Sequence[int]) -> Any:
        torch = sys.modules["torch"]
        of_torch = getattr(torch, _NUMPY[dtype])
        if len(memory) == 0:
            return torch.empty(tuple(shape), dtype=of_torch, device="cpu")
        return torch.frombuffer(memory, dtype=of_torch).reshape(tuple(shape))


class JaxKind:
    """JAX's arrays, which never change: results are new ones, which take the memory that they were written to."""

    writable = False

    @staticmethod
    def source(array: Any) -> Any:
        return array

    @staticmethod
    def empty(dtype: str, shape: Sequence[int]) -> Output:
        jax = sys.modules["jax"]
        count = _count(shape)
        if count == 0:
            return Output(_view_of_nothing(dtype, shape), jax.numpy.zeros(tuple(shape), numpy_dtype(dtype)))
        memory = _memory(count, numpy_dtype(dtype).itemsize)
        array = _ringlet.Memory.array(memory, dtype, list(shape))
        return Output(_ringlet.View(array, write=True), array, jax.dlpack.from_dlpack)

    @staticmethod
    def of_memory(memory: _ringlet.Memory, dtype: str, shape: Sequence[int]) -> Any:
        return copied(JaxKind, memory, dtype, shape)


class MlxKind:
    """MLX's arrays, of which several may share memory: results are new ones, written to before anybody sees them."""

    writable = False

    @staticmethod
    def source(array: Any) -> Any:
        return array

    @staticmethod
    def empty(dtype: str, shape: Sequence[int]) -> Output:
        core = sys.modules["mlx.core"]
        array = core.contiguous(core.zeros(tuple(shape), getattr(core, _MLX[dtype])))
        core.eval(array)
        if _count(shape) == 0:
            return Output(_view_of_nothing(dtype, shape), array)
        return Output(_ringlet.View(array, write=True), array)

    @staticmethod
    def of_memory(memory: _ringlet.Memory, dtype: str, shape: Sequence[int]) -> Any:
        return copied(MlxKind, memory, dtype, shape)


def copied(kind: Any, memory: _ringlet.Memory, dtype: str, shape: Sequence[int]) -> Any:
    """An array of this kind with the contents of this memory."""
    output = kind.empty(dtype, shape)
    _ringlet.copy(_ringlet.View(_ringlet.Memory.array(memory, dtype, list(shape))), output.view)
    return output.finish()


_KINDS = {"torch": TorchKind, "jax": JaxKind, "jaxlib": JaxKind, "mlx": MlxKind}


def kind_of(array: Any) -> Any:
    """The kind of an array. Lists and tuples are none: they are trees."""
    if isinstance(array, np.ndarray):
        if isinstance(array, np.ma.MaskedArray):
            raise InvalidArgument("a masked array would lose its mask; give its filled(), or its data where every element counts")
        return NumpyKind
    if isinstance(array, (list, tuple)):
        raise TypeError(f"a {type(array).__name__} is no array; numpy.asarray() makes one of numbers")
    if isinstance(array, (dict, str)) or array is None:
        raise TypeError(f"a {type(array).__name__} is no array" if array is not None else "None is no array")
    kind = _kind_of_package(type(array))
    if kind is not None:
        return kind
    if not isinstance(array, (np.generic, bool, int, float, complex)) and not _has_memory(array):
        raise TypeError(f"a {type(array).__name__} is no array")
    return NumpyKind


def kind_of_dtype(dtype: Any) -> Any:
    """The kind of the arrays that have this dtype: NumPy's, where the dtype belongs to no package of arrays."""
    return NumpyKind if isinstance(dtype, (str, type)) else _kind_of_package(type(dtype)) or NumpyKind


def _kind_of_package(of: type) -> Any:
    for of_class in of.__mro__:
        kind = _KINDS.get(of_class.__module__.partition(".")[0])
        if kind is not None:
            return kind
    return None


_EXPORTERS = ("__dlpack__", "__array_interface__", "__array_struct__", "__array__")


def _has_memory(array: Any) -> bool:
    kind = type(array)
    if kind.__name__ == "PyCapsule" or any(hasattr(kind, name) for name in _EXPORTERS):
        return True
    try:
        memoryview(array).release()
    except TypeError:
        return False
    except (BufferError, ValueError):
        pass  # it has a buffer, and whoever uses that tells what is wrong with it
    return True


def view_to_read(array: Any) -> tuple[Any, _ringlet.View]:
    """The kind of an array, and the view of its elements."""
    kind = kind_of(array)
    return kind, _ringlet.View(kind.source(array))


def view_to_write(array: Any) -> _ringlet.View:
    """The view of an array that a call changes in place. Refuses those that others may share."""
    kind = kind_of(array)
    if not kind.writable:
        raise InvalidArgument(
            f"arrays such as {type(array).__name__} of {type(array).__module__} are never changed in place: others may share them"
        )
    if isinstance(array, (np.generic, bool, int, float, complex)):
        raise InvalidArgument("a number cannot be changed in place")
    source = kind.source(array)
    if kind is TorchKind and (array.is_conj() or array.is_neg()):
        raise InvalidArgument("the tensor is the conjugate, or the negative, of what is in its memory; resolve it first")
    view = _ringlet.View(source, write=True)
    if kind is TorchKind:
        # Autograd is told, so that it notices if it needed the old values.
        sys.modules["torch"].autograd.graph.increment_version(array)
    return view
