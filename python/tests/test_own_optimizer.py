"""Optimizers of the program's own under an FsdpUpdater."""

import ml_dtypes
import numpy as np
import pytest
from ranks import on_ranks
from samples import equal

import ringlet


class Momentum:
    """Keeps what it is given: the first gradients become the state."""

    def __init__(self):
        self.velocity = None
        self.kept = []

    def apply_gradients(self, gradients, parameters):
        for given in (gradients, parameters):
            self.kept += [(array, array.copy()) for array in given.values()]
        if self.velocity is None:
            self.velocity = dict(gradients)
        else:
            self.velocity = {name: 0.5 * self.velocity[name] + gradients[name] for name in gradients}
        return {name: parameters[name] - self.velocity[name] for name in parameters}


@on_ranks(1, 2)
def test_an_optimizer_keeps_arrays(group):
    """Also large ones, whose memory goes back to the system when it is freed."""
    for count in (10, 1_000_000):
        optimizer, updater = Momentum(), ringlet.FsdpUpdater(group)
        parameters, velocity, wanted = {"w": np.ones(count, np.float32)}, 0.0, 1.0
        for step in range(4):
            parameters, _ = updater.apply_gradients({"w": np.full(count, step + 1, np.float32)}, parameters, optimizer)
            velocity = 0.5 * velocity + step + 1
            wanted -= velocity
            equal(parameters["w"], np.full(count, wanted, np.float32))
            # Another tree, for which the updater makes its buffers anew.
            other, _ = updater.apply_gradients({"v": np.full(5, step, np.float32)}, {"v": np.ones(5, np.float32)}, Momentum())
            equal(other["v"], np.full(5, 1 - step, np.float32))
        for array, before in optimizer.kept:
            equal(array, before)


class InPlace:
    """Changes some parameters in place, and the gradients, which is of no meaning; keeps the parameters."""

    kept = ()

    def apply_gradients(self, gradients, parameters):
        parameters["a"][...] -= gradients["a"]
        gradients["b"][...] = 9
        self.kept = (*self.kept, parameters["a"], parameters["b"])
        return {"b": parameters["b"] * 2}


@on_ranks(1, 2)
def test_a_step_within_a_step_is_refused(group):
    gradients, updater = {"w": np.ones(7, np.float32)}, ringlet.FsdpUpdater(group)

    class Nested(Momentum):
        def apply_gradients(self, gradients, parameters):
            with pytest.raises(ringlet.InvalidArgument, match="while another step of it runs"):
                updater.apply_gradients({"w": np.ones(999)}, {"w": np.ones(999)}, Momentum())
            return super().apply_gradients(gradients, parameters)

    for optimizer in (Nested(), Momentum()):
        parameters, _ = updater.apply_gradients(gradients, {"w": np.ones(7, np.float32)}, optimizer)
        equal(parameters["w"], np.zeros(7, np.float32))


@on_ranks(1, 2)
def test_an_optimizer_changes_parameters_in_place(group):
    optimizer, updater = InPlace(), ringlet.FsdpUpdater(group)
    parameters = {"a": np.full((4, 2), 5, np.float32), "b": np.ones(6, ml_dtypes.bfloat16)}
    gradients = {"a": np.ones((4, 2), np.float32), "b": np.ones(6, ml_dtypes.bfloat16)}
    for _ in range(2):
        updater.apply_gradients_(gradients, parameters, optimizer)
    equal(parameters["a"], np.full((4, 2), 3, np.float32))
    equal(parameters["b"], np.full(6, 4, ml_dtypes.bfloat16))
    assert [float(array.flat[0]) for array in optimizer.kept] == [4, 1, 3, 2]
    equal(gradients["b"], np.ones(6, ml_dtypes.bfloat16))


class Returning:
    def __init__(self, make):
        self.make = make

    def apply_gradients(self, gradients, parameters):
        return self.make(parameters)


TREE = {"layers": [np.zeros(3, np.float32), np.zeros((2, 2), np.float16)], "n": np.zeros((), np.float32)}
WRONG = [
    (
        lambda p: {"nope": p["n"]},
        ringlet.InvalidArgument,
        "the optimizer has returned 'nope'; the parameters are 'layers.0', 'layers.1', 'n'",
    ),
    (lambda p: [p["n"]], TypeError, r"the optimizer has returned \[array.*\]; it returns a dict of new parameters by name, or None"),
    (lambda p: 0, TypeError, "the optimizer has returned 0; it returns a dict"),
    (lambda p: {"layers.0": np.float32(3)}, ringlet.InvalidArgument, r"the optimizer has returned 'layers.0' of shape \(\); it is \(3,\)"),
    (lambda p: {"layers.1": np.zeros(4)}, ringlet.InvalidArgument, r"returned 'layers.1' of shape \(4,\); it is \(2, 2\)"),
    (lambda p: {"layers.0": np.zeros(3, complex)}, ringlet.InvalidArgument, "returned 'layers.0' of dtype complex128; it is float32"),
    (lambda p: {"layers.0": ["a", "b", "c"]}, ringlet.InvalidArgument, "returned 'layers.0' of dtype <U1; it is float32"),
    (lambda p: {"n": object()}, ringlet.InvalidArgument, "returned 'n' of dtype object; it is float32"),
    (lambda p: {"layers.1": [[1], [1, 2]]}, ringlet.InvalidArgument, "returned 'layers.1', of which NumPy makes no array"),
]


@pytest.mark.parametrize("make, error, text", WRONG)
def test_what_an_optimizer_may_not_return(make, error, text):
    with ringlet.Group() as group:
        with pytest.raises(error, match=text):
            ringlet.FsdpUpdater(group).apply_gradients(TREE, TREE, Returning(make))


def test_what_an_optimizer_may_return():
    with ringlet.Group() as group:
        for make in (
            lambda p: {"layers.0": [1, 1, 1], "layers.1": np.ones((2, 2)), "n": 1},
            lambda p: {"layers.0": np.ones(6)[::2], "layers.1": np.ones((2, 2), ">f4").T, "n": np.True_},
        ):
            after, _ = ringlet.FsdpUpdater(group).apply_gradients(TREE, TREE, Returning(make))
            equal(after["layers"][0], np.ones(3, np.float32))
            equal(after["layers"][1], np.ones((2, 2), np.float16))
            equal(after["n"], np.ones((), np.float32))
        for nothing in (None, {}):
            after, _ = ringlet.FsdpUpdater(group).apply_gradients(TREE, TREE, Returning(lambda p, nothing=nothing: nothing))
            equal(after["layers"][0], np.zeros(3, np.float32))
