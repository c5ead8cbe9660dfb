"""FSDP: each rank keeps, or updates, its rows of every tensor."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from . import _ringlet
from .arguments import handle_of, shown
from .arrays import Same, array_of, dtype_name, kind_of
from .errors import InvalidArgument
from .gradients import Wire, to_reduce_wire
from .group import Group
from .optimizers import Optimizer
from .trees import CopiedTree, exported_leaves, leaves_of, names_of, of_each, rebuilt, tree_to_read, tree_to_write

ShardLayout = _ringlet.ShardLayout


def _name(dtype: Any) -> Optional[str]:
    return None if dtype is None else dtype_name(dtype)


def _rows_after(before: Dict[str, np.ndarray], after: Any) -> List[np.ndarray]:
    """The rows that an optimizer of the program's own leaves, in the order of those before: what it has returned, else what it was given."""
    if after is None:
        after = {}
    if not isinstance(after, Mapping):
        raise TypeError(f"the optimizer has returned {shown(after)}; it returns a dict of new parameters by name, or None")
    for name in after:
        if name not in before:
            raise InvalidArgument(f"the optimizer has returned {shown(name)}; the parameters are {', '.join(map(repr, before))}")
    return [_rows_like(rows, after[name], name) if name in after else rows for name, rows in before.items()]


def _rows_like(before: np.ndarray, values: Any, name: str) -> np.ndarray:
    try:
        given = np.asarray(values)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InvalidArgument(f"the optimizer has returned '{name}', of which NumPy makes no array: {error}") from error
    if given.shape != before.shape:
        raise InvalidArgument(f"the optimizer has returned '{name}' of shape {given.shape}; it is {before.shape}")
    if not np.can_cast(given.dtype, before.dtype, "same_kind"):
        raise InvalidArgument(f"the optimizer has returned '{name}' of dtype {given.dtype}; it is {before.dtype}")
    return np.require(given, before.dtype, "A")


class FsdpUpdater:
    """FSDP's optimizer step over full parameters, with buffers that are kept from step to step: gradients are reduce-scattered and averaged, the
    optimizer sees this rank's rows of every tensor, the updated rows are gathered again. The options are C++'s FsdpOptions: `reduce_dtype` is a
    floating dtype, "int8", "int4" or a Wire."""

    def __init__(
        self,
        fsdp_group: Group,
        *,
        dp_group: Optional[Group] = None,
        communication_size: int = 32 << 20,
        max_norm: Optional[float] = None,
        reduce_dtype: Any = None,
        shard_weights: Sequence[float] = (),
        stream: int = 0,
    ) -> None:
        handle = handle_of(fsdp_group, Group, "fsdp_group")
        other = None if dp_group is None else handle_of(dp_group, Group, "dp_group")
        wire = to_reduce_wire(reduce_dtype)
        self._handle = _ringlet.FsdpUpdater(handle, other, communication_size, max_norm, wire, list(shard_weights), stream)

    def apply_gradients(self, gradients: Any, parameters: Same, optimizer: Any) -> Tuple[Same, Optional[float]]:
        """Takes one step. Returns the new parameters, arrays of the same kinds, and the gradients' norm before clipping if `max_norm` is set.

        `optimizer` is one of Ringlet's, or has apply_gradients(gradients, parameters): it is given dicts of NumPy arrays, this rank's rows by
        name, and either changes the parameters in place or returns a dict of new ones, of the same shapes. The arrays are copies that are
        made for it: it may keep them.
        """
        copied, given = CopiedTree(parameters), CopiedTree(gradients, names_of(parameters))
        norm = self._apply(given.tree, copied.tree, optimizer)
        return copied.finish(), norm

    def apply_gradients_(self, gradients: Any, parameters: Any, optimizer: Any) -> Optional[float]:
        """The same with parameters that are changed in place: NumPy's or PyTorch's arrays."""
        return self._apply(CopiedTree(gradients, names_of(parameters)).tree, tree_to_write(parameters), optimizer)

    def _apply(self, gradients: _ringlet.Tree, parameters: _ringlet.Tree, optimizer: Any) -> Optional[float]:
        if isinstance(optimizer, Optimizer):
            return self._handle.apply_optimizer(gradients, parameters, optimizer._handle)
        if not callable(getattr(optimizer, "apply_gradients", None)):
            raise TypeError(f"optimizer is {shown(optimizer)}; it is a ringlet.Optimizer, or has apply_gradients(gradients, parameters)")

        def step(shards: list, rows: list) -> List[np.ndarray]:
            before = {name: array_of(*memory) for name, memory in rows}
            after = optimizer.apply_gradients({name: array_of(*memory) for name, memory in shards}, dict(before))
            return _rows_after(before, after)

        return self._handle.apply_function(gradients, parameters, step)

    def layout(self) -> Optional[ShardLayout]:
        """The layout of the last step's parameters, for checkpoints of the optimizer's state; None before the first step."""
        return self._handle.layout()


