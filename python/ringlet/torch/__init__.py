"""torch.distributed over Ringlet: init_process_group("ringlet"). From torch 2.14 on that needs no import; before, import this module first.

docs/torch.md says what works.
"""

from __future__ import annotations

import sys
import weakref
from typing import Any, Optional

import torch.distributed as dist

from .arguments import seconds_of
from .averages import average_gradients
from .hooks import WeightedAverage, WireAverage, weighted_average_hook, wire_average_hook
from .meeting import meet
from .operations import Operations
from .process_group import ProcessGroup

__all__ = [
    "ProcessGroup",
    "WeightedAverage",
    "WireAverage",
    "average_gradients",
    "register",
    "weighted_average_hook",
    "wire_average_hook",
]

# The world of this process, from which its other groups are made.
_world: Optional[weakref.ref] = None


def create(options: Any, backend_options: Any = None, events: str = "ringlet") -> Any:
    """Makes what torch asks for. The ranks of a first group meet by the store; a part of them is a group over the links that exist. The
    profiler shows its calls with `events` before their names."""
    global _world
    ranks = list(options.global_ranks_in_group)
    is_world = not dist.is_initialized()
    world = None if is_world else _open_world()
    if ranks and world is not None:
        group = world.ringlet.create(ranks, timeout=seconds_of(options.timeout))
    else:
        group = meet(options.store, options.group_id, options.group_rank, options.group_size, options.timeout)
    made = _class_to_make()(group, options.store, options.timeout, events)
    if is_world:
        _world = weakref.ref(made)
    return made


def _open_world() -> Optional[Operations]:
    """What is, or is behind, torch's default group, if that is of this module's making."""
    world = _world() if _world is not None else None
    if world is None or not world.is_open() or (isinstance(world, ProcessGroup) and world is not dist.group.WORLD):
        return None
    return world


def _class_to_make() -> Any:
    """A process group does more, but none beside it: where other devices have other back ends, one of several back ends is made."""
    # torch does not say which it wants; the function that calls create() knows.
    frame = sys._getframe(2)
    config = frame.f_locals.get("backend_config")
    others = {str(backend) for backend in config.get_device_backend_map().values()} if config is not None else set()
    if len(others) > 1:
        from .backend import Backend

        return Backend
    return ProcessGroup


def register() -> None:
    """Makes torch know the name "ringlet". Importing this module does it, too."""
    if "RINGLET" not in dist.Backend._plugins:
        dist.Backend.register_backend("ringlet", create, extended_api=True, devices=["cpu"])
        # torch's flight recorder asks a group for its back ends, and this one has none.
        recording: set = getattr(dist.distributed_c10d, "_FR_SELF_RECORDING_BACKENDS", set())
        recording.add("ringlet")


register()
