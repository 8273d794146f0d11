"""Proxies: objects that write down what is done with them as nodes of a graph."""

from __future__ import annotations

import dis
import enum
import inspect
import operator
import sys
import traceback
from collections import OrderedDict
from collections.abc import Callable, Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any

from ..core import overrides
from ..core.registry import FUNCTIONS
from ..core.tensor import Tensor
from ..library.qualified_name import is_operator, is_written_in_python, public_name
from ..ops.nn.resizing import interpolate
from ..overrides import is_tensor_method_or_property
from ._codegen import magic_methods, reflectable_magic_methods
from ._compatibility import compatibility
from .node import Argument, Node, Target, base_types, map_aggregate
from .operator_schemas import check_for_mutable_operation

if TYPE_CHECKING:
    from .graph import Graph

__all__ = [
    "Attribute", "GraphAppendingTracer", "MetaProxy", "ParameterProxy", "Proxy", "Scope",
    "ScopeContextManager", "TraceError", "TracerBase",
]  # fmt: skip


class TraceError(ValueError):
    """A program that cannot be traced, because it asks for the value of a Proxy."""


class Scope:
    """Which module calls are recorded in: its path and its class."""

    def __init__(self, module_path: str, module_type: Any) -> None:
        self.module_path = module_path
        self.module_type = module_type


class ScopeContextManager:
    """Inside, `scope` is `current_scope`; afterwards it is what it was."""

    def __init__(self, scope: Scope, current_scope: Scope) -> None:
        self._previous = (scope.module_path, scope.module_type)
        scope.module_path, scope.module_type = current_scope.module_path, current_scope.module_type
        self._scope = scope

    def __enter__(self) -> Scope:
        return self._scope

    def __exit__(self, *args: Any) -> None:
        self._scope.module_path, self._scope.module_type = self._previous


# What of `meta` a graph that is traced from another one takes over from the nodes there.
_COPY_META_FIELDS = [
    "nn_module_stack", "torch_fn", "source_fn_stack", "original_aten", "recompute", "ac_graph_id",
    "from_backward", "quantization_tag", "custom", "stack_trace",
]  # fmt: skip


