"""A small GPT learns the text of a file, by DistributedDataParallel over Ringlet, on the CPUs of one machine or of several.

    torchrun --nproc-per-node 2 torch_ddp.py [FILE]
    ringlet launch -n 2 -- python torch_ddp.py [FILE]
    ringlet run --group home -- /opt/train/bin/python /opt/train/torch_ddp.py [FILE]
"""

import argparse
import pathlib
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

import ringlet.torch  # needed before torch 2.14 alone, which finds the back end by itself


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.projection = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        batch, length, width = x.shape
        query, key, value = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.projection(attended.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    """Predicts each next byte."""

    def __init__(self, length, width, heads, layers):
        super().__init__()
        self.token_embedding, self.position_embedding = nn.Embedding(256, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 256)

    def forward(self, tokens):
        x = self.token_embedding(tokens) + self.position_embedding(torch.arange(tokens.shape[1]))
        return self.head(self.norm(self.blocks(x)))


def random_batch(text, count, length, generator):
    """Inputs and targets, which are one byte further, of shape (count, length)."""
    begins = torch.randint(len(text) - length, (count, 1), generator=generator)
    samples = text[begins + torch.arange(length + 1)]
    return samples[:, :-1], samples[:, 1:]


def same_on_all_ranks(parameters):
    sums = torch.stack([parameter.detach().double().sum() for parameter in parameters])
    highest, lowest = sums.clone(), sums.clone()
    dist.all_reduce(highest, dist.ReduceOp.MAX)
    dist.all_reduce(lowest, dist.ReduceOp.MIN)
    return torch.equal(highest, lowest)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", default=__file__, help="the text; by default this program")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--batch", type=int, default=32, help="samples of all ranks together")
    parser.add_argument("--length", type=int, default=64, help="bytes of a sample")
    parser.add_argument("--lr", type=float, default=3e-3)
    options = parser.parse_args()

    text = torch.frombuffer(bytearray(pathlib.Path(options.file).read_bytes()), dtype=torch.uint8).long()
    if len(text) <= options.length:
        parser.error(f"{options.file} has {len(text)} bytes; samples of {options.length} need more")

    dist.init_process_group("ringlet")
    rank, size = dist.get_rank(), dist.get_world_size()
    if options.batch % size:
        parser.error(f"--batch {options.batch} does not divide by {size} ranks")
    torch.manual_seed(0)
    model = DistributedDataParallel(GPT(options.length, width=64, heads=4, layers=2))  # all ranks begin with rank 0's parameters
    optimizer = torch.optim.AdamW(model.parameters(), options.lr)
    generator = torch.Generator().manual_seed(rank)  # and each has samples of its own

    start = time.perf_counter()
    for step in range(1, options.steps + 1):
        inputs, targets = random_batch(text, options.batch // size, options.length, generator)
        loss = F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()  # meanwhile Ringlet averages the gradients that are ready
        optimizer.step()
        if step % 20 == 0:
            mean = loss.detach()
            dist.all_reduce(mean, dist.ReduceOp.AVG)
            if rank == 0:
                print(f"step {step}: loss {mean.item():.3f}, {step / (time.perf_counter() - start):.1f} steps/s", flush=True)

    same = same_on_all_ranks(model.parameters())
    print(f"rank {rank} of {size}: parameters {'the same' if same else 'NOT the same'} on all ranks", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
