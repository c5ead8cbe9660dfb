"""What callers give: errors that say which argument is wrong, its value, and what it may be. The binding does the same for its own types."""

from __future__ import annotations

import operator
import reprlib
from typing import Any, List

from .errors import InvalidArgument


def shown(value: Any) -> str:
    """A value for an error's text, in one line that is not long."""
    return " ".join(reprlib.repr(value).split())


def handle_of(value: Any, of_class: Any, name: str) -> Any:
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
