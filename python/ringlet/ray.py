"""Ranks on a Ray cluster: each is an actor, and they form one group among themselves.

    import ringlet.ray

    def train(group, epochs):
        ...
        return loss

    losses = ringlet.ray.run(train, 10, ranks=4)

Ray decides on which machines the ranks are. They meet by a token that is made for them, so no one else can join, and what they send is
encrypted. Needs `ray`.
"""

from __future__ import annotations

import inspect
import os
import secrets
from typing import Any, Callable, Optional

import ray
from ray.util import placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

import ringlet

from .listening import address_told, listen_at

__all__ = ["Ranks", "run"]


class _Rank:
    """What an actor holds."""

    def __init__(self, environment: dict[str, str]) -> None:
        os.environ.update(environment)
        self._listening: Any = None
        self._group: Optional[ringlet.Group] = None

    def listen(self, advertise: Optional[str]) -> str:
        self._listening = listen_at(ray.util.get_node_ip_address())
        return address_told(self._listening, advertise)

    def join(self, options: dict[str, Any]) -> None:
        if self._listening is not None:
            options = {**options, "listen_fd": self._listening.fileno()}
        self._group = ringlet.init(strict=True, **options)
        if self._listening is not None:
            self._listening.close()

    def run(self, function: Callable[..., Any], arguments: tuple) -> Any:
        if self._group is None:
            raise ringlet.InvalidArgument("the group has failed in an earlier call; make new Ranks")
        try:
            return function(self._group, *arguments)
        except BaseException:
            # The others would wait for this rank.
            self.leave()
            raise

    def leave(self) -> None:
        self._group = None
        ringlet.leave_all()


class Ranks:
    """`count` ranks of one group, in an actor each. A context manager, at whose end they leave and their actors end.

    `num_cpus`, `num_gpus` and `resources` are what each rank needs, as for ray.remote(). `strategy` is that of a placement group: "PACK",
    "SPREAD", "STRICT_PACK" or "STRICT_SPREAD". `environment` has variables for the ranks. `timeout`, in seconds, is for how long the cluster
    may take to have room, and after that the ranks to meet. All else is for ringlet.init(), such as `operation_timeout`; rank, size and
    where they meet are known here.

    Raises TimeoutError where the cluster has no room in time, and what ringlet.init() raises.
    """

    def __init__(
        self,
        count: int,
        *,
        num_cpus: float = 1,
        num_gpus: float = 0,
        resources: Optional[dict[str, float]] = None,
        strategy: str = "PACK",
        environment: Optional[dict[str, str]] = None,
        timeout: float = 60.0,
        **options: Any,
    ) -> None:
        if count < 1:
            raise ringlet.InvalidArgument(f"count is {count}; a group has at least one rank")
        unknown = set(options) - set(inspect.signature(ringlet.init).parameters)
        if unknown:
            raise ringlet.InvalidArgument(
                f"{sorted(unknown)[0]} is no option of Ranks, nor of ringlet.init(); keywords for a function of yours go by functools.partial"
            )
        known_here = {"rank", "world_size", "coordinator", "listen_fd", "hostfile", "join", "elastic"} & set(options)
        if known_here:
            raise ringlet.InvalidArgument(f"{sorted(known_here)[0]} is given, which follows from the actors")
        needs = {"CPU": num_cpus, "GPU": num_gpus, **(resources or {})}
        self._room = placement_group([{name: value for name, value in needs.items() if value} or {"CPU": 0.001}] * count, strategy=strategy)
        self._actors: list = []
        try:
            if not self._room.wait(timeout):
                raise TimeoutError(f"the cluster has not had room for {count} ranks that need {needs} each within {timeout} s")
            for rank in range(count):
                place = PlacementGroupSchedulingStrategy(self._room, placement_group_bundle_index=rank)
                actor = ray.remote(_Rank).options(num_cpus=num_cpus, num_gpus=num_gpus, resources=resources, scheduling_strategy=place)
                self._actors.append(actor.remote(environment or {}))
            shared = {
                "token": secrets.token_hex(16),
                "connect_timeout": timeout,
                "guests": 0,
                "elastic": False,
                "world_size": count,
                **options,
            }
            if count > 1:
                shared["coordinator"] = ray.get(self._actors[0].listen.remote(options.get("advertise")))
            _results([actor.join.remote({**shared, "rank": rank}) for rank, actor in enumerate(self._actors)])
        except BaseException:
            self._end()
            raise

    def __enter__(self) -> Ranks:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()

    def run(self, function: Callable[..., Any], *arguments: Any) -> list:
        """Calls function(group, *arguments) on each rank at once, and returns what they return, by rank.

        The arguments and what is returned go through Ray; the group is the rank's own. Where ranks raise, it raises the error that is the
        cause of the others', as far as one is: that of an actor that has died, else one that is not PeerLost. The group has failed then.
        """
        if not self._actors:
            raise ringlet.InvalidArgument("the ranks have left")
        return _results([actor.run.remote(function, arguments) for actor in self._actors])

    def close(self) -> None:
        """Lets the ranks leave, and ends their actors. May be called again."""
        ray.wait([actor.leave.remote() for actor in self._actors], num_returns=len(self._actors), timeout=10) if self._actors else None
        self._end()

    def _end(self) -> None:
        for actor in self._actors:
            ray.kill(actor)
        self._actors = []
        remove_placement_group(self._room)


def run(function: Callable[..., Any], *arguments: Any, ranks: int, **options: Any) -> list:
    """Calls function(group, *arguments) on so many ranks of a new group, and returns what they return, by rank. `options` are those of
    Ranks."""
    with Ranks(ranks, **options) as group:
        return group.run(function, *arguments)


def _results(calls: list) -> list:
    """Waits for all: where one fails, the others learn of it by their group."""
    results, errors = [], []
    for call in calls:
        try:
            results.append(ray.get(call))
        except ray.exceptions.RayTaskError as error:
            errors.append(error.cause if isinstance(error.cause, Exception) else error)
        except ray.exceptions.RayError as error:
            errors.insert(0, error)
    causes = [error for error in errors if not isinstance(error, ringlet.PeerLost)] or errors
    if causes:
        raise causes[0]
    return results
