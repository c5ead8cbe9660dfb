"""What torch.compile does not look into."""

from __future__ import annotations

from types import FunctionType
from typing import Any, TypeVar

from torch._C._dynamo import eval_frame

Function = TypeVar("Function")
Class = TypeVar("Class", bound=type)


def untraced(function: Function) -> Function:
    """Has torch.compile run a function as it is, with all that it calls, between two of its graphs."""
    # As torch.compiler.disable() does, which would import torch._dynamo, in 3 s, and add a call to each.
    traced: Any = function
    traced._torchdynamo_disable = True
    traced._torchdynamo_disable_msg = "Ringlet's calls run between graphs"
    skip = eval_frame._FrameAction.SKIP
    eval_frame.set_code_exec_strategy(traced.__code__, eval_frame._FrameExecStrategy(skip, skip))
    return function


def untraced_class(kind: Class) -> Class:
    """The same for all methods of a class. The process groups in C++ need no such thing: nothing traces into those."""
    for member in vars(kind).values():
        function = member.fget if isinstance(member, property) else member
        if isinstance(function, FunctionType):
            untraced(function)
    return kind
