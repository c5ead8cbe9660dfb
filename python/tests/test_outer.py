"""Training with few averages, against the method once more in f64."""

import signal
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from ranks import on_ranks
from test_failures import start_all

import ringlet

SHAPES = {"layer.0": (7, 10), "layer.1": (33,), "head": (4, 5), "scale": ()}


def parameters_of_model():
    """f32 and f64, with levels, and one array with gaps between its rows."""
    return {
        "layer": [np.full((7, 20), 0.5, np.float32)[:, ::2], np.full(33, 0.5, np.float32)],
        "head": np.full((4, 5), 0.5),
        "scale": np.full((), 0.5, np.float32),
    }


def by_name(parameters):
    return {"layer.0": parameters["layer"][0], "layer.1": parameters["layer"][1], "head": parameters["head"], "scale": parameters["scale"]}


def move(arrays, rank, number):
    """What a rank does in an inner step: it pulls its parameters towards values of its own. Returns how many samples that were."""
    for place, array in enumerate(arrays.values()):
        indexes = np.arange(array.size).reshape(array.shape)
        target = ((number * 7919 + rank * 104729 + place * 1613 + indexes * 31) % 1009) / 1009
        array += (0.05 * (target - array)).astype(array.dtype)
    return (rank * 5 + number) % 7 + 1


def all_steps(rank, average, interval):
    return interval


