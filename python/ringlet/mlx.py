"""MLX programs over Ringlet.

    import mlx.core as mx
    import ringlet.mlx

    group = ringlet.mlx.init()
    sums = mx.distributed.all_sum(x, group=group)

With the package ringlet-mlx, which is built for one version of MLX, groups are MLX's own (`mx.distributed.Group`): operations are lazy,
have MLX's gradients, and may be compiled. Without it they are `EagerGroup`s, for the functions of this module, which have the names of those of
mx.distributed and take groups of both kinds: these run at once, and have gradients, but cannot be compiled. `native` says which of the two it is,
and `reason` why it is not native; the first eager group warns of it.

A program that calls mx.distributed without naming a group runs unchanged after `install()`, or as

    ringlet launch -n 4 -- python -m ringlet.mlx train.py
"""

from __future__ import annotations

import atexit
import contextlib
import math
import re
import sys
import time
import warnings
from typing import Any, Callable, Iterator, List, Optional, Sequence

import mlx.core as mx

import ringlet

from . import errors as _errors
from .programs import run_program
from .works import Work

try:
    import ringlet_mlx as _native

    reason: Optional[str] = None
except ImportError as _error:
    _native = None
    reason = "the package ringlet-mlx is not installed" if _error.name == "ringlet_mlx" else str(_error)

native: bool = _native is not None

__all__ = [
    "EagerGroup",
    "all_gather",
    "all_max",
    "all_min",
    "all_sum",
    "errors",
    "group",
    "init",
    "install",
    "native",
    "reason",
    "recv",
    "recv_like",
    "send",
    "sum_scatter",
    "uninstall",
]

_OPERATIONS = ["all_sum", "all_max", "all_min", "all_gather", "sum_scatter", "send", "recv", "recv_like"]
# MLX's own functions, also while others stand in their places.
_MLX = {name: getattr(mx.distributed, name) for name in [*_OPERATIONS, "init", "is_available"]}

_default: Any = None
_world: Optional[ringlet.Group] = None  # the default group's, which is left at exit
_configured = False  # or the default group is one of one since nothing is configured


def group(world: ringlet.Group) -> Any:
    """MLX's group of a group of Ringlet's: an mx.distributed.Group or, where ringlet-mlx is missing, an EagerGroup.

    It stands for the same group beside `world`: the rank leaves once both are gone, or at exit.
    """
    if _native is not None:
        return _native.group(world._handle.share())
    _warn_once()
    return EagerGroup(world)


def init(strict: bool = False, **options: Any) -> Any:
    """Joins or forms the group of all ranks, as ringlet.init() does, and returns MLX's group. Later calls return the same one.

    With nothing configured it is a group of one or, if `strict`, raises InvalidArgument, also later. The options, those of ringlet.init(), are the
    first call's.
    """
    global _default, _world, _configured
    if _default is None or (strict and not _configured):
        world = ringlet.init(strict=strict, **options)
        _default, _world, _configured = group(world), world, strict or world.size() > 1
    return _default


def install(world: Optional[ringlet.Group] = None) -> None:
    """Has `mx.distributed` mean Ringlet wherever no group is named: in `init()`, whichever back end it asks for, and where `group` is None.

    Without a world, it is formed when it is first needed, as by init(). mlx.nn follows, since it calls mx.distributed.
    """
    global _default, _world, _configured
    if world is not None:
        _default, _world, _configured = group(world), world, True
    for name in _OPERATIONS:
        setattr(mx.distributed, name, globals()[name])
    mx.distributed.init = _init_as_mlx
    mx.distributed.is_available = _is_available


def uninstall() -> None:
    """Has `mx.distributed` mean MLX's own back ends again."""
    for name, function in _MLX.items():
        setattr(mx.distributed, name, function)


def _init_as_mlx(strict: bool = False, backend: str = "any", *, all_gather_factory: Optional[Callable] = None) -> Any:
    if all_gather_factory is not None:
        return _MLX["init"](strict, backend, all_gather_factory=all_gather_factory)
    if backend not in ("any", "ringlet", "ring", "mpi", "nccl", "jaccl"):
        raise ValueError(
            f"there is no back end '{backend}'; with Ringlet installed they are 'any' and 'ringlet', and MLX's names mean the same"
        )
    return init(strict)


def _is_available(backend: str = "any") -> bool:
    return backend in ("any", "ringlet") or _MLX["is_available"](backend)


