"""Tracing with values: a graph of functions, made by running a module on its example inputs.

`torch.fx.symbolic_trace` knows nothing of its inputs, so that a program that asks for a shape, or decides by one, cannot be
traced. Here every Proxy carries the value that the example inputs give it. Shapes, dtypes and devices are answered
from it, modules are traced through, and only what depends on the elements of a tensor is refused.

A size that may differ from call to call is told from a constant by running twice: the module runs on a second set of
inputs at the same time, in which each dynamic dimension has another size. A dimension whose two sizes differ is dynamic,
and a size of it is a `SymbolicSize`: an int that is written into the graph where it is used. Whatever compares equal in
both runs counts as equal for all sizes, as PyTorch takes sizes above 1 to behave alike.
"""

from __future__ import annotations

import functools
import operator
import sys
from collections.abc import Callable, Iterator
from typing import Any

import weft

from ..core.names import FUNCTIONS
from ..core.size import Size
from ..core.tensor import Tensor
from ..fx._symbolic_trace import Tracer, _maybe_revert_all_patches
from ..fx.graph import Graph
from ..fx.node import Node, map_arg
from ..fx.proxy import Attribute, Proxy
from ..utils._pytree import TreeSpec, tree_flatten, tree_leaves, tree_unflatten

# Attributes of a tensor that do not depend on its elements.
_METADATA = frozenset(
    """shape ndim dtype device layout itemsize nbytes is_cuda is_cpu is_meta is_sparse is_quantized is_nested is_mkldnn is_xpu
    is_mps is_leaf requires_grad names is_sparse_csr is_xla is_ipu is_mtia is_vulkan is_inference grad grad_fn""".split()
)
# Methods and functions whose results are such numbers.
_QUESTIONS = frozenset(
    """size dim ndimension numel nelement stride storage_offset is_contiguous is_floating_point is_complex is_signed
    element_size get_device is_tensor is_inference is_conj is_neg type __len__ dim_order is_same_size""".split()
)
# Those whose results depend on elements.
_ELEMENTS = frozenset(
    "item tolist equal allclose is_nonzero __bool__ __int__ __float__ __index__ __contains__".split()
)

# Functions that only take sizes, so that they have no argument whose class they could ask.
_OF_SIZES = (
    "zeros", "ones", "empty", "full", "arange", "eye", "linspace", "tril_indices", "triu_indices",
    "rand", "randn", "randint", "randperm", "normal",
)  # fmt: skip
_RANDOM = (
    "rand",
    "randn",
    "randint",
    "randperm",
    "normal",
)  # they differ from call to call, whatever their sizes


class DataDependentError(RuntimeError):
    """The program asks for the elements of a tensor, to decide what to do next."""

    def __init__(self, what: str):
        super().__init__(
            f"{what} depends on the elements of a tensor, which differ from call to call. Use torch.where or torch.cond, "
            "or leave this part of the program out of what is exported"
        )


class SymbolicSize(int):
    """A size that differs from call to call: the int that it is for the example inputs, and the node that computes it.

    `other` is its value in the second run. `make` adds the node to the graph, when the size is first used as an argument.
    """

    other: int
    tracer: ValueTracer
    make: Callable[[], Node]

    def __new__(cls, value: int, other: int, tracer: ValueTracer, make: Callable[[], Node]) -> SymbolicSize:
        self = super().__new__(cls, value)
        self.other, self.tracer, self.make = other, tracer, functools.cache(make)
        return self

    def __fx_create_arg__(self, tracer: ValueTracer) -> Node:
        return self.make()

    def __reduce__(self) -> tuple:
        return int, (int(self),)


def _other(value: Any) -> Any:
    return value.other if isinstance(value, SymbolicSize) else value


def _arithmetic(name: str, function: Callable, reflected: bool = False) -> None:
    def method(self: SymbolicSize, *operands: Any) -> Any:
        if not all(isinstance(each, (int, float)) for each in operands):
            return NotImplemented
        return _computed(function, (*operands, self) if reflected else (self, *operands))

    setattr(SymbolicSize, name, method)


def _computed(function: Callable, operands: tuple) -> Any:
    """`function(*operands)`: a SymbolicSize if the two runs disagree, else the number they agree on."""
    first = function(*(int(each) if isinstance(each, SymbolicSize) else each for each in operands))
    second = function(*(_other(each) for each in operands))
    if first == second:
        return first
    if isinstance(first, bool):
        raise RuntimeError(
            f"Constraints violated: the program compares sizes ({function.__name__} of {operands}), and the answer is not the "
            "same for all sizes of the dynamic dimensions. Make the dimension static, or give the Dim bounds for which it is"
        )
    if isinstance(first, int):
        tracer = next(each.tracer for each in operands if isinstance(each, SymbolicSize))
        return SymbolicSize(
            first, second, tracer, lambda: tracer.size_node(function, operands, first, second)
        )
    raise RuntimeError(f"{function.__name__}: a float that depends on a dynamic size cannot be exported")