def by_powers_of_two(rank, average, interval):
    """Of ranks whose steps take 1, 2 and 4 seconds. At first nobody knows."""
    divisor = 2**rank if average > 0 else 1
    return (interval + divisor // 2) // divisor


class Reference:
    """The method with all ranks in one place. `fragments` are names."""

    def __init__(self, ranks, fragments, *, inner_steps, overlap=0, mixing=0.5, rate=0.7, momentum=0.9, nesterov=True):
        self.fragments, self.interval = fragments, inner_steps // len(fragments)
        self.overlap, self.mixing, self.rate, self.momentum, self.nesterov = overlap, mixing, rate, momentum, nesterov
        self.shared = {name: np.full(shape, 0.5) for name, shape in SHAPES.items()}
        self.velocity = {name: np.zeros(shape) for name, shape in SHAPES.items()}
        self.own = [{name: np.full(shape, 0.5) for name, shape in SHAPES.items()} for _ in range(ranks)]
        self.samples = np.zeros((ranks, len(fragments)))

    def run(self, steps, steps_of=all_steps, trains=lambda rank, average: True):
        averages = steps // self.interval
        for average in range(averages):
            ranks = [rank for rank in range(len(self.own)) if trains(rank, average)]
            self.average(average, average + 1 == averages, ranks, steps_of)

    def average(self, average, is_last, ranks, steps_of):
        planned = {rank: steps_of(rank, average, self.interval) for rank in ranks}
        overlapped = {rank: 0 if is_last else self.overlapped(planned[rank]) for rank in ranks}
        turn = average % len(self.fragments)
        for rank in ranks:
            self.take(rank, average, range(planned[rank] - overlapped[rank]))
        sent = [{name: values.copy() for name, values in own.items()} for own in self.own]
        counts = self.samples.copy()
        for rank in ranks:
            self.take(rank, average, range(planned[rank] - overlapped[rank], planned[rank]))
        total = sum(counts[rank, turn] for rank in ranks)
        rate = self.rate(average) if callable(self.rate) else self.rate
        keeps = self.mixing if self.overlap and not is_last else 0
        for place in range(len(self.fragments)) if is_last else [turn]:
            for name in self.fragments[place]:
                gradient = sum(counts[rank, turn] / total * (self.shared[name] - sent[rank][name]) for rank in ranks)
                self.velocity[name] = self.momentum * self.velocity[name] + gradient
                update = gradient + self.momentum * self.velocity[name] if self.nesterov else self.velocity[name]
                self.shared[name] = self.shared[name] - rate * update
                for own in self.own:
                    own[name] = np.asarray(keeps * own[name] + (1 - keeps) * self.shared[name])
            self.samples[:, place] -= counts[:, place]

    def overlapped(self, steps):
        if self.overlap == 0:
            return 0
        return min(max((steps * self.overlap + self.interval // 2) // self.interval, 1), steps)

    def take(self, rank, average, steps):
        for step in steps:
            self.samples[rank] += move(self.own[rank], rank, average * self.interval + step)


def is_trained(group, trainer, parameters, reference, tolerance):
    shared = by_name(trainer.shared_parameters())
    for name, values in by_name(parameters).items():
        assert (group.all_max(values) == group.all_min(values)).all(), name
        assert shared[name].dtype == values.dtype and (shared[name] == values).all() and not np.shares_memory(shared[name], values), name
        np.testing.assert_allclose(values, reference.shared[name], rtol=0, atol=tolerance, err_msg=name)


def train(group, steps, *, tolerance=1e-5, pace=all_steps, **options):
    parameters, taken, now = parameters_of_model(), [], [0.0]
    if pace is not all_steps:
        options.update(by_speed=True, clock=lambda: now[0])
    trainer = ringlet.OuterTrainer(group, parameters, inner_steps=12, **options)
    fragments = [trainer.fragment(index) for index in range(options.get("fragments", 1))]
    assert [name for fragment in fragments for name in fragment] == list(SHAPES)

    def inner(step):
        assert (step.rank, step.ranks) == (group.rank(), group.size())
        taken.append(step.number)
        now[0] += 2**step.rank
        return move(by_name(parameters), step.rank, step.number)

    trainer.run(inner, steps=steps)
    interval = 12 // len(fragments)
    averages = steps // interval
    assert taken == [average * interval + step for average in range(averages) for step in range(pace(group.rank(), average, interval))]
    assert trainer.steps() == steps and trainer.averages() == averages and trainer.world().size() == group.size()
    method = {name: options[name] for name in ("overlap", "mixing", "momentum", "nesterov") if name in options}
    reference = Reference(group.size(), fragments, inner_steps=12, rate=options.get("learning_rate", 0.7), **method)
    reference.run(steps, pace)
    is_trained(group, trainer, parameters, reference, tolerance)


@on_ranks(1, 2, 3)
def test_the_method(group):
    train(group, 60)
    train(group, 60, nesterov=False, learning_rate=0.5)
    train(group, 24, momentum=0.0, learning_rate=1.0)
    train(group, 60, fragments=2, overlap=2, mixing=0.25)
    train(group, 60, fragments=4, overlap=1)
    train(group, 60, learning_rate=lambda averages: 0.9 - 0.1 * averages)
    train(group, 60, learning_rate=ringlet.linear_schedule(0.9, 0.5, 4))


@on_ranks(3)
def test_wires(group):
    for wire, tolerance in (
        ("bf16", 5e-2),
        (np.float16, 1e-2),
        (ringlet.Wire("int8", least_elements=0), 5e-2),
        (ringlet.Wire("int8", feedback=True, least_elements=0), 5e-2),
        (ringlet.Wire("int4", feedback=True, least_elements=0), 0.5),
    ):
        for fragments in (1, 2):
            train(group, 36, tolerance=tolerance, wire=wire, fragments=fragments, overlap=1)


@on_ranks(3)
def test_slower_ranks_take_fewer_steps(group):
    """By a clock on which the steps of rank r take 2 ** r seconds."""
    train(group, 60, pace=by_powers_of_two)
    train(group, 60, pace=by_powers_of_two, fragments=2, overlap=2)


@on_ranks(2)
def test_the_first_rank_decides_where_training_begins(group):
    values = {"w": np.full(5, float(group.rank()))}
    trainer = ringlet.OuterTrainer(group, values, inner_steps=2, fragments=1)
    first = []
    trainer.run(lambda step: first.append(values["w"].copy()) or 1, steps=2)
    assert (first[0] == 0).all() and (values["w"] == 0).all()


@on_ranks(2)
def test_a_rank_without_samples_does_not_count(group):
    values = {"w": np.zeros(4, np.float32)}
    trainer = ringlet.OuterTrainer(group, values, inner_steps=1, learning_rate=1, momentum=0)

    def inner(step):
        values["w"][:] = np.nan if step.rank else step.number + 1
        return 0 if step.rank else np.float32(3)

    trainer.run(inner, steps=3)
    assert (values["w"] == 3).all()


@pytest.fixture
def alone():
    with ringlet.Group() as group:
        yield group


def test_what_does_not_fit_is_refused(alone):
    def refused(text, **options):
        with pytest.raises(ringlet.InvalidArgument, match=text):
            ringlet.OuterTrainer(alone, options.pop("parameters", parameters_of_model()), **options)

    refused("inner_steps is 0", inner_steps=0)
    refused("fragments is 3; .* divide inner_steps", fragments=3)
    refused("each fragment needs one", fragments=5)
    refused("overlap is 50", overlap=50)
    refused("mixing is 2", mixing=2)
    refused("momentum", momentum=-1)
    refused("keep is 0", keep=0)
    refused("'w' is bf16", parameters={"w": np.zeros(4, ml_dtypes.bfloat16)})
    refused("'f64' is no type of communication", wire="f64")
    refused("read-only", parameters={"w": np.broadcast_to(np.float32(1), (3,))})
    trainer = ringlet.OuterTrainer(alone, parameters_of_model(), inner_steps=4, fragments=2)
    with pytest.raises(ringlet.InvalidArgument, match="5 inner steps are no multiple"):
        trainer.run(lambda step: 1, steps=5)
    with pytest.raises(ringlet.InvalidArgument, match="the inner step returned None; it returns how many samples"):
        trainer.run(lambda step: None, steps=4)
    with pytest.raises(ringlet.InvalidArgument, match="returned -1 samples"):
        trainer.run(lambda step: -1, steps=4)
    with pytest.raises(ringlet.InvalidArgument, match="no rank has used a sample"):
        trainer.run(lambda step: 0, steps=4)
    with pytest.raises(ringlet.InvalidArgument, match="there is no fragment 2"):
        trainer.fragment(2)
    with pytest.raises(KeyError):
        trainer["seed"]


def test_errors_of_the_programs_functions_are_raised(alone):
    def fails(*arguments):
        raise KeyError(arguments)

    with pytest.raises(KeyError):
        ringlet.OuterTrainer(alone, parameters_of_model(), inner_steps=2).run(fails, steps=2)
    with pytest.raises(KeyError):
        ringlet.OuterTrainer(alone, parameters_of_model(), inner_steps=2, clock=fails).run(lambda step: 1, steps=2)
    with pytest.raises(ringlet.InvalidArgument, match="the clock returned 'noon'; it returns seconds"):
        ringlet.OuterTrainer(alone, parameters_of_model(), inner_steps=2, clock=lambda: "noon").run(lambda step: 1, steps=2)


def test_a_training_is_saved_and_goes_on(alone, tmp_path):
    def part(steps, directory):
        parameters, numbers, states = parameters_of_model(), [], []
        trainer = ringlet.OuterTrainer(alone, parameters, inner_steps=4, checkpoint=directory, on_state=states.append)
        trainer["seed"] = 7 + steps

        def inner(step):
            numbers.append(step.number)
            return move(by_name(parameters), 0, step.number)

        trainer.run(inner, steps=steps)
        return by_name(parameters), numbers, states, trainer["seed"]

    values, numbers, states, seed = part(16, None)
    assert numbers == list(range(16)) and states == [] and seed == 23
    assert part(8, tmp_path)[1:] == (list(range(8)), [], 15)
    resumed, numbers, states, seed = part(16, tmp_path)
    # With the value of the first part, which on_state may compare.
    assert numbers == list(range(8, 16)) and states == [2] and seed == 15
    for name, array in values.items():
        assert (resumed[name] == array).all(), name
    with pytest.raises(ringlet.InvalidArgument, match="train with 4 inner steps and 1 fragments, and this rank with 2 and 1"):
        ringlet.OuterTrainer(alone, parameters_of_model(), inner_steps=2, checkpoint=tmp_path).run(lambda step: 1, steps=16)


# Rank 1 of three is killed, or stands still until the others have gone on, in its sixth inner step. By its clock all ranks are as fast as each
# other. Prints its inner steps' numbers, and the bits of its parameters.
ELASTIC = """
import os, signal, sys
import ringlet
sys.path.insert(0, sys.argv[1])
import test_outer as model

how = signal.Signals[sys.argv[2]]
world = ringlet.init(elastic=True, strict=True, heartbeat_timeout=0.5 if how == signal.SIGSTOP else None)
origin = world.rank()
parameters = model.parameters_of_model()
taken, worlds = [], []


def inner(step):
    taken.append(step.number)
    if origin == 1 and taken == [0, 1, 2, 3, 4, 5]:
        os.kill(os.getpid(), how)
    return model.move(model.by_name(parameters), origin, step.number)


def changed(change):
    print("lost", change.lost, "joined", change.joined, flush=True)


trainer = ringlet.OuterTrainer(
    world,
    parameters,
    inner_steps=4,
    by_speed=True,
    clock=lambda: float(len(taken)),
    min_ranks=3 if how == signal.SIGSTOP else None,
    on_change=changed,
    on_world=lambda entered: worlds.append(entered.all_sum(1)),
)
trainer.run(inner, steps=16)
assert worlds and worlds[-1] == trainer.world().size(), worlds
model.is_trained(trainer.world(), trainer, parameters, model.reference_of(how), 1e-5)
print(taken, flush=True)
"""


def reference_of(how):
    """The rank that stood still takes its steps of that round again. What the killed one had of it is lost."""
    reference = Reference(3, [list(SHAPES)], inner_steps=4)
    reference.run(16, trains=lambda rank, average: rank != 1 or average < 1 or how == signal.SIGSTOP)
    return reference


@pytest.fixture
def program(tmp_path):
    file = tmp_path / "program.py"
    file.write_text(ELASTIC)
    return file


def started(program, how):
    return start_all(program, 3, Path(__file__).resolve().parent, how)


def test_a_killed_rank_does_not_end_the_training(program):
    ranks = started(program, "SIGKILL")
    said = [rank.communicate(timeout=200)[0] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, -signal.SIGKILL, 0], said
    assert said == [f"lost [1] joined 0\n{list(range(16))}\n", "", f"lost [1] joined 0\n{list(range(16))}\n"]


def test_a_rank_that_stood_still_begins_its_round_anew(program):
    ranks = started(program, "SIGSTOP")
    try:
        for rank in (ranks[0], ranks[2]):
            assert rank.stdout.readline() == "lost [1] joined 0\n"
        ranks[1].send_signal(signal.SIGCONT)
        said = [rank.communicate(timeout=200)[0].splitlines() for rank in ranks]
        assert [rank.returncode for rank in ranks] == [0, 0, 0], said
        assert said[0] == said[2] == ["lost [] joined 1", str(list(range(16)))]
        # The time of the steps that it takes again does not count, so that it is as fast as the others in the next round.
        assert said[1] == [str([*range(8), *range(4, 16)])]
    finally:
        for rank in ranks:
            rank.kill()
