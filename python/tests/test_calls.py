"""How a group's calls reach the binding."""

import inspect

import numpy as np
import pytest

import ringlet


class Reached(Exception):
    """A call has come to the binding; `waits`: its caller drives it at once."""

    def __init__(self, waits):
        super().__init__(waits)
        self.waits = waits


class Handle:
    """The binding's group with calls that say how they were made."""

    def rank(self):
        return 0

    def size(self):
        return 1

    def __getattr__(self, name):
        assert hasattr(ringlet._ringlet.Group, name)

        def call(*arguments):
            raise Reached(arguments[-1])

        return call


ARGUMENTS = {"x": np.zeros(2), "destination": 0, "source": 0, "shape": (2,), "dtype": "f32"}
STARTING = sorted(name for name in dir(ringlet.Group) if name.endswith(("_async", "_async_")))


def reached(group, name):
    call = getattr(group, name)
    wanted = [word for word, parameter in inspect.signature(call).parameters.items() if parameter.default is inspect.Parameter.empty]
    with pytest.raises(Reached) as caught:
        call(**{word: ARGUMENTS[word] for word in wanted})
    return caught.value.waits


def test_who_waits_drives_the_call():
    """A call that starts and then waits would wake the thread that drives those that run beside their callers."""
    group = ringlet.Group(Handle())
    assert len(STARTING) > 20
    for name in STARTING:
        assert reached(group, name) is False, name
        assert reached(group, name.replace("_async", "")) is True, name
