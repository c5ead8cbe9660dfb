"""Says in one line what the tests of this environment were run with."""

import importlib.metadata
import platform

OTHERS = ["numpy", "ml_dtypes", "torch", "jax", "mlx", "ringlet-mlx", "ray"]


def installed(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


versions = {name: installed(name) for name in OTHERS}
there = ", ".join(f"{name} {version}" for name, version in versions.items() if version)
absent = ", ".join(name for name, version in versions.items() if not version)
print(f"ringlet {installed('ringlet')} with Python {platform.python_version()}, {there}" + (f"; without {absent}" if absent else ""))
