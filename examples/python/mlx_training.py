"""A small GPT learns the text of a file in MLX, data-parallel over Ringlet: MLX averages the gradients, and the step is compiled.

    ringlet launch -n 2 -- python mlx_training.py [FILE]
    ringlet run --group home -- /opt/train/bin/python /opt/train/mlx_training.py [FILE]

Needs the packages mlx and ringlet-mlx; without the latter, `--eager` does the same without mx.compile.
"""

import argparse
import functools
import pathlib
import time

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
from mlx.utils import tree_flatten

import ringlet.mlx


class Gpt(nn.Module):
    def __init__(self, length, width, heads, layers):
        super().__init__()
        self.letters, self.places = nn.Embedding(256, width), nn.Embedding(length, width)
        self.blocks = [nn.TransformerEncoderLayer(width, heads, norm_first=True) for _ in range(layers)]
        self.before, self.guess = nn.LayerNorm(width), nn.Linear(width, 256)

    def __call__(self, letters):
        length = letters.shape[1]
        mask = nn.MultiHeadAttention.create_additive_causal_mask(length)
        x = self.letters(letters) + self.places(mx.arange(length))
        for block in self.blocks:
            x = block(x, mask)
        return self.guess(self.before(x))


parser = argparse.ArgumentParser()
parser.add_argument("file", nargs="?", default=__file__)
parser.add_argument("--steps", type=int, default=60)
parser.add_argument("--batch", type=int, default=32, help="samples of all ranks together")
parser.add_argument("--length", type=int, default=64)
parser.add_argument("--eager", action="store_true", help="call the operations at once")
options = parser.parse_args()

ringlet.mlx.install()  # mx.distributed and mlx.nn now mean Ringlet's group where they are given none
world = mx.distributed.init()
mx.random.seed(0)  # all ranks begin with the same parameters
model = Gpt(options.length, width=64, heads=4, layers=2)
optimizer = optim.AdamW(3e-3)
optimizer.init(model.trainable_parameters())
mx.eval(model.parameters(), optimizer.state)
mx.random.seed(world.rank() + 1)  # and each has samples of its own
text = mx.array(list(pathlib.Path(options.file).read_bytes()))
loss_and_gradients = nn.value_and_grad(model, lambda net, x, y: nn.losses.cross_entropy(net(x), y, reduction="mean"))


def step(sample):
    loss, gradients = loss_and_gradients(model, sample[:, :-1], sample[:, 1:])
    optimizer.update(model, nn.average_gradients(gradients))
    return mx.distributed.all_sum(loss) / world.size()


if not options.eager:
    state = [model.state, optimizer.state]
    step = functools.partial(mx.compile, inputs=state, outputs=state)(step)

started = time.perf_counter()
for number in range(1, options.steps + 1):
    first = mx.random.randint(0, len(text) - options.length - 1, (options.batch // world.size(), 1))
    loss = step(text[first + mx.arange(options.length + 1)])
    mx.eval(loss, model.parameters(), optimizer.state)
    if number % 20 == 0 and world.rank() == 0:
        print(f"step {number}: loss {loss.item():.3f}, {number / (time.perf_counter() - started):.1f} steps/s", flush=True)

last = mx.stack([parameter.sum() for _, parameter in tree_flatten(model.parameters())])
same = mx.array_equal(mx.distributed.all_max(last), mx.distributed.all_min(last)).item()
print(f"rank {world.rank()} of {world.size()}: parameters {'the same' if same else 'NOT the same'} on all ranks", flush=True)
