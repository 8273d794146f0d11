"""Losses of triplets: an anchor should be nearer to a positive example than to a negative one."""

from __future__ import annotations

from collections.abc import Callable

from ....core.public import public
from ....core.tensor import Tensor
from ...linalg.distance import pairwise_distance
from .arguments import reduced, reduction_of


def _triplet_loss(
    name: str, distance: Callable, anchor, positive, negative, margin: float, swap: bool, reduction: str
) -> Tensor:
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    if not anchor.spec.ndim == positive.spec.ndim == negative.spec.ndim:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
            f"anchor {anchor.spec.ndim}D, positive {positive.spec.ndim}D, and negative {negative.spec.ndim}D inputs ({name})"
        )
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = far.minimum(distance(positive, negative))
    return reduced((near - far + margin).clamp_min(0), reduction)


@public(name="nn.functional.triplet_margin_loss", autocast="raise")
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-06,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute max(0, distance to the positive - distance to the negative + margin), by the `p`-norm along the last dim.

    swap: take the distance between positive and negative where that is smaller than the anchor's.
    """
    return _triplet_loss(
        "triplet_margin_loss",
        lambda a, b: pairwise_distance(a, b, p, eps),
        anchor,
        positive,
        negative,
        margin,
        swap,
        reduction_of(reduction, size_average, reduce),
    )


@public(name="nn.functional.triplet_margin_with_distance_loss")
def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """`triplet_margin_loss` with a distance of one's own; the Euclidean one unless given."""
    distance = distance_function or pairwise_distance
    return _triplet_loss(
        "triplet_margin_with_distance_loss", distance, anchor, positive, negative, margin, swap, reduction
    )
