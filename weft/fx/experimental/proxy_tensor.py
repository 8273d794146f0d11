"""`make_fx`: the graph of what a function does with given tensors.

weft records functions and methods of `torch`, not the operations of `torch.ops.aten` that PyTorch records. The values are
computed, so control flow may depend on shapes and dtypes. What is recorded does not depend on the numbers: asking for
one raises RuntimeError, as in PyTorch.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import operator
from collections.abc import Callable, Iterator
from typing import Any

import weft

from ...compat.missing import module_getattr
from ...core import pytree as pytree
from ...core.overrides import DisableTorchFunctionSubclass, full_name
from ...core.registry import FUNCTIONS
from ...core.tensor import Tensor
from ...func.running import refused
from ...nn import Module, Parameter
from ...overrides import is_tensor_method_or_property
from .._symbolic_trace import Tracer, _new_patcher
from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Argument
from ..proxy import Proxy

__all__ = [
    "get_innermost_proxy_mode",
    "get_proxy_mode",
    "make_fx",
    "maybe_disable_thunkify",
    "maybe_enable_thunkify",
]


class _ConstantTracer(Tracer):
    """A Tracer to which all tensors that are no inputs are constants, parameters as well."""

    def create_arg(self, a: Any) -> Argument:
        if isinstance(a, Parameter):
            return self.create_node("get_attr", self._constant(a, "_param_constant"), (), {})
        return super().create_arg(a)


class _Tracing:
    """The state of one `make_fx`: the graph, and the proxy of each tensor."""

    def __init__(self) -> None:
        self.tracer = _ConstantTracer()
        self.tracer.root = Module()
        self.tracer.graph = Graph(tracer_cls=Tracer)
        self.tracer.tensor_attrs = {}

    def tracked(self, value: Any, proxy: Proxy) -> Any:
        """The tensors in a result as tensors that are traced."""
        if isinstance(value, Tensor):
            proxy.node.meta["val"] = value
            return _traced(value, self, proxy)
        if isinstance(value, (tuple, list)) and any(
            isinstance(each, (Tensor, tuple, list)) for each in value
        ):
            parts = [self.tracked(each, proxy[place]) for place, each in enumerate(value)]  # type: ignore[index]
            make: Any = getattr(type(value), "_make", type(value))
            return make(parts)
        return value

    def record(self, func: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
        with DisableTorchFunctionSubclass():
            plain_args, plain_kwargs = pytree.tree_map(_plain, (args, kwargs))
            value = func(*plain_args, **plain_kwargs)
        if func.__name__ == "__setitem__":
            self.tracer.create_proxy(
                "call_function", operator.setitem, *pytree.tree_map(_proxy, (args, kwargs))
            )
            return None
        if not _has_tensor(value):
            if func.__name__ in _NUMBERS:
                raise RuntimeError(
                    f"make_fx: the program asks for the number in a tensor ({func.__name__}), and the graph must not depend on "
                    "it. Use torch.where or another function of tensors instead of control flow"
                )
            return value  # a shape, a dtype: the same for all tensors like these
        proxy_args, proxy_kwargs = pytree.tree_map(_proxy, (args, kwargs))
        written = (
            args[0] if func.__name__.endswith("_") and not func.__name__.endswith("__") and args else None
        )
        if func.__name__ == "__get__":
            name = (full_name(func) or "").split(".")[2]
            proxy = self.tracer.create_proxy("call_function", getattr, (proxy_args[0], name), {})
        elif is_tensor_method_or_property(func):
            proxy = self.tracer.create_proxy("call_method", func.__name__, proxy_args, proxy_kwargs)
        else:
            proxy = self.tracer.create_proxy("call_function", func, proxy_args, proxy_kwargs)
        if isinstance(written, _ProxyTensor):
            written._traced_proxy = proxy
            return written
        return self.tracked(value, proxy)


# Methods that give the number in a tensor.
_NUMBERS = frozenset(
    "item tolist __bool__ __int__ __float__ __complex__ __index__ equal allclose is_nonzero".split()
)


class _ProxyTensor(Tensor):
    """A tensor whose operations are recorded."""

    _traced_state: _Tracing
    _traced_proxy: Proxy
    _traced_value: Tensor

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        leaves = pytree.tree_leaves((args, kwargs))
        state = next(each._traced_state for each in leaves if isinstance(each, _ProxyTensor))
        return state.record(func, args, kwargs)

    def __repr__(self, **kwargs: Any) -> str:  # type: ignore[override]
        return f"ProxyTensor({self._traced_value!r})"


def _traced(value: Tensor, state: _Tracing, proxy: Proxy) -> _ProxyTensor:
    with DisableTorchFunctionSubclass():
        made = value.detach().as_subclass(_ProxyTensor)
    made.__dict__.update(_traced_state=state, _traced_proxy=proxy, _traced_value=value)
    return made


def _plain(leaf: Any) -> Any:
    return leaf._traced_value if isinstance(leaf, _ProxyTensor) else leaf


def _proxy(leaf: Any) -> Any:
    return leaf._traced_proxy if isinstance(leaf, _ProxyTensor) else leaf


def _has_tensor(value: Any) -> bool:
    return any(isinstance(each, Tensor) for each in pytree.tree_leaves(value))


# Functions that make tensors out of nothing: each becomes a node.
_FACTORIES = "zeros ones empty full rand randn randint randperm arange linspace logspace eye".split()


_TRANSFORMS_REFUSED = "a transform of torch.func within make_fx: weft records functions of torch, and a transform works on tensors that are not recorded"


def _refusal(name: str) -> Callable[..., Any]:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(
            f"{name} within make_fx: weft records functions of torch, and the steps of backward are none of them"
        )

    return refuse


@contextlib.contextmanager
def _intercepted(state: _Tracing) -> Iterator[None]:
    """Inside, factories are recorded, and backward and transforms are refused: their results would look like constants."""

    def recording(function: Callable) -> Callable:
        @functools.wraps(function)
        def factory(*args: Any, **kwargs: Any) -> Any:
            value = function(*args, **kwargs)
            return state.tracked(value, state.tracer.create_proxy("call_function", function, args, kwargs))

        return factory

    with _new_patcher() as patcher, refused(_TRANSFORMS_REFUSED):
        for name in _FACTORIES:
            patcher.patch(vars(weft), name, recording(FUNCTIONS[name]))
        for name in ("grad", "backward"):
            patcher.patch(vars(weft.autograd), name, _refusal(f"torch.autograd.{name}"))
        patcher.patch_method(Tensor, "backward", _refusal("Tensor.backward"))
        yield


def make_fx(
    f: Callable,
    decomposition_table: Any = None,
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
    """A function that takes the arguments of `f` and returns a GraphModule of what `f` does with such arguments.

    The nodes are functions and methods of `torch`. `decomposition_table` must be empty, and derivatives and `vmap` cannot be taken
    inside. Only `tracing_mode="real"` is there.

    >>> import weft as torch
    >>> def double(x):
    ...     return x * 2 if x.dim() == 1 else x
    >>> print(make_fx(double)(torch.ones(3)).code.strip())
    def forward(self, x_1):
        mul = x_1.mul(2);  x_1 = None
        return mul
    """
    if decomposition_table:
        raise NotImplementedError(
            "make_fx(decomposition_table=...): weft records functions of torch, which have no decompositions"
        )
    if tracing_mode not in ("real", "fake", "symbolic"):
        raise AssertionError(f"Unexpected tracing type: {tracing_mode}")
    if tracing_mode != "real":
        raise NotImplementedError(
            f"make_fx(tracing_mode={tracing_mode!r}): weft traces with real tensors; use 'real'"
        )

    @functools.wraps(f)
    def traced(*args: Any) -> GraphModule:
        state = _Tracing()
        leaves, spec = pytree.tree_flatten(args)
        names = iter(_names(f, args))
        given: list[Any] = []
        for leaf in leaves:
            proxy = state.tracer.create_proxy("placeholder", next(names), (), {})
            given.append(_traced(leaf, state, proxy) if isinstance(leaf, Tensor) else leaf)
        with _intercepted(state):
            result = f(*pytree.tree_unflatten(given, spec))
        output = pytree.tree_map(_proxy, result)
        state.tracer.create_node("output", "output", (_argument(state, output),), {})
        module = GraphModule(state.tracer.root, state.tracer.graph, getattr(f, "__name__", type(f).__name__))
        module.recompile()
        return module

    return traced


def _argument(state: _Tracing, output: Any) -> Argument:
    return state.tracer.create_arg(output)


def _names(f: Callable, args: tuple) -> list[str]:
    """The names of the inputs: of the parameters, with a number for each tensor in them."""
    try:
        parameters = list(inspect.signature(f).parameters)
    except (TypeError, ValueError):
        parameters = []
    names: list[str] = []
    for place, arg in enumerate(args):
        base = parameters[place] if place < len(parameters) else f"arg{place}"
        names += [f"{base}_{number}" for number, _ in enumerate(pytree.tree_leaves(arg), 1)]
    return names


def get_proxy_mode() -> None:
    """The mode that records operations: weft has none."""
    return None


def get_innermost_proxy_mode() -> None:
    """The innermost mode that records operations: weft has none."""
    return None


@contextlib.contextmanager
def maybe_disable_thunkify() -> Iterator[None]:
    """Nothing is put off, so there is nothing to disable."""
    yield


@contextlib.contextmanager
def maybe_enable_thunkify() -> Iterator[None]:
    """Nothing is put off."""
    yield


__getattr__ = module_getattr(__name__)
