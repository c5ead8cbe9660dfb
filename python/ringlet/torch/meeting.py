"""How the ranks of a process group find each other: by torch's store, whichever kind it is."""

from __future__ import annotations

import os
import secrets
import socket
import threading
from datetime import timedelta
from typing import Any, Dict, List, Optional, Tuple

import ringlet

from ..listening import address_told, is_loopback, listen_at
from .arguments import seconds_of

# No packet is sent there: it is an address of documents, by which the system says which of its own it would use.
_ANYWHERE = "203.0.113.1"

# The longest timeout that init() takes, in seconds.
_LONGEST = 1e6
# How often rank 0 looks whether somebody asks, in seconds: at first, and later.
_FIRST_PAUSE, _PAUSE = 0.01, 0.1
_FIRST_TIMES = 100

# The last meeting that this process was at, by its name and this rank.
_last_meetings: Dict[Tuple[str, int], str] = {}


def meet(store: Any, name: str, rank: int, size: int, timeout: timedelta) -> ringlet.Group:
    """Forms a group of the ranks that have `store` in common and give the same `name`. Rank 0 listens, and tells the others in the store
    where."""
    key = f"ringlet/{name}"
    if size == 1:
        return ringlet.Group()
    options: dict = {
        "strict": True,
        "rank": rank,
        "world_size": size,
        "guests": 0,
        "elastic": False,
        "connect_timeout": min(seconds_of(timeout), _LONGEST),
    }
    if rank != 0:
        meeting, coordinator = _ask(store, key, rank, _last_meetings.get((name, rank), ""), timeout)
        group = ringlet.init(coordinator=coordinator, **options)
    else:
        meeting = secrets.token_hex(8)
        with listen_at(_own_address(_host_of(store))) as listening:
            coordinator = address_told(listening)
            with _MeetingServer(store, key, size, meeting, coordinator):
                group = ringlet.init(coordinator=coordinator, listen_fd=listening.fileno(), **options)
    _last_meetings[name, rank] = meeting
    return group


def _ask(store: Any, key: str, rank: int, last_meeting: str, timeout: timedelta) -> List[str]:
    """Asks rank 0 for the name of its meeting, and where it listens. A store of torchrun's outlives groups and processes, and an answer to
    those before would be of no use. So each request has a name of its own, and says which meeting this rank has been to."""
    request = secrets.token_hex(8)
    store.set(f"{key}/{rank}", f"{request} {last_meeting}")
    store.add(f"{key}/requests", 1)
    answer = f"{key}/{rank}/{request}"
    store.wait([answer], timeout)
    return store.get(answer).decode().split(" ")


class _MeetingServer:
    """Answers all that ask where rank 0 listens, in a thread of its own, while rank 0 waits for them there."""

    def __init__(self, store: Any, key: str, size: int, meeting: str, address: str) -> None:
        self._store, self._key, self._size, self._meeting, self._address = store, key, size, meeting, address
        self._answered: Dict[int, str] = {}
        self._failure: Optional[BaseException] = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ringlet meeting", daemon=True)

    def __enter__(self) -> "_MeetingServer":
        self._thread.start()
        return self

    def __exit__(self, kind: Any, error: Optional[BaseException], trace: Any) -> None:
        self._over.set()
        # A store whose host is silent may hold the thread for longer.
        self._thread.join(timeout=1)
        if error is not None and error.__cause__ is None:
            error.__cause__ = self._failure

    def _run(self) -> None:
        key, seen, times = f"{self._key}/requests", b"", 0
        while not self._over.wait(_FIRST_PAUSE if times < _FIRST_TIMES else _PAUSE):
            times += 1
            try:
                # Not add(key, 0), which a FileStore writes down.
                count = self._store.get(key) if self._store.check([key]) else b""
                if count != seen:
                    self._answer_all()
                seen, self._failure = count, None
            except Exception as failure:  # the store's, of whatever kind; it may pass
                self._failure = failure

    def _answer_all(self) -> None:
        for rank in range(1, self._size):
            key = f"{self._key}/{rank}"
            if not self._store.check([key]):
                continue
            request, last_meeting = self._store.get(key).decode().split(" ")
            # A rank that has been to this meeting waits for the next one, though this rank is not there yet.
            if last_meeting != self._meeting and self._answered.get(rank) != request:
                self._store.set(f"{key}/{request}", f"{self._meeting} {self._address}")
                self._answered[rank] = request


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
    if is_loopback(address) and not (is_loopback(host) or host == "localhost"):
        # The store is on this machine, whose name stands for the loopback here; other machines cannot reach that.
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
