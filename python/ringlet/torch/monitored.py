"""A barrier that says who did not come."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

from ..errors import Timeout


def monitored_barrier(store: Any, name: str, rank: int, size: int, seconds: float, wait_all_ranks: bool) -> None:
    """Returns once all ranks have called it; else raises on rank 0 which did not within so many seconds, all of them or the first, and on
    those that did that it failed. They meet in torch's store, so that a rank that is late ends no operation of the group, by a name that no
    other barrier there has."""
    key = f"ringlet/monitored_barrier/{name}"
    deadline = time.monotonic() + seconds
    if rank != 0:
        store.set(f"{key}/{rank}", "1")
        # Rank 0 says how it ended once it knows about all, and may have begun as late as this rank may.
        came = _has_come(store, f"{key}/end", deadline + seconds)
        outcome = store.get(f"{key}/end").decode() if came else "it did not come"
        if outcome != "ok":
            raise Timeout(
                f"Rank {rank} successfully reached monitoredBarrier, but received errors while waiting for send/recv from rank 0. "
                f"Please check rank 0 logs for faulty rank: {outcome}",
                0,
            )
        return
    if seconds == 0:
        raise Timeout(f"Rank {rank} timed out in monitoredBarrier after 0 ms", rank)
    late = []
    for other in range(1, size):
        if not _has_come(store, f"{key}/{other}", deadline):
            late.append(other)
            if not wait_all_ranks:
                break
    names = f"Rank {late[0]}" if len(late) == 1 else "Ranks " + ", ".join(map(str, late))
    outcome = f"{names} failed to pass monitoredBarrier in {round(seconds * 1000)} ms" if late else "ok"
    store.set(f"{key}/end", outcome)
    if late:
        raise Timeout(f"[Rank 0]: {outcome}", late[0])


def _has_come(store: Any, key: str, deadline: float) -> bool:
    try:
        store.wait([key], timedelta(seconds=max(deadline - time.monotonic(), 0.001)))
    except RuntimeError:
        return False
    return True
