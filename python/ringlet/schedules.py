"""Learning rates that change from step to step. Any function of the number of steps taken before is a schedule, too."""

from __future__ import annotations

from typing import Callable, Sequence

from . import _ringlet
from .arguments import whole, wholes


def exponential_decay(init: float, decay_rate: float) -> _ringlet.Schedule:
    """init * decay_rate ** step"""
    return _ringlet.exponential_decay(init, decay_rate)


def step_decay(init: float, decay_rate: float, step_size: int) -> _ringlet.Schedule:
    """init * decay_rate ** (step // step_size)"""
    return _ringlet.step_decay(init, decay_rate, whole(step_size, "step_size"))


def cosine_decay(init: float, decay_steps: int, end: float = 0.0) -> _ringlet.Schedule:
    """Half a period of a cosine from init to end, and end afterwards."""
    return _ringlet.cosine_decay(init, whole(decay_steps, "decay_steps"), end)


def linear_schedule(init: float, end: float, steps: int) -> _ringlet.Schedule:
    """A straight line from init to end, and end afterwards."""
    return _ringlet.linear_schedule(init, end, whole(steps, "steps"))


def join_schedules(schedules: Sequence[Callable[[int], float]], boundaries: Sequence[int]) -> _ringlet.Schedule:
    """One schedule after the other: each begins at its boundary, and counts its steps from there."""
    return _ringlet.join_schedules(list(schedules), wholes(boundaries, "boundaries"))
