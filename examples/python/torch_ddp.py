"""A small GPT learns the text of a file, by DistributedDataParallel over Ringlet, on the CPUs of one machine or of several.

    ringlet launch -n 2 -- python torch_ddp.py [FILE]
    ringlet run --group home -- python torch_ddp.py [FILE]
    torchrun --nproc-per-node 2 torch_ddp.py [FILE]
"""

import argparse
import pathlib
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

import ringlet.torch  # needed before torch 2.14 alone, which finds the back end by itself


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.before, self.after = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention, self.mix = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.think = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        batch, length, width = x.shape
        query, key, value = self.attention(self.before(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        attended = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.mix(attended.transpose(1, 2).reshape(batch, length, width))
        return x + self.think(self.after(x))


class Gpt(nn.Module):
    def __init__(self, length, width, heads, layers):
        super().__init__()
        self.letters, self.places = nn.Embedding(256, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)), nn.LayerNorm(width), nn.Linear(width, 256))

    def forward(self, bytes):
        return self.blocks(self.letters(bytes) + self.places(torch.arange(bytes.shape[1])))


parser = argparse.ArgumentParser()
parser.add_argument("file", nargs="?", default=__file__)
parser.add_argument("--steps", type=int, default=60)
parser.add_argument("--batch", type=int, default=32, help="samples of all ranks together")
parser.add_argument("--length", type=int, default=64)
options = parser.parse_args()

dist.init_process_group("ringlet")
rank, size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)  # all ranks begin with the same parameters
model = DistributedDataParallel(Gpt(options.length, width=64, heads=4, layers=2))
optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
text = torch.frombuffer(bytearray(pathlib.Path(options.file).read_bytes()), dtype=torch.uint8).long()
begins = torch.Generator().manual_seed(rank + 1)  # and each has samples of its own

started = time.perf_counter()
for step in range(1, options.steps + 1):
    first = torch.randint(len(text) - options.length - 1, (options.batch // size, 1), generator=begins)
    sample = text[first + torch.arange(options.length + 1)]
    loss = functional.cross_entropy(model(sample[:, :-1]).flatten(0, 1), sample[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()  # meanwhile Ringlet averages the gradients that are ready
    optimizer.step()
    if step % 20 == 0:
        mean = loss.detach().clone()
        dist.all_reduce(mean, dist.ReduceOp.AVG)
        if rank == 0:
            print(f"step {step}: loss {mean.item():.3f}, {step / (time.perf_counter() - started):.1f} steps/s", flush=True)

last = torch.stack([parameter.detach().double().sum() for parameter in model.parameters()])
highest, lowest = last.clone(), last.clone()
dist.all_reduce(highest, dist.ReduceOp.MAX)
dist.all_reduce(lowest, dist.ReduceOp.MIN)
print(f"rank {rank} of {size}: parameters {'the same' if torch.equal(highest, lowest) else 'NOT the same'} on all ranks", flush=True)
dist.destroy_process_group()
