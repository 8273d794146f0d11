"""Operators of ONNX that programs name themselves, with `torch.onnx.ops.symbolic`."""

from __future__ import annotations

from typing import Any

from .._builder import Builder
from .base import translates


@translates("symbolic", "symbolic_multi_out")
def symbolic(
    b: Builder, domain_op: str, inputs: Any, attrs: Any = None, *, version: int | None = None, **options: Any
) -> Any:
    domain, _, kind = domain_op.partition("::")
    if domain == "ai.onnx":
        domain = ""
    elif domain:
        b.domains[domain] = version or 1
    count = len(options["dtypes"]) if "dtypes" in options else 1
    found = b.op(kind, *(b.tensor(each) for each in inputs), outputs=count, domain=domain, **(attrs or {}))
    return (found,) if "dtypes" in options and count == 1 else found
