"""A training whose ranks come and go."""

from __future__ import annotations

import os
from typing import Any, Callable, List, NamedTuple, Optional, Union

from . import _ringlet
from .checkpoint import Checkpoint, Value
from .gradients import to_wire
from .group import Group
from .trees import CopiedTree, tree_to_write


class MembershipChange(NamedTuple):
    """What a trainer says when its ranks have become others."""

    world: Group  # of all who go on
    lost: List[int]  # ranks of the world before that are gone
    joined: int  # how many ranks, the last ones of `world`, are new
    cause: str  # of a loss: the first one
    step: int  # how many steps are committed
    pause: float  # the seconds that this rank stood still for it


class Step:
    """One attempt at a training step on this rank; valid while the step function runs."""

    def __init__(self, step: _ringlet.Step) -> None:
        self._step = step
        self.number: int = step.number  # how many steps were committed before it, the same on all ranks
        self.first: int = step.first  # this rank's part of the step's batch:
        self.count: int = step.count  # `count` samples from `first` on, of the numbers from 0 to the batch

    def world(self) -> Group:
        """The group of all ranks of this attempt, for the step's own collectives."""
        return Group(self._step.world())

    def average(self, gradients: Any) -> Any:
        """The average of each gradient over the samples of the whole batch. Each rank gives the average over its own samples; where it has none
        (`count` is 0), arrays with any contents."""
        copied = CopiedTree(gradients)
        self._step.average(copied.tree)
        return copied.finish()

    def average_(self, gradients: Any) -> Any:
        """The same in place, of NumPy's or PyTorch's arrays."""
        self._step.average(tree_to_write(gradients))
        return gradients

    def commit(self, apply: Callable[[], object]) -> None:
        """Runs `apply`, which changes the state, on all ranks or on none; the last call of a step. Where a rank was lost it raises PeerLost, which
        the step function lets pass: the step is then done again."""
        self._step.commit(apply)


class ElasticTrainer:
    """A training loop of an elastic group (init(elastic=True)): a step is committed on all ranks or on none; one that is not is done again by those
    who are left, with the same batch, divided anew. docs/elastic.md says what is promised.

    `state` has all that a step changes, parameters and optimizers' state, whole on every rank. Options are C++'s ElasticTrainerOptions.
    `on_change` is called with a MembershipChange; `on_state` with the number of committed steps where the state has been filled from a
    checkpoint or by others, so that what follows from it (an optimizer's step) is set anew. Neither may call collectives. Ctrl-C is noticed
    when a function of the program's own runs.
    """

    def __init__(
        self,
        world: Group,
        state: Checkpoint,
        *,
        all_reduce_size: int = 32 << 20,
        communication_type: Any = None,
        min_ranks: Optional[int] = None,
        rejoin: bool = True,
        checkpoint: Union[str, os.PathLike, None] = None,
        checkpoint_every: int = 0,
        keep: int = 2,
        stream: int = 0,
        on_change: Optional[Callable[[MembershipChange], object]] = None,
        on_state: Optional[Callable[[int], object]] = None,
    ) -> None:
        def changed(group: _ringlet.Group, *rest: Any) -> None:
            if on_change is not None:
                on_change(MembershipChange(Group(group), *rest))

        def filled(_: _ringlet.Checkpoint, step: int) -> None:
            if on_state is not None:
                on_state(step)

        directory = "" if checkpoint is None else os.fspath(checkpoint)
        self._handle = _ringlet.ElasticTrainer(
            world._handle,
            state._handle,
            all_reduce_size,
            to_wire(communication_type),
            min_ranks,
            rejoin,
            directory,
            checkpoint_every,
            keep,
            stream,
            changed,
            filled,
        )

    def run(self, step: Callable[[Step], object], *, steps: int, batch: int) -> None:
        """Trains until `steps` steps of `batch` samples are committed. `step` may be called several times for one step; it ends with
        Step.commit(), before which it changes nothing that lasts."""
        self._handle.run(steps, batch, lambda attempt: step(Step(attempt)))

    def world(self) -> Group:
        """The group of all ranks that are left."""
        return Group(self._handle.world())

    def step(self) -> int:
        """How many steps are committed."""
        return self._handle.step()

    def __setitem__(self, name: str, value: Value) -> None:
        """Sets a value of the state, within `apply`, alike on all ranks: it is saved and handed over with the tensors."""
        self._handle.set(name, value)

    def __getitem__(self, name: str) -> Value:
        value = self._handle.find(name)
        if value is None:
            raise KeyError(name)
        return value
