"""`torch.ops.profiler`: ranges whose begin and end are two operators, as graphs of programs hold them."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from ...autograd.profiler import record_function
from ...core.tensor import Tensor
from ...layouts.quantized.script_object import ScriptObject
from ...ops.creation.from_data import tensor

_CLASS = "__torch__.torch.classes.profiler._RecordFunction"
_handles = itertools.count()
_ranges: dict[int, record_function] = {}  # the open ranges with a tensor as their handle


class _RecordFunction(ScriptObject):
    """The handle of an open range."""

    _script_name = _CLASS

    def __init__(self, name: str, args: str | None):
        self.range = record_function(name, args)


def _enter(name: str, args: str | None = None) -> Tensor:
    handle = next(_handles)
    _ranges[handle] = record_function(name, args)
    _ranges[handle].__enter__()
    return tensor(handle)


def _exit(handle: Tensor) -> None:
    _ranges.pop(int(handle)).__exit__(None, None, None)


def _enter_new(name: str, args: str | None = None) -> _RecordFunction:
    record = _RecordFunction(name, args)
    record.range.__enter__()
    return record


def _exit_new(record: _RecordFunction) -> None:
    record.range.__exit__(None, None, None)


_OVERLOADS: dict[str, list[tuple[str, Callable[..., Any]]]] = {
    "_record_function_enter": [("(str name, str? args=None) -> Tensor", _enter)],
    "_record_function_enter_new": [(f"(str name, str? args=None) -> {_CLASS}", _enter_new)],
    "_record_function_exit": [
        ("(Tensor handle) -> ()", _exit),
        (f"._RecordFunction({_CLASS} record) -> ()", _exit_new),
    ],
}


def overloads(name: str) -> list[tuple[str, Callable[..., Any]]]:
    """The schema and the function of each overload of `profiler::name`; empty if there is none."""
    return [(f"profiler::{name}{text}", function) for text, function in _OVERLOADS.get(name, ())]