@contextlib.contextmanager
def errors() -> Iterator[None]:
    """Raises errors of Ringlet's as what they are: MLX passes on nothing but their text when it evaluates.

        with ringlet.mlx.errors():
            mx.eval(step(batch))

    raises ringlet.PeerLost, with the rank, instead of a RuntimeError that says so. Other exceptions pass.
    """
    try:
        yield
    except RuntimeError as raised:
        found = None if isinstance(raised, ringlet.Error) else _TEXT.fullmatch(str(raised))
        if found is None:
            raise
        _forget_errors()
        kind = getattr(_errors, found["name"], ringlet.Error)
        raise kind(found["text"], int(found["rank"] or -1)) from raised


_TEXT = re.compile(r"ringlet\.(?P<name>\w+)(?: \(rank (?P<rank>\d+)\))?: (?P<text>.*)", re.DOTALL)


def _forget_errors() -> None:
    """A stream of MLX's keeps the error of an operation until it has been raised once more."""
    for _ in range(2):
        try:
            mx.synchronize()
        except RuntimeError:
            pass


# The operations of mx.distributed, for both kinds of groups.


def all_sum(x: Any, *, group: Any = None, stream: Any = None) -> mx.array:
    """The sum over all ranks; every rank gets the same bits."""
    return _call("all_sum", group, stream, x)


def all_max(x: Any, *, group: Any = None, stream: Any = None) -> mx.array:
    """The maximum over all ranks; NaN if any of them has NaN."""
    return _call("all_max", group, stream, x)


def all_min(x: Any, *, group: Any = None, stream: Any = None) -> mx.array:
    """The minimum over all ranks; NaN if any of them has NaN."""
    return _call("all_min", group, stream, x)


def all_gather(x: Any, *, group: Any = None, stream: Any = None) -> mx.array:
    """All ranks' arrays, concatenated along axis 0; scalars become an array with one axis."""
    return _call("all_gather", group, stream, x)


def sum_scatter(x: Any, *, group: Any = None, stream: Any = None) -> mx.array:
    """This rank's part along axis 0 of the sum. Raises ValueError where the rows do not divide by the ranks."""
    return _call("sum_scatter", group, stream, x)


def send(x: Any, dst: int, *, group: Any = None, stream: Any = None) -> mx.array:
    """Sends to a rank when the array that it returns, which equals `x`, is evaluated, or at once in an EagerGroup. It does not wait for the receiver."""
    return _call("send", group, stream, x, dst)


def recv(shape: Sequence[int], dtype: mx.Dtype, src: int, *, group: Any = None, stream: Any = None) -> mx.array:
    """Receives an array from a rank."""
    return _call("recv", group, stream, shape, dtype, src)


def recv_like(x: Any, src: int, *, group: Any = None, stream: Any = None) -> mx.array:
    """Receives an array of the shape and dtype of `x` from a rank."""
    return _call("recv_like", group, stream, x, src)


def _call(name: str, given: Any, stream: Any, *arguments: Any) -> mx.array:
    of_group = init() if given is None else given
    if isinstance(of_group, EagerGroup):
        return getattr(of_group, name)(*arguments)
    return _MLX[name](*arguments, group=of_group, stream=stream)


# That of groups of ringlet-mlx, which may be on other ranks; so shapes are flat, too.
_SPLIT_STREAM = 1023


