"""Noting the shapes and dtypes of all values in a graph."""

from __future__ import annotations

import traceback
from typing import Any, NamedTuple

import weft

from ...core.dtype import DType
from ...core.layout import MemoryFormat
from ...core.size import Size
from ...core.tensor import Tensor
from .._compatibility import compatibility
from ..graph_module import GraphModule
from ..interpreter import Interpreter
from ..node import Node, map_aggregate

__all__ = ["ShapeProp", "TensorMetadata"]


@compatibility(is_backward_compatible=True)
class TensorMetadata(NamedTuple):
    """What a tensor is, apart from its numbers."""

    shape: Size
    dtype: DType
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: MemoryFormat | None
    is_quantized: bool
    qparams: dict[str, Any]


_FORMATS = (weft.contiguous_format, weft.channels_last, weft.channels_last_3d)


def _extract_tensor_metadata(result: Tensor, include_contiguity: bool = True) -> TensorMetadata:
    """The TensorMetadata of a tensor."""
    memory_format = None
    if include_contiguity:
        fitting = (
            each
            for each in _FORMATS
            if (each is _FORMATS[0] or result.dim() == (4 if each is _FORMATS[1] else 5))
            and result.is_contiguous(memory_format=each)
        )
        memory_format = next(fitting, None)
    return TensorMetadata(
        result.shape, result.dtype, result.requires_grad, result.stride(), memory_format, False, {}
    )


@compatibility(is_backward_compatible=True)
class ShapeProp(Interpreter):
    """Carries out a graph, and notes in `node.meta` what its values are: `tensor_meta` for tensors, and `type`.

    >>> import weft as torch
    >>> traced = torch.fx.symbolic_trace(lambda x: x @ x.T)
    >>> result = ShapeProp(traced).propagate(torch.ones(2, 3))
    >>> [tuple(node.meta["tensor_meta"].shape) for node in traced.graph.nodes]
    [(2, 3), (3, 2), (2, 2), (2, 2)]
    """

    def __init__(self, gm: GraphModule, fake_mode: Any | None = None) -> None:
        super().__init__(gm)
        if fake_mode is not None:
            raise NotImplementedError(
                "ShapeProp(fake_mode=...): weft computes the values; leave fake_mode out"
            )
        self.fake_mode = fake_mode
        self.fake_module = None
        self.real_module = self.module

    def run_node(self, n: Node) -> Any:
        """The value of one node; its description goes to `n.meta`."""
        try:
            result = super().run_node(n)
        except Exception as error:
            traceback.print_exc()
            raise RuntimeError(f"ShapeProp error for: node={n.format_node()} with meta={n.meta}") from error
        found = False

        def describe(value: Any) -> Any:
            nonlocal found
            if not isinstance(value, Tensor):
                return value
            found = True
            return _extract_tensor_metadata(value)

        described = map_aggregate(result, describe)
        if found:
            n.meta["tensor_meta"] = described
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: Any) -> Any:
        """Carry out the graph with these arguments. Returns the result."""
        return super().run(*args)
