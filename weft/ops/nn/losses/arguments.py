"""Code that losses share: reductions and their older names, checks, weights."""

from __future__ import annotations

import warnings

from ....core.dtype import LEGACY_NAMES
from ....core.outputs import check_dtype
from ....core.promotion import promote_types
from ....core.tensor import Tensor
from ....core.warn import user_level
from ...views.broadcasting import broadcast_tensors

REDUCTIONS = ("none", "mean", "sum")


def reduction_of(reduction: str, size_average: bool | None = None, reduce: bool | None = None) -> str:
    """The reduction, which two older arguments may name instead."""
    if size_average is None and reduce is None:
        return reduction
    if reduce is not None and not reduce:
        found = "none"
    else:
        found = "mean" if size_average is None or size_average else "sum"
    warnings.warn(
        f"size_average and reduce args will be deprecated, please use reduction='{found}' instead.",
        stacklevel=user_level(),
    )
    return found


def check_reduction(reduction: str) -> None:
    if reduction not in REDUCTIONS:
        raise ValueError(f"{reduction} is not a valid value for reduction (one of {', '.join(REDUCTIONS)})")


def reduced(loss: Tensor, reduction: str) -> Tensor:
    check_reduction(reduction)
    if reduction == "none":
        return loss
    return loss.mean() if reduction == "mean" else loss.sum()


def warn_unless_same_size(input: Tensor, target: Tensor) -> None:
    if target.spec.shape != input.spec.shape:
        warnings.warn(
            f"Using a target size ({target.size()}) that is different to the input size ({input.size()}). This will likely "
            "lead to incorrect results due to broadcasting. Please ensure they have the same size.",
            stacklevel=user_level(),
        )


def expanded(input: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Both in their common shape, as in PyTorch. A tensor that was of 0 dims then counts fully in promotion."""
    if input.spec.shape == target.spec.shape:
        return input, target
    return broadcast_tensors(input, target)  # type: ignore[return-value]


def check_result(name: str, input: Tensor, target: Tensor) -> None:
    """Raises: RuntimeError if the loss, which has the dtype of the input, cannot hold the common dtype."""
    check_dtype(input.spec, promote_types(input.spec.dtype, target.spec.dtype), name)


def check_floats(name: str, input: Tensor, target: Tensor) -> None:
    for each in (input, target):
        if not isinstance(each, Tensor):
            raise TypeError(
                f"{name}_loss(): arguments 'input' and 'target' must be Tensor, not {type(each).__name__}"
            )
    kinds = (input.spec.dtype.kind, target.spec.dtype.kind)
    if "f" not in kinds or "c" in kinds:
        wrong = input if kinds[0] != "f" else target
        raise NotImplementedError(f"\"{name}_cpu\" not implemented for '{LEGACY_NAMES[wrong.spec.dtype]}'")


def weighted(loss: Tensor, input: Tensor, weight: Tensor | None, reduction: str) -> Tensor:
    """Reduce a loss whose elements may have weights; the mean divides by their sum."""
    if weight is None:
        return reduced(loss, reduction)
    if weight.spec.shape != input.spec.shape:
        raise ValueError("Weights and input must have the same size.")
    check_reduction(reduction)
    loss = loss * weight
    return loss.sum() / weight.sum() if reduction == "mean" else reduced(loss, reduction)