class EagerGroup:
    """A group for the functions of this module where ringlet-mlx is missing. It has the methods of mx.distributed.Group.

    Operations run when they are called, and evaluate what they are given. They have MLX's gradients; mx.compile and mx.vmap refuse them.
    """

    def __init__(self, world: ringlet.Group) -> None:
        self._world = world
        self._messages: List[Work] = []

    def rank(self) -> int:
        return self._world.rank()

    def size(self) -> int:
        return self._world.size()

    def split(self, color: int, key: int = -1) -> EagerGroup:
        """A group of the ranks that give the same color, ordered by key, then by rank; a negative key stands for the rank. Raises ValueError for a
        negative color."""
        part = self._world.split(color, key, stream=_SPLIT_STREAM)
        if part is None:
            raise ValueError(f"the color is {color}, so this rank is in none of the new groups")
        return EagerGroup(part)

    def all_sum(self, x: Any) -> mx.array:
        return self._reduce(self._world.all_sum, x)

    def all_max(self, x: Any) -> mx.array:
        return self._reduce(self._world.all_max, x)

    def all_min(self, x: Any) -> mx.array:
        return self._reduce(self._world.all_min, x)

    def all_gather(self, x: Any) -> mx.array:
        x = _array(x)
        if self.size() == 1:
            return x
        operation = mx.custom_function(self._gather)

        @operation.vjp
        def own_part(primal: mx.array, cotangent: mx.array, _: mx.array) -> mx.array:
            if primal.ndim == 0:
                return cotangent[self.rank()]
            return cotangent[self.rank() * primal.shape[0] : (self.rank() + 1) * primal.shape[0]]

        @operation.jvp
        def gathered(_: mx.array, tangent: mx.array) -> mx.array:
            return self._gather(tangent)

        return operation(x)

    def _gather(self, x: mx.array) -> mx.array:
        rows = 1 if x.ndim == 0 else x.shape[0]
        return self._run_flat(self._world.all_gather, x, (self.size() * rows, *x.shape[1:]))

    def sum_scatter(self, x: Any) -> mx.array:
        x = _array(x)
        if self.size() == 1:
            return x
        if x.ndim == 0 or x.shape[0] % self.size() != 0:
            raise ValueError(f"the shape is {tuple(x.shape)}; its first axis must be there, and divide by the {self.size()} ranks")
        return self._run_flat(self._world.sum_scatter, x, (x.shape[0] // self.size(), *x.shape[1:]))

    def send(self, x: Any, dst: int) -> mx.array:
        x = _array(x)
        self._check(dst, "send to")
        message = self._run(lambda values: self._world.send_async(values, dst), mx.flatten(x))
        self._messages.append(message)
        _keep(message)
        return x

    def recv(self, shape: Sequence[int], dtype: mx.Dtype, src: int) -> mx.array:
        self._check(src, "receive from")
        return mx.reshape(self._run(lambda: self._world.recv((math.prod(shape),), dtype, src)), tuple(shape))

    def recv_like(self, x: Any, src: int) -> mx.array:
        x = _array(x)
        return self.recv(x.shape, x.dtype, src)

    def _reduce(self, call: Callable[[mx.array], mx.array], x: Any) -> mx.array:
        x = _array(x)
        if self.size() == 1:
            return x
        operation = mx.custom_function(lambda values: self._run_flat(call, values, values.shape))

        @operation.vjp
        def unchanged(_: mx.array, cotangent: mx.array, __: mx.array) -> mx.array:
            return cotangent

        @operation.jvp
        def reduced(_: mx.array, tangent: mx.array) -> mx.array:
            return self._run_flat(call, tangent, tangent.shape)

        return operation(x)

    def _run_flat(self, call: Callable[[mx.array], mx.array], x: mx.array, shape: Sequence[int]) -> mx.array:
        return mx.reshape(self._run(call, mx.flatten(x)), tuple(shape))

    def _run(self, call: Callable[..., Any], *arguments: mx.array) -> Any:
        # What may not be evaluated here, as in mx.compile, is refused by this call; older versions of MLX end the process when it is exported.
        mx.eval(*arguments)
        result = call(*arguments)
        # The other ranks have had this one's part by now, whatever became of the messages.
        over = [message for message in self._messages if message.done()]
        self._messages = [message for message in self._messages if message not in over]
        for message in over:
            message.wait()
        return result

    def _check(self, rank: int, what: str) -> None:
        if self.size() == 1:
            raise ValueError(f"there is nobody to {what} in a group of one")
        if not 0 <= rank < self.size():
            raise ValueError(f"there is no rank {rank} to {what} in a group of {self.size()}")


def _array(x: Any) -> mx.array:
    return x if isinstance(x, mx.array) else mx.array(x)


_warned = False


def _warn_once() -> None:
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(f"ringlet.mlx: operations run at once, and cannot be compiled: {reason}", RuntimeWarning, stacklevel=3)


# How long what was sent last may wait for its receivers when the program ends.
_LAST_MESSAGES_S = 60.0
# Those of eager groups.
_messages: List[Work] = []


def _keep(message: Work) -> None:
    _messages[:] = [other for other in _messages if not other.done()]
    _messages.append(message)


def _at_exit() -> None:
    deadline = time.monotonic() + _LAST_MESSAGES_S
    if _native is not None:
        _native.await_messages(_LAST_MESSAGES_S)
    for message in _messages:
        try:
            message.wait(max(deadline - time.monotonic(), 0))
        except (TimeoutError, ringlet.Error):
            pass  # nobody is left who could be told


# Before the groups are left, which ringlet does at exit.
atexit.register(_at_exit)


def _main() -> None:
    """python -m ringlet.mlx FILE ARGUMENTS...: runs a program, or a module after -m, for which mx.distributed means Ringlet."""
    arguments = sys.argv[1:]
    if not arguments or arguments[0] in ("-h", "--help") or arguments == ["-m"]:
        print("Usage: python -m ringlet.mlx FILE [ARGUMENTS...]\n       python -m ringlet.mlx -m MODULE [ARGUMENTS...]\n")
        print("Runs an MLX program for which mx.distributed means Ringlet.")
        sys.exit(0 if arguments and arguments != ["-m"] else 2)
    install()
    run_program(arguments, "ringlet.mlx")


if __name__ == "__main__":
    # The module that programs import is another one than this one, which is __main__.
    from ringlet import mlx as _imported

    _imported._main()
