"""Ringlet: collectives, data-parallel and FSDP training over plain TCP, on the machines you already own."""

from __future__ import annotations

import atexit as _atexit
import os as _os
import sys as _sys
from typing import Any, Callable, Optional, Union

from . import _ringlet

# A free-threaded Python takes its lock back when it imports the module, unless it was told not to.
if not getattr(_sys, "_is_gil_enabled", lambda: True)():
    raise ImportError("ringlet needs the interpreter's lock: run this Python without PYTHON_GIL=0 and -X gil=0")

from ._ringlet import ShardLayout, TraceSpan
from .arguments import check_function, shown
from .checkpoint import Checkpoint, SaveReport, latest_checkpoint, load_checkpoint, save_checkpoint
from .delays import Delay, Latecomer, delay_of
from .elastic import ElasticTrainer, MembershipChange, MinRanks, Rollback, Step, read_min_ranks
from .elastic_fsdp import ElasticFsdp, ElasticFullyShard, ElasticShards
from .errors import Cancelled, Error, InvalidArgument, IoError, MismatchError, PeerLost, ProtocolError, Timeout
from .fsdp import FsdpUpdater, FullyShard, fsdp_apply_gradients
from .gradients import (
    GradientAverager,
    GradientBucketer,
    Wire,
    average_gradients,
    average_gradients_,
    clip_grad_norm,
    clip_grad_norm_,
    clip_grad_norm_sharded,
)
from .group import Group, Reformed, leave_all
from .messages import Received
from .optimizers import SGD, AdaDelta, Adagrad, Adam, Adamax, AdamW, Lion, MultiOptimizer, Optimizer, RMSprop
from .outer import InnerStep, OuterTrainer
from .schedules import cosine_decay, exponential_decay, join_schedules, linear_schedule, step_decay
from .tensor_parallel import AllToSharded, ShardedToAll, shard_axis
from .works import Work

__all__ = [
    "AdaDelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "AllToSharded",
    "Cancelled",
    "Checkpoint",
    "Delay",
    "ElasticFsdp",
    "ElasticFullyShard",
    "ElasticShards",
    "ElasticTrainer",
    "Error",
    "FsdpUpdater",
    "FullyShard",
    "GradientAverager",
    "GradientBucketer",
    "Group",
    "InnerStep",
    "InvalidArgument",
    "IoError",
    "Latecomer",
    "Lion",
    "MembershipChange",
    "MinRanks",
    "MismatchError",
    "MultiOptimizer",
    "Optimizer",
    "OuterTrainer",
    "PeerLost",
    "ProtocolError",
    "RMSprop",
    "Received",
    "Reformed",
    "Rollback",
    "SGD",
    "SaveReport",
    "ShardLayout",
    "ShardedToAll",
    "Step",
    "Timeout",
    "TraceSpan",
    "Wire",
    "Work",
    "average_gradients",
    "average_gradients_",
    "clip_grad_norm",
    "clip_grad_norm_",
    "clip_grad_norm_sharded",
    "cosine_decay",
    "exponential_decay",
    "fsdp_apply_gradients",
    "init",
    "is_available",
    "join_schedules",
    "latest_checkpoint",
    "leave_all",
    "linear_schedule",
    "load_checkpoint",
    "read_min_ranks",
    "save_checkpoint",
    "shard_axis",
    "step_decay",
]

__version__: str = _ringlet.version


def init(
    *,
    strict: bool = False,
    backend: str = "any",
    rank: Optional[int] = None,
    world_size: Optional[int] = None,
    coordinator: Optional[str] = None,
    listen_fd: Optional[int] = None,
    hostfile: Optional[str] = None,
    listen: Optional[str] = None,
    advertise: Optional[str] = None,
    interfaces: Optional[str] = None,
    guests: Optional[int] = None,
    token: Optional[str] = None,
    encrypt: Optional[bool] = None,
    peer_memory: Optional[bool] = None,
    status: Optional[bool] = None,
    trace: Union[str, _os.PathLike, None] = None,
    connect_timeout: Optional[float] = None,
    operation_timeout: Optional[float] = None,
    warn_after: Optional[float] = None,
    elastic: Optional[bool] = None,
    on_split: Optional[str] = None,
    join: Optional[str] = None,
    door: Optional[str] = None,
    heartbeat_timeout: Optional[float] = None,
    order: Optional[str] = None,
    parts: Optional[str] = None,
    on_delay: Optional[Callable[[Delay], object]] = None,
) -> Group:
    """Joins or forms the group of all ranks.

    What is not given comes from the environment (`ringlet launch` and `ringlet run` set it; docs/environment.md). With nothing configured it
    returns a group of one or, if `strict`, raises InvalidArgument. The options are those of C++'s InitOptions, with times in seconds.

    `trace` names the file of a trace of what this rank does when (docs/trace.md); TraceSpan adds the program's own work to it.

    `on_delay` gets the warnings about operations that take long, which are printed otherwise. It runs on the thread of Work.on_done().
    """
    options: dict[str, Any] = locals()
    if trace is not None:
        if not isinstance(trace, (str, _os.PathLike)):
            raise TypeError(f"trace is {shown(trace)}; it is the path of a file")
        options["trace"] = _os.fspath(trace)
    check_function(on_delay, "on_delay")
    if on_delay is not None:
        options["on_delay"] = lambda parts: on_delay(delay_of(parts))
    return Group(_ringlet.init(**options))


def is_available(backend: str = "any") -> bool:
    """Whether the named back end ("any", "tcp") can be used here."""
    return _ringlet.is_available(backend)


def _at_exit() -> None:
    try:
        leave_all()
    finally:
        _ringlet.stop_callbacks()
        _ringlet.begin_exit()


_atexit.register(_at_exit)