@compatibility(is_backward_compatible=True)
class TracerBase:
    """What makes nodes of calls with proxies. `Tracer` traces modules; `GraphAppendingTracer` only adds to a graph."""

    graph: Graph
    record_stack_traces: bool = False
    _record_forward_stack_traces_only: bool = False
    check_mutable_operations: bool = False
    trace_asserts: bool = False
    proxy_buffer_attributes: bool = False
    traced_func_name: str = "forward"
    scope: Scope
    module_stack: OrderedDict[str, tuple[str, Any]]
    node_name_to_scope: dict[str, tuple[str, type]]

    @compatibility(is_backward_compatible=True)
    def create_node(
        self,
        kind: str,
        target: Target,
        args: tuple[Argument, ...],
        kwargs: dict[str, Argument],
        name: str | None = None,
        type_expr: Any | None = None,
    ) -> Node:
        """Insert a node into the graph. Override it to look at nodes, or to keep some from being made."""
        if kind == "call_function" and self.check_mutable_operations:
            check_for_mutable_operation(target, args, kwargs)  # type: ignore[arg-type]
        node = self.graph.create_node(kind, target, args, kwargs, name, type_expr)
        scope = getattr(self, "scope", None)
        if scope is not None:
            self.node_name_to_scope[node.name] = (scope.module_path, scope.module_type)
        self._note_origin(node)
        if getattr(self, "module_stack", None):
            node.meta["nn_module_stack"] = self.module_stack.copy()
        return node

    def _note_origin(self, node: Node) -> None:
        """Put into `meta` what is known about where the node comes from."""
        from . import traceback as fx_traceback

        if fx_traceback.has_preserved_node_meta():
            current = fx_traceback.get_current_meta()
            if (trace := current.get("stack_trace")) is not None:
                node.stack_trace = trace
            node.meta.update({key: current[key] for key in _COPY_META_FIELDS if key in current})
        elif self.record_stack_traces:
            if (trace := self._user_trace()) != "":
                node.stack_trace = trace

    def _user_trace(self) -> str:
        """The lines of the traced program that are being carried out; empty outside of it."""
        frames: list[tuple[FrameType, int]] = []
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and not _starts_trace(frame):
            if not _is_own(frame):
                frames.insert(0, (frame, frame.f_lineno))
            frame = frame.f_back
        if frame is None:  # a node that is added outside of a trace
            return ""
        summary = traceback.StackSummary.extract(iter(frames))
        if self._record_forward_stack_traces_only:
            summary = traceback.StackSummary.from_list([each for each in summary if each.name == "forward"])
        return "".join(self._filter_traceback_frames(summary).format()).strip()

    def _filter_traceback_frames(self, user_stack_summary: Any) -> Any:
        """Which frames the stack traces of nodes show. Override it to leave some out."""
        return user_stack_summary

    def _find_user_frame(self) -> FrameType | None:
        """The innermost frame that is not one of weft's own."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and _is_own(frame):
            frame = frame.f_back
        return frame

    @compatibility(is_backward_compatible=True)
    def proxy(self, node: Node) -> Proxy:
        """The Proxy of a node. Override it to use a class of your own."""
        return Proxy(node, self)

    @compatibility(is_backward_compatible=True)
    def create_proxy(
        self,
        kind: str,
        target: Target,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        name: str | None = None,
        type_expr: Any | None = None,
        proxy_factory_fn: Callable[[Node], Proxy] | None = None,
    ) -> Proxy:
        """Insert a node with arguments that may hold proxies, and return its Proxy."""
        node_args, node_kwargs = self.create_arg(args), self.create_arg(kwargs)
        if not isinstance(node_args, tuple):
            raise AssertionError(f"Expected tuple, got {type(node_args)}")
        if not isinstance(node_kwargs, dict):
            raise AssertionError(f"Expected dict, got {type(node_kwargs)}")
        node = self.create_node(kind, target, node_args, node_kwargs, name, type_expr)
        return self.proxy(node) if proxy_factory_fn is None else proxy_factory_fn(node)

    @compatibility(is_backward_compatible=True)
    def create_arg(self, a: Any) -> Argument:
        """The argument of a node that stands for a value of the program.

        Raises: NotImplementedError for values that a graph cannot hold.
        """
        if isinstance(a, Proxy):
            return a.node
        if hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if isinstance(a, tuple):
            items = [self.create_arg(each) for each in a]
            return type(a)(*items) if hasattr(a, "_fields") else tuple(items)
        if isinstance(a, list):
            return [self.create_arg(each) for each in a]
        if isinstance(a, dict):
            return {self._key(key): self.create_arg(value) for key, value in a.items()}
        if isinstance(a, slice):
            return slice(*(self.create_arg(each) for each in (a.start, a.stop, a.step)))
        if isinstance(a, range):
            return range(*(self.create_arg(each) for each in (a.start, a.stop, a.step)))
        if (
            isinstance(a, base_types)
            or isinstance(a, enum.Enum)
            or a is None
            or a is ...
            or isinstance(a, bytes)
        ):
            return a
        if is_operator(a):
            return a
        if _is_dataclass_instance(a):
            fields = {name: self.create_arg(getattr(a, name)) for name in a.__dataclass_fields__}
            return self.create_node("call_function", a.__class__, (), fields)
        raise NotImplementedError(f"argument of type: {type(a)}")

    def _key(self, key: Any) -> Any:
        """A key of a dict, which cannot be a Proxy."""
        made = self.create_arg(key)

        def refuse(leaf: Any) -> Any:
            if isinstance(leaf, Node):
                raise RuntimeError(
                    f"Keys for dictionaries used as an argument cannot contain a Node. Got key: {made}"
                )
            return leaf

        map_aggregate(made, refuse)
        return made

    @compatibility(is_backward_compatible=True)
    def to_bool(self, obj: Proxy) -> bool:
        """What `bool(proxy)` is, as in `if` and `while`. Override it to decide."""
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    @compatibility(is_backward_compatible=True)
    def iter(self, obj: Proxy) -> Iterator[Any]:
        """What `for each in proxy` goes through."""
        raise TraceError(
            "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a loop or as a *args or "
            "**kwargs function argument. See the torch.fx docs on pytorch.org for a more detailed explanation of what "
            "types of control flow can be traced, and check out the Proxy docstring for help troubleshooting Proxy "
            "iteration errors"
        )

    @compatibility(is_backward_compatible=True)
    def keys(self, obj: Proxy) -> Any:
        """What `**proxy` asks for: the call of `keys`."""
        return Attribute(obj, "keys")()


def _is_own(frame: FrameType) -> bool:
    return frame.f_globals.get("__name__", "").partition(".")[0] in ("weft", "torch")


def _starts_trace(frame: FrameType) -> bool:
    return frame.f_code.co_name == "trace" and _is_own(frame)


class GraphAppendingTracer(TracerBase):
    """Adds the calls of proxies to a graph that there is already.

    >>> import weft as torch
    >>> graph = torch.fx.Graph()
    >>> x = torch.fx.Proxy(graph.placeholder("x"))  # uses a GraphAppendingTracer
    >>> x + 1
    Proxy(add)
    """

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.graph = graph
        self.scope = Scope("", None)
        self.module_stack = OrderedDict()
        self.node_name_to_scope = {}


def assert_fn(x: Any) -> None:
    """The call that an `assert` becomes where asserts are traced."""
    assert x


@compatibility(is_backward_compatible=True)
class Proxy:
    """Stands for a value that the traced program computes. Calls, methods, operators and attributes become nodes."""

    node: Node
    tracer: TracerBase

    @compatibility(is_backward_compatible=True)
    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        # From now on functions ask the classes of their arguments before they look at them.
        overrides.override_types.add(type(self))
        self.tracer = GraphAppendingTracer(node.graph) if tracer is None else tracer
        self.node = node

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, k: str) -> Attribute:
        # A node is only made if the attribute is used as something else than a method.
        return Attribute(self, k)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__

    def __setstate__(self, d: dict[str, Any]) -> None:
        self.__dict__ = d

    def __deepcopy__(self, memo: dict[int, Any]) -> Proxy:
        # __getattr__ would answer for every method that copying asks for.
        import copy

        state = {name: copy.deepcopy(value, memo) for name, value in self.__dict__.items()}
        new = Proxy.__new__(type(self))
        new.__dict__.update(state)
        return new

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator[Proxy]:
        count = _values_wanted(sys._getframe(1))
        if count is None:
            return self.tracer.iter(self)
        return (self[place] for place in range(count))  # type: ignore[index]

    def __abs__(self) -> Proxy:
        return self.tracer.create_proxy("call_function", operator.abs, (self,), {})

    def __bool__(self) -> bool:
        if self.tracer.trace_asserts and _is_asserted(sys._getframe(1)):
            self.tracer.create_proxy("call_function", assert_fn, (self,), {})
            return True
        return self.tracer.to_bool(self)

    @compatibility(is_backward_compatible=True)
    def keys(self) -> Any:
        return self.tracer.keys(self)

    def __len__(self) -> int:
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. If you want this call to be recorded, please call "
            "torch.fx.wrap('len') at module scope"
        )

    @classmethod
    def __torch_function__(cls, orig_method: Any, types: Any, args: Any = None, kwargs: Any = None) -> Any:
        args, kwargs = args or (), kwargs or {}
        tracer = _common_tracer(orig_method, args, kwargs)
        if is_tensor_method_or_property(orig_method):
            return tracer.create_proxy("call_method", _method_name(orig_method), args, kwargs)
        name = public_name(orig_method)
        if name in _METHODS:
            return tracer.create_proxy("call_method", _METHODS[name], args, kwargs)
        if name in _INTERPOLATIONS:
            return _interpolated(name, *args, **kwargs)
        args, kwargs = _as_pytorch_passes(orig_method, args, kwargs)
        orig_method = _with_indices(orig_method, kwargs)
        return tracer.create_proxy("call_function", orig_method, args, kwargs, name=orig_method.__name__)


def _common_tracer(function: Any, args: Any, kwargs: Any) -> TracerBase:
    """The tracer of all proxies among the arguments. Raises: RuntimeError if there are several."""
    tracers: dict[TracerBase, None] = {}

    def note(leaf: Any) -> Any:
        if isinstance(leaf, Proxy):
            tracers[leaf.tracer] = None
        return leaf

    map_aggregate(args, note)
    map_aggregate(kwargs, note)
    if len(tracers) > 1:
        raise RuntimeError(
            f"Found multiple different tracers {list(tracers)} while trying to trace operations {function}"
        )
    return next(iter(tracers))


def _method_name(method: Any) -> str:
    """The name of a method of Tensor as PyTorch's handlers see it."""
    return "eq" if method.__name__ == "__eq__" else method.__name__


