"""Elastic groups and trainings."""

import gc
import signal
import weakref

import numpy as np
import pytest
from test_failures import start_all

import ringlet

ELASTIC = """
import os, signal, sys
import ml_dtypes
import numpy as np
import ringlet

world = ringlet.init(elastic=True, strict=True)
first_rank = world.rank()
state = {"w": np.zeros(4)}
samples = np.random.default_rng(0).normal(size=(64, 4))
optimizer = ringlet.SGD(0.1)
changes, worlds = [], []
attempts = 0


def step(attempt):
    global attempts
    attempts += 1
    if first_rank == 1 and attempt.number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    mine = samples[attempt.first : attempt.first + attempt.count]
    gradient = {"w": (state["w"] - mine).mean(0) if len(mine) else np.zeros(4)}
    average = attempt.average(gradient)
    attempt.commit(lambda: optimizer.apply_gradients_(average, state))


trainer = ringlet.ElasticTrainer(
    world,
    ringlet.Checkpoint().add("state", state),
    on_change=changes.append,
    on_world=lambda entered: worlds.append((entered.epoch(), entered.all_sum(1))),
)
trainer.run(step, steps=6, batch=64)
assert worlds == [(1, 2)], worlds
assert trainer.step() == 6 and attempts >= 6
assert trainer.world().size() == 2
assert [(change.lost, change.joined) for change in changes] == [([1], 0)], changes
print(state["w"].tolist(), flush=True)
"""


