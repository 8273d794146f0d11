"""Puts together an ONNX graph: names values, holds constants, and knows the tensors that nodes stand for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.dtype import DType, bool_, float32, int64
from ..core.tensor import Tensor
from ..fx.node import Node
from ._registry import TensorProtoDataType
from .errors import OnnxExporterError


def onnx_package() -> Any:
    """The package `onnx`.

    Raises: ImportError that says how to install it.
    """
    try:
        import onnx
    except ImportError as error:
        raise ImportError("torch.onnx needs the package onnx: pip install 'weft[onnx]'") from error
    return onnx


# The names that ONNX has for dtypes.
_ELEMENT_TYPES = {
    "float32": "FLOAT", "float64": "DOUBLE", "float16": "FLOAT16", "bfloat16": "BFLOAT16", "int8": "INT8", "int16": "INT16",
    "int32": "INT32", "int64": "INT64", "uint8": "UINT8", "uint16": "UINT16", "uint32": "UINT32", "uint64": "UINT64", "bool": "BOOL",
    "complex64": "COMPLEX64", "complex128": "COMPLEX128", "float8_e4m3fn": "FLOAT8E4M3FN", "float8_e5m2": "FLOAT8E5M2",
}  # fmt: skip


def element_type(dtype: DType) -> int:
    """The number that ONNX has for a dtype."""
    name = str(dtype).removeprefix("torch.")
    if name not in _ELEMENT_TYPES:
        raise NotImplementedError(f"torch.onnx: ONNX has no element type for {dtype}")
    return TensorProtoDataType[_ELEMENT_TYPES[name]].value


def dtype_of(number: int) -> DType:
    """The dtype of a number of ONNX's."""
    import weft

    name = TensorProtoDataType(number).name
    return next(getattr(weft, own) for own, each in _ELEMENT_TYPES.items() if each == name)


class Builder:
    """One ONNX graph. Values are known by their ONNX names, which are strings.

    Arguments of a translation are nodes of the traced graph, numbers, or containers of both; `tensor`, `ints` and `shape`
    make ONNX values of them.
    """

    def __init__(self, opset: int):
        self.opset = opset
        self.nodes: list[Any] = []
        self.initializers: dict[str, Any] = {}
        self.values: dict[Node, Any] = {}  # what stands for a node: a name, or a container of names
        self.domains: dict[str, int] = {}  # the operator sets besides ONNX's own, and their versions
        self.stale: dict[
            Node, Node
        ] = {}  # views of memory that an in-place operation has written to, and the operation
        self.current: Node
        self.taken: set[str] = set()
        self.constants: dict[tuple, str] = {}

    # ---- Values -----------------------------------------------------------------------------------------------------------

    def fresh(self, wanted: str) -> str:
        """A name that nothing has yet."""
        name, count = wanted, 0
        while name in self.taken:
            count += 1
            name = f"{wanted}_{count}"
        self.taken.add(name)
        return name

    def op(self, kind: str, *inputs: str, outputs: int = 1, domain: str = "", **attributes: Any) -> Any:
        """Add an ONNX operator; the name of its result, or a tuple of names."""
        helper = onnx_package().helper
        names = [self.fresh(f"{self.current.name}_{kind.lower()}") for _ in range(outputs)]
        present = {name: value for name, value in attributes.items() if value is not None}
        trimmed = list(inputs)
        while trimmed and trimmed[-1] == "":
            trimmed.pop()
        node_name = f"{self.current.name}/{kind}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, trimmed, names, name=node_name, domain=domain, **present))
        return names[0] if outputs == 1 else tuple(names)

    def constant(self, value: Any, dtype: DType | np.dtype | type | None = None) -> str:
        """A constant tensor from a number, a list or an array. Equal constants share a name."""
        if isinstance(dtype, DType):
            array = _as_tensor(value, dtype).numpy()  # type: ignore[attr-defined]
        else:
            array = np.asarray(value, dtype)
        key = (array.shape, array.dtype.str, array.tobytes())
        if key not in self.constants:
            name = self.constants[key] = self.fresh("const")
            self.initializers[name] = onnx_package().numpy_helper.from_array(array, name)
        return self.constants[key]

    def meta(self, value: Any) -> Any:
        """The tensor on device meta, or the number, that an argument stands for."""
        return value.meta["val"] if isinstance(value, Node) else value

    def is_tensor(self, value: Any) -> bool:
        return isinstance(self.meta(value), Tensor)

    def tensor(self, value: Any, dtype: DType | None = None) -> str:
        """The ONNX value of an argument, converted to `dtype`. None is ONNX's absent input, the empty name."""
        if value is None:
            return ""
        if isinstance(value, Node):
            if value in self.stale:
                raise OnnxExporterError(
                    f"torch.onnx: {value.name} shares memory with a tensor that {self.stale[value].name} has written to in "
                    "place, and ONNX has no views: write to the tensor itself, or compute a new one"
                )
            name = self.values[value]
            known = self.meta(value)
            held = (
                known.dtype if isinstance(known, Tensor) else float32 if isinstance(known, float) else int64
            )
            return name if dtype is None or held == dtype else self.cast(name, dtype)
        if isinstance(value, str):
            return value
        if dtype is None:
            dtype = {bool: bool_, int: int64}.get(type(value), float32)
        return self.constant(value, dtype)

    def cast(self, name: str, dtype: DType) -> str:
        return self.op("Cast", name, to=element_type(dtype))

    def called(self) -> str:
        """The name of the function or method that the current node calls."""
        target = self.current.target
        return target if isinstance(target, str) else target.__name__

    def result(self) -> Any:
        """The tensor, on device meta, that the current node gives."""
        return self.current.meta["val"]

    # ---- Sizes ------------------------------------------------------------------------------------------------------------

    def ints(self, values: Sequence[Any]) -> str:
        """A vector of integers, some of which may be computed by the graph."""
        if all(not isinstance(each, (Node, str)) for each in values):
            return self.constant([int(each) for each in values], np.int64)
        parts = [self.int_vector(each) for each in values]
        return parts[0] if len(parts) == 1 else self.op("Concat", *parts, axis=0)

    def int_vector(self, value: Any) -> str:
        """A vector of one integer."""
        if not isinstance(value, (Node, str)):
            return self.constant([int(value)], np.int64)
        return self.op("Reshape", self.tensor(value), self.constant([1], np.int64))

    def size_of(self, value: Any, dim: int) -> Any:
        """The size of one dimension: an int, or a scalar of the graph if the dimension is dynamic."""
        known = self.meta(value)
        dim %= max(known.dim(), 1)
        if dim not in (value.meta.get("dynamic") or ()):
            return known.shape[dim]
        shape = self.op("Shape", self.tensor(value), start=dim, end=dim + 1)
        return self.op("Squeeze", shape, self.constant([0], np.int64))

    def sizes_of(self, value: Any) -> list[Any]:
        return [self.size_of(value, dim) for dim in range(self.meta(value).dim())]

    def reshape(self, name: str, sizes: Sequence[Any]) -> str:
        return self.op(
            "Reshape",
            name,
            self.ints(sizes),
            allowzero=1 if 0 in [s for s in sizes if isinstance(s, int)] else None,
        )

    def axes(self, *dims: int) -> str:
        return self.constant(list(dims), np.int64)


def _as_tensor(value: Any, dtype: DType) -> Tensor:
    from .. import tensor

    return value.detach().cpu() if isinstance(value, Tensor) else tensor(value, dtype=dtype)
