"""What the factorizations of this folder are not for: all processes compute the whole."""

from __future__ import annotations

from typing import Any

from ....ops.linalg.lapack import MatrixOp
from .._rules import FAMILIES


def on_whole(op: MatrixOp, tensors: tuple, static: dict[str, Any]) -> Any:
    return FAMILIES[MatrixOp, "run"](op, tensors, static)