for _name in ("add", "sub", "mul", "floordiv", "mod", "pow"):
    _function = getattr(operator, _name)
    _arithmetic(f"__{_name}__", _function)
    _arithmetic(f"__r{_name}__", _function, reflected=True)
for _name in ("neg", "eq", "ne", "lt", "le", "gt", "ge"):
    _arithmetic(f"__{_name}__", getattr(operator, _name))
_arithmetic("__truediv__", operator.truediv)
SymbolicSize.__hash__ = int.__hash__  # type: ignore[method-assign]  # __eq__ took it away


class ValueProxy(Proxy):
    """A Proxy of a tensor that carries two values, one for each run (`tracer.values[node]`)."""

    tracer: ValueTracer

    @property  # type: ignore[misc]
    def __class__(self) -> type:  # programs ask isinstance(x, torch.Tensor)
        return Tensor

    @property
    def _values(self) -> tuple[Tensor, Tensor]:
        return self.tracer.values[self.node]

    def __getattr__(self, k: str) -> Any:
        if k in _METADATA:
            return self.tracer.merged([getattr(each, k) for each in self._values], self, k)
        return Attribute(self, k)

    def __bool__(self) -> bool:
        raise DataDependentError("bool(tensor)")

    def __int__(self) -> int:
        raise DataDependentError("int(tensor)")

    def __index__(self) -> int:
        raise DataDependentError("a tensor as an index of Python's")

    def __float__(self) -> float:
        raise DataDependentError("float(tensor)")

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        size = self.shape[0]
        if isinstance(size, SymbolicSize):
            raise RuntimeError(
                "a loop over a dynamic dimension cannot be exported: its number of steps is not fixed"
            )
        return iter(self.unbind(0))


