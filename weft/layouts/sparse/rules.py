"""The rules of sparse tensors, which the files of this folder fill."""

from __future__ import annotations

from ...core.layout_calls import Rules
from ...core.tensor import Tensor
from ..parts import assign, parts_of, values_of


def _restrict(ct: Tensor, template: Tensor) -> Tensor:
    if ct.layout is template.layout and _have_same_indices(ct, template):
        # A mask would add up the entries of an element, each of which has the whole cotangent of the element already.
        return values_of(ct)
    return values_of(ct.sparse_mask(template))


def _have_same_indices(x: Tensor, y: Tensor) -> bool:
    pairs = zip(parts_of(x)[:-1], parts_of(y)[:-1], strict=True)
    return all(
        one is other or one.shape == other.shape and bool((one == other).all()) for one, other in pairs
    )


SPARSE = Rules("sparse", "write x.to_dense() to compute with the dense tensor", assign, _restrict)
