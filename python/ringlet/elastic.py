"""A training whose ranks come and go."""

from __future__ import annotations

import os
from typing import Any, Callable, List, NamedTuple, Optional, Union

from . import _ringlet
from .arguments import check_function, handle_of, whole
from .arrays import Same, view_to_write
from .checkpoint import Checkpoint, NamedValues
from .elastic_fsdp import ElasticShards
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


class Rollback(NamedTuple):
    """That training went back to a checkpoint, since all holders of some rows of sharded state were lost."""

    lost: str  # which rows, for instance "the rows 0 to 20 of 'layers.0.weight'"
    before: int  # how many steps were committed
    step: int  # how many are now: the checkpoint's


class MinRanks(NamedTuple):
    """With how few ranks an elastic group trains. With fewer it takes no step, and waits for others to join."""

    ranks: int  # native ones; browsers do not count
    wait: float  # for how many seconds they wait at most


def read_min_ranks(*, min_ranks: Optional[int] = None, min_wait: Optional[float] = None) -> MinRanks:
    """What holds for an ElasticTrainer with these options, for a loop of one's own: they come first, then RINGLET_MIN_RANKS and
    RINGLET_MIN_WAIT_MS."""
    return MinRanks(*_ringlet.read_min_ranks(min_ranks, min_wait))


class Step:
    """One attempt at a training step on this rank; valid while the step function runs."""

    def __init__(self, step: _ringlet.Step, added: List[_ringlet.View]) -> None:
        self._step = step
        self._added = added
        self.number: int = step.number  # how many steps were committed before it, the same on all ranks
        self.first: int = step.first  # this rank's part of the step's batch:
        self.count: int = step.count  # `count` samples from `first` on, of the numbers from 0 to the batch

    def world(self) -> Group:
        """The group of all ranks of this attempt, for the step's own collectives."""
        return Group(self._step.world())

    def add(self, gradient: Any) -> None:
        """Adds a gradient, NumPy's or PyTorch's, whose average replaces it; all ranks add them in the same order. A bucket starts as soon as it is
        full. The array may not be touched until finish_average() has returned."""
        view = view_to_write(gradient)
        self._added.append(view)
        self._step.add(view)

    def finish_average(self) -> None:
        """Waits until every added gradient holds its average, as average() returns it."""
        self._step.average()
        self._added.clear()

    def average(self, gradients: Same) -> Same:
        """The average of each gradient over the samples of the whole batch. Each rank gives the average over its own samples; where it has none
        (`count` is 0), arrays with any contents."""
        copied = CopiedTree(gradients)
        self._step.average(copied.tree)
        return copied.finish()

    def average_(self, gradients: Same) -> Same:
        """The same in place, of NumPy's or PyTorch's arrays."""
        self._step.average(tree_to_write(gradients))
        return gradients

    def commit(self, apply: Callable[[], object]) -> None:
        """Runs `apply`, which changes the state, on all ranks or on none; the last call of a step. Where a rank was lost it raises PeerLost, which
        the step function lets pass: the step is then done again."""
        self._step.commit(apply)


def telling_changes(on_change: Optional[Callable[[MembershipChange], object]]) -> Callable[..., None]:
    """What a trainer of the binding calls after ranks were lost or have joined."""
    check_function(on_change, "on_change")

    def changed(group: _ringlet.Group, *rest: Any) -> None:
        if on_change is not None:
            on_change(MembershipChange(Group(group), *rest))

    return changed


def telling_states(on_state: Optional[Callable[[int], object]]) -> Callable[[_ringlet.Checkpoint, int], None]:
    """What it calls where the state has been filled."""
    check_function(on_state, "on_state")

    def filled(_: _ringlet.Checkpoint, step: int) -> None:
        if on_state is not None:
            on_state(step)

    return filled


def entering_worlds(on_world: Optional[Callable[[Group], object]]) -> Optional[Callable[[_ringlet.Group], object]]:
    """What it calls in each new world."""
    check_function(on_world, "on_world")
    return None if on_world is None else lambda world: on_world(Group(world))


def directory_of(checkpoint: Union[str, os.PathLike, None]) -> str:
    return "" if checkpoint is None else os.fspath(checkpoint)


class ElasticTrainer(NamedValues):
    """A training loop of an elastic group (init(elastic=True)): a step is committed on all ranks or on none; one that is not is done again by those
    who are left, with the same batch, divided anew. docs/elastic.md says what is promised.

    `state` has all that a step changes, parameters and optimizers' state, whole on every rank. What is sharded is in `shards`, with its
    parameters; the trainer saves and loads both. Options are C++'s ElasticTrainerOptions, with times in seconds.
    `on_change` is called with a MembershipChange; `on_rollback` with a Rollback where training has gone back to a checkpoint; `on_state` with
    the number of committed steps where the state has been filled from a checkpoint or by others, so that what follows from it (an optimizer's
    step) is set anew. None of them may call collectives. `on_world` may: it is called with the group of each world after the first one, before
    those that have joined get the state, who take part before they make a trainer; errors of the world are to pass.
    `trainer[name] = value`, within `apply`, sets a value that is saved and handed over with the state. Ctrl-C is noticed when a function of the
    program's own runs.
    """

    def __init__(
        self,
        world: Group,
        state: Checkpoint,
        shards: Optional[ElasticShards] = None,
        *,
        all_reduce_size: int = 32 << 20,
        communication_type: Any = None,
        min_ranks: Optional[int] = None,
        min_wait: Optional[float] = None,
        rejoin: bool = True,
        checkpoint: Union[str, os.PathLike, None] = None,
        checkpoint_every: int = 0,
        keep: int = 2,
        stream: int = 0,
        on_change: Optional[Callable[[MembershipChange], object]] = None,
        on_rollback: Optional[Callable[[Rollback], object]] = None,
        on_state: Optional[Callable[[int], object]] = None,
        on_world: Optional[Callable[[Group], object]] = None,
    ) -> None:
        check_function(on_rollback, "on_rollback")

        def went_back(*parts: Any) -> None:
            if on_rollback is not None:
                on_rollback(Rollback(*parts))

        self._added: List[_ringlet.View] = []
        self._handle = _ringlet.ElasticTrainer(
            handle_of(world, Group, "world"),
            handle_of(state, Checkpoint, "state"),
            None if shards is None else handle_of(shards, ElasticShards, "shards"),
            all_reduce_size,
            to_wire(communication_type),
            min_ranks,
            min_wait,
            rejoin,
            directory_of(checkpoint),
            whole(checkpoint_every, "checkpoint_every"),
            keep,
            stream,
            telling_changes(on_change),
            went_back,
            telling_states(on_state),
            entering_worlds(on_world),
        )

    def run(self, step: Callable[[Step], object], *, steps: int, batch: int) -> None:
        """Trains until `steps` steps of `batch` samples are committed. `step` may be called several times for one step; it ends with
        Step.commit(), before which it changes nothing that lasts. `steps` and `batch` are the same on all ranks: where they, or the ranks'
        states, differ it raises MismatchError, on a rank that has just joined a training alone, which then leaves."""

        check_function(step, "step")

        def attempting(attempt: _ringlet.Step) -> None:
            # They are kept until the next attempt, since one that fails may use them for a moment when its function has ended.
            self._added = []
            step(Step(attempt, self._added))

        self._handle.run(whole(steps, "steps"), whole(batch, "batch"), attempting)

    def world(self) -> Group:
        """The group of all ranks that are left."""
        return Group(self._handle.world())

    def step(self) -> int:
        """How many steps are committed."""
        return self._handle.step()
