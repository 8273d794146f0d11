"""Operators that exist in ONNX and not in torch: `torch.onnx.ops`.

>>> import weft as torch
>>> class Doubled(torch.nn.Module):
...     def forward(self, x):
...         return torch.onnx.ops.symbolic("custom::Double", (x,), {"times": 2}, dtype=x.dtype, shape=x.shape)
>>> program = torch.onnx.export(Doubled(), (torch.ones(3),))  # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import dtype as _dtype
from .. import zeros
from ..core.tensor import Tensor
from ..fx import wrap

__all__ = ["aten_decompositions", "symbolic", "symbolic_multi_out"]


def aten_decompositions() -> dict[Any, Any]:
    """Decompositions of these operators into those of torch: none."""
    return {}


@wrap
def symbolic(
    domain_op: str,
    /,
    inputs: Sequence[Tensor | None],
    attrs: dict[str, Any] | None = None,
    *,
    dtype: _dtype | int,
    shape: Sequence[int],
    version: int | None = None,
    metadata_props: dict[str, str] | None = None,
) -> Tensor:
    """An ONNX operator, `"domain::Name"`, with one output of this dtype and shape. Outside of ONNX its result is zeros."""
    if "::" not in domain_op:
        raise ValueError(
            f"Invalid domain '{domain_op}'. Must provide a domain and an operator: 'domain::Operator'"
        )
    return zeros(tuple(shape), dtype=_torch_dtype(dtype))


@wrap
def symbolic_multi_out(
    domain_op: str,
    /,
    inputs: Sequence[Tensor | None],
    attrs: dict[str, Any] | None = None,
    *,
    dtypes: Sequence[_dtype | int],
    shapes: Sequence[Sequence[int]],
    version: int | None = None,
    metadata_props: dict[str, str] | None = None,
) -> Sequence[Tensor]:
    """An ONNX operator with several outputs."""
    return [
        symbolic(domain_op, inputs, attrs, dtype=dtype, shape=shape)
        for dtype, shape in zip(dtypes, shapes, strict=True)
    ]


def _torch_dtype(dtype: _dtype | int) -> _dtype:
    """The dtype of a number of ONNX's."""
    from ._builder import dtype_of

    return dtype_of(dtype) if isinstance(dtype, int) else dtype
