"""A small language model that browser tabs and Python train together: the model, the data and the steps of Ringlet's demo, whose page and
program are written in C++.

    ringlet serve --no-elastic --ranks 1 --browsers 1 -- python train_text.py [FILE]

The tab computes in WebAssembly and this program in NumPy, each with its part of every batch. Rank 0 sends the text and the first parameters;
in each step the gradients are averaged, so all ranks have the same parameters, bit for bit, in one array: the weights are here, to be used in
Python, with every step. With --inner-steps each rank trains alone for so many steps before their parameters are averaged. At the end it writes
a text, and with --save the weights as a .npz file.
"""

import argparse
import json
import pathlib
import struct

import numpy as np

import ringlet

parser = argparse.ArgumentParser()
parser.add_argument("file", nargs="?", default=__file__)
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--batch", type=int, default=16, help="sequences of all ranks together")
parser.add_argument("--layers", type=int, default=2)
parser.add_argument("--width", type=int, default=64)
parser.add_argument("--heads", type=int, default=4)
parser.add_argument("--context", type=int, default=64)
parser.add_argument("--rate", type=float, help="peak learning rate; 0.006, and with --inner-steps 0.003, unless given")
parser.add_argument("--check-every", type=int, default=50)
parser.add_argument("--inner-steps", type=int, default=0, help="steps that each rank takes alone between two averages (DiLoCo); 0: none")
parser.add_argument("--save", help="a file for the weights")
options = parser.parse_args()
if options.rate is None:
    options.rate = 3e-3 if options.inner_steps else 6e-3
if not 0 < options.rate < float("inf"):
    parser.error(f"--rate must be above 0, not {options.rate}")
SEED, BUCKET_BYTES, CLIP, WINDOWS = 1, 256 << 10, 1.0, 96
OUTER_RATE, OUTER_MOMENTUM = 0.7, 0.5


