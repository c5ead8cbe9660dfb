"""FSDP whose state outlives the ranks that hold it."""

from __future__ import annotations

from typing import Any, Callable, Optional

from . import _ringlet
from .arguments import check_function, handle_of, whole
from .arrays import dtype_name
from .checkpoint import Checkpoint
from .fsdp import FormsOfModules
from .gradients import to_reduce_wire
from .group import Group
from .optimizers import Optimizer
from .trees import names_of, tree_to_read, tree_to_write

MakeOptimizer = Callable[[], Optimizer]


def _making(make_optimizer: MakeOptimizer) -> Callable[[], _ringlet.Optimizer]:
    check_function(make_optimizer, "make_optimizer")
    return lambda: handle_of(make_optimizer(), Optimizer, "what make_optimizer returned")


def _name(dtype: Any) -> Optional[str]:
    return None if dtype is None else dtype_name(dtype)


class ElasticShards:
    """Sharded state that outlives the ranks that hold it: an ElasticFsdp or an ElasticFullyShard. Each row of the optimizer's state has two
    holders, which both compute its update, so that no loss of one rank costs a step. docs/elastic.md says what is promised.

    An ElasticTrainer that is given such an object drives it. In a loop of one's own each world begins with enter(), and a step is: average the
    gradients, vote (Group.agree()), update(), gather(). Used by one thread at a time.
    """

    _handle: _ringlet.ElasticShards

    def enter(self, world: Group) -> str:
        """Begins in a world. Collective. Returns an empty text, or which rows are lost with all their holders: then load_checkpoint() is to fill
        what add_to() adds, and loaded() follows. Where a rank is lost meanwhile it raises PeerLost, and is called again in the next world.
        """
        return self._handle.enter(handle_of(world, Group, "world"))

    def update(self) -> None:
        """Takes the optimizer's step on the rows that this rank holds: on all ranks or on none, once their gradients are averaged. Local."""
        self._handle.update()

    def gather(self) -> None:
        """Brings updated rows to the full parameters of all ranks, where there are such. Collective. Where it fails, the next enter() does it. An
        ElasticTrainer calls it by itself."""
        self._handle.gather()

    def add_to(self, checkpoint: Checkpoint, parameters: str = "parameters", optimizer: str = "optimizer") -> None:
        """Adds the parameters, and the optimizer's state for the rows that this rank is the first to hold, to be saved or loaded in this world.
        Called on all ranks. A checkpoint that is used after the next enter() is refused."""
        self._handle.add_to(handle_of(checkpoint, Checkpoint, "checkpoint"), parameters, optimizer)

    def loaded(self, step: int) -> None:
        """After load_checkpoint(): sets the optimizer's step, and fills the second holders. Collective."""
        self._handle.loaded(whole(step, "step"))

    def forget(self) -> None:
        """Says that this rank's rows are not valid any more, since the others went on without it. The next enter() brings it theirs."""
        self._handle.forget()

    def step(self) -> int:
        """How many steps the optimizer has taken."""
        return self._handle.step()

    def layout(self) -> _ringlet.ShardLayout:
        """The layout of the rows over the ranks of this world."""
        return self._handle.layout()

    def bytes_to_rebuild(self) -> int:
        """The bytes of rows, of all ranks, that only one rank has since a loss. The second holders get them within the next steps."""
        return self._handle.bytes_to_rebuild()

    def state_bytes(self) -> int:
        """The bytes of the optimizer's state that this rank holds, as first and as second holder."""
        return self._handle.state_bytes()


