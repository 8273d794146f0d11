"""Which nodes a device or a library can carry out."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...core.dtype import DType
from ...nn import Module
from .._compatibility import compatibility
from ..node import Node
from .shape_prop import TensorMetadata
from .tools_common import CALLABLE_NODE_OPS, get_node_target

__all__ = [
    "OpSupports", "OperatorSupport", "OperatorSupportBase", "any_chain", "chain", "create_op_support",
]  # fmt: skip

TargetTypeName = str
SupportedArgumentDTypes = tuple[Sequence[Sequence[DType]], dict[str, Sequence[DType]]] | None
SupportDict = Mapping[TargetTypeName, SupportedArgumentDTypes]


@compatibility(is_backward_compatible=False)
class OperatorSupportBase(abc.ABC):
    """Tells whether a node is supported."""

    @abc.abstractmethod
    def is_node_supported(self, submodules: Mapping[str, Module], node: Node) -> bool:
        """Whether the node is supported; `submodules` are those of the module, by their paths."""
        raise NotImplementedError


@compatibility(is_backward_compatible=False)
class OperatorSupport(OperatorSupportBase):
    """Supports the targets in a dict: name of a target (`get_node_target`) -> the dtypes of its arguments, None for any."""

    _support_dict: SupportDict

    def __init__(self, support_dict: SupportDict | None = None) -> None:
        self._support_dict = support_dict or {}

    def is_node_supported(self, submodules: Mapping[str, Module], node: Node) -> bool:
        """Whether the dict has the target and the dtypes of the arguments. All that is no call is supported."""
        if node.op not in CALLABLE_NODE_OPS:
            return True
        target = get_node_target(submodules, node)
        if target not in self._support_dict:
            return False
        supported = self._support_dict[target]
        if supported is None:
            return True
        by_position, by_name = supported
        for place, dtypes in enumerate(by_position):
            if len(node.args) <= place:
                break
            if not isinstance(node.args[place], Node):
                continue
            if _get_arg_dtype(node.args[place]) not in dtypes:
                return False
        for name, dtypes in by_name.items():
            if isinstance(node.kwargs.get(name), Node) and _get_arg_dtype(node.kwargs[name]) not in dtypes:
                return False
        return True


IsNodeSupported = Callable[[Mapping[str, Module], Node], bool]


@compatibility(is_backward_compatible=False)
def create_op_support(is_node_supported: IsNodeSupported) -> OperatorSupportBase:
    """An OperatorSupportBase of a function."""

    class FunctionalOperatorSupport(OperatorSupportBase):
        def is_node_supported(self, submodules: Mapping[str, Module], node: Node) -> bool:
            return is_node_supported(submodules, node)

    return FunctionalOperatorSupport()


@compatibility(is_backward_compatible=False)
def chain(*op_support: OperatorSupportBase) -> OperatorSupportBase:
    """Supports what all of them support."""
    return create_op_support(
        lambda submodules, node: all(each.is_node_supported(submodules, node) for each in op_support)
    )


@compatibility(is_backward_compatible=False)
def any_chain(*op_support: OperatorSupportBase) -> OperatorSupportBase:
    """Supports what one of them supports."""
    return create_op_support(
        lambda submodules, node: any(each.is_node_supported(submodules, node) for each in op_support)
    )


@compatibility(is_backward_compatible=False)
class OpSupports:
    """Common supports."""

    @classmethod
    def decline_if_input_dtype(cls, dtype: DType) -> OperatorSupportBase:
        """Supports nodes none of whose inputs is of this dtype."""

        def supported(submodules: Mapping[str, Module], node: Node) -> bool:
            return all(_get_arg_dtype(used) != dtype for used in node.all_input_nodes)

        return create_op_support(supported)

    @classmethod
    def decline_if_node_in_names(cls, disallow_set: set[str]) -> OperatorSupportBase:
        """Supports nodes that do not have one of these names."""
        return create_op_support(lambda submodules, node: node.name not in disallow_set)


def _get_arg_dtype(arg: Any) -> Any:
    """The dtype of a node, as `ShapeProp` noted it."""
    meta = arg.meta.get("tensor_meta")
    return meta.dtype if isinstance(meta, TensorMetadata) else arg.meta["type"]