def test_elastic_trainer_goes_on_without_a_rank(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(ELASTIC)
    ranks = start_all(program, 3)
    said = [rank.communicate(timeout=200)[0] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, -signal.SIGKILL, 0], said
    assert said[0] == said[2]
    values, samples = np.zeros(4), np.random.default_rng(0).normal(size=(64, 4))
    for _ in range(6):
        values -= 0.1 * (values - samples.mean(0))
    np.testing.assert_allclose(eval(said[0]), values, rtol=1e-12)


REFORMED = """
import os, signal
import ml_dtypes
import numpy as np
import ringlet

world = ringlet.init(elastic=True, strict=True)
assert world.elastic() and world.agree(True) and not world.agree(np.bool_(world.rank() != 1))
if world.rank() == 1:
    for other in (0, 2):
        world.recv_like(np.ones(1), other)
    os.kill(os.getpid(), signal.SIGKILL)
try:
    world.send(np.ones(1), 1)
    while True:
        world.barrier()
except ringlet.PeerLost:
    next_world = world.reform()
assert next_world.lost == [1] and next_world.before == [0, 2]
assert next_world.world.epoch() == 1 and next_world.world.door()
assert next_world.world.all_sum(1) == 2
assert next_world.world.admit() is None
print("reformed", flush=True)
"""


def test_reform(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(REFORMED)
    ranks = start_all(program, 3)
    said = [rank.communicate(timeout=200)[0] for rank in ranks]
    assert said == ["reformed\n", "", "reformed\n"]
    assert [rank.returncode for rank in ranks] == [0, -signal.SIGKILL, 0]


REJOINED = """
import os, signal, sys
import ml_dtypes
import numpy as np
import ringlet

world = ringlet.init(elastic=True, strict=True, heartbeat_timeout=0.5)
origin = world.rank()
with_nobody_lost = False
try:
    world.rejoin()
except ringlet.InvalidArgument:
    with_nobody_lost = True
assert with_nobody_lost
world.barrier()
if origin == 1:
    os.kill(os.getpid(), signal.SIGSTOP)
try:
    while True:
        world.barrier()
except (ringlet.PeerLost, ringlet.Cancelled):
    pass
if origin == 1:
    try:
        world.reform()
        assert False, "the others have gone on"
    except ringlet.PeerLost:
        world = world.rejoin()
else:
    world = world.reform().world
    assert world.size() == 2
    print("reformed", flush=True)
    joined = None
    while joined is None:
        joined = world.admit()
    world = joined.world
assert world.size() == 3 and world.rank() == {0: 0, 2: 1, 1: 2}[origin]
assert world.all_sum(np.float64(origin)) == 3
print("joined", flush=True)
"""


def test_a_rank_that_stood_still_joins_again(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(REJOINED)
    ranks = start_all(program, 3)
    try:
        for rank in (ranks[0], ranks[2]):
            assert rank.stdout.readline() == "reformed\n"
        ranks[1].send_signal(signal.SIGCONT)
        said = [rank.communicate(timeout=200)[0] for rank in ranks]
        assert said == ["joined\n"] * 3 and [rank.returncode for rank in ranks] == [0, 0, 0]
    finally:
        for rank in ranks:
            rank.kill()


ADDED = """
import os, signal
import ml_dtypes
import numpy as np
import ringlet

world = ringlet.init(elastic=True, strict=True)
origin = world.rank()
state = {"a": np.zeros(300), "b": np.zeros(5)}


def step(attempt):
    gradients = {name: np.full(array.shape, float(attempt.first + 1)) for name, array in state.items()}
    for name in ("b", "a"):
        attempt.add(gradients[name])
    if origin == 1 and attempt.number == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    attempt.finish_average()
    # The means over the samples of what is 1, 5 and 9, or 1 and 7, on the ranks.
    assert (gradients["a"] == (5.0 if attempt.world().size() == 3 else 4.0)).all(), gradients

    def apply():
        for name, array in state.items():
            array += gradients[name]

    attempt.commit(apply)


trainer = ringlet.ElasticTrainer(world, ringlet.Checkpoint().add("state", state), all_reduce_size=64)
trainer.run(step, steps=4, batch=12)
assert (state["a"] == 18).all() and (state["b"] == 18).all()
print("trained", flush=True)
"""


def test_gradients_one_after_the_other(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(ADDED)
    ranks = start_all(program, 3)
    said = [rank.communicate(timeout=200)[0] for rank in ranks]
    assert said == ["trained\n", "", "trained\n"], said
    assert [rank.returncode for rank in ranks] == [0, -signal.SIGKILL, 0]


def test_errors_of_the_step_function_are_raised():
    with ringlet.init(elastic=True) as world:
        trainer = ringlet.ElasticTrainer(world, ringlet.Checkpoint().add("state", {"w": np.zeros(2)}))

        def fails(attempt):
            raise KeyError(attempt.number)

        with pytest.raises(KeyError):
            trainer.run(fails, steps=1, batch=4)


class OwnError(ringlet.InvalidArgument):
    """Its constructor is not that of ringlet.Error, so it has no rank."""

    def __init__(self, value):
        Exception.__init__(self, f"own {value}")
        self.value = value


class NoText(ringlet.PeerLost):
    rank = "first"

    def __str__(self):
        raise KeyError("text")


RAISED = [
    lambda: ringlet.InvalidArgument("own"),
    lambda: ringlet.PeerLost("own", 3),
    lambda: ringlet.IoError("own"),
    lambda: OwnError([1]),
    lambda: NoText("own"),
]


def run_elastic(world, function):
    def step(attempt):
        attempt.commit(lambda: function(attempt))

    ringlet.ElasticTrainer(world, ringlet.Checkpoint().add("state", {"w": np.zeros(2)})).run(step, steps=1, batch=4)


def run_outer(world, function):
    ringlet.OuterTrainer(world, {"w": np.zeros(2, np.float32)}, inner_steps=1).run(function, steps=1)


def apply_own_optimizer(world, function):
    class Own:
        def apply_gradients(self, gradients, parameters):
            function(self)

    tree = {"w": np.zeros(2, np.float32)}
    ringlet.FsdpUpdater(world).apply_gradients(tree, tree, Own())


@pytest.mark.parametrize("run", [run_elastic, run_outer, apply_own_optimizer])
@pytest.mark.parametrize("number", range(len(RAISED)))
def test_errors_of_our_classes_pass_as_they_are(run, number):
    raised, cause = RAISED[number](), KeyError("cause")

    def function(_):
        raise raised from cause

    with ringlet.init(elastic=run is run_elastic) as world, pytest.raises(ringlet.Error) as caught:
        run(world, function)
    assert caught.value is raised and raised.__cause__ is cause
    names = [entry.name for entry in caught.traceback]
    assert names.index(run.__name__) < names.index("run" if run is not apply_own_optimizer else "_apply") < names.index("function"), names


def test_a_step_that_is_over_is_refused():
    state = {"w": np.zeros(2)}
    kept = []
    with ringlet.init(elastic=True) as world:
        trainer = ringlet.ElasticTrainer(world, ringlet.Checkpoint().add("state", state))

        def step(attempt):
            for old in kept:
                for call in (old.world, lambda: old.average(state), lambda: old.commit(lambda: None), lambda: old.add(state["w"])):
                    with pytest.raises(ringlet.InvalidArgument, match="this step is over"):
                        call()
            kept.append(attempt)
            attempt.average(state)
            attempt.commit(lambda: None)

        trainer.run(step, steps=2, batch=4)
        with pytest.raises(ringlet.InvalidArgument, match="this step is over"):
            kept[1].world()
    assert kept[1].number == 1


class Holder:
    """It has a trainer that calls it."""

    def __init__(self, kind):
        calls = {"on_change": self.called, "on_state": self.called, "on_world": self.called}
        world = ringlet.init(elastic=True)
        if kind == "elastic":
            state = ringlet.Checkpoint().add("model", {"w": np.zeros(3)})
            self.trainer = ringlet.ElasticTrainer(world, state, on_rollback=self.called, **calls)
        else:
            self.trainer = ringlet.OuterTrainer(world, {"w": np.zeros(3)}, inner_steps=1, by_speed=True, clock=self.called, **calls)

    def called(self, *arguments):
        return 0.0


@pytest.mark.parametrize("kind", ["elastic", "outer"])
def test_trainers_with_functions_of_their_holder_are_freed(kind):
    holder = Holder(kind)
    gone = weakref.ref(holder)
    del holder
    gc.collect()
    assert gone() is None
