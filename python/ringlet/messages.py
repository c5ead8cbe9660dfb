"""Messages from rank to rank."""

from __future__ import annotations

from typing import Any, NamedTuple, Optional, Sequence

from . import _ringlet
from .arguments import wholes
from .arrays import Array, Given, Output, Same, dtype_name, kind_of_dtype, view_to_read, view_to_write
from .calls import Call, CallFromAny
from .works import Work, nothing


class Received(NamedTuple):
    """What came from any rank."""

    values: Any
    source: int  # the rank that has sent it


class Messages:
    """A group's calls that send and receive."""

    _handle: _ringlet.Group

    def send(self, x: Any, destination: int, *, stream: int = 0, timeout: Optional[float] = None) -> None:
        """Sends to a rank. It ends once the receiver has matched it, so two ranks that both send first use send_async()."""
        self._send(x, destination, stream, timeout).wait()

    def send_async(self, x: Any, destination: int, *, stream: int = 0, timeout: Optional[float] = None) -> Work[None]:
        return self._send(x, destination, stream, timeout).start()

    def _send(self, x: Any, destination: int, stream: int, timeout: Optional[float]) -> Call:
        _, source = view_to_read(x)
        return Call(nothing, self._handle.send, source, destination, stream, timeout)

    def recv(self, shape: Sequence[int], dtype: Any, source: int, *, stream: int = 0, timeout: Optional[float] = None) -> Any:
        """Receives from a rank. The array's kind is that of `dtype`: NumPy's, PyTorch's or MLX's; for a name ("f32", "float32") NumPy's."""
        return self._recv(shape, dtype, source, stream, timeout).wait()

    def recv_async(self, shape: Sequence[int], dtype: Any, source: int, *, stream: int = 0, timeout: Optional[float] = None) -> Work[Any]:
        return self._recv(shape, dtype, source, stream, timeout).start()

    def _recv(self, shape: Sequence[int], dtype: Any, source: int, stream: int, timeout: Optional[float]) -> Call:
        output = _empty(shape, dtype)
        return Call(output.finish, self._handle.recv, output.view, source, stream, timeout)

    def recv_like(self, x: Given[Array], source: int, *, stream: int = 0, timeout: Optional[float] = None) -> Array:
        """Receives an array of the kind, dtype and shape of `x`, whose elements are ignored."""
        return self._recv_like(x, source, stream, timeout).wait()

    def recv_like_async(self, x: Given[Array], source: int, *, stream: int = 0, timeout: Optional[float] = None) -> Work[Array]:
        return self._recv_like(x, source, stream, timeout).start()

    def _recv_like(self, x: Any, source: int, stream: int, timeout: Optional[float]) -> Call:
        kind, like = view_to_read(x)
        output = kind.empty(like.dtype, like.shape)
        return Call(output.finish, self._handle.recv, output.view, source, stream, timeout)

    def recv_(self, x: Same, source: int, *, stream: int = 0, timeout: Optional[float] = None) -> Same:
        """Receives into an array."""
        return self._recv_(x, source, stream, timeout).wait()

    def recv_async_(self, x: Same, source: int, *, stream: int = 0, timeout: Optional[float] = None) -> Work[Same]:
        return self._recv_(x, source, stream, timeout).start()

    def _recv_(self, x: Any, source: int, stream: int, timeout: Optional[float]) -> Call:
        return Call(lambda: x, self._handle.recv, view_to_write(x), source, stream, timeout)

    def recv_any(self, shape: Sequence[int], dtype: Any, *, stream: int = 0, timeout: Optional[float] = None) -> Received:
        """Receives from whichever rank has sent a message of the stream that no recv() from that rank waits for; where several have, they
        take turns. Returns the array, of the kind that recv() returns, and the rank."""
        return self._recv_any(shape, dtype, stream, timeout).wait()

    def recv_any_async(self, shape: Sequence[int], dtype: Any, *, stream: int = 0, timeout: Optional[float] = None) -> Work[Received]:
        return self._recv_any(shape, dtype, stream, timeout).start()

    def _recv_any(self, shape: Sequence[int], dtype: Any, stream: int, timeout: Optional[float]) -> Call:
        output = _empty(shape, dtype)
        return CallFromAny(lambda source: Received(output.finish(), source), self._handle.recv_any, output.view, stream, timeout)

    def recv_any_(self, x: Any, *, stream: int = 0, timeout: Optional[float] = None) -> int:
        """As recv_any(), into an array. Returns the rank."""
        return self._recv_any_(x, stream, timeout).wait()

    def recv_any_async_(self, x: Any, *, stream: int = 0, timeout: Optional[float] = None) -> Work[int]:
        return self._recv_any_(x, stream, timeout).start()

    def _recv_any_(self, x: Any, stream: int, timeout: Optional[float]) -> Call:
        return CallFromAny(lambda source: source, self._handle.recv_any, view_to_write(x), stream, timeout)


def _empty(shape: Sequence[int], dtype: Any) -> Output:
    name = dtype_name(dtype)
    return kind_of_dtype(dtype).empty(name, tuple(wholes(shape, "shape")))
