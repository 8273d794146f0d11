"""`make_fx`: the graph of the operators that a function calls with given tensors.

A dispatch mode computes each operator and adds a node for it. So control flow may depend on shapes and dtypes, and the operators of
backward passes are nodes as well. What is recorded does not depend on the numbers: asking for one raises RuntimeError, as in PyTorch.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from ...autograd.parameter import Parameter
from ...core import pytree as pytree
from ...core.overrides import modes
from ...core.tensor import Tensor
from ...core.weak import WeakIdKeyDictionary, WeakTensorKeyDictionary
from ...func.running import refused
from ...library.fake_tensor import FakeTensor, FakeTensorMode, _claim
from ...library.keys import Tag
from ...library.namespaces import ops
from ...library.python_dispatch import TorchDispatchMode
from .._symbolic_trace import PH, Tracer
from ..graph import Graph
from ..graph_module import GraphModule
from ..interpreter import Interpreter
from ..node import Argument, Node, Target
from ..passes.shape_prop import _extract_tensor_metadata
from ..proxy import GraphAppendingTracer, Proxy

__all__ = [
    "DecompositionInterpreter", "PythonKeyTracer", "disable_proxy_modes_tracing", "get_innermost_proxy_mode",
    "get_isolated_graphmodule", "get_proxy_mode", "make_fx", "maybe_disable_thunkify",
    "maybe_enable_thunkify",
]  # fmt: skip

# A tensor that is made of data keeps its value up to this number of elements, so that `item()` works.
CONSTANT_NUMEL_LIMIT = 1


class PythonKeyTracer(Tracer):
    """A Tracer that looks into all modules, and to which tensors that are no inputs are constants, parameters as well."""

    def __init__(self) -> None:
        super().__init__(autowrap_modules=())

    def _patched(self, globals_of_root: dict[str, Any]) -> Any:
        return contextlib.nullcontext()  # the function gets tensors, so that no call has to look for proxies

    def create_arg(self, a: Any) -> Argument:
        if isinstance(a, Parameter) and all(a is not each for each in self.root.parameters()):
            return self.create_node("get_attr", self._constant(a, "_param_constant"), (), {})
        return super().create_arg(a)


class _Tracked(NamedTuple):
    """What a mode knows of a tensor: its node, and its value if that is a constant."""

    proxy: Proxy
    constant: Tensor | None


_TRANSFORMS_REFUSED = (
    "vmap or forward mode within make_fx: samples and tangents are no tensors that operators are told of"
)


class ProxyTorchDispatchMode(TorchDispatchMode):
    """A mode that adds a node to the tracer's graph for each operator.

    decomposition_table: functions to call in place of operators; what they call is recorded.
    """

    _records = True

    def __init__(
        self,
        tracer: Any,
        tracing_mode: str = "real",
        decomposition_table: Mapping[Any, Callable] | None = None,
    ) -> None:
        super().__init__()
        self.tracer, self.tracing_mode = tracer, tracing_mode
        self.decomposition_table = decomposition_table or {}
        self._tracked: Any = WeakTensorKeyDictionary()
        self._aliases: Any = (
            WeakIdKeyDictionary()
        )  # storage -> what is known of its tensors, by offset and spec
        self._metadata = FakeTensorMode()  # of the tensors in `meta["val"]`

    # -- Tensors and their nodes ---------------------------------------------------------------------------------------

    def track(self, value: Any, proxy: Proxy, constant: Any = None) -> None:
        """Remember that the tensors in a value are what a node gives."""
        proxy.node.meta["val"] = pytree.tree_map_only(Tensor, self._snapshot, value)
        if isinstance(value, Tensor):
            known = self._tracked[value] = _Tracked(proxy, constant)
            self._aliases.setdefault(value._storage, {})[value._byte_offset, value.spec] = known
            proxy.node.meta["tensor_meta"] = _extract_tensor_metadata(value)
        elif isinstance(value, (tuple, list)):
            for place, each in enumerate(value):
                self.track(each, proxy[place], None if constant is None else constant[place])  # type: ignore[arg-type, index]

    def _snapshot(self, tensor: Tensor) -> Tensor:
        """A tensor with this metadata, which does not change if the program changes its tensor."""
        with _only(()):
            return self._metadata._faked(tensor, _claim(tensor.device))

    def _known(self, tensor: Tensor) -> _Tracked | None:
        """What is known of a tensor, or of another one that is the same memory: transforms make such stand-ins of arguments."""
        found = self._tracked.get(tensor)
        if found is None:
            found = self._aliases.get(tensor._storage, {}).get((tensor._byte_offset, tensor.spec))
        return found

    def proxy_of(self, leaf: Any) -> Any:
        """The proxy of a tensor that an operator of the program gave; anything else as it is."""
        found = self._known(leaf) if isinstance(leaf, Tensor) else None
        return leaf if found is None else found.proxy

    def _constant_of(self, tensor: Tensor) -> Tensor | None:
        found = self._known(tensor)
        return None if found is None else found.constant

    def _is_ours(self, tensor: Tensor) -> bool:
        return type(tensor) in (Tensor, Parameter, FakeTensor) or tensor in self._tracked

    # -- Operators -------------------------------------------------------------------------------------------------------

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        tensors = [each for each in pytree.tree_leaves((args, kwargs)) if isinstance(each, Tensor)]
        if not all(map(self._is_ours, tensors)):
            return NotImplemented  # the class of a wrapper calls operators of what it wraps
        if func in self.decomposition_table:
            with _only((*modes.dispatch, self)):
                result = self.decomposition_table[func](*args, **kwargs)
            if result is not NotImplemented:
                return result
        if func is ops.aten.lift_fresh.default:
            func = ops.aten.lift_fresh_copy.default  # the graph must not write to its constant
        is_constant = bool(tensors) and all(self._constant_of(each) is not None for each in tensors)
        if Tag.data_dependent_output in func.tags and not is_constant and not _any_fake(tensors):
            raise RuntimeError(
                f"make_fx: the program asks for the number in a tensor ({func}), and the graph must not depend on it: this is "
                "data-dependent control flow. Use torch.where or another function of tensors instead"
            )
        if Tag.data_dependent_output in func.tags and is_constant:
            return self._computed(func, args, kwargs)
        return self._recorded(func, args, kwargs, is_constant)

    def _recorded(self, func: Any, args: tuple, kwargs: dict[str, Any], is_constant: bool) -> Any:
        """The result of an operator, for which there is a node."""
        given = pytree.tree_map(self.proxy_of, (args, kwargs))
        name = self.tracer.graph._target_to_str(func._opname)
        proxy = self.tracer.create_proxy("call_function", func, *given, name=name)
        constant = None
        if func is ops.aten.lift_fresh_copy.default and args[0].numel() <= CONSTANT_NUMEL_LIMIT:
            with _only(()):
                constant = args[0].clone()
        result = func(*args, **kwargs)
        if is_constant and Tag.nondeterministic_seeded not in func.tags and _is_small(result):
            constant = self._computed(func, args, kwargs)
        if not isinstance(result, (Tensor, tuple, list)):
            return result
        self.track(result, proxy, constant)
        if func._schema.is_mutable and isinstance(args[0], (tuple, list)) and not result:
            for place, each in enumerate(args[0]):
                self.track(each, proxy[place])  # type: ignore[arg-type, index]
        return result

    def _computed(self, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The result of an operator for the constants that the tensors are."""
        values = pytree.tree_map(
            lambda leaf: self._constant_of(leaf) if isinstance(leaf, Tensor) else leaf, (args, kwargs)
        )
        with _only(()):
            return func(*values[0], **values[1])

    def _call_op(self, op: Any, args: tuple, static: dict[str, Any]) -> Any:
        if any(isinstance(each, Tensor) and each in self._tracked for each in pytree.tree_leaves(args)):
            raise NotImplementedError(
                f"make_fx: weft computes {op.name} by a step that is not an operator of PyTorch, so a graph of aten operators "
                "cannot contain it"
            )
        return super()._call_op(op, args, static)


