"""A small training of torch's, by all ranks and by one."""

import hashlib

import pytest

torch = pytest.importorskip("torch")
dist = pytest.importorskip("torch.distributed")


def model(width=64):
    torch.manual_seed(0)
    layers = torch.nn
    return layers.Sequential(layers.Linear(32, width), layers.GELU(), layers.Linear(width, width), layers.GELU(), layers.Linear(width, 8))


def samples(step, rank, count=16):
    random = torch.Generator().manual_seed(1000 * step + rank)
    return torch.randn(count, 32, generator=random), torch.randn(count, 8, generator=random)


def train(net, steps=5, optimizer=None):
    optimizer = optimizer or torch.optim.AdamW(net.parameters(), 1e-2)
    for step in range(steps):
        inputs, targets = samples(step, dist.get_rank())
        (net(inputs) - targets).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    return net


def state_of(parameters):
    """Their bits as one text, which is the same on all ranks."""
    digest = hashlib.sha256()
    for parameter in parameters:
        whole = parameter.full_tensor() if hasattr(parameter, "full_tensor") else parameter
        # A copy: FSDP frees the memory itself, which it cannot once NumPy has seen it.
        digest.update(whole.detach().clone(memory_format=torch.contiguous_format).view(torch.uint8).numpy().tobytes())
    mine = digest.hexdigest()
    everybody = [None] * dist.get_world_size()
    dist.all_gather_object(everybody, mine)
    assert set(everybody) == {mine}, everybody
    return mine


def alone(steps=5, kind=torch.optim.AdamW):
    """The same training by one process, which has the samples of all."""
    net, size = model(), dist.get_world_size()
    optimizer = kind(net.parameters(), 1e-2)
    for step in range(steps):
        parts = [samples(step, rank) for rank in range(size)]
        inputs, targets = torch.cat([part[0] for part in parts]), torch.cat([part[1] for part in parts])
        (net(inputs) - targets).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    return net


def close(net, other):
    for mine, wanted in zip(net.parameters(), other.parameters()):
        whole = mine.full_tensor() if hasattr(mine, "full_tensor") else mine
        torch.testing.assert_close(whole.detach(), wanted.detach(), rtol=1e-3, atol=1e-4)
