"""Tracing with values: a graph of functions, made by running a module on its example inputs.

`torch.fx.symbolic_trace` knows nothing of its inputs, so that a program that asks for a shape, or decides by one, cannot be
traced. Here every Proxy carries the value that the example inputs give it. Shapes, dtypes and devices are answered
from it, modules are traced through, and only what depends on the elements of a tensor is refused.

A size that may differ from call to call is told from a constant by running twice: the module runs on a second set of
inputs at the same time, in which each dynamic dimension has another size. A dimension whose two sizes differ is dynamic,
and a size of it is a `SymbolicSize` (`_sizes.py`): a number that is written into the graph where it is used.

Nothing of the program changes while it is traced: buffers and constants are copied for each run, and what the program
assigns to attributes of modules is taken back. In-place operations stay in the graph.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import operator
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import weft

from ..compiler.errors import UserError
from ..core.pytree import TreeSpec, tree_flatten, tree_leaves, tree_unflatten
from ..core.registry import FUNCTIONS
from ..core.size import Size
from ..core.tensor import Tensor
from ..fx._symbolic_trace import Tracer, _maybe_revert_all_patches, _orig_module_call
from ..fx.graph import Graph
from ..fx.node import Node, map_arg
from ..fx.proxy import Attribute, Proxy
from ..nn import Module, Parameter
from ._sizes import (
    DataDependentError,
    SizesDiffer,
    SymbolicFloat,
    SymbolicSize,
    as_shape,
    computed,
    is_symbolic,
)

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
        if k in (
            "_is_param",
            "_is_buffer",
        ):  # isinstance(x, Parameter) and isinstance(x, Buffer) ask for them
            return k == "_is_param" and isinstance(self._values[0], Parameter)
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

    def __setitem__(self, index: Any, value: Any) -> None:
        self.tracer.create_proxy("call_function", operator.setitem, (self, index, value), {})

    def __iter__(self) -> Iterator[Any]:
        size = self.shape[0]
        if isinstance(size, SymbolicSize):
            raise SizesDiffer(
                f"a loop over a dimension takes its dynamic size {size} for the constant {size.first}"
            )
        return iter(self.unbind(0))


# In-place arithmetic of proxies, which must change the tensor and everything that shares its memory.
for _operator, _method in {
    "__iadd__": "add_",
    "__isub__": "sub_",
    "__imul__": "mul_",
    "__itruediv__": "div_",
}.items():

    def _in_place(self: ValueProxy, other: Any, method: str = _method) -> Any:
        return self.tracer.create_proxy("call_method", method, (self, other), {})

    setattr(ValueProxy, _operator, _in_place)


class ModuleCall(NamedTuple):
    """A call of a submodule: the nodes and constants that it took and gave, and how they are arranged."""

    inputs: list[Any]
    in_spec: TreeSpec
    outputs: list[Any]
    out_spec: TreeSpec


class ValueTracer(Tracer):
    """Traces a module into functions of its parameters, buffers and inputs, running it on two sets of inputs."""

    def __init__(self, inputs: TraceInputs) -> None:
        super().__init__(param_shapes_constant=False)
        self.proxy_buffer_attributes = True
        self.inputs = inputs
        self.values: dict[Node, tuple[Any, Any]] = {}
        self.sizes: dict[tuple, Node] = {}
        self.guards: dict[str, None] = {}  # comparisons of sizes that hold in both runs
        self.constants: dict[
            str, Tensor
        ] = {}  # tensors that the program makes or holds, by the name they get
        self.held: dict[str, tuple[Tensor, Tensor]] = {}  # attributes of the module, for each run
        # Node of an in-place operation -> nodes that are the tensor it writes to, and nodes that share its memory.
        self.writes: dict[Node, tuple[list[Node], list[Node]]] = {}
        self.module_calls: dict[str, ModuleCall] = {}
        self.names_by_id: dict[int, str] = {}
        self.out_spec: TreeSpec

    def is_leaf_module(self, m: Any, module_qualified_name: str) -> bool:
        return False

    # ---- Calls ----------------------------------------------------------------------------------------------------------

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
        is_call = kind in ("call_function", "call_method")
        if is_call and called in _ELEMENTS and called != "item":
            raise DataDependentError(f"{called}()")
        node_args, node_kwargs = self.create_arg(args), self.create_arg(kwargs)
        if kind == "get_attr":
            return self._wrapped(self.create_node(kind, target, node_args, node_kwargs, name, type_expr))
        with _maybe_revert_all_patches():
            before = self._versions(node_args, node_kwargs)
            values = [self._run(kind, target, node_args, node_kwargs, run) for run in (0, 1)]
        if called in _QUESTIONS:
            return self.merged(values, args[0], called, args[1:])
        node = self.create_node(kind, target, node_args, node_kwargs, name, type_expr)
        self.values[node] = (values[0], values[1])
        self._note_writes(node, before)
        return self._element(node) if is_call and called == "item" else self._wrapped(node)

    def _run(self, kind: str, target: Any, args: Any, kwargs: Any, run: int) -> Any:
        """The value of a call in one of the two runs."""
        args = map_arg(args, lambda node: self.values[node][run])
        kwargs = map_arg(kwargs, lambda node: self.values[node][run])
        function = getattr(args[0], target) if kind == "call_method" else target
        arguments = args[1:] if kind == "call_method" else args
        if run == 0:
            return function(*arguments, **kwargs)
        called = target if isinstance(target, str) else getattr(target, "__name__", "")
        try:
            found = function(*without_another_size(called, arguments), **kwargs)
        except (RuntimeError, IndexError, ValueError, AssertionError) as error:
            raise SizesDiffer(
                f"with other sizes of the dynamic dimensions the program fails: {error}"
            ) from error
        return with_another_size(called, args, found)

    def _versions(self, args: Any, kwargs: Any) -> dict[Node, int]:
        """The nodes among the arguments that are tensors, and how often each tensor was written to."""
        found: dict[Node, int] = {}

        def note(node: Node) -> Node:
            value = self.values[node][0]
            if isinstance(value, Tensor):
                found[node] = value._version
            return node

        map_arg((args, kwargs), note)
        return found

    def _note_writes(self, node: Node, before: dict[Node, int]) -> None:
        """Note which tensors the operation has written to."""
        same: list[Node] = []
        others: list[Node] = []
        for argument, version in before.items():
            written = self.values[argument][0]
            if written._version == version or any(argument in nodes for nodes in (same, others)):
                continue
            storage = written.untyped_storage().data_ptr()
            for each, (value, _) in self.values.items():
                if (
                    isinstance(value, Tensor)
                    and value.untyped_storage().data_ptr() == storage
                    and each is not node
                ):
                    (same if _is_same_view(value, written) else others).append(each)
        if same:
            self.writes[node] = (same, others)

    def _element(self, node: Node) -> Any:
        """What `tensor.item()` is: a number of which nothing is known."""
        first, second = self.values[node]
        if isinstance(first, bool):
            raise DataDependentError("item()")
        if isinstance(first, float):
            return SymbolicFloat(first, second, self, lambda: node, None, True)
        # Another value in the second run, so that sizes that are made of it count as dynamic.
        second = first - 1 if first > 0 else first + 1
        self.values[node] = (first, second)
        return SymbolicSize(first, second, self, lambda: node, None, True)

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

    # ---- Sizes ----------------------------------------------------------------------------------------------------------

    def merged(self, values: list[Any], of: Any, question: str, arguments: tuple = ()) -> Any:
        """The common answer of both runs to a question about a tensor; sizes that differ become symbolic."""
        first, second = values
        if isinstance(first, (tuple, list)):
            pairs = enumerate(zip(first, second, strict=True))
            merged = [self._size(a, b, of, question, place) for place, (a, b) in pairs]
            return as_shape(merged) if isinstance(first, Size) else tuple(merged)
        if type(first) is int and first != second:
            place = arguments[0] if arguments else None
            return self._size(first, second, of, question, place)
        return first

    def _size(self, first: Any, second: Any, of: Any, question: str, place: Any) -> Any:
        if type(first) is not int or first == second:
            return first
        formula = self.inputs.symbols.get((first, second))
        sizes = self.inputs.sizes.get(of.node.name) if question in ("shape", "size", "__len__") else None
        if of.node.op == "placeholder" and sizes is not None:
            formula = f"({sizes[place or 0]})" if " " in str(sizes[place or 0]) else str(sizes[place or 0])
        return SymbolicSize(first, second, self, lambda: self._size_of(of.node, question, place), formula)

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

    def number_node(self, function: Callable, operands: tuple, first: Any, second: Any) -> Node:
        """The node of arithmetic with numbers."""
        node = self.create_node("call_function", function, self.create_arg(operands), {})
        self.values[node] = (first, second)
        return node

    # ---- Inputs and attributes ------------------------------------------------------------------------------------------

    def create_args_for_root(self, root_fn: Any, is_module: bool, concrete_args: Any = None) -> Any:
        """Placeholders for all leaves of the inputs. The program gets proxies for tensors; other leaves are constants."""
        inputs = self.inputs
        members = [
            *self.root.named_parameters(remove_duplicate=False),
            *self.root.named_buffers(remove_duplicate=False),
        ]
        for path, value in members:
            self.names_by_id.setdefault(id(value), path)
        made = [
            self._placeholder(name, first, second)
            for name, first, second in zip(inputs.names, inputs.first, inputs.second, strict=True)
        ]
        args, kwargs = tree_unflatten(made, inputs.spec)

        def run(root: Module, *args: Any):  # hooks of the module, and a forward of the instance, count
            result = _orig_module_call(root, *args, **kwargs)
            leaves, self.out_spec = tree_flatten(result)
            for leaf in leaves:
                _check_output(leaf)
            for target, value in inputs.state.assigned_buffers():
                node = self.create_node("get_attr", target, (), {})
                self.create_proxy("call_method", "copy_", (ValueProxy(node, self), value), {})
            return tuple(leaves)

        return run, [self.root, *args]

    def _placeholder(self, name: str, first: Any, second: Any) -> Any:
        node = self.create_node("placeholder", name, (), {})
        self.values[node] = (first, second)
        return self._wrapped(node) if isinstance(first, Tensor) else first

    def create_node(self, kind: str, target: Any, *arguments: Any, **options: Any) -> Node:
        node = super().create_node(kind, target, *arguments, **options)
        if kind == "get_attr":  # a parameter, a buffer, or a tensor that the program holds
            if target not in self.held:
                with _maybe_revert_all_patches():
                    value = self.original(target)
                    is_plain = isinstance(value, Tensor) and not isinstance(value, Parameter)
                    self.held[target] = (value.clone(), value.clone()) if is_plain else (value, value)
            self.values[node] = self.held[target]
        return node

    def original(self, target: str) -> Any:
        """An attribute of the traced module as it was before tracing, or a tensor that the program made."""
        if target in self.constants:
            return self.constants[target]
        path, _, name = target.rpartition(".")
        return self.inputs.state.original(self.root.get_submodule(path), name)

    def _constant(self, value: Any, prefix: str) -> str:
        """The name of a tensor that is neither parameter nor buffer; the module is left as it is."""
        name = self.tensor_attrs.get(value)
        if name is None:
            name = f"lifted_tensor_{len(self.constants)}"
            self.tensor_attrs[value] = name
            self.constants[name] = value
        return name

    def _proxy_of(self, value: Any, members: Any, cache: dict[str, Any], is_parameter: bool) -> Any:
        name = self.names_by_id.get(id(value))
        if name is None:
            return None
        if name not in cache:
            cache[name] = self.create_proxy("get_attr", name, (), {})
        return cache[name]

    def create_arg(self, a: Any) -> Any:
        if isinstance(a, Proxy):  # before isinstance(a, Tensor), which a ValueProxy answers with yes
            return a.node
        if isinstance(a, Tensor) and id(a) in self.names_by_id:
            return self.create_node("get_attr", self.names_by_id[id(a)], (), {})
        return super().create_arg(a)

    def call_module(self, m: Module, forward: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
        path = self.path_of_module(m)
        result = super().call_module(m, forward, args, kwargs)
        if path in self.inputs.preserved and path not in self.module_calls:
            inputs, in_spec = tree_flatten((args, kwargs))
            outputs, out_spec = tree_flatten(result)
            self.module_calls[path] = ModuleCall(
                [self.create_arg(each) for each in inputs],
                in_spec,
                [self.create_arg(each) for each in outputs],
                out_spec,
            )
        return result

    # ---- Functions that are not asked for classes -----------------------------------------------------------------------

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
        for name in ("sqrt", "log", "log2", "log10", "exp", "pow"):
            patcher.patch(vars(math), name, _of_numbers(getattr(math, name)))

    def _recording(self, function: Callable, op: str) -> Callable:  # type: ignore[override]
        """A function of sizes, such as zeros: it becomes a node if one of the sizes is symbolic."""
        target = function if op == "call_function" else function.__name__

        @functools.wraps(function)
        def recording(*args: Any, **kwargs: Any) -> Any:
            is_random = function.__name__ in _RANDOM
            leaves = tree_leaves((args, kwargs))
            if is_random or any(is_symbolic(each) or isinstance(each, Proxy) for each in leaves):
                return self.create_proxy(op, target, args, kwargs)
            return function(*args, **kwargs)

        return recording


def _of_numbers(function: Callable) -> Callable:
    @functools.wraps(function)
    def of_numbers(*operands: Any) -> Any:
        return computed(function, operands) if any(map(is_symbolic, operands)) else function(*operands)

    return of_numbers


def _is_same_view(first: Tensor, second: Tensor) -> bool:
    return (first.shape, first.stride(), first.storage_offset()) == (
        second.shape,
        second.stride(),
        second.storage_offset(),
    )


def _check_output(leaf: Any) -> None:
    """Raises: UserError for a result that is no tensor, number, text or None."""
    known = (Tensor, int, float, complex, bool, str, bytes, type(None), weft.dtype, weft.device)
    if not isinstance(leaf, known) and not is_symbolic(leaf):
        raise UserError(
            f"It looks like one of the outputs with type `{type(leaf)}` is not supported or pytree-flattenable.\n"
            "Exported graphs return tensors, numbers, strings and containers of these; "
            "torch.export.register_dataclass and torch.utils._pytree.register_pytree_node make containers known"
        )


# Functions whose results have as many rows as the elements of a tensor say.
_COUNTING = frozenset("nonzero argwhere masked_select unique unique_consecutive".split())


def with_another_size(called: str, args: tuple, found: Any) -> Any:
    """In the second run: a result whose size depends on elements gets another size than in the first run."""
    if called in _COUNTING:
        if isinstance(found, Tensor):
            return _longer(found)
        if called in ("nonzero", "argwhere"):
            return tuple(_longer(each) for each in found)
        return (_longer(found[0]), *found[1:])
    if called in ("getitem", "__getitem__") and isinstance(args[0], Tensor):
        index = args[1] if isinstance(args[1], tuple) else (args[1],)
        if isinstance(index[0], Tensor) and index[0].dtype in (weft.bool, weft.uint8):
            return _longer(found)
    return found


def without_another_size(called: str, arguments: tuple) -> tuple:
    """In the second run: `x[mask] = values` gets as many values as the mask has places."""
    if called not in ("setitem", "__setitem__"):
        return arguments
    *before, index, values = arguments
    is_mask = isinstance(index, Tensor) and index.dtype in (weft.bool, weft.uint8)
    if is_mask and isinstance(values, Tensor) and values.dim() and values.shape[0] == int(index.sum()) + 1:
        values = values[:-1]
    return (*before, index, values)


def _longer(rows: Tensor) -> Tensor:
    last = rows[-1:] if rows.shape[0] else rows.new_zeros((1, *rows.shape[1:]))
    return weft.cat([rows, last])


@dataclasses.dataclass
class TraceInputs:
    """What a program is traced with: the leaves of its inputs in both runs, and what is known of their sizes."""

    names: list[str]
    first: list[Any]
    second: list[Any]
    spec: TreeSpec
    sizes: dict[str, list[Any]]  # of the tensors among the leaves, by name
    symbols: dict[tuple[int, int], str]  # a size in both runs -> the symbol that it must be
    preserved: tuple[str, ...]
    state: ModuleState


class ModuleState:
    """The attributes of a module and of its submodules, to be put back after tracing."""

    def __init__(self, module: Module):
        self.modules = dict(module.named_modules(remove_duplicate=False))
        self.saved = {id(each): (dict(vars(each)), dict(each._buffers)) for each in self.modules.values()}

    def original(self, module: Module, name: str) -> Any:
        """An attribute as it was before."""
        own, buffers = self.saved[id(module)]
        if name in buffers:
            return buffers[name]
        return own[name] if name in own else getattr(module, name)

    def assigned_buffers(self) -> Iterator[tuple[str, Any]]:
        """The buffers that the program has assigned to, and what it assigned."""
        for path, module in self.modules.items():
            _, before = self.saved[id(module)]
            for name, value in module._buffers.items():
                if isinstance(value, Proxy) and name in before:
                    yield f"{path}.{name}" if path else name, value

    def restore(self) -> None:
        for module in self.modules.values():
            own, buffers = self.saved[id(module)]
            vars(module).clear()
            vars(module).update(own)
            module._buffers.clear()
            module._buffers.update(buffers)


def trace(module: Module, inputs: TraceInputs) -> tuple[Graph, ValueTracer]:
    """The graph of `module` and its tracer, which knows the values of all nodes. The module and the generator of random
    numbers stay as they are."""
    tracer = ValueTracer(inputs)
    random_state = weft.get_rng_state()
    try:
        with weft.no_grad():
            return tracer.trace(module), tracer
    finally:
        weft.set_rng_state(random_state)
        inputs.state.restore()