@contextlib.contextmanager
def _only(dispatch_modes: tuple) -> Iterator[None]:
    """A context with these dispatch modes."""
    outer, modes.dispatch = modes.dispatch, dispatch_modes
    try:
        yield
    finally:
        modes.dispatch = outer


def _any_fake(tensors: list[Tensor]) -> bool:
    return any(isinstance(each, FakeTensor) for each in tensors)


def _is_small(result: Any) -> bool:
    leaves = pytree.tree_leaves(result)
    return all(isinstance(each, Tensor) and each.numel() <= CONSTANT_NUMEL_LIMIT for each in leaves)


# ---- make_fx -------------------------------------------------------------------------------------------------------------


def make_fx(
    f: Callable,
    decomposition_table: Mapping[Any, Callable] | None = None,
    tracing_mode: str = "real",
    _allow_non_fake_inputs: bool = False,
    *,
    pre_dispatch: bool = False,
    record_module_stack: bool = False,
    _allow_fake_constant: bool = False,
    _error_on_data_dependent_ops: bool = True,
    record_stack_traces: bool = False,
    proxy_module_inputs: bool = False,
    _disable_torch_fn_metadata_mode: bool = False,
) -> Callable[..., GraphModule]:
    """A function that takes the arguments of `f` and returns a GraphModule of the operators that `f` calls for such arguments.

    decomposition_table: operator -> a function to call in its place; it may return NotImplemented to keep the operator.
    tracing_mode: "real" computes with the arguments, "fake" with tensors without values.
    Raises: NotImplementedError for "symbolic", because weft's sizes are ints; RuntimeError if `f` asks for a number in a tensor.

    >>> import weft as torch
    >>> def double(x):
    ...     return x * 2 if x.dim() == 1 else x
    >>> print(make_fx(double)(torch.ones(3)).code.strip())
    def forward(self, x_1):
        mul = torch.ops.aten.mul.Tensor(x_1, 2);  x_1 = None
        return mul
    """
    if tracing_mode not in ("real", "fake", "symbolic"):
        raise AssertionError(f"Unexpected tracing type: {tracing_mode}")
    if tracing_mode == "symbolic" or pre_dispatch:
        raise NotImplementedError(
            f"make_fx(tracing_mode={tracing_mode!r}, pre_dispatch={pre_dispatch}): weft's sizes are ints, and it records "
            "operators beneath autograd; use tracing_mode='real' or 'fake'"
        )

    @functools.wraps(f)
    def traced(*args: Any) -> GraphModule:
        mode = ProxyTorchDispatchMode(PythonKeyTracer(), tracing_mode, decomposition_table)
        fake_mode = _fake_mode(args, _allow_non_fake_inputs) if tracing_mode == "fake" else None
        graph = trace(f, args, mode, fake_mode)
        return GraphModule(mode.tracer.root, graph, getattr(f, "__name__", type(f).__name__))

    return traced


