"""Orders of arguments that PyTorch deprecated and still takes: a number stands before the tensor that it multiplies.

`torch.add(input, alpha, other)` is `torch.add(input, other, alpha=alpha)`. A call in such an order fails, because it has
too many positional arguments; then its entry (`core/entry.py`) asks `reordered`. So other calls pay nothing for it.
"""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .tensor import Tensor
from .warn import warn_once

_NUMBERS = ("beta", "alpha", "value")
_PRODUCTS = {
    "addmm": "mat1 mat2",
    "addmv": "mat vec",
    "addr": "vec1 vec2",
    "addbmm": "batch1 batch2",
    "baddbmm": "batch1 batch2",
    "sspaddmm": "mat1 mat2",
}
# Function -> the older orders of its arguments. Methods have `input` in front.
_ORDERS: dict[str, tuple[str, ...]] = {
    "add": ("input alpha other",),
    "sub": ("input alpha other",),
    "addcmul": ("input value tensor1 tensor2",),
    "addcdiv": ("input value tensor1 tensor2",),
    **{
        name: (
            f"beta input alpha {factors}",
            f"beta input {factors}",
            f"input beta alpha {factors}",
            f"input beta {factors}",
        )
        for name, factors in _PRODUCTS.items()
    },
}


def reordered(
    name: str, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[list[Any], dict[str, Any]] | None:
    """The arguments of a call in today's order, with a warning; None unless the call has one of the older orders."""
    for order in _ORDERS.get(name.removesuffix("_"), ()):
        names = order.split()
        bound = {**dict(zip(names, args)), **kwargs}
        if (
            len(args) > len(names)
            or len(bound) < len(args) + len(kwargs)
            or bound.keys() - {"out"} != {*names}
        ):
            continue
        of_number = [each for each in names if each in _NUMBERS]
        if names.index(of_number[-1]) >= len(args):  # by keyword, which is today's order
            continue
        if all(_fits(each, bound[each]) for each in names):
            _warn(name, names, of_number)
            keywords = {each: _as_number(bound[each]) for each in of_number}
            if "out" in kwargs:
                keywords["out"] = kwargs["out"]
            return [bound[each] for each in names if each not in of_number], keywords
    return None


def _fits(name: str, value: Any) -> bool:
    """Whether the argument of this name can be `value`: 0-dim tensors are numbers, and "other" may be a number."""
    if isinstance(value, Tensor):
        return name not in _NUMBERS or not value.shape and not value.requires_grad
    return (name in _NUMBERS or name == "other") and isinstance(value, (numbers.Number, np.generic))


def _as_number(value: Any) -> Any:
    return value.item() if isinstance(value, Tensor) else value


def _warn(name: str, names: list[str], of_number: list[str]) -> None:
    old = ", ".join(f"{'Number' if each in of_number else 'Tensor'} {each}" for each in names)
    tensors = [f"Tensor {each}" for each in names if each not in of_number]
    new = ", ".join([*tensors, "*", *(f"Number {each} = 1" for each in of_number)])
    warn_once(
        f"This overload of {name} is deprecated:\n\t{name}({old})\nConsider using one of the following signatures "
        f"instead:\n\t{name}({new})"
    )
