"""Defines the options of `linear_cross_entropy`."""

from __future__ import annotations

from dataclasses import dataclass

from ...core.dtype import DType, bfloat16, float16, float32, float64

__all__ = ["LinearCrossEntropyOptions"]


@dataclass(slots=True, frozen=True)
class LinearCrossEntropyOptions:
    """States how PyTorch divides `linear_cross_entropy` to save memory, and the dtype of its sums.

    weft checks the options and computes the loss in one piece, in the wider dtype that they name for narrow floats.
    Raises: ValueError for values that are not among those allowed.

    >>> import weft as torch
    >>> torch.nn.LinearCrossEntropyOptions(batch_chunk_size=64).acc_policy
    'auto'
    """

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"  # "auto", "aspect_ratio" or "aspect_ratio:n"
    acc_policy: str = "auto"  # "accurate", "balanced", "compact" or "auto"
    acc_dtype: DType | None = None

    def __post_init__(self) -> None:
        if self.acc_policy not in ("accurate", "balanced", "compact", "auto"):
            raise ValueError(f"invalid acc_policy: {self.acc_policy!r}")
        if self.chunking_method not in (None, "auto"):
            name, _, factor = str(self.chunking_method).partition(":")
            factor = factor if ":" in str(self.chunking_method) else "1"
            if name != "aspect_ratio" or not factor.isdigit() or not int(factor):
                raise ValueError(f"invalid chunking_method: {self.chunking_method!r}")
        size = self.batch_chunk_size
        if size is not None and not (isinstance(size, int) and size > 0):
            raise ValueError(f"batch_chunk_size must be positive int or None, got {size!r}")
        if self.acc_dtype not in (None, float16, bfloat16, float32, float64):
            raise ValueError(
                "acc_dtype must be one of {None, torch.float16, torch.bfloat16, torch.float32, torch.float64}, "
                f"got {self.acc_dtype!r}"
            )