class ValueTracer(Tracer):
    """Traces a module into functions of its parameters, buffers and inputs, running it on two sets of inputs."""

    def __init__(self, names: list[str], first: list[Any], second: list[Any], spec: Any) -> None:
        super().__init__(param_shapes_constant=False)
        self.proxy_buffer_attributes = True
        self.values: dict[Node, tuple[Any, Any]] = {}
        self.inputs = names, first, second, spec
        self.sizes: dict[tuple, Node] = {}
        self.out_spec: TreeSpec

    def is_leaf_module(self, m: Any, module_qualified_name: str) -> bool:
        return False

    def create_proxy(
        self,
        kind: str,
        target: Any,
        args: tuple,
        kwargs: dict[str, Any],
        name: str | None = None,
        type_expr: Any = None,
        proxy_factory_fn: Any = None,
    ) -> Any:
        called = target if isinstance(target, str) else getattr(target, "__name__", "")
        if kind in ("call_function", "call_method") and called in _ELEMENTS:
            raise DataDependentError(f"{called}()")
        node_args, node_kwargs = self.create_arg(args), self.create_arg(kwargs)
        with _maybe_revert_all_patches():
            values = [self._run(kind, target, node_args, node_kwargs, run) for run in (0, 1)]
        if called in _QUESTIONS:
            return self.merged(values, args[0], called, args[1:])
        node = self.create_node(kind, target, node_args, node_kwargs, name, type_expr)
        self.values[node] = (values[0], values[1])
        return self._wrapped(node)

    def _run(self, kind: str, target: Any, args: Any, kwargs: Any, run: int) -> Any:
        """The value of a call in one of the two runs."""
        if kind == "get_attr":
            return operator.attrgetter(target)(self.root)
        args = map_arg(args, lambda node: self.values[node][run])
        kwargs = map_arg(kwargs, lambda node: self.values[node][run])
        if kind == "call_method":
            return getattr(args[0], target)(*args[1:], **kwargs)
        return target(*args, **kwargs)

    def _wrapped(self, node: Node) -> Any:
        """What the program gets for the value of a node: proxies for tensors, in the containers that hold them."""
        first, second = self.values[node]
        if isinstance(first, Tensor):
            return ValueProxy(node, self)
        if isinstance(first, (tuple, list)) and not isinstance(first, Size):
            items = []
            for place, pair in enumerate(zip(first, second, strict=True)):
                item = self.create_node("call_function", operator.getitem, (node, place), {})
                self.values[item] = pair
                items.append(self._wrapped(item))
            return type(first)(*items) if hasattr(first, "_fields") else type(first)(items)
        if type(first) is int and first != second:
            return SymbolicSize(first, second, self, lambda: node)
        return first

    def merged(self, values: list[Any], of: Any, question: str, arguments: tuple = ()) -> Any:
        """The common answer of both runs to a question about a tensor; sizes that differ become symbolic."""
        first, second = values
        if isinstance(first, (tuple, list)):
            merged = [
                self._size(a, b, of, question, place)
                for place, (a, b) in enumerate(zip(first, second, strict=True))
            ]
            return Size(merged) if isinstance(first, Size) and not _any_symbolic(merged) else tuple(merged)
        if type(first) is int and first != second:
            place = arguments[0] if arguments else None
            return self._size(first, second, of, question, place)
        return first

    def _size(self, first: Any, second: Any, of: Any, question: str, place: Any) -> Any:
        if type(first) is not int or first == second:
            return first

        return SymbolicSize(first, second, self, lambda: self._size_of(of.node, question, place))

    def _size_of(self, of: Node, question: str, place: Any) -> Node:
        """The node of a size of a tensor; one node for all who ask."""
        method = {"shape": "size", "__len__": "size", "nelement": "numel"}.get(question, question)
        arguments = () if method == "numel" else (place or 0,)
        key = (of, method, *arguments)
        if key not in self.sizes:
            values = [getattr(value, method)(*arguments) for value in self.values[of]]
            self.sizes[key] = self.create_node("call_method", method, (of, *arguments), {})
            self.values[self.sizes[key]] = (values[0], values[1])
        return self.sizes[key]

    def size_node(self, function: Callable, operands: tuple, first: int, second: int) -> Node:
        """The node of arithmetic with sizes."""
        node = self.create_node("call_function", function, self.create_arg(operands), {})
        self.values[node] = (first, second)
        return node

    def create_args_for_root(self, root_fn: Any, is_module: bool, concrete_args: Any = None) -> Any:
        """Placeholders for the tensors among the inputs; everything else is a constant of the graph."""
        names, leaves, others, spec = self.inputs
        made = [
            self._placeholder(name, first, second) if isinstance(first, Tensor) else first
            for name, first, second in zip(names, leaves, others, strict=True)
        ]
        args, kwargs = tree_unflatten(made, spec)

        def run(*args: Any) -> tuple:
            leaves, self.out_spec = tree_flatten(root_fn(*args, **kwargs))
            return tuple(leaves)

        return run, [self.root, *args]

    def _placeholder(self, name: str, first: Tensor, second: Tensor) -> Any:
        node = self.create_node("placeholder", name, (), {})
        self.values[node] = (first, second)
        return self._wrapped(node)

    def create_node(self, kind: str, target: Any, *arguments: Any, **options: Any) -> Node:
        node = super().create_node(kind, target, *arguments, **options)
        if kind == "get_attr":  # a parameter, a buffer, or a tensor that the program holds
            with _maybe_revert_all_patches():
                value = operator.attrgetter(target)(self.root)
            self.values[node] = (value, value)
        return node

    def _patch_sizes(self, patcher: Any) -> None:
        super()._patch_sizes(patcher)
        layers = [
            each for name, each in sys.modules.items() if name.startswith("weft.nn.") and each is not None
        ]
        for name in _OF_SIZES:
            function = FUNCTIONS[name]
            for module in (weft, *layers):
                if vars(module).get(name) is function:
                    patcher.patch(vars(module), name, self._recording(function, "call_function"))

    def _recording(self, function: Callable, op: str) -> Callable:  # type: ignore[override]
        """A function of sizes, such as zeros: it becomes a node if one of the sizes is symbolic."""
        target = function if op == "call_function" else function.__name__

        @functools.wraps(function)
        def recording(*args: Any, **kwargs: Any) -> Any:
            is_random = function.__name__ in _RANDOM
            if is_random or any(
                isinstance(each, (SymbolicSize, Proxy)) for each in tree_leaves((args, kwargs))
            ):
                return self.create_proxy(op, target, args, kwargs)
            return function(*args, **kwargs)

        return recording

    def create_arg(self, a: Any) -> Any:
        if isinstance(a, Proxy):  # before isinstance(a, Tensor), which a ValueProxy answers with yes
            return a.node
        return super().create_arg(a)


def _any_symbolic(sizes: list[Any]) -> bool:
    return any(isinstance(each, SymbolicSize) for each in sizes)


def trace(
    module: Any, names: list[str], first: list[Any], second: list[Any], spec: TreeSpec
) -> tuple[Graph, ValueTracer]:
    """The graph of `module` and its tracer, which knows the values of all nodes.

    `first` and `second` are the inputs of the two runs, flattened from `(args, kwargs)` with `spec`. Tensors among them
    become placeholders with these names.
    """
    tracer = ValueTracer(names, first, second, spec)
    with weft.no_grad():
        return tracer.trace(module), tracer
