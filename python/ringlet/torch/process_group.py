"""A process group of torch's whose ranks meet, and move their tensors, by Ringlet."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Optional, Sequence

import torch
import torch.distributed as dist

import ringlet

from .arguments import seconds_of
from .operations import Operations
from .tracing import untraced_class


@untraced_class
class ProcessGroup(Operations, dist.ProcessGroup):
    """What init_process_group("ringlet") and new_group() make. `ringlet` is its group."""

    def __init__(self, group: ringlet.Group, store: Any, timeout: timedelta, events: str) -> None:
        dist.ProcessGroup.__init__(self, group.rank(), group.size())
        self.start_with(group, store, timeout, events)
        self._names = {"name": "", "description": ""}
        self._is_part = False  # made by split_group()

    def getBackendName(self) -> str:
        return "ringlet"

    def name(self) -> str:
        return "ringlet"

    # torch keeps these with the back ends of a process group, of which this one has none.

    def getGroupName(self) -> str:
        return self._names["name"]

    def setGroupName(self, name: str) -> None:
        self._names["name"] = name

    def getGroupDesc(self) -> str:
        return self._names["description"]

    def setGroupDesc(self, description: str) -> None:
        self._names["description"] = description

    # A back end of itself: what asks for the one of a device calls the same methods there.

    def _get_backend(self, device: Any) -> "ProcessGroup":
        return self

    @property
    def _device_types(self) -> list:
        # Until torch knows a new group it asks this to record what back ends do, of which this group has none.
        return [torch.device("cpu")] if self._is_part or self in dist.distributed_c10d._world.pg_map else []

    supports_splitting = True
    supports_coalescing = False
    supports_time_estimate = False

    def eager_connect_single_device(self, device: Any) -> None:
        """What torch asks for of groups that can be split and are bound to a device. All ranks are connected from the start."""

    def split_group(
        self,
        ranks: Sequence[int],
        timeout: Optional[timedelta] = None,
        opts: Any = None,
        group_name: Optional[str] = None,
        group_desc: Optional[str] = None,
        device_types: Any = None,
    ) -> Optional["ProcessGroup"]:
        """A group of these ranks of this group, in this order, over the connections that exist. None on the others."""
        if self.rank() not in ranks:
            return None
        timeout = timeout or timedelta(seconds=self._seconds)
        name = group_name or ""
        part = self.ringlet.create(ranks, timeout=seconds_of(timeout))
        made = ProcessGroup(part, dist.PrefixStore(f"{name}/", self._ringlet_store), timeout, self._events)
        made.setGroupName(name)
        made.setGroupDesc(group_desc or "")
        made._is_part = True
        return made

    def get_group_store(self) -> Any:
        return self._ringlet_store

    def _start_coalescing(self, device: Any = None) -> None:
        self.start_coalescing(device)

    def _end_coalescing(self, device: Any = None) -> Any:
        return self.end_coalescing(device)