def trace(f: Callable, args: tuple, mode: ProxyTorchDispatchMode, fake_mode: FakeTensorMode | None) -> Graph:
    """The graph of what `f(*args)` does, as `mode` records it; under `fake_mode` with tensors without values."""
    with disable_proxy_modes_tracing(), fake_mode or contextlib.nullcontext():
        if fake_mode is not None:
            args = pytree.tree_map_only(Tensor, fake_mode.from_tensor, args)
        return mode.tracer.trace(_started(f, args, mode), pytree.tree_map(lambda _: PH, args))


def _fake_mode(args: tuple, allow_non_fake_inputs: bool) -> FakeTensorMode:
    found = (each.fake_mode for each in pytree.tree_leaves(args) if isinstance(each, FakeTensor))
    return next(found, None) or FakeTensorMode(allow_non_fake_inputs=allow_non_fake_inputs)


def _started(f: Callable, args: tuple, mode: ProxyTorchDispatchMode) -> Callable:
    """A function of proxies, with the names of the parameters of `f`, that calls `f` with the arguments under the mode."""
    function = inspect.unwrap(f)
    code = getattr(function, "__code__", None)
    starred = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
    if code is None or code.co_flags & starred or code.co_argcount + code.co_kwonlyargcount != len(args):
        names = ", ".join(f"arg{place}" for place in range(len(args)))
        function = eval(f"lambda {names}: f({names})", {"f": f})

    @functools.wraps(function)
    def started(*proxies: Any) -> Any:
        for leaf, proxy in zip(pytree.tree_leaves(args), pytree.tree_leaves(proxies), strict=True):
            if isinstance(leaf, Tensor):
                mode.track(leaf, proxy)
        with mode, refused(_TRANSFORMS_REFUSED):
            result = f(*args)
        return pytree.tree_map(mode.proxy_of, result)

    return started


