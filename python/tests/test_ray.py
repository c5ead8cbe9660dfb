"""Ranks on a Ray cluster of this machine. Skipped without Ray."""

import os
import signal
import sys

import numpy as np
import pytest

ray = pytest.importorskip("ray", reason="Ray is not installed")

import ringlet  # noqa: E402
import ringlet.ray  # noqa: E402


@pytest.fixture(scope="module", autouse=True)
def cluster():
    # Actors cannot import this module: Ray gives them the current folder and that of the program, which is pytest.
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False, _node_ip_address="127.0.0.1")
    yield
    ray.shutdown()


def total(group, number):
    return group.rank(), group.size(), group.all_sum(np.full(3, number + group.rank())).tolist()


def test_ranks_are_actors_that_form_a_group():
    expected = [5 + 6 + 7] * 3
    assert ringlet.ray.run(total, 5, ranks=3) == [(0, 3, expected), (1, 3, expected), (2, 3, expected)]
    assert ringlet.ray.run(total, 5, ranks=1) == [(0, 1, [5, 5, 5])]


def test_one_group_serves_several_calls():
    with ringlet.ray.Ranks(2) as ranks:
        pids = ranks.run(lambda group: os.getpid())
        assert len(set(pids)) == 2
        assert ranks.run(total, 0)[1] == (1, 2, [1, 1, 1])
        assert ranks.run(lambda group: os.getpid()) == pids
    with pytest.raises(ringlet.InvalidArgument, match="have left"):
        ranks.run(total, 0)


def raise_on_rank_1(group):
    if group.rank() == 1:
        raise ValueError("rank 1 has no data")
    group.all_sum(np.ones(3))


def test_the_error_is_the_one_that_caused_the_others():
    with pytest.raises(ValueError, match="rank 1 has no data"):
        ringlet.ray.run(raise_on_rank_1, ranks=3)


def test_after_an_error_the_ranks_say_so():
    with ringlet.ray.Ranks(2) as ranks:
        with pytest.raises(ValueError):
            ranks.run(raise_on_rank_1)
        with pytest.raises(ringlet.InvalidArgument, match="failed in an earlier call; make new Ranks"):
            ranks.run(total, 0)


def die_on_rank_1(group):
    if group.rank() == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    group.all_sum(np.ones(3))


def test_an_actor_that_dies_is_told():
    with pytest.raises(ray.exceptions.RayActorError):
        ringlet.ray.run(die_on_rank_1, ranks=3)


def fail_alone(group):
    if group.rank() == 1:
        return 1
    group.send(np.ones(3), 5)


def test_errors_of_the_library_come_as_they_are():
    with pytest.raises(ringlet.InvalidArgument, match="5"):
        ringlet.ray.run(fail_alone, ranks=2)


def test_what_cannot_be_is_refused():
    with pytest.raises(ringlet.InvalidArgument, match="count is 0"):
        ringlet.ray.Ranks(0)
    with pytest.raises(ringlet.InvalidArgument, match="number is no option of Ranks"):
        ringlet.ray.run(total, ranks=1, number=5)
    with pytest.raises(ringlet.InvalidArgument, match="coordinator is given"):
        ringlet.ray.Ranks(2, coordinator="127.0.0.1:1")
    with pytest.raises(TimeoutError, match="room for 9 ranks"):
        ringlet.ray.Ranks(9, timeout=1)
