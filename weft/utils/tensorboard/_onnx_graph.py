"""Graphs of ONNX files, for TensorBoard. It needs the package onnx (`pip install onnx`)."""

from __future__ import annotations

from typing import Any

from tensorboard.compat.proto.attr_value_pb2 import AttrValue
from tensorboard.compat.proto.graph_pb2 import GraphDef
from tensorboard.compat.proto.node_def_pb2 import NodeDef
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboard.compat.proto.versions_pb2 import VersionDef


def load_onnx_graph(fname: str) -> GraphDef:
    """Return the graph of the ONNX file `fname`."""
    import onnx

    return parse(onnx.load(fname).graph)


def parse(graph: Any) -> GraphDef:
    """An `onnx.GraphProto` as TensorBoard's: a node for each value that the graph takes or gives and for each operation."""
    ends = [_end(value) for value in [*graph.input, *graph.output]]
    return GraphDef(node=ends + [_operation(node) for node in graph.node], versions=VersionDef(producer=22))


def _end(value: Any) -> NodeDef:
    kind = value.type.tensor_type
    shape = TensorShapeProto(dim=[TensorShapeProto.Dim(size=each.dim_value) for each in kind.shape.dim])
    return NodeDef(
        name=value.name.encode(),
        op="Variable",
        input=[],
        attr={"dtype": AttrValue(type=kind.elem_type), "shape": AttrValue(shape=shape)},
    )


def _operation(node: Any) -> NodeDef:
    # name = value = type
    parameters = [" = ".join(str(value) for _, value in each.ListFields()) for each in node.attribute]
    return NodeDef(
        name=node.output[0].encode(),
        op=node.op_type,
        input=node.input,
        attr={"parameters": AttrValue(s=", ".join(parameters).encode())},
    )
