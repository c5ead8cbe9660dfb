"""Optimizers with MLX's formulas, names and defaults. The same input gives the same bits on every machine."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Sequence, Union

import numpy as np

from . import _ringlet
from .arguments import check_function, handle_of, shown, whole
from .arrays import array_of, dtype_name
from .errors import InvalidArgument
from .trees import CopiedTree, exported_leaves, tree_to_read, tree_to_write

# A number, or a function of the number of steps taken before, such as ringlet.cosine_decay() returns.
LearningRate = Union[float, Callable[[int], float]]


class Optimizer:
    """The base of the optimizers below. Parameters and gradients are trees of real dtypes, matched by name; parameters without a gradient stay
    as they are. Used by one thread at a time."""

    def __init__(self, handle: _ringlet.Optimizer) -> None:
        self._handle = handle

    def apply_gradients(self, gradients: Any, parameters: Any) -> Any:
        """Takes a step, and returns the parameters after it, as new arrays of the same kinds."""
        copied = CopiedTree(parameters)
        self._handle.apply_gradients(tree_to_read(gradients), copied.tree)
        return copied.finish()

    def apply_gradients_(self, gradients: Any, parameters: Any) -> Any:
        """Takes a step that changes the parameters in place: NumPy's or PyTorch's arrays."""
        self._handle.apply_gradients(tree_to_read(gradients), tree_to_write(parameters))
        return parameters

    def init(self, parameters: Any) -> None:
        """Makes the state for these parameters before any step, so that a checkpoint can be loaded into it."""
        self._handle.init(tree_to_read(parameters))

    def state(self) -> Dict[str, np.ndarray]:
        """The state itself, as arrays that may be written, by "<parameter>.<slot>"."""
        return exported_leaves(self._handle.state)

    def state_bytes(self) -> int:
        """The bytes of all tensors of the state."""
        return self._handle.state_bytes()

    @property
    def step(self) -> int:
        """The number of steps taken. It is set when training continues from a checkpoint."""
        return self._handle.step

    @step.setter
    def step(self, step: int) -> None:
        self._handle.step = whole(step, "step")

    @property
    def learning_rate(self) -> float:
        """The learning rate of the last step or, before the first one, of the next. It may be set to a number or a schedule."""
        return self._handle.learning_rate

    @learning_rate.setter
    def learning_rate(self, learning_rate: LearningRate) -> None:
        self._handle.learning_rate = learning_rate


def _pair(betas: Any) -> List[float]:
    try:
        first, second = betas
        return [float(first), float(second)]
    except (TypeError, ValueError):
        raise InvalidArgument(f"betas is {shown(betas)}; it is two numbers") from None


def _name(dtype: Any) -> Optional[str]:
    return None if dtype is None else dtype_name(dtype)


class SGD(Optimizer):
    """v = momentum v + (1 - dampening) (g + weight_decay p); p -= rate v"""

    def __init__(
        self,
        learning_rate: LearningRate,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        dampening: float = 0.0,
        nesterov: bool = False,
        *,
        state_dtype: Any = None,
    ) -> None:
        super().__init__(_ringlet.sgd(learning_rate, momentum, weight_decay, dampening, nesterov, _name(state_dtype)))


class RMSprop(Optimizer):
    """v = alpha v + (1 - alpha) g^2; p -= rate g / (sqrt(v) + eps)"""

    def __init__(self, learning_rate: LearningRate, alpha: float = 0.99, eps: float = 1e-8, *, state_dtype: Any = None) -> None:
        super().__init__(_ringlet.rmsprop(learning_rate, alpha, eps, _name(state_dtype)))


class Adagrad(Optimizer):
    """v += g^2; p -= rate g / (sqrt(v) + eps)"""

    def __init__(self, learning_rate: LearningRate, eps: float = 1e-8, *, state_dtype: Any = None) -> None:
        super().__init__(_ringlet.adagrad(learning_rate, eps, _name(state_dtype)))


class AdaDelta(Optimizer):
    """v = rho v + (1 - rho) g^2; d = sqrt(u + eps) / sqrt(v + eps) g; u = rho u + (1 - rho) d^2; p -= rate d"""

    def __init__(self, learning_rate: LearningRate, rho: float = 0.9, eps: float = 1e-6, *, state_dtype: Any = None) -> None:
        super().__init__(_ringlet.adadelta(learning_rate, rho, eps, _name(state_dtype)))


class Adam(Optimizer):
    """m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g^2; p -= rate m / (sqrt(v) + eps)"""

    def __init__(
        self,
        learning_rate: LearningRate,
        betas: Sequence[float] = (0.9, 0.999),
        eps: float = 1e-8,
        bias_correction: bool = False,
        *,
        state_dtype: Any = None,
    ) -> None:
        super().__init__(_ringlet.adam(learning_rate, _pair(betas), eps, bias_correction, _name(state_dtype)))


class AdamW(Optimizer):
    """Adam on p (1 - rate weight_decay)"""

    def __init__(
        self,
        learning_rate: LearningRate,
        betas: Sequence[float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.01,
        bias_correction: bool = False,
        *,
        state_dtype: Any = None,
    ) -> None:
        super().__init__(_ringlet.adamw(learning_rate, _pair(betas), eps, weight_decay, bias_correction, _name(state_dtype)))


class Adamax(Optimizer):
    """m = b1 m + (1 - b1) g; v = max(b2 v, |g|); p -= rate m / (v + eps)"""

    def __init__(
        self, learning_rate: LearningRate, betas: Sequence[float] = (0.9, 0.999), eps: float = 1e-8, *, state_dtype: Any = None
    ) -> None:
        super().__init__(_ringlet.adamax(learning_rate, _pair(betas), eps, _name(state_dtype)))


class Lion(Optimizer):
    """c = b1 m + (1 - b1) g; m = b2 m + (1 - b2) g; p = p (1 - rate weight_decay) - rate sign(c)"""

    def __init__(
        self, learning_rate: LearningRate, betas: Sequence[float] = (0.9, 0.99), weight_decay: float = 0.0, *, state_dtype: Any = None
    ) -> None:
        super().__init__(_ringlet.lion(learning_rate, _pair(betas), weight_decay, _name(state_dtype)))


class MultiOptimizer(Optimizer):
    """Several optimizers, each for some of the parameters. A parameter belongs to the first one whose filter accepts it, or to the last, which
    has none. A filter is given a parameter's name ("layers.0.weight") and its gradient or its value, as a NumPy array, and is asked once for
    each name. Step and learning rate are the first optimizer's; setting either sets it for all."""

    def __init__(self, optimizers: Sequence[Optimizer], filters: Sequence[Callable[[str, np.ndarray], bool]] = ()) -> None:
        def asking(accepts: Callable[[str, np.ndarray], bool]) -> Callable[[str, tuple], bool]:
            return lambda name, memory: bool(accepts(name, array_of(*memory)))

        handles = [handle_of(one, Optimizer, "an optimizer of MultiOptimizer") for one in optimizers]
        for accepts in filters:
            check_function(accepts, "a filter of MultiOptimizer")
        super().__init__(_ringlet.multi_optimizer(handles, [asking(accepts) for accepts in filters]))