class ElasticFsdp(ElasticShards):
    """FSDP's optimizer step over full parameters, as FsdpUpdater, in an elastic group.

    `parameters` is a tree of NumPy's or PyTorch's arrays of real dtypes, which it changes in place, the same on every rank, except on one that
    joins the others, which gets theirs. `make_optimizer` makes one of Ringlet's optimizers, always of the same kind: for each shard that this
    rank holds, in each world. Options are C++'s ElasticFsdpOptions; all but `shard_weight` are the same on all ranks.
    """

    _handle: _ringlet.ElasticFsdp

    def __init__(
        self,
        world: Group,
        parameters: Any,
        make_optimizer: MakeOptimizer,
        *,
        copies: int = 2,
        shard_weight: float = 1.0,
        rebuild_size: int = 32 << 20,
        communication_size: int = 32 << 20,
        max_norm: Optional[float] = None,
        reduce_dtype: Any = None,
        stream: int = 0,
    ) -> None:
        self._names = names_of(parameters)
        self._handle = _ringlet.ElasticFsdp(
            handle_of(world, Group, "world"),
            tree_to_write(parameters),
            _making(make_optimizer),
            copies,
            shard_weight,
            rebuild_size,
            communication_size,
            max_norm,
            to_reduce_wire(reduce_dtype),
            stream,
        )

    def average(self, gradients: Any, share: Optional[float] = None) -> Optional[float]:
        """Averages full gradients, which are only read, brings the averaged rows to both their holders, and clips their norm. Collective. It changes
        nothing that lasts. Returns the norm before clipping if `max_norm` is set.

        `share` is what the gradients are multiplied by before the plain mean over the ranks is taken: this rank's part of the samples times the
        number of ranks. Where it is 0 the gradients may be anything. In the step of an ElasticTrainer, which leaves it out, ranks are weighed by
        their samples; elsewhere it is 1 then.
        """
        return self._handle.average(tree_to_read(gradients, self._names), share)


class ElasticFullyShard(ElasticShards):
    """Parameters that are kept as shards, as FullyShard, in an elastic group; gather() has nothing to do. `make_optimizer` is that of ElasticFsdp.
    Options are C++'s ElasticFullyShardOptions."""

    _handle: _ringlet.ElasticFullyShard

    def __init__(
        self,
        world: Group,
        make_optimizer: MakeOptimizer,
        *,
        copies: int = 2,
        shard_weight: float = 1.0,
        rebuild_size: int = 32 << 20,
        compute_dtype: Any = None,
        reduce_dtype: Any = None,
        max_norm: Optional[float] = None,
        prefetch: int = 1,
        stream: int = 0,
    ) -> None:
        self._handle = _ringlet.ElasticFullyShard(
            handle_of(world, Group, "world"),
            _making(make_optimizer),
            copies,
            shard_weight,
            rebuild_size,
            _name(compute_dtype),
            to_reduce_wire(reduce_dtype),
            max_norm,
            prefetch,
            stream,
        )
        self._forms = FormsOfModules()

    def add(self, name: str, parameters: Any) -> int:
        """Adds the next module in the order of the forward pass, before the first enter(), and returns its number. Copies the rows that this rank
        holds. The tensors are the same on every rank, except on one that joins the others, which gets theirs."""
        number = self._handle.add(name, tree_to_read(parameters))
        self._forms.add(parameters)
        return number

    def modules(self) -> int:
        """The number of modules added so far."""
        return self._handle.modules()

    def parameter_bytes(self) -> int:
        """The bytes of the parameters that this rank holds, as first and as second holder."""
        return self._handle.parameter_bytes()

    def forward(self, module: int) -> Any:
        """As FullyShard.forward()."""
        return self._forms.tree(module, self._handle.forward(module).parameters())

    def backward(self, module: int) -> Any:
        """As FullyShard.backward()."""
        return self._forms.tree(module, self._handle.backward(module).parameters())

    def reduce_gradients(self, module: int, gradients: Any) -> None:
        """Starts to average the module's full gradients, which are read during the call only. Each step has gradients of all modules."""
        self._handle.reduce_gradients(module, tree_to_read(gradients, self._forms.names(module)))

    def finish(self) -> Optional[float]:
        """Ends the step's gradients: waits for their averages, brings these to both holders of each row, and clips their norm. It changes nothing
        that lasts. Collective. Returns the norm before clipping if `max_norm` is set."""
        return self._handle.finish()

    def set_share(self, share: float) -> None:
        """Sets this rank's part of the average of the gradients that follow, as the argument of ElasticFsdp.average(). An ElasticTrainer sets it at
        each step."""
        self._handle.set_share(share)