def get_isolated_graphmodule(
    func: Callable,
    args: tuple,
    kwargs: dict[str, Any],
    tracing_mode: str = "real",
    decomposition_table: Mapping[Any, Callable] | None = None,
) -> GraphModule:
    """The graph of `func(*args, **kwargs)`, as a function of the list of all leaves. An outer `make_fx` does not record it."""
    leaves, spec = pytree.tree_flatten((args, kwargs))

    def wrapped(leaves: list[Any]) -> Any:
        given, named = pytree.tree_unflatten(leaves, spec)
        return func(*given, **named)

    return make_fx(wrapped, decomposition_table, tracing_mode)(leaves)


class DecompositionInterpreter(Interpreter):
    """Runs a graph of operators, and adds the operators that it calls to `new_graph`, decomposed by `decomposition_table`."""

    def __init__(
        self,
        module: GraphModule,
        new_graph: Graph,
        decomposition_table: Mapping[Any, Callable] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(module, **kwargs)
        self.new_graph = new_graph
        self.tracer = GraphAppendingTracer(new_graph)
        self.mode = ProxyTorchDispatchMode(self.tracer, "real", decomposition_table)

    def _tracked(self, node: Node, value: Any) -> Any:
        self.mode.track(value, Proxy(node, self.tracer))
        return value

    def placeholder(self, target: Target, args: tuple, kwargs: dict[str, Any]) -> Any:
        return self._tracked(
            self.new_graph.placeholder(str(target)), super().placeholder(target, args, kwargs)
        )

    def get_attr(self, target: Target, args: tuple, kwargs: dict[str, Any]) -> Any:
        return self._tracked(self.new_graph.get_attr(str(target)), super().get_attr(target, args, kwargs))

    def output(self, target: Target, args: tuple, kwargs: dict[str, Any]) -> Any:
        result = super().output(target, args, kwargs)
        self.new_graph.output(
            pytree.tree_map(lambda each: getattr(self.mode.proxy_of(each), "node", each), result)
        )
        return result

    def run(self, *args: Any, **kwargs: Any) -> Any:
        with disable_proxy_modes_tracing(), self.mode:
            return super().run(*args, **kwargs)


# ---- Modes that are on ---------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def disable_proxy_modes_tracing() -> Iterator[ProxyTorchDispatchMode | None]:
    """A context whose operators are not recorded; its value is the mode that recorded them outside."""
    found = get_proxy_mode()
    with _only(tuple(each for each in modes.dispatch if not isinstance(each, ProxyTorchDispatchMode))):
        yield found


def get_proxy_mode() -> ProxyTorchDispatchMode | None:
    """The mode that records operators now."""
    return next((each for each in reversed(modes.dispatch) if isinstance(each, ProxyTorchDispatchMode)), None)


def get_innermost_proxy_mode() -> ProxyTorchDispatchMode | None:
    """The mode that records operators now: there is at most one."""
    return get_proxy_mode()


@contextlib.contextmanager
def maybe_disable_thunkify() -> Iterator[None]:
    """Nothing is put off, so there is nothing to disable."""
    yield


@contextlib.contextmanager
def maybe_enable_thunkify() -> Iterator[None]:
    """Nothing is put off."""
    yield