def fsdp_apply_gradients(
    gradients: Any,
    parameters: Any,
    optimizer: Any,
    fsdp_group: Group,
    dp_group: Optional[Group] = None,
    communication_size: int = 32 << 20,
    *,
    max_norm: Optional[float] = None,
    reduce_dtype: Any = None,
    shard_weights: Sequence[float] = (),
    stream: int = 0,
) -> Any:
    """MLX's nn.fsdp_apply_gradients: one FSDP step. Returns the new parameters, or, if `max_norm` is set, these and the norm before clipping.
    A Wire with feedback needs an FsdpUpdater, which keeps what rounding leaves out."""
    if isinstance(reduce_dtype, Wire) and reduce_dtype.feedback:
        raise InvalidArgument("fsdp_apply_gradients: error feedback needs an FsdpUpdater, to keep what rounding leaves out")
    updater = FsdpUpdater(
        fsdp_group,
        dp_group=dp_group,
        communication_size=communication_size,
        max_norm=max_norm,
        reduce_dtype=reduce_dtype,
        shard_weights=shard_weights,
        stream=stream,
    )
    after, norm = updater.apply_gradients(gradients, parameters, optimizer)
    return after if max_norm is None else (after, norm)


class FormsOfModules:
    """The trees of modules: of each its form and the kinds of its arrays."""

    def __init__(self) -> None:
        self._forms: list = []

    def add(self, parameters: Any) -> None:
        self._forms.append(rebuilt(parameters, iter([kind for _, kind in of_each(parameters, kind_of)])))

    def names(self, module: Any) -> Sequence[str]:
        """Of a module's arrays; none where there is no such module, which the binding tells."""
        try:
            return names_of(self._forms[module])
        except (IndexError, TypeError):
            return ()

    def tree(self, module: int, leaves: list) -> Any:
        """The module's tree of arrays of the library's memory or, of JAX's and MLX's, of copies of it."""
        form = self._forms[module]
        kinds = [kind for _, kind in leaves_of(form)]
        arrays = [kind.of_memory(*memory) for kind, (_, memory) in zip(kinds, leaves)]
        return rebuilt(form, iter(arrays))


class FullyShard:
    """Parameters that are kept as shards. A module's are gathered for as long as what forward() or backward() returned is used, while the next
    module's are already under way. Every rank makes the same calls in the same order. The options are C++'s FullyShardOptions."""

    def __init__(
        self,
        group: Group,
        *,
        compute_dtype: Any = None,
        reduce_dtype: Any = None,
        shard_weights: Sequence[float] = (),
        prefetch: int = 1,
        stream: int = 0,
    ) -> None:
        handle, wire = handle_of(group, Group, "group"), to_reduce_wire(reduce_dtype)
        self._handle = _ringlet.FullyShard(handle, _name(compute_dtype), wire, list(shard_weights), prefetch, stream)
        self._forms = FormsOfModules()
        self._has_averages = False

    def add(self, name: str, parameters: Any) -> int:
        """Adds the next module in the order of the forward pass, and returns its number. Copies this rank's rows. Collective."""
        number = self._handle.add(name, tree_to_read(parameters))
        self._forms.add(parameters)
        return number

    def modules(self) -> int:
        """The number of modules added so far."""
        return self._handle.modules()

    def forward(self, module: int) -> Any:
        """The module's full parameters, a tree of the form and the kinds that add() was given, for reading only. Starts to gather the next
        module's. NumPy's and PyTorch's arrays are the gathered memory itself, which lives as long as any of them, and which no optimizer's
        step changes; JAX's and MLX's are copies."""
        return self._forms.tree(module, self._handle.forward(module).parameters())

    def backward(self, module: int) -> Any:
        """As forward(), and starts to gather the previous module's."""
        return self._forms.tree(module, self._handle.backward(module).parameters())

    def reduce_gradients(self, module: int, gradients: Any) -> None:
        """Starts to average the module's full gradients; once per module and step. They are read during the call only."""
        self._has_averages = False
        self._handle.reduce_gradients(module, tree_to_read(gradients, self._forms.names(module)))

    def finish(self) -> None:
        """Ends the step: waits for all its gradients."""
        self._handle.finish()
        self._has_averages = True

    def apply_gradients(self, optimizer: Optimizer) -> None:
        """After finish(): has one of Ringlet's optimizers take its step on this rank's shards."""
        handle = handle_of(optimizer, Optimizer, "optimizer")
        if not self._has_averages:
            raise InvalidArgument("apply_gradients() before finish(): there are no averages of this step yet")
        self._handle.step(handle)

    def parameters(self) -> Dict[str, np.ndarray]:
        """This rank's shards themselves, by "module.parameter", as NumPy arrays that may be written."""
        return exported_leaves(self._handle.parameters)

    def gradients(self) -> Dict[str, np.ndarray]:
        """After finish(): the averaged gradients for parameters(), valid until the next reduce_gradients()."""
        return exported_leaves(self._handle.gradients)

    def layout(self) -> ShardLayout:
        """The layout of all modules added so far, for checkpoints."""
        return self._handle.layout()
