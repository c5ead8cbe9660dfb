"""Training with few averages, for slow networks."""

from __future__ import annotations

import os
from typing import Any, Callable, List, NamedTuple, Optional, Union

from . import _ringlet
from .arguments import check_function, handle_of, shown, whole
from .checkpoint import NamedValues
from .elastic import MembershipChange, directory_of, entering_worlds, telling_changes, telling_states
from .errors import InvalidArgument
from .fsdp import FormsOfModules
from .gradients import to_wire
from .group import Group
from .optimizers import LearningRate
from .trees import tree_to_write


class InnerStep(NamedTuple):
    """One step that a rank takes alone."""

    number: int  # counts the inner steps from 0, alike on all ranks; a slower rank leaves some numbers out
    rank: int  # of this rank among those that train now
    ranks: int  # how many train now


class OuterTrainer(NamedValues):
    """DiLoCo and, with fragments and overlap, Streaming DiLoCo: each rank takes `inner_steps` steps alone, with an optimizer and samples of its own.
    Then the differences between the shared parameters and each rank's are averaged, weighted by samples, and an outer SGD applies the average to
    the shared parameters as if it were a gradient. docs/library.md says what it costs, and docs/elastic.md what holds when ranks come and go.

    `parameters` is a tree of NumPy's or PyTorch's arrays of f32 or f64, which are changed in place; where the ranks' values differ, rank 0's are
    taken. The options up to `wire` are C++'s OuterTrainerOptions, the others are those of ElasticTrainer, whose steps are the averages here.
    With `by_speed` a slower rank takes fewer inner steps, so that the others do not wait for it; `clock` says by which seconds (unset: those that
    pass), such as time.process_time. `trainer[name] = value`, before run(), sets a value that is saved and handed over with
    the state, whose own names begin with "outer_". Used by one thread at a time. Ctrl-C is noticed when a function of the program's own runs.
    """

    def __init__(
        self,
        world: Group,
        parameters: Any,
        *,
        inner_steps: int = 50,
        fragments: int = 1,
        overlap: int = 0,
        mixing: float = 0.5,
        by_speed: bool = False,
        clock: Optional[Callable[[], float]] = None,
        learning_rate: LearningRate = 0.7,
        momentum: float = 0.9,
        nesterov: bool = True,
        wire: Any = None,
        all_reduce_size: int = 32 << 20,
        min_ranks: Optional[int] = None,
        min_wait: Optional[float] = None,
        rejoin: bool = True,
        checkpoint: Union[str, os.PathLike, None] = None,
        checkpoint_every: int = 0,
        keep: int = 2,
        stream: int = 0,
        on_change: Optional[Callable[[MembershipChange], object]] = None,
        on_state: Optional[Callable[[int], object]] = None,
        on_world: Optional[Callable[[Group], object]] = None,
    ) -> None:
        self._forms = FormsOfModules()
        self._forms.add(parameters)
        check_function(clock, "clock")
        self._handle = _ringlet.OuterTrainer(
            handle_of(world, Group, "world"),
            tree_to_write(parameters),
            inner_steps,
            fragments,
            overlap,
            mixing,
            by_speed,
            None if clock is None else lambda: _number(clock(), "the clock", "seconds"),
            learning_rate,
            momentum,
            nesterov,
            to_wire(wire, "wire"),
            all_reduce_size,
            min_ranks,
            min_wait,
            rejoin,
            directory_of(checkpoint),
            whole(checkpoint_every, "checkpoint_every"),
            keep,
            stream,
            telling_changes(on_change),
            telling_states(on_state),
            entering_worlds(on_world),
        )

    def run(self, inner: Callable[[InnerStep], float], *, steps: int) -> None:
        """Trains until `steps` inner steps, a multiple of `inner_steps / fragments`, are done. `inner` takes one: it changes the parameters in place
        and returns how many samples it has used, which is this rank's weight. It calls no collective.

        The last average of a run has all fragments: afterwards all ranks' parameters are the shared ones, with the same bits."""
        check_function(inner, "inner")
        self._handle.run(
            whole(steps, "steps"), lambda *step: _number(inner(InnerStep(*step)), "the inner step", "how many samples it has used")
        )

    def shared_parameters(self) -> Any:
        """The shared parameters as of the last average, the same bits on all ranks, as a tree of the same form. Its arrays are the trainer's own
        memory, which changes with the next average: they are only read."""
        return self._forms.tree(0, self._handle.shared_parameters())

    def world(self) -> Group:
        """The group of all ranks that are left."""
        return Group(self._handle.world())

    def averages(self) -> int:
        """How many averages are done."""
        return self._handle.averages()

    def steps(self) -> int:
        """How many inner steps are done, as InnerStep.number counts them."""
        return self._handle.steps()

    def fragment(self, index: int) -> List[str]:
        """The names of the parameters of a fragment ("layers.0.weight")."""
        return self._handle.fragment(index)


def _number(value: Any, who: str, what: str) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise InvalidArgument(f"{who} returned {shown(value)}; it returns {what}") from None
