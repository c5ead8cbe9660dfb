"""What callers give: errors that say which argument is wrong, its value, and what it may be."""

from __future__ import annotations

import inspect
import operator
import re
import reprlib
from typing import Any, Callable, List, Optional, Tuple

from . import _ringlet
from .errors import InvalidArgument

_OPERATIONS = "one of " + ", ".join(_ringlet.reduce_ops) + " and mean"


def shown(value: Any) -> str:
    """A value for an error's text, in one line that is not long."""
    return " ".join(reprlib.repr(value).split())


def handle_of(value: Any, of_class: type, name: str) -> Any:
    """The binding's object of an argument that is an object of the package's."""
    if not isinstance(value, of_class):
        raise TypeError(f"{name} is {shown(value)}; it is a ringlet.{of_class.__name__}")
    return value._handle


def check_function(value: Any, name: str) -> None:
    """Of an argument that may be left out."""
    if value is not None and not callable(value):
        raise TypeError(f"{name} is {shown(value)}; it is a function")


def whole(value: Any, name: str) -> int:
    """A number of steps or the like, from 0 on."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is {shown(value)}; it is an int") from None
    if not 0 <= number < 2**63:
        raise InvalidArgument(f"{name} is {number}; it is from 0 to 2**63 - 1")
    return number


def wholes(values: Any, name: str) -> List[int]:
    """Extents, numbers of rows and the like."""
    try:
        numbers = [operator.index(value) for value in values]
    except TypeError:
        raise TypeError(f"{name} is {shown(values)}; it is a list of ints") from None
    if any(number < 0 for number in numbers):
        raise InvalidArgument(f"{name} is {shown(numbers)}; none of them is negative")
    return numbers


def call(function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Calls a function or makes an object of the binding."""
    try:
        return function(*arguments, **named)
    except TypeError as error:
        explain(error, function, arguments, named)
        raise


def explain(error: TypeError, function: Any, arguments: tuple, named: Optional[dict] = None) -> None:
    """Raises an error that says which argument is wrong, if a call of the binding has failed since it does not take them."""
    signatures = getattr(function.__init__ if inspect.isclass(function) else function, "__nb_signature__", ())
    if "incompatible function arguments" not in str(error) or len(signatures) != 1:
        return
    types = _types(signatures[0][0])
    given = {**dict(zip(types, arguments)), **(named or {})}
    for name, value in given.items():
        if not _fits(value, types[name]):
            possible = _OPERATIONS if name == "op" else _text(types[name])
            raise TypeError(f"{name} is {shown(value)}; it is {possible}") from None
    # The binding's integers have 32 or 64 bits, some of them no sign.
    far = [f"{name} is {value}" for name, value in given.items() if isinstance(value, int) and not 0 <= value < 2**31]
    if far:
        raise TypeError(" or ".join(far) + ", which is out of range") from None


def _types(signature: str) -> dict:
    """The types of a function's arguments by name, but for `self`: of "def f(self, x: int | None = \\0) -> str" {"x": "int | None"}."""
    inside = signature[signature.index("(") + 1 : signature.rindex(")")]
    words: List[str] = [""]
    for part in re.split(r"(, |[\[\]])", inside):
        if part == ", " and words[-1].count("[") == words[-1].count("]"):
            words.append("")
        else:
            words[-1] += part
    pairs = [word.partition(": ") for word in words if ": " in word]
    return {name: kind.partition(" = ")[0] for name, _, kind in pairs}


_Test = Callable[[Any], bool]
# Names of types in the binding's signatures: what fits, and what the caller is told.
_KINDS: List[Tuple[str, _Test, str]] = [
    ("None", lambda value: value is None, "None"),
    ("bool", lambda value: isinstance(value, bool), "True or False"),
    ("int", lambda value: hasattr(value, "__index__"), "an int"),
    ("float", lambda value: hasattr(value, "__float__") or hasattr(value, "__index__"), "a number"),
    ("str", lambda value: isinstance(value, str), "a str"),
    ("collections.abc.Callable", callable, "a function"),
    ("collections.abc.Sequence[int]", lambda value: _all(value, "__index__"), "a list of ints"),
    ("collections.abc.Sequence[float]", lambda value: _all(value, "__float__"), "a list of numbers"),
]


def _all(values: Any, method: str) -> bool:
    return isinstance(values, (list, tuple)) and all(hasattr(value, method) for value in values)


def _fits(value: Any, kind: str) -> bool:
    tests = {name: test for name, test, _ in _KINDS}
    names = kind.split(" | ")
    return any(name not in tests or tests[name](value) for name in names)


def _text(kind: str) -> str:
    texts = {name: text for name, _, text in _KINDS}
    return " or ".join(texts[name] for name in kind.split(" | "))
