"""What libraries register with the exporter for TorchScript: kept, so that they can be imported. Nothing calls it."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum

from .errors import OnnxExporterError

# (operator, version of the operator set) -> the function that writes the operator.
_symbolic_functions: dict[tuple[str, int], Callable] = {}


class TensorProtoDataType(IntEnum):
    """The types of elements, numbered as ONNX does. Source: https://onnx.ai/onnx/api/classes.html#tensorproto"""

    UNDEFINED = 0
    FLOAT = 1
    UINT8 = 2
    INT8 = 3
    UINT16 = 4
    INT16 = 5
    INT32 = 6
    INT64 = 7
    STRING = 8
    BOOL = 9
    FLOAT16 = 10
    DOUBLE = 11
    UINT32 = 12
    UINT64 = 13
    COMPLEX64 = 14
    COMPLEX128 = 15
    BFLOAT16 = 16
    FLOAT8E4M3FN = 17
    FLOAT8E4M3FNUZ = 18
    FLOAT8E5M2 = 19
    FLOAT8E5M2FNUZ = 20


def register_custom_op_symbolic(symbolic_name: str, symbolic_fn: Callable, opset_version: int) -> None:
    """Say how the operator "namespace::name" is exported, from a version of the operator set on."""
    _symbolic_functions[_full_name(symbolic_name), opset_version] = symbolic_fn


def unregister_custom_op_symbolic(symbolic_name: str, opset_version: int) -> None:
    """Forget what was registered for an operator."""
    _symbolic_functions.pop((_full_name(symbolic_name), opset_version), None)


def _full_name(name: str) -> str:
    name = f"aten{name}" if name.startswith("::") else name
    namespace, separator, short = name.partition("::")
    if not (namespace.isidentifier() and separator and short.replace(".", "_").isidentifier()):
        raise OnnxExporterError(
            f"Failed to register operator {name}. The symbolic name must match the format domain::name, and should start with a "
            "letter and contain only alphanumeric characters"
        )
    return name
