"""Cotangents with extra data, such as the mask of a MaskedTensor.

Backward rules are written for plain tensors. For a cotangent whose class is in `carriers`, the engine calls the functions of
the Carrier where it would otherwise call the rule, add two cotangents, and so on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..core.tensor import Tensor


class Carrier(NamedTuple):
    """The functions that the engine calls for cotangents of one class."""

    pull: Callable[..., Sequence[Any]]  # (node, ct, edges, recording): the cotangents of the node's inputs
    add: Callable[[Tensor, Tensor], Tensor]  # the sum of two cotangents; one may be a plain tensor
    fit: Callable[[Tensor, Any], Tensor]  # (ct, spec): the cotangent in the shape and dtype of an input
    seed: Callable[[Tensor, Tensor], Tensor]  # (result, ct): the cotangent with which backward starts
    keep: Callable[[Tensor], Tensor]  # a copy for `.grad`


# By the class of the cotangent. Empty until a module with such a class is imported.
carriers: dict[type, Carrier] = {}


def carrier_of(*cts: Any) -> Carrier | None:
    """The Carrier of the first cotangent whose class has one, or None."""
    for ct in cts:
        for each in ct if type(ct) is tuple else (ct,):
            carrier = carriers.get(type(each))
            if carrier is not None:
                return carrier
    return None
