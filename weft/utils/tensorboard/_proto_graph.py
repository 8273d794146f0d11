"""Nodes of TensorBoard's graphs."""

from __future__ import annotations

from collections.abc import Sequence

from tensorboard.compat.proto.attr_value_pb2 import AttrValue
from tensorboard.compat.proto.node_def_pb2 import NodeDef
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto

from ...core.dtype import DType


def attr_value_proto(dtype: object, shape: Sequence[int] | None, s: str | None) -> dict[str, AttrValue]:
    """Return the attributes of a node: a text and the shape of its result. TensorBoard does not show dtypes."""
    found = {}
    if s is not None:
        found["attr"] = AttrValue(s=s.encode())
    if shape is not None:
        found["_output_shapes"] = AttrValue(list=AttrValue.ListValue(shape=[tensor_shape_proto(shape)]))
    return found


def tensor_shape_proto(outputsize: Sequence[int]) -> TensorShapeProto:
    """A shape."""
    return TensorShapeProto(dim=[TensorShapeProto.Dim(size=size) for size in outputsize])


def node_proto(
    name: str,
    op: str = "UnSpecified",
    input: list[str] | str | None = None,
    dtype: DType | None = None,
    shape: tuple[int, ...] | None = None,
    outputsize: Sequence[int] | None = None,
    attributes: str = "",
) -> NodeDef:
    """Return a node: the operation `op` on the nodes that are named in `input`.

    >>> node_proto("model/relu", "aten::relu", ["x"]).name
    'model/relu'
    """
    inputs = [] if input is None else input if isinstance(input, list) else [input]
    return NodeDef(
        name=name.encode(), op=op, input=inputs, attr=attr_value_proto(dtype, outputsize, attributes)
    )
