"""A small network learns a function in JAX, data-parallel over Ringlet: each rank has samples of its own, and all have the same parameters.

    ringlet launch -n 2 -- python jax_training.py
    ringlet launch -n 2 -- python jax_training.py --one-function

Gradients are averaged between two compiled functions, or, with `--one-function`, by a call-back of one that is the whole step.
"""

import argparse

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import io_callback

import ringlet

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--one-function", action="store_true")
options = parser.parse_args()
world = ringlet.init()


def outputs_of(parameters, inputs):
    hidden = jnp.tanh(inputs @ parameters["inner"]["weight"] + parameters["inner"]["bias"])
    return hidden @ parameters["outer"]["weight"] + parameters["outer"]["bias"]


@jax.value_and_grad
def loss_and_gradients(parameters, inputs, targets):
    return jnp.mean((outputs_of(parameters, inputs) - targets) ** 2)


def moved(parameters, gradients):
    return jax.tree.map(lambda parameter, gradient: parameter - 0.1 * gradient, parameters, gradients)


def averaged(gradients):
    # NumPy's arrays, since a call-back may not wait for anything that JAX computes.
    return ringlet.average_gradients(jax.tree.map(np.asarray, gradients), world)


@jax.jit
def whole_step(parameters, inputs, targets):
    loss, gradients = loss_and_gradients(parameters, inputs, targets)
    # `ordered`: all ranks average in the same order, once per step.
    gradients = io_callback(averaged, gradients, gradients, ordered=True)
    return loss, moved(parameters, gradients)


compiled_gradients, compiled_move = jax.jit(loss_and_gradients), jax.jit(moved)


def step_in_parts(parameters, inputs, targets):
    loss, gradients = compiled_gradients(parameters, inputs, targets)
    return loss, compiled_move(parameters, ringlet.average_gradients(gradients, world))


random = np.random.default_rng(7)  # the same parameters on all ranks
parameters = {
    "inner": {"weight": jnp.asarray(random.normal(size=(2, 32)), jnp.float32), "bias": jnp.zeros(32)},
    "outer": {"weight": jnp.asarray(random.normal(size=(32, 1)) / 6, jnp.float32), "bias": jnp.zeros(1)},
}
samples = np.random.default_rng(100 + world.rank())  # and each has samples of its own
step_once = whole_step if options.one_function else step_in_parts
for step in range(1, options.steps + 1):
    inputs = samples.uniform(-1, 1, size=(64, 2)).astype(np.float32)
    loss, parameters = step_once(parameters, inputs, inputs[:, :1] * inputs[:, 1:])
    if world.rank() == 0 and step in (1, options.steps):
        print(f"step {step}: loss {loss:.4f}", flush=True)

same = all((world.all_max(leaf) == world.all_min(leaf)).all() for leaf in jax.tree.leaves(parameters))
print(f"rank {world.rank()} of {world.size()}: parameters {'the same' if same else 'NOT the same'} on all ranks", flush=True)
