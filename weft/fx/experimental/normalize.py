"""Graphs in which calls are written in one way."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import weft

from ..interpreter import Transformer
from ..node import Argument, Node, Target, map_aggregate
from ..operator_schemas import create_type_hint, normalize_function, normalize_module
from ..proxy import Proxy
from .schema_type_annotation import AnnotateTypesWithSchema

__all__ = ["NormalizeArgs", "NormalizeOperators"]


class NormalizeArgs(Transformer):
    """Makes a module in which calls of functions of `torch` and of layers name their arguments.

    >>> import weft as torch
    >>> traced = torch.fx.symbolic_trace(lambda x: torch.softmax(x, 1))
    >>> print(NormalizeArgs(traced).transform().code.strip())
    def forward(self, x):
        softmax = torch.softmax(input = x, dim = 1, dtype = None);  x = None
        return softmax
    """

    def __init__(self, module: Any, normalize_to_only_use_kwargs: bool = True) -> None:
        super().__init__(module)
        self.node_map: dict[Proxy, Node] = {}
        self.normalize_to_only_use_kwargs = normalize_to_only_use_kwargs

    def run_node(self, n: Node) -> Any:
        args, kwargs = self.fetch_args_kwargs_from_env(n)

        def type_of(arg: Any) -> Any:
            if isinstance(arg, Node):
                return arg.meta.get("type")
            return type(arg)

        arg_types = map_aggregate(n.args, type_of)
        kwarg_types = {key: type_of(value) for key, value in n.kwargs.items()}
        if n.op == "call_function":
            types = tuple(create_type_hint(each) for each in arg_types)
            out = self.call_function(n.target, args, kwargs, types, kwarg_types)
        else:
            out = super().run_node(n)
        if n.op != "output":
            self.node_map[out] = n
            out.node.meta = n.meta
            out.node.type = n.type
        return out

    def call_function(
        self,
        target: Target,
        args: tuple[Argument, ...],
        kwargs: dict[str, Any],
        arg_types: tuple[Any, ...] | None = None,
        kwarg_types: dict[str, Any] | None = None,
    ) -> Any:
        if not callable(target):
            raise AssertionError(f"Expected callable target, got {type(target)}")
        found = normalize_function(
            target, args, kwargs, arg_types, kwarg_types, self.normalize_to_only_use_kwargs
        )
        if found is None:
            return super().call_function(target, args, kwargs)
        return self.tracer.create_proxy("call_function", target, found.args, found.kwargs)

    def call_module(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        found = normalize_module(
            self.module,
            str(target),
            args,
            kwargs,
            self.normalize_to_only_use_kwargs,  # type: ignore[arg-type]
        )
        if found is None:
            return super().call_module(target, args, kwargs)
        return super().call_module(target, found.args, found.kwargs)


class NormalizeOperators(AnnotateTypesWithSchema):
    """Makes a module in which `torch.add` and the like of two tensors are operators: `x + y`."""

    binary_magic_method_remap: dict[Callable[[Any, Any], Any], Callable[[Any, Any], Any]] = {
        weft.add: operator.add,
        weft.mul: operator.mul,
        weft.sub: operator.sub,
        weft.div: operator.truediv,
        weft.floor_divide: operator.floordiv,
        weft.remainder: operator.mod,
        weft.eq: operator.eq,
        weft.ne: operator.ne,
        weft.lt: operator.lt,
        weft.le: operator.le,
        weft.gt: operator.gt,
        weft.ge: operator.ge,
    }

    def call_function(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        if not callable(target):
            raise AssertionError(f"Expected callable target, got {type(target)}")
        if target in self.binary_magic_method_remap:
            if len(args) != 2:
                return super().call_function(target, args, kwargs)
            return super().call_function(self.binary_magic_method_remap[target], args, {})
        return super().call_function(target, args, kwargs)
