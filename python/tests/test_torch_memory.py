"""Where torch's collectives take their tensors from, and where their results come to."""

import pytest
from ranks import on_torch_ranks

import ringlet

torch = pytest.importorskip("torch")
dist = pytest.importorskip("torch.distributed")


def same(got, wanted):
    assert got.dtype == wanted.dtype and torch.equal(got, wanted), (got, wanted)


@on_torch_ranks(2)
def test_gathering_into_one_tensor():
    from ringlet.torch import ProcessGroup

    group, rank = dist.group.WORLD, dist.get_rank()
    options = dist.GatherOptions()
    options.rootRank = 1
    whole = torch.zeros(2, 3).t() if rank == 1 else None
    assert isinstance(group, ProcessGroup)
    group.gather_single(whole, torch.arange(3.0) + 10 * rank, options).wait()
    if rank == 1:
        same(whole.reshape(-1), torch.tensor([0.0, 1, 2, 10, 11, 12]))
        with pytest.raises(ringlet.InvalidArgument, match="same size"):
            group.gather_single(torch.zeros(5), torch.arange(3.0), options)
    if hasattr(dist, "gather_single"):
        dist.gather_single(torch.ones(2), torch.empty(4) if rank == 0 else None, dst=0)


@on_torch_ranks(2)
def test_torch_may_have_another_default_device():
    from ringlet.torch import average_gradients

    rank = dist.get_rank()
    mine, parts, gaps = torch.full((3,), rank + 1.0), [torch.empty(3), torch.empty(3)], torch.zeros(2, 3).t()
    sparse = torch.sparse_coo_tensor([[rank]], [1.0], (2,))
    net = torch.nn.Linear(2, 1)
    net(torch.ones(1, 2)).sum().backward()
    with torch.device("meta"):
        dist.all_gather(parts, mine)
        dist.broadcast(gaps, 0)
        dist.all_reduce(sparse)
        average_gradients(net)
        total = dist.group.WORLD.ringlet.all_sum(mine)
    same(torch.cat(parts), torch.tensor([1.0, 1, 1, 2, 2, 2]))
    same(sparse.to_dense(), torch.ones(2))
    same(total, torch.full((3,), 3.0))


@on_torch_ranks(2)
def test_tensors_of_inference_mode():
    rank = dist.get_rank()
    with torch.inference_mode():
        parts, gaps = [torch.empty(3), torch.empty(3)], torch.zeros(2, 3).t()
        # Results come to their places on the library's thread here.
        dist.all_gather(parts, torch.full((3,), rank + 1.0), async_op=True).get_future().wait()
        dist.all_gather(parts, torch.full((3,), rank + 1.0), async_op=True)
        gaps.fill_(rank)
        dist.broadcast(gaps, 1, async_op=True).get_future().wait()
        dist.barrier()
        same(torch.cat(parts), torch.tensor([1.0, 1, 1, 2, 2, 2]))
        same(gaps.contiguous(), torch.ones(3, 2))
