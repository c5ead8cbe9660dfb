"""Ringlet: collectives, data-parallel and FSDP training over plain TCP, on the machines you already own."""

from __future__ import annotations

import atexit as _atexit
from typing import Any, Optional

from . import _ringlet
from .errors import Cancelled, Error, InvalidArgument, IoError, MismatchError, PeerLost, ProtocolError, Timeout
from .group import Group, Reformed, leave_all
from .works import Work, stop_watching

__all__ = [
    "Cancelled",
    "Error",
    "Group",
    "InvalidArgument",
    "IoError",
    "MismatchError",
    "PeerLost",
    "ProtocolError",
    "Reformed",
    "Timeout",
    "Work",
    "init",
    "is_available",
]

__version__: str = _ringlet.__version__


def init(
    *,
    strict: bool = False,
    backend: str = "any",
    rank: Optional[int] = None,
    world_size: Optional[int] = None,
    coordinator: Optional[str] = None,
    hostfile: Optional[str] = None,
    listen: Optional[str] = None,
    advertise: Optional[str] = None,
    interfaces: Optional[str] = None,
    guests: Optional[int] = None,
    token: Optional[str] = None,
    encrypt: Optional[bool] = None,
    peer_memory: Optional[bool] = None,
    status: Optional[bool] = None,
    connect_timeout: Optional[float] = None,
    operation_timeout: Optional[float] = None,
    warn_after: Optional[float] = None,
    elastic: Optional[bool] = None,
    on_split: Optional[str] = None,
    join: Optional[str] = None,
    door: Optional[str] = None,
    heartbeat_timeout: Optional[float] = None,
) -> Group:
    """Joins or forms the group of all ranks.

    What is not given comes from the environment (`ringlet launch` and `ringlet run` set it; docs/environment.md). With nothing configured it
    returns a group of one or, if `strict`, raises InvalidArgument. The options are those of C++'s InitOptions, with times in seconds.
    """
    options: dict[str, Any] = locals()
    return Group(_ringlet.init(**options))


def is_available(backend: str = "any") -> bool:
    """Whether the named back end ("any", "tcp") can be used here."""
    return _ringlet.is_available(backend)


def _at_exit() -> None:
    stop_watching()
    leave_all()


_atexit.register(_at_exit)
