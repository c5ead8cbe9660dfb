"""Ringlet as one of several back ends of a process group: init_process_group("cpu:ringlet,cuda:nccl"). From torch 2.14 on."""

from __future__ import annotations

import inspect
import sys
from datetime import timedelta
from types import FrameType
from typing import Any, Optional

import torch.distributed as dist
from torch._C import _distributed_c10d as c10d

import ringlet

from .operations import Operations
from .tracing import untraced_class
from .work import Work


@untraced_class
class Backend(Operations, c10d.Backend):
    """What torch registers for a kind of device. torch asks it by C++, which sees of a work its wait() and get_future() alone."""

    def __init__(self, group: ringlet.Group, store: Any, timeout: timedelta, events: str) -> None:
        c10d.Backend.__init__(self, group.rank(), group.size())
        self.start_with(group, store, timeout, events)
        self._options = c10d.Backend.Options("ringlet", timeout)

    def getBackendName(self) -> str:
        return "ringlet"

    def name(self) -> str:
        return "ringlet"

    def recv_anysource(self, tensors: Any, tag: int = 0) -> Work:
        # dist.recv() asks the work whose message it was, and torch's C++ does not pass that on: the message would be lost.
        asks = inspect.unwrap(dist.recv).__code__
        frame: Optional[FrameType] = sys._getframe()
        while frame is not None:
            if frame.f_code is asks:
                raise ringlet.InvalidArgument(
                    "recv() has to name src in a process group of several back ends, where torch cannot tell who sent; irecv(), and a group of "
                    'new_group(backend="ringlet"), receive from any rank'
                )
            frame = frame.f_back
        return super().recv_anysource(tensors, tag)

    # torch's own of these call themselves where a class in Python does not answer.

    @property
    def options(self) -> Any:
        return self._options

    supports_splitting = False
    supports_coalescing = True
    supports_time_estimate = False
    supports_shrinking = False
    supports_reconfigure = False
    supports_window = False
