"""What torch.compile does not look into."""

from __future__ import annotations

from types import FunctionType
from typing import Any, TypeVar

import torch
from torch._C._dynamo import eval_frame

Function = TypeVar("Function")
Class = TypeVar("Class", bound=type)

# They are torch's own (2.9 to 2.15 have them). Without them torch.compiler.disable() does the same, but imports torch._dynamo, in 3 s.
_CAN_MARK = all(hasattr(eval_frame, name) for name in ("set_code_exec_strategy", "_FrameExecStrategy", "_FrameAction"))


def untraced(function: Function) -> Function:
    """Has torch.compile run a function as it is, with all that it calls, between two of its graphs."""
    if not _CAN_MARK:
        return torch.compiler.disable(function)
    traced: Any = function
    traced._torchdynamo_disable = True
    traced._torchdynamo_disable_msg = "Ringlet's calls run between graphs"
    skip = eval_frame._FrameAction.SKIP
    eval_frame.set_code_exec_strategy(traced.__code__, eval_frame._FrameExecStrategy(skip, skip))
    return function


def untraced_class(kind: Class) -> Class:
    """The same for all methods of a class. The process groups in C++ need no such thing: nothing traces into those."""
    for name, member in list(vars(kind).items()):
        if isinstance(member, FunctionType):
            setattr(kind, name, untraced(member))
        if isinstance(member, property) and isinstance(member.fget, FunctionType):
            setattr(kind, name, property(untraced(member.fget), member.fset, member.fdel, member.__doc__))
    return kind
