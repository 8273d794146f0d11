"""The registry of public names: functions by name, methods of Tensor, and the entries behind functions."""

from __future__ import annotations

from collections.abc import Callable
from types import CellType, FunctionType
from typing import Any

from .names import ROOT, set_name
from .tensor import Tensor

# Name -> function: the public names of `weft/__init__.py`. Names with dots belong to submodules ("linalg.inv").
# `add_function` writes it, so that no name is taken twice.
FUNCTIONS: dict[str, Callable] = {}

# Public function -> the entry behind its fast path (see `core/entry.py`); an entry that is public stands for itself.
entry_of: dict[Callable, Callable] = {}
# An entry, or another inner function -> the public function that calls it, which handlers are told of.
public_of: dict[Callable, Callable] = {}


def add_function(name: str, function: Callable) -> None:
    """Make a function public under `name`.

    Raises: ValueError if the name is taken.
    """
    if name in FUNCTIONS:
        raise ValueError(f"the public name {name!r} is taken by {FUNCTIONS[name]!r}")
    FUNCTIONS[name] = function


def add_member(name: str, member: Any) -> None:
    """Make `member` a member of Tensor.

    Raises: ValueError if the name is taken.
    """
    if name in vars(Tensor):
        raise ValueError(f"Tensor has a member {name!r} already: {vars(Tensor)[name]!r}")
    setattr(Tensor, name, member)


def add_method(name: str, function: Callable) -> None:
    """Make a method of Tensor that does the same as a public function. It is another object, as in PyTorch."""
    add_member(name, copied(function, name, f"Tensor.{name}"))


def namespace(module: str) -> dict[str, Callable]:
    """The public functions of a submodule, by name. In `FUNCTIONS` their names are `module.name`."""
    prefix = module + "."
    return {
        name.removeprefix(prefix): function
        for name, function in FUNCTIONS.items()
        if name.startswith(prefix) and "." not in name.removeprefix(prefix)
    }


# ---- The same function under another name -----------------------------------------------------------------------------


def copied(function: Callable, name: str, qualname: str) -> Callable:
    """Another function object that does the same, so that handlers tell `Tensor.add` from `torch.add`.

    The closure of a function holds the function that handlers are told of, so the copy has an entry of its own.
    """
    if not isinstance(function, FunctionType):
        return function
    closure = function.__closure__ or ()
    cells = tuple(CellType() if _reports(cell, function) else cell for cell in closure)
    copy = FunctionType(function.__code__, function.__globals__, name, function.__defaults__, cells or None)
    behind = entry_of.get(function)
    if behind is not None:
        entry_of[copy] = copy if behind is function else behind
    for new, old in zip(cells, closure, strict=True):
        if new is old:
            continue
        inner = old.cell_contents
        if inner is function:
            new.cell_contents = copy
            continue
        new.cell_contents = inner_copy = copied(inner, inner.__name__, inner.__qualname__)
        public_of[inner_copy] = copy
        if inner is behind:
            entry_of[copy] = inner_copy
    for attribute in ("__kwdefaults__", "__doc__", "__module__", "__annotations__"):
        setattr(copy, attribute, getattr(function, attribute))
    copy.__qualname__ = qualname
    vars(copy).update(vars(function))
    return copy


def _reports(cell: Any, function: Callable) -> bool:
    """Whether the cell holds `function` or a function that is reported as `function`."""
    try:
        content = cell.cell_contents
    except ValueError:  # not set yet
        return False
    return isinstance(content, FunctionType) and (content is function or public_of.get(content) is function)


# Functions of several namespaces that are one object in PyTorch as well.
_SHARED = frozenset(
    "adaptive_avg_pool1d avg_pool1d bilinear celu_ channel_shuffle conv1d conv2d conv3d conv_tbc conv_transpose1d "
    "conv_transpose2d conv_transpose3d cosine_similarity hardshrink pairwise_distance pdist pixel_shuffle pixel_unshuffle "
    "prelu selu_ threshold_".split()
)


# Further name of a function -> its first name.
ALIASES: dict[str, str] = {}


def separate_aliases() -> None:
    """Give each public name a function of its own, as in PyTorch: handlers and graphs tell `absolute` from `abs`."""
    seen: dict[int, str] = {}
    for name, function in FUNCTIONS.items():
        own_name = name.rpartition(".")[2]
        first = seen.setdefault(id(function), name)
        if first != name and isinstance(function, FunctionType):
            ALIASES[name] = first
            if own_name not in _SHARED:
                FUNCTIONS[name] = copied(function, own_name, own_name)


# ---- Where functions say that they are public ----------------------------------------------------------------------------

# Namespaces whose functions PyTorch writes in C under names such as `linalg_inv`: handlers see them as `__name__`.
_PREFIXED = ("fft", "linalg", "special")
# Other functions that PyTorch defines under another name than the public one.
DEFINED_AS = {
    "nn.functional.logsigmoid": "log_sigmoid",
    "nn.functional.threshold": "_threshold",
    "symeig": "_symeig",
}


def name_functions() -> None:
    """Give all functions of `FUNCTIONS` the names under which they are public.

    A function with several names is known by the first that is its own `__name__`, else by the first of all.
    """
    paths: dict[int, str] = {}
    for path, function in FUNCTIONS.items():
        if not isinstance(function, FunctionType):
            continue
        first = paths.get(id(function))
        if first is None or _last(first) != function.__name__ == _last(path):
            paths[id(function)] = path
    for path, function in FUNCTIONS.items():
        if paths.get(id(function)) == path:
            place, _, name = path.rpartition(".")
            own = f"{place}_{name}" if place in _PREFIXED else DEFINED_AS.get(path, name)
            set_name(function, f"{ROOT}.{place}".removesuffix("."), name, own)


def _last(path: str) -> str:
    return path.rpartition(".")[2]
