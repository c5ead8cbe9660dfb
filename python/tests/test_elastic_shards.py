"""Sharded state that outlives the ranks that hold it."""

import signal

import numpy as np
import pytest
from ranks import on_ranks
from samples import equal
from test_failures import start_all
from test_training import close, gradients_of, group_directory, parameters_of, trained_alone

import ringlet

# Trains until --steps are committed, on a world that may lose the rank that --kill names in step 3: before its gradients are averaged, before
# its vote, or after its update. Prints the bits of the parameters.
TRAINING = """
import argparse, os, signal, sys
import ml_dtypes
import numpy as np
import ringlet

parser = argparse.ArgumentParser()
parser.add_argument("--kind", default="fsdp")
parser.add_argument("--copies", type=int, default=2)
parser.add_argument("--steps", type=int, default=6)
parser.add_argument("--kill", type=int)
parser.add_argument("--phase")
parser.add_argument("--checkpoint")
parser.add_argument("--every", type=int, default=0)
options = parser.parse_args()

world = ringlet.init(elastic=True, strict=True)
origin = world.rank()
random = np.random.default_rng(1)
samples, targets = random.normal(size=(60, 7)).astype(np.float32), random.normal(size=(60, 5)).astype(np.float32)
parameters = {"w": random.normal(size=(7, 5)).astype(np.float32), "b": random.normal(size=5).astype(np.float32)}


def make():
    return ringlet.AdamW(0.01)


def phase(attempt, name):
    if options.kill == origin and attempt.number == 3 and options.phase == name:
        os.kill(os.getpid(), signal.SIGKILL)


def gradients_of(values, attempt):
    mine = slice(attempt.first, attempt.first + attempt.count)
    errors = (samples[mine] @ values["w"] + values["b"] - targets[mine]) / np.float32(max(attempt.count, 1))
    return {"w": samples[mine].T @ errors, "b": errors.sum(0)}


if options.kind == "fsdp":
    shards = ringlet.ElasticFsdp(world, parameters, make, copies=options.copies, max_norm=1.0)
else:
    shards = ringlet.ElasticFullyShard(world, make, copies=options.copies, max_norm=1.0)
    assert shards.add("model", parameters) == 0 and shards.modules() == 1


def step(attempt):
    global last
    phase(attempt, "before average")
    if options.kind == "fsdp":
        norm = shards.average(gradients_of(parameters, attempt))
    else:
        values = shards.forward(0)
        shards.reduce_gradients(0, gradients_of(values, attempt))
        norm = shards.finish()
    assert norm > 0
    phase(attempt, "before commit")

    def apply():
        shards.update()
        sizes.append(attempt.world().size())
        phase(attempt, "after update")

    attempt.commit(apply)


sizes, changes, rollbacks = [], [], []
trainer = ringlet.ElasticTrainer(
    world,
    ringlet.Checkpoint(),
    shards,
    checkpoint=options.checkpoint,
    checkpoint_every=options.every,
    on_change=changes.append,
    on_rollback=rollbacks.append,
)
trainer.run(step, steps=options.steps, batch=60)
assert shards.step() == trainer.step() == options.steps
whole = parameters if options.kind == "fsdp" else shards.forward(0)
print([list(change.lost) for change in changes], [tuple(rollback) for rollback in rollbacks], flush=True)
print("".join(map(str, sizes)), flush=True)
print(b"".join(whole[name].tobytes() for name in ("w", "b")).hex(), flush=True)
"""


@pytest.fixture
def program(tmp_path):
    file = tmp_path / "program.py"
    file.write_text(TRAINING)
    return file


def run(program, ranks, *arguments):
    """What each rank printed: of one that was killed, None."""
    processes = start_all(program, ranks, *arguments)
    said = [process.communicate(timeout=200)[0] for process in processes]
    for process, text in zip(processes, said):
        assert process.returncode in (0, -signal.SIGKILL), said
    return [text.splitlines() if process.returncode == 0 else None for process, text in zip(processes, said)]


@pytest.mark.parametrize("kind", ["fsdp", "fully shard"])
def test_a_killed_rank_costs_no_step_and_no_bit(program, tmp_path, kind):
    """Each step is that of the same number of ranks without a loss. Once a rank has given its gradients, its step may be committed."""
    wanted = {}
    for steps in (3, 4):
        directory = tmp_path / str(steps)
        run(program, 3, "--kind", kind, "--steps", steps, "--checkpoint", directory)
        one, other = run(program, 2, "--kind", kind, "--checkpoint", directory)
        assert one == other and one[1] == "2" * (6 - steps)
        wanted["3" * steps + one[1]] = one[2]
    assert len(set(wanted.values())) == 2
    for victim, phase, sizes in ((1, "before average", ["333222"]), (1, "before commit", list(wanted)), (0, "after update", ["333322"])):
        said = run(program, 3, "--kind", kind, "--kill", victim, "--phase", phase)
        assert said.pop(victim) is None
        for lines in said:
            assert lines[0] == f"[[{victim}]] []" and lines[1] in sizes and lines[2] == wanted[lines[1]], (phase, said)


def test_with_one_copy_a_loss_means_the_newest_checkpoint(program, tmp_path):
    said = run(program, 3, "--copies", "1", "--kill", "2", "--phase", "before average", "--checkpoint", tmp_path / "some", "--every", "2")
    assert said[2] is None and said[0] == said[1]
    assert "of 'w'" in said[0][0] and said[0][0].endswith(", 3, 2)]") and said[0][1] == "3332222", said


