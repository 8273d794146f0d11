"""How operators are defined: schemas inferred from annotations, kernels by dispatch key, derivatives, fake kernels."""

from __future__ import annotations
