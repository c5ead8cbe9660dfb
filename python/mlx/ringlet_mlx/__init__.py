"""Makes a group of Ringlet's one of MLX's own. `ringlet.mlx` is what programs use."""

from __future__ import annotations

import mlx.core

from ._built_with import MLX as BUILT_WITH


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])


# MLX's C++ classes differ from one minor version to the next, which would only show when the process comes down.
if _minor(mlx.core.__version__) != _minor(BUILT_WITH):
    raise ImportError(
        f"this ringlet-mlx is built for MLX {_minor(BUILT_WITH)} ({BUILT_WITH}), and MLX {mlx.core.__version__} is installed; "
        f"install the one that fits: pip install 'mlx=={_minor(BUILT_WITH)}.*', or another ringlet-mlx"
    )

from ._group import await_messages, group  # noqa: E402

__all__ = ["BUILT_WITH", "await_messages", "group"]