@on_ranks(1, 2, 3)
def test_a_loop_of_its_own(group):
    group.barrier()
    directory = group_directory(group)
    with ringlet.init(elastic=True) as world:
        rank, size = world.rank(), world.size()
        parameters = parameters_of(100)
        parameters["scale"] = np.asarray(parameters["scale"])
        fsdp = ringlet.ElasticFsdp(world, parameters, lambda: ringlet.AdamW(0.01), communication_size=64)
        assert fsdp.enter(world) == "" and fsdp.step() == 0
        for step in range(3):
            assert fsdp.average(gradients_of(1 + step * size + rank)) is None
            assert world.agree(True)
            fsdp.update()
            fsdp.gather()
        close(parameters, trained_alone(size, 3, ringlet.AdamW(0.01)))
        assert fsdp.step() == 3 and fsdp.bytes_to_rebuild() == 0
        assert fsdp.state_bytes() == sum(8 * fsdp.layout().count(shard) for shard in ({rank, (rank - 1) % size}))

        saved = ringlet.Checkpoint()
        fsdp.add_to(saved)
        ringlet.save_checkpoint(world, directory, saved, step=3)
        learned = [array.copy() for array in (*parameters["layer"], parameters["scale"])]
        for array in (*parameters["layer"], parameters["scale"]):
            array[...] = 0
        loading = ringlet.Checkpoint()
        fsdp.add_to(loading)
        assert ringlet.load_checkpoint(world, directory, loading) == 3
        fsdp.loaded(3)
        for array, wanted in zip((*parameters["layer"], parameters["scale"]), learned):
            equal(array, wanted)
        # Their rows were elsewhere.
        for old in (saved, loading):
            with pytest.raises(ringlet.InvalidArgument, match="add_to"):
                ringlet.save_checkpoint(world, directory, old, step=4)
        world.barrier()


@on_ranks(1, 2)
def test_shards_of_their_own(group):
    group.barrier()
    with ringlet.init(elastic=True) as world:
        rank, size = world.rank(), world.size()
        shards = ringlet.ElasticFullyShard(world, lambda: ringlet.AdamW(0.01), prefetch=0)
        for name in ("first", "second"):
            shards.add(name, parameters_of(100))
        assert shards.enter(world) == ""
        for step in range(2):
            for module in (1, 0):
                kept = shards.forward(module)
                assert type(kept["layer"]) is list and kept["layer"][0].shape == (7, 3)
                shards.backward(module)
                shards.set_share(1.0)
                shards.reduce_gradients(module, gradients_of(1 + step * size + rank))
            assert shards.finish() is None
            shards.update()
            shards.gather()
        wanted = trained_alone(size, 2, ringlet.AdamW(0.01))
        for module in range(2):
            close(shards.forward(module), wanted)
        assert shards.parameter_bytes() == 2 * 27 * 4
        with pytest.raises(ringlet.InvalidArgument, match="enter"):
            shards.add("third", parameters_of(1))
        kept = shards.forward(0)
        copy = kept["layer"][0].copy()
        assert shards.enter(world) == ""
        equal(kept["layer"][0], copy)
        world.barrier()


def test_mistakes():
    with ringlet.init(elastic=True) as world:
        parameters = {"w": np.zeros(4, np.float32)}
        with pytest.raises(ringlet.InvalidArgument, match="copies"):
            ringlet.ElasticFsdp(world, parameters, lambda: ringlet.SGD(0.1), copies=3)
        broken = ringlet.ElasticFsdp(world, parameters, lambda: {}["none"])
        with pytest.raises(KeyError):
            broken.enter(world)
        fsdp = ringlet.ElasticFsdp(world, parameters, lambda: ringlet.SGD(0.1))
        with pytest.raises(ringlet.InvalidArgument, match="enter"):
            fsdp.average({"w": np.ones(4, np.float32)})
        trainer = ringlet.ElasticTrainer(world, ringlet.Checkpoint(), fsdp)
        for call in (lambda: fsdp.enter(world), lambda: fsdp.add_to(ringlet.Checkpoint()), lambda: fsdp.loaded(1)):
            with pytest.raises(ringlet.InvalidArgument, match="ElasticTrainer"):
                call()
        with pytest.raises(ringlet.InvalidArgument, match="already"):
            ringlet.ElasticTrainer(world, ringlet.Checkpoint(), fsdp)

        def step(attempt):
            fsdp.average({"w": np.full(4, attempt.number + 1.0, np.float32)})
            attempt.commit(fsdp.update)

        trainer.run(step, steps=2, batch=4)
        equal(parameters["w"], np.float32(0) - np.float32(0.1) * np.ones(4, np.float32) - np.float32(0.1) * np.full(4, 2, np.float32))
        del trainer
        assert fsdp.enter(world) == ""


def test_min_ranks(monkeypatch):
    monkeypatch.delenv("RINGLET_MIN_RANKS", raising=False)
    assert ringlet.read_min_ranks() == (1, 600.0)
    monkeypatch.setenv("RINGLET_MIN_RANKS", "3")
    assert ringlet.read_min_ranks(min_wait=1.5) == (3, 1.5)
    assert ringlet.read_min_ranks(min_ranks=2).ranks == 2