# Random numbers that have no state: the same on every rank, whatever its language (train_text/random.hpp).
def mix(x):
    x = np.asarray(x, np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def random_at(seed, a, b):
    return mix(mix(mix([seed]) ^ np.uint64(a)) ^ np.asarray(b, np.uint64))


def normal_at(seed, a, count):
    bits = random_at(seed, a, np.arange(count))
    first, second = ((numbers >> np.uint64(11)) * 2.0**-53 for numbers in (bits, mix(bits)))
    return np.sqrt(-2 * np.log(1 - first)) * np.cos(2 * np.pi * second)


class Parameters:
    """Values and gradients of all tensors, each in one array, in the order and by the names of the model in C++."""

    def __init__(self, layers, width, context):
        branch = (2 * layers) ** -0.5
        tensors = [("embedding.bytes", (256, width), 0, 0.1), ("embedding.positions", (context, width), 0, 0.1)]

        def norm(name):
            tensors.extend([(name + ".gain", (width,), 1, 0), (name + ".bias", (width,), 0, 0)])

        def linear(name, inputs, outputs, deviation):
            tensors.extend([(name + ".weight", (inputs, outputs), 0, deviation), (name + ".bias", (outputs,), 0, 0)])

        for block in (f"blocks.{i}." for i in range(layers)):
            norm(block + "attention.norm")
            linear(block + "attention.qkv", width, 3 * width, width**-0.5)
            linear(block + "attention.projection", width, width, branch * width**-0.5)
            norm(block + "mlp.norm")
            linear(block + "mlp.expand", width, 4 * width, width**-0.5)
            linear(block + "mlp.contract", 4 * width, width, branch * (4 * width) ** -0.5)
        norm("head.norm")
        linear("head.output", width, 256, 0.02)

        counts = [int(np.prod(shape)) for _, shape, _, _ in tensors]
        self.values, self.all_gradients = np.empty(sum(counts), np.float32), np.zeros(sum(counts), np.float32)
        self.tensors, self.gradients, self.parts = {}, {}, {}
        parts, begin = {}, 0
        for (name, shape, mean, deviation), count in zip(tensors, counts):
            place = slice(begin, begin + count)
            self.tensors[name] = self.values[place].reshape(shape)
            self.gradients[name] = self.all_gradients[place].reshape(shape)
            self.values[place] = mean + deviation * normal_at(SEED, begin, count)
            words = name.split(".")
            part = ".".join(words[:3]) if words[0] == "blocks" else words[0]
            parts[part] = slice(parts.get(part, place).start, place.stop)
            begin += count
        for part, place in reversed(parts.items()):  # the order in which they are averaged: those near the output first
            self.parts[part] = self.all_gradients[place]


class Transformer:
    """Pre-norm blocks of causal attention and an MLP with GELU, over bytes."""

    def __init__(self, parameters, layers, heads):
        self.of, self.to = parameters.tensors, parameters.gradients
        self.layers, self.heads = layers, heads

    def norm(self, name, x):
        centred = x - x.mean(-1, keepdims=True)
        inverse = 1 / np.sqrt((centred**2).mean(-1, keepdims=True) + np.float32(1e-5))
        normal = centred * inverse

        def backward(gradient):
            self.to[name + ".gain"][...] = (gradient * normal).sum((0, 1))
            self.to[name + ".bias"][...] = gradient.sum((0, 1))
            scaled = gradient * self.of[name + ".gain"]
            return inverse * (scaled - scaled.mean(-1, keepdims=True) - normal * (scaled * normal).mean(-1, keepdims=True))

        return normal * self.of[name + ".gain"] + self.of[name + ".bias"], backward

    def linear(self, name, x):
        weight = self.of[name + ".weight"]

        def backward(gradient):
            rows, outputs = x.reshape(-1, x.shape[-1]), gradient.reshape(-1, gradient.shape[-1])
            self.to[name + ".weight"][...] = rows.T @ outputs
            self.to[name + ".bias"][...] = outputs.sum(0)
            return gradient @ weight.T

        return x @ weight + self.of[name + ".bias"], backward

    def attention(self, qkv):
        batch, length, width = qkv.shape
        query, key, value = qkv.reshape(batch, length, 3, self.heads, -1).transpose(2, 0, 3, 1, 4)
        scale = np.float32(query.shape[-1] ** -0.5)
        scores = np.where(np.tri(length, dtype=bool), query @ key.swapaxes(-1, -2) * scale, -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights = (weights / weights.sum(-1, keepdims=True)).astype(np.float32)

        def backward(gradient):
            gradient = gradient.reshape(batch, length, self.heads, -1).transpose(0, 2, 1, 3)
            of_weights = gradient @ value.swapaxes(-1, -2)
            of_scores = scale * weights * (of_weights - (of_weights * weights).sum(-1, keepdims=True))
            parts = of_scores @ key, of_scores.swapaxes(-1, -2) @ query, weights.swapaxes(-1, -2) @ gradient
            return np.stack(parts).transpose(1, 3, 0, 2, 4).reshape(batch, length, width)

        return (weights @ value).transpose(0, 2, 1, 3).reshape(batch, length, width // 3), backward

    def gelu(self, x):
        tanh = np.tanh(np.float32(0.7978845608028654) * x * (1 + np.float32(0.044715) * x**2))

        def backward(gradient):
            inner = np.float32(0.5 * 0.7978845608028654) * (1 + np.float32(3 * 0.044715) * x**2)
            return gradient * (np.float32(0.5) * (1 + tanh) + x * (1 - tanh**2) * inner)

        return np.float32(0.5) * x * (1 + tanh), backward

    def branch(self, x, *steps):
        """x and what the steps make of it, added; and the gradient of both."""
        change, backwards = x, []
        for step in steps:
            change, backward = step(change)
            backwards.append(backward)

        def backward_of_all(gradient):
            inner = gradient
            for backward in reversed(backwards):
                inner = backward(inner)
            return gradient + inner

        return x + change, backward_of_all

    def logits(self, rows):
        x = self.of["embedding.bytes"][rows] + self.of["embedding.positions"][: rows.shape[1]]
        backwards = []
        for block in (f"blocks.{i}." for i in range(self.layers)):
            for names in (
                ("attention.norm", "attention.qkv", None, "attention.projection"),
                ("mlp.norm", "mlp.expand", None, "mlp.contract"),
            ):
                inner = self.attention if names[0] == "attention.norm" else self.gelu
                x, backward = self.branch(
                    x,
                    lambda y, name=block + names[0]: self.norm(name, y),
                    lambda y, name=block + names[1]: self.linear(name, y),
                    inner,
                    lambda y, name=block + names[3]: self.linear(name, y),
                )
                backwards.append(backward)
        x, of_norm = self.norm("head.norm", x)
        x, of_output = self.linear("head.output", x)
        return x, [*backwards, of_norm, of_output]

    def loss(self, batch, with_gradients=True):
        """The mean cross-entropy of the next bytes, and, if they are wanted, the gradients of all parameters."""
        rows, targets = batch[:, :-1], batch[:, 1:, None].astype(np.int64)
        logits, backwards = self.logits(rows)
        logits = logits - logits.max(-1, keepdims=True)
        chances = np.exp(logits)
        totals = chances.sum(-1, keepdims=True)
        loss = (np.log(totals) - np.take_along_axis(logits, targets, -1)).mean(dtype=np.float64)
        if with_gradients:
            gradient = chances / totals
            np.put_along_axis(gradient, targets, np.take_along_axis(gradient, targets, -1) - 1, -1)
            gradient /= np.float32(rows.size)
            for backward in reversed(backwards):
                gradient = backward(gradient)
            self.to["embedding.bytes"][...] = 0
            np.add.at(self.to["embedding.bytes"], rows, gradient)
            self.to["embedding.positions"][...] = 0
            self.to["embedding.positions"][: rows.shape[1]] = gradient.sum(0)
        return float(loss)


def part_of(total):
    """This rank's contiguous part of so many items: where it begins and how many they are."""
    rank, size = world.rank(), world.size()
    return rank * (total // size) + min(rank, total % size), total // size + (rank < total % size)


def windows_of(text, starts):
    return text[np.asarray(starts, np.int64)[:, None] + np.arange(options.context + 1)]


def validation_loss():
    windows = min((len(held_out) - 1) // options.context, WINDOWS)
    first, count = (0, windows) if options.inner_steps else part_of(windows)
    starts = np.arange(first, first + count) * (len(held_out) - options.context - 1) // max(windows - 1, 1)
    mine = model.loss(windows_of(held_out, starts), False) * count / windows if count else 0.0
    return mine if options.inner_steps else world.all_sum(np.array([mine]))[0]


def compare_hashes(*more):
    """All ranks' parameters, by FNV-1a. `more` are numbers that the ranks tell each other with it."""
    hash = 0xCBF29CE484222325
    for byte in parameters.values.tobytes():
        hash = (hash ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    hashes = world.all_gather(np.array([hash, *more], np.uint64))[:: 1 + len(more)]
    assert (hashes == hashes[0]).all(), f"the parameters are not the same on all ranks: {hashes}"
    return hash


def schedule():
    rise, fall = max(options.steps // 20, 1), max(options.steps - options.steps // 20, 1)
    first = options.rate / rise
    parts = [ringlet.linear_schedule(first, options.rate + first, rise), ringlet.linear_schedule(options.rate, 0.05 * options.rate, fall)]
    return ringlet.join_schedules(parts, [rise])


world = ringlet.init()
if options.batch < world.size():
    raise SystemExit(f"train_text: --batch {options.batch} leaves some of the {world.size()} ranks without a sequence")
if options.inner_steps and options.steps % options.inner_steps:
    raise SystemExit(f"train_text: --steps must be a multiple of the {options.inner_steps} steps between two averages, not {options.steps}")
if options.inner_steps and world.elastic():
    raise SystemExit(
        "train_text: tabs that come back have nobody here to tell them what is trained; with --inner-steps serve with --no-elastic"
    )

# Rank 0 announces the settings, of which the other ranks of this program have been given the same, and sends the text. The record is that of
# train_text/settings.cpp.
record, text = np.zeros(160, np.uint8), np.empty(0, np.uint8)
if world.rank() == 0:
    text = np.frombuffer(pathlib.Path(options.file).read_bytes(), np.uint8)
    shape = (options.layers, options.width, options.heads, options.context)
    steps = (options.steps, options.batch, 10, options.check_every, WINDOWS, 240, 100, world.guests())
    choices = (0, 0, 255, False, False, False, world.elastic(), False)  # data-parallel, even shares, gradients in their own dtype
    outer = (options.inner_steps, 1, 0, OUTER_RATE, OUTER_MOMENTUM)
    fields = (b"TEXT", 4, len(text), SEED, options.rate, CLIP, BUCKET_BYTES, 0, *shape, *steps, *choices, *outer)
    packed = struct.pack("<4sIQQddqI12i3B5?3i2d", *fields)
    record[: len(packed)] = np.frombuffer(packed, np.uint8)
record = world.broadcast(record)
if world.rank() != 0:
    text = np.empty(struct.unpack_from("<Q", record.tobytes(), 8)[0], np.uint8)
text = world.broadcast(text)
if world.elastic():
    world.agree(True)
held_out = text[len(text) - max(len(text) // 10, options.context + 1) :]
training = text[: len(text) - len(held_out)]

parameters = Parameters(options.layers, options.width, options.context)
model = Transformer(parameters, options.layers, options.heads)
decaying, others = (ringlet.AdamW(schedule(), betas=(0.9, 0.99), weight_decay=decay, bias_correction=True) for decay in (0.1, 0.0))
optimizer = ringlet.MultiOptimizer([decaying, others], [lambda name, values: name.endswith(".weight")])

first, count = part_of(options.batch)


def loss_of_step(step):
    """This rank's mean loss, with its gradients."""
    starts = random_at(SEED, step, np.arange(first, first + count)) % np.uint64(len(training) - options.context)
    return model.loss(windows_of(training, starts))


def update(step, loss):
    if not np.isfinite(loss):
        raise SystemExit(f"train_text: the loss of step {step} is {loss}: try a smaller --rate")
    if world.elastic() and not world.agree(True):
        raise SystemExit("train_text: a rank was lost; serve with --no-elastic, and start again")
    ringlet.clip_grad_norm_(parameters.gradients, CLIP)
    optimizer.apply_gradients_(parameters.gradients, parameters.tensors)
    done = step + 1
    if world.rank() == 0 and (done % 20 == 0 or done == options.steps):
        print(f"step {done}: loss {loss:.4f}", flush=True)


def train_together():
    """An average of gradients in each step."""
    weight = count if options.batch % world.size() else None
    for step in range(options.steps):
        loss = np.array([loss_of_step(step) * count / options.batch])
        ringlet.average_gradients_(parameters.parts, world, all_reduce_size=BUCKET_BYTES, weight=weight)
        update(step, world.all_sum(loss, stream=1)[0])
        if options.check_every and (step + 1) % options.check_every == 0 and step + 1 != options.steps:
            compare_hashes()


def train_alone():
    """Every --inner-steps steps an average of parameters."""

    def inner(step):
        update(step.number, loss_of_step(step.number))
        return count

    outer = dict(inner_steps=options.inner_steps, learning_rate=OUTER_RATE, momentum=OUTER_MOMENTUM)
    ringlet.OuterTrainer(world, parameters.tensors, all_reduce_size=BUCKET_BYTES, **outer).run(inner, steps=options.steps)


if not options.inner_steps:
    world.broadcast(np.array([0]))  # no step is done yet
    world.broadcast_(parameters.values)
first_loss = validation_loss()
train_alone() if options.inner_steps else train_together()
last_loss = validation_loss()
# With few averages the ranks also tell how many sequences each has computed.
hash = compare_hashes(count * options.steps) if options.inner_steps else compare_hashes()
if not options.inner_steps:
    world.all_sum(np.zeros(1))  # how long this rank has waited, which it does not measure

if world.rank() == 0:
    written = list(b"the ")
    random = np.random.default_rng(SEED)
    for _ in range(120):
        logits = model.logits(np.array([written[-options.context :]]))[0][0, -1].astype(np.float64) / 0.7
        chances = np.exp(logits - logits.max())
        written.append(random.choice(256, p=chances / chances.sum()))
    print(bytes(written).decode(errors="replace"))
    report = {"ranks": world.size(), "val_loss_first": first_loss, "val_loss_last": last_loss, "parameter_hash": f"{hash:016x}"}
    if options.inner_steps:
        report["averages"] = options.steps // options.inner_steps
    print(json.dumps(report), flush=True)
if options.save:
    np.savez(options.save, **parameters.tensors)
world.close()
