"""How operators are defined: schemas inferred from annotations, kernels by dispatch key, derivatives, fake kernels."""

from __future__ import annotations

from ...compat.missing import module_getattr

__getattr__ = module_getattr(
    __name__, ("autograd", "custom_ops", "effects", "fake_impl", "infer_schema", "triton", "utils")
)
