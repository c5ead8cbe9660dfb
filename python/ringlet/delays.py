"""Reports of operations that take long."""

from __future__ import annotations

from typing import List, NamedTuple


class Latecomer(NamedTuple):
    """A rank that others wait for."""

    rank: int  # in the world
    host: str  # the machine that it runs on, if that is known
    answers: bool  # False if it has not answered within a second
    doing: str  # what it does instead


class Delay(NamedTuple):
    """An operation that takes longer than `warn_after`, as one rank sees it. It may still end well."""

    rank: int  # this rank, in the world
    operation: str  # "all_reduce(sum, f32 x 1000, ring) number 41"
    waited: float  # seconds since the operation began here
    over: bool  # in the last report about an operation, which goes on
    speaks: bool  # whether this is the lowest of the waiting ranks, which all report the same
    late: List[Latecomer]  # who has not called the operation, and who does not answer
    text: str  # a summary in one line for people


def delay_of(parts: tuple) -> Delay:
    rank, operation, waited, over, speaks, late, text = parts
    return Delay(rank, operation, waited, over, speaks, [Latecomer(*one) for one in late], text)
