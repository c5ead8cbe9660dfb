"""How the ranks of a process group find each other: by torch's store, whichever kind it is."""

from __future__ import annotations

import collections
import os
import socket
from datetime import timedelta
from typing import Any, Optional

import ringlet

from ..listening import address_told, is_loopback, listen_at

# No packet is sent there: it is an address of documents, by which the system says which of its own it would use.
_ANYWHERE = "203.0.113.1"

# How often this process has met by each name. A store of torchrun's outlives groups, and so do the keys of those before.
_meetings: collections.Counter = collections.Counter()


def meet(store: Any, name: str, rank: int, size: int, timeout: timedelta) -> ringlet.Group:
    """Forms a group of the ranks that have `store` in common and give the same `name`, which they do equally often. Rank 0 listens, and
    tells the others in the store where."""
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    key = f"ringlet/{name}/{attempt}/{_meetings[name]}"
    _meetings[name] += 1
    if size == 1:
        return ringlet.Group()
    options: dict = {
        "strict": True,
        "rank": rank,
        "world_size": size,
        "guests": 0,
        "elastic": False,
        "connect_timeout": timeout.total_seconds(),
    }
    if rank != 0:
        store.wait([key], timeout)
        return ringlet.init(coordinator=store.get(key).decode(), **options)
    with listen_at(_own_address(_host_of(store))) as listening:
        coordinator = address_told(listening)
        store.set(key, coordinator)
        return ringlet.init(coordinator=coordinator, listen_fd=listening.fileno(), **options)


def _host_of(store: Any) -> str:
    """Where the store is, as far as it is anywhere."""
    while hasattr(store, "underlying_store"):
        store = store.underlying_store
    return getattr(store, "host", "") or os.environ.get("MASTER_ADDR", "") or "127.0.0.1"


def _own_address(host: str) -> str:
    """The address of this machine from which it reaches a host; where RINGLET_LISTEN names one, that."""
    listen = _host_part(os.environ.get("RINGLET_LISTEN", ""))
    if listen and listen not in ("0.0.0.0", "::"):
        return listen
    ranks_here, ranks = os.environ.get("LOCAL_WORLD_SIZE"), os.environ.get("WORLD_SIZE")
    if ranks_here and ranks_here == ranks:
        return "127.0.0.1"
    address = _address_towards(host) or "127.0.0.1"
    if ranks_here and is_loopback(address) and not (is_loopback(host) or host == "localhost"):
        # The store is on this machine, whose name stands for the loopback here; others cannot reach that.
        return _address_towards(_ANYWHERE) or address
    return address


def _host_part(text: str) -> str:
    """The host of host, host:port, [v6]:port or v6."""
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.partition(":")[0] if text.count(":") == 1 else text


def _address_towards(host: str) -> Optional[str]:
    try:
        family, _, _, _, target = socket.getaddrinfo(host, 9, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect(target)
            return probe.getsockname()[0]
    except OSError:
        return None