# Functions that are calls of a method in PyTorch, and so are nodes of this kind.
_METHODS = {"nn.functional.sigmoid": "sigmoid", "nn.functional.tanh": "tanh"}
_INTERPOLATIONS = (
    "nn.functional.upsample",
    "nn.functional.upsample_bilinear",
    "nn.functional.upsample_nearest",
)
# Keywords that PyTorch does not pass to handlers.
_UNPASSED = {"nn.functional.l1_loss": "weight"}


def _interpolated(
    name: str,
    input: Any,
    size: Any = None,
    scale_factor: Any = None,
    mode: Any = "nearest",
    align_corners: Any = None,
) -> Any:
    """The old functions are calls of `interpolate`."""
    if name.endswith("bilinear"):
        mode, align_corners = "bilinear", True
    return interpolate(input, size, scale_factor, mode, align_corners)


def _as_pytorch_passes(function: Any, args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
    """The arguments of a function that PyTorch writes in Python, as its `__torch_function__` sees them.

    Those with a default come as keywords, all of them.
    """
    name = public_name(function)
    if name is None or not is_written_in_python(name):
        return args, kwargs
    try:
        bound = inspect.signature(function).bind(*args, **kwargs)
    except TypeError:
        return args, kwargs
    bound.apply_defaults()
    positional: list[Any] = []
    named: dict[str, Any] = {}
    for each in bound.signature.parameters.values():
        value = bound.arguments[each.name]
        if each.kind is each.VAR_POSITIONAL:
            positional.extend(value)
        elif each.kind is each.VAR_KEYWORD:
            named.update(value)
        elif each.default is each.empty and each.kind is not each.KEYWORD_ONLY:
            positional.append(value)
        else:
            if (further := _FURTHER.get(name)) is not None and further[1] == each.name:
                named[further[0]] = None
            named[each.name] = value
    named.pop(_UNPASSED.get(name, ""), None)
    return tuple(positional), named


# Keywords that PyTorch's functions have and weft's signatures do not show, and before which one they stand.
_FURTHER = {"norm": ("out", "dtype")}


def _with_indices(function: Any, kwargs: dict[str, Any]) -> Any:
    """PyTorch has functions of their own for poolings that return indices as well."""
    name = public_name(function)
    if name is None or "max_pool" not in name or not kwargs.get("return_indices"):
        return function
    return FUNCTIONS.get(f"{name}_with_indices", function)


def _values_wanted(frame: FrameType) -> int | None:
    """How many values `a, b = proxy` wants; None if the frame does not unpack."""
    instructions = list(dis.get_instructions(frame.f_code))
    place = next((i for i, each in enumerate(instructions) if each.offset == frame.f_lasti), None)
    if place is None:
        return None
    found = instructions[place]
    return found.argval if found.opname == "UNPACK_SEQUENCE" else None


def _is_asserted(frame: FrameType) -> bool:
    """Whether the frame is in an `assert`: a jump over the raising of AssertionError."""
    instructions = list(dis.get_instructions(frame.f_code))
    place = next((i for i, each in enumerate(instructions) if each.offset == frame.f_lasti), None)
    if place is None:
        return False
    following = [each.opname for each in instructions[place : place + 4]]
    jumps = any(each.startswith("POP_JUMP") and each.endswith("IF_TRUE") for each in following[:3])
    return jumps and any(
        each.opname in ("LOAD_ASSERTION_ERROR", "LOAD_COMMON_CONSTANT")
        for each in instructions[place : place + 5]
    )


def _is_dataclass_instance(value: Any) -> bool:
    return hasattr(type(value), "__dataclass_fields__")


@compatibility(is_backward_compatible=False)
class MetaProxy(Proxy):
    """A Proxy that knows what its value is like: results are computed from `node.meta["val"]` of the arguments."""

    def __init__(self, node: Node, tracer: TracerBase | None = None, fake_mode: Any | None = None) -> None:
        super().__init__(node, tracer)
        self.fake_mode = fake_mode

    def __repr__(self) -> str:
        return f"MetaProxy({self.node.name})"

    @classmethod
    def __torch_function__(cls, orig_method: Any, types: Any, args: Any = None, kwargs: Any = None) -> Any:
        args, kwargs = args or (), kwargs or {}
        proxy = super().__torch_function__(orig_method, types, args, kwargs)

        def value(leaf: Any) -> Any:
            return leaf.node.meta["val"] if isinstance(leaf, MetaProxy) else leaf

        proxy.node.meta["val"] = orig_method(*map_aggregate(args, value), **map_aggregate(kwargs, value))
        return MetaProxy(proxy.node, proxy.tracer)


@compatibility(is_backward_compatible=True)
class Attribute(Proxy):
    """`proxy.name`: becomes a call of the method `name` if it is called, and else a call of `getattr`."""

    @compatibility(is_backward_compatible=True)
    def __init__(self, root: Proxy, attr: str) -> None:
        overrides.override_types.add(type(self))
        self.root = root
        self.attr = attr
        self.tracer = root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:  # type: ignore[override]
        if self._node is None:
            self._node = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {}).node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


