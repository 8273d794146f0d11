"""The stub of `weft.return_types`: named tuples for results with several tensors."""

from __future__ import annotations

from weft.core.return_types import TYPES

from . import namespaces, schemas


def stub() -> str:
    lines = [
        f"class {name}(NamedTuple): {_fields(name, kind)}"
        for name, kind in sorted(TYPES.items())
        if not name.startswith("_")
    ]
    return namespaces.with_imports(lines, 0)


def _fields(name: str, kind: type) -> str:
    types = schemas.result_types(name) or ["Tensor"] * len(kind.__match_args__)
    return "; ".join(f"{field}: {each}" for field, each in zip(kind.__match_args__, types, strict=True))
