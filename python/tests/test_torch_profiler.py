"""What torch's profiler sees of operations."""

import pytest
from ranks import on_torch_ranks

torch = pytest.importorskip("torch")
dist = pytest.importorskip("torch.distributed")


@on_torch_ranks(2)
def test_the_profiler_sees_operations():
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True) as profile:
        dist.all_reduce(torch.ones(3, 4))
        dist.all_gather([torch.empty(2), torch.empty(2)], torch.ones(2), async_op=True).wait()
    events = {event.name: event for event in profile.events() if event.name.startswith("ringlet:")}
    assert set(events) == {"ringlet:all_reduce", "ringlet:all_gather"}
    assert events["ringlet:all_reduce"].input_shapes == [[3, 4]] and events["ringlet:all_reduce"].is_async


@on_torch_ranks(2)
def test_operations_that_futures_wait_for_have_ended_for_the_profiler():
    """An event that ends after the profiler writes into memory that is free."""
    for _ in range(40):
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
            for _ in range(5):
                dist.all_reduce(torch.ones(100), async_op=True).get_future().wait()
                dist.all_reduce(torch.ones(100), async_op=True).get_future().then(lambda done: done.value()[0].add_(1)).wait()
        events = [event for event in profile.events() if event.name == "ringlet:all_reduce"]
        assert len(events) == 10 and all(event.time_range.end > 0 for event in events), events