@compatibility(is_backward_compatible=False)
class ParameterProxy(Proxy):
    """A parameter of the module; its shape is known while tracing."""

    def __init__(self, tracer: TracerBase, node: Node, name: str, param: Any) -> None:
        super().__init__(node, tracer)
        if not isinstance(param, Tensor):
            raise AssertionError(f"Expected Parameter, got {type(param)}")
        self.param = param
        self.name = name

    def __repr__(self) -> str:
        return f"ParameterProxy({self.name})"

    @property
    def shape(self) -> Any:
        return self.param.shape

    def size(self) -> Any:
        return self.param.size()

    def dim(self) -> int:
        return self.param.dim()

    @property
    def ndim(self) -> int:
        return self.param.ndim

    def numel(self) -> int:
        return self.param.numel()

    def nelement(self) -> int:
        return self.param.nelement()


def _add_operator(name: str) -> None:
    target = getattr(operator, name) if hasattr(operator, name) else None
    if target is None:  # "div", which the module `operator` has not
        target = operator.truediv

    def method(*args: Any, **kwargs: Any) -> Proxy:
        return args[0].tracer.create_proxy("call_function", target, args, kwargs)

    method.__name__ = f"__{name.strip('_')}__"
    setattr(Proxy, method.__name__, method)


def _add_reflected_operator(name: str) -> None:
    target = getattr(operator, name, operator.truediv)

    def method(self: Proxy, rhs: Any) -> Proxy:
        return self.tracer.create_proxy("call_function", target, (rhs, self), {})

    method.__name__ = f"__r{name.strip('_')}__"
    method.__qualname__ = method.__name__
    setattr(Proxy, method.__name__, method)


for _name in magic_methods:
    _add_operator(_name)
for _name in reflectable_magic_methods:
    _add_reflected_operator(_name)
Proxy.__hash__ = object.__hash__  # type: ignore[method-assign]  # __eq__ took it away
