"""The checks that operators on functions share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...compiler.errors import UncapturedHigherOrderOpError
from ...core.pytree import tree_leaves
from ...core.tensor import Tensor


class UnsupportedAliasMutationException(RuntimeError):
    """A function that an operator got writes to its arguments or returns them."""

    def __init__(self, reason: str):
        super().__init__(reason)
        self.reason = reason


def refusal(operator: str, reason: str) -> UncapturedHigherOrderOpError:
    """The error for a function that an operator cannot take."""
    return UncapturedHigherOrderOpError(f"{operator}: {reason}")


def call(operator: str, function: Any, *args: Any) -> Any:
    """`function(*args)`, which must neither write to its arguments nor return them or views of them.

    Raises: UncapturedHigherOrderOpError if it does.
    """
    given = [each for each in tree_leaves(args) if isinstance(each, Tensor)]
    versions = [each._version for each in given]
    result = function(*args)
    if any(each._version != version for each, version in zip(given, versions, strict=True)):
        raise refusal(operator, "the function writes to its arguments; return new tensors")
    memory = {id(each._storage) for each in given}
    if any(isinstance(each, Tensor) and id(each._storage) in memory for each in tree_leaves(result)):
        raise refusal(operator, "the function returns an argument or a view of one; return a clone")
    return result


def check_same(operator: str, what: str, found: Sequence[Any], wanted: Sequence[Any]) -> None:
    """Raises: UncapturedHigherOrderOpError unless the tensors have the same shapes, dtypes and devices."""
    mine, theirs = ([_described(each) for each in values] for values in (found, wanted))
    if mine != theirs:
        raise refusal(operator, f"{what} must have the shapes and dtypes {theirs}, but has {mine}")


def _described(value: Any) -> str:
    if not isinstance(value, Tensor):
        return type(value).__name__
    return f"{value.dtype} {list(value.shape)} on {value.device}"
