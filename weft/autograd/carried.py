"""Cotangents that carry more than their elements: those of a MaskedTensor carry its mask.

Rules of derivatives are written for plain tensors. Where the backward pass meets a cotangent of a class that is
registered in `carriers`, it leaves to the Carrier of that class what it does to other cotangents itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..core.tensor import Tensor


class Carrier(NamedTuple):
    """What the backward pass does to cotangents of one class."""

    pull: Callable[..., Sequence[Any]]  # (node, ct, edges, recording): the cotangents of the node's inputs
    add: Callable[[Tensor, Tensor], Tensor]  # the sum of two cotangents, one of which may be plain
    fit: Callable[[Tensor, Any], Tensor]  # (ct, spec): the cotangent in the shape and dtype of an input
    seed: Callable[[Tensor, Tensor], Tensor]  # (result, ct): the cotangent that a pass begins with
    keep: Callable[[Tensor], Tensor]  # a copy that nobody else holds, for `.grad`


# By the class of the cotangent. Empty until a module with such a class is imported.
carriers: dict[type, Carrier] = {}


def carrier_of(*cts: Any) -> Carrier | None:
    """The carrier of the first of the cotangents that has one."""
    for ct in cts:
        for each in ct if type(ct) is tuple else (ct,):
            found = carriers.get(type(each))
            if found is not None:
                return found
    return None
