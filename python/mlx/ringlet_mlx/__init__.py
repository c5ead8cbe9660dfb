"""Makes a group of Ringlet's one of MLX's own. `ringlet.mlx` is what programs use."""

from __future__ import annotations

import mlx.core

from ._built_with import MLX as BUILT_WITH

# MLX's C++ classes differ from one release to the next, which might only show when the process comes down.
if mlx.core.__version__ != BUILT_WITH:
    raise ImportError(
        f"this ringlet-mlx is built for MLX {BUILT_WITH}, and MLX {mlx.core.__version__} is installed; "
        f"install the one that fits: pip install 'mlx=={BUILT_WITH}', or another ringlet-mlx"
    )

from ._group import await_messages, group  # noqa: E402

__all__ = ["BUILT_WITH", "await_messages", "group"]
