"""The nodes of a graph: one node is one call, input, attribute or result.

>>> import weft as torch
>>> graph = torch.fx.Graph()
>>> x = graph.placeholder("x")
>>> doubled = graph.call_function(torch.mul, (x, 2))
>>> doubled.op, doubled.target is torch.mul, doubled.args, list(x.users)
('call_function', True, (x, 2), [mul])
"""

from __future__ import annotations

import builtins
import inspect
import math
import operator
import types
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from ..core import dtype as _dtypes
from ..core.device import device
from ..core.dtype import DType
from ..core.layout import Layout, MemoryFormat
from ..core.registry import FUNCTIONS
from ..core.tensor import Tensor
from ..library.qualified_name import public_name, torch_path
from ._compatibility import compatibility
from .immutable_collections import immutable_dict, immutable_list

if TYPE_CHECKING:
    from .graph import Graph

__all__ = ["Node", "has_side_effect", "map_aggregate", "map_arg"]

BaseArgumentTypes = str | int | float | bool | complex | DType | Tensor | device | MemoryFormat | Layout
base_types = (str, int, float, bool, complex, DType, Tensor, device, MemoryFormat, Layout)
Target = Callable[..., Any] | str
Argument = Any  # tuples, lists, dicts and slices of nodes and of `base_types`
F = TypeVar("F", bound=Callable)

_legal_ops = dict.fromkeys(
    ("placeholder", "call_method", "call_module", "call_function", "get_attr", "output", "root")
)
_side_effectful_functions: set[Callable] = {operator.setitem}
# Functions that draw random numbers: without them, those that follow would draw others.
_RANDOM = frozenset(
    "bernoulli multinomial normal poisson rand rand_like randint randint_like randn randn_like randperm".split()
)
dtype_abbrs = {
    dtype: ("b8" if name == "bool" else name.replace("float8_", "f8").replace("bfloat", "bf").replace("complex", "c")
            .replace("float", "f").replace("uint", "u").replace("int", "i"))
    for name, dtype in _dtypes.DTYPES.items()
}  # fmt: skip


@compatibility(is_backward_compatible=True)
def has_side_effect(fn: F) -> F:
    """Keep calls of `fn` in graphs whose results are not used: `Graph.eliminate_dead_code` leaves them. Returns `fn`."""
    _side_effectful_functions.add(fn)
    return fn


@compatibility(is_backward_compatible=True)
def map_arg(a: Argument, fn: Callable[[Node], Argument]) -> Argument:
    """The argument with `fn(node)` for each node in it."""
    if not callable(fn):
        raise AssertionError("torch.fx.map_arg(a, fn): fn must be a callable")
    return map_aggregate(a, lambda each: fn(each) if isinstance(each, Node) else each)


@compatibility(is_backward_compatible=True)
def map_aggregate(a: Argument, fn: Callable[[Argument], Argument]) -> Argument:
    """The argument with `fn(leaf)` for each leaf of its tuples, lists, dicts and slices."""
    if isinstance(a, tuple):
        mapped = tuple([map_aggregate(each, fn) for each in a])
        return mapped if not hasattr(a, "_fields") else type(a)(*mapped)
    if isinstance(a, list):
        return immutable_list([map_aggregate(each, fn) for each in a])
    if isinstance(a, dict):
        return immutable_dict({key: map_aggregate(each, fn) for key, each in a.items()})
    if isinstance(a, slice):
        return slice(*(map_aggregate(each, fn) for each in (a.start, a.stop, a.step)))
    return fn(a)


# ---- Names in text ----------------------------------------------------------------------------------------------------


def _type_repr(obj: object) -> str:
    """A type as `Graph.__str__` and generated code name it: `int`, `torch.Tensor`, `mine.Point`."""
    if isinstance(obj, type) and not isinstance(obj, types.GenericAlias):
        if obj.__module__ == "builtins":
            return obj.__qualname__
        return torch_path(obj) or f"{obj.__module__}.{obj.__qualname__}"
    if obj is ...:
        return "..."
    if isinstance(obj, types.FunctionType):
        return obj.__name__
    return _torch_in(repr(obj))


def _torch_in(text: str) -> str:
    """The text of a type with PyTorch's names for weft's classes."""
    return text.replace("weft.core.tensor.Tensor", "torch.Tensor").replace("weft.", "torch.")


def _find_module_of_method(orig_method: Callable[..., Any]) -> str:
    """The module in which a function that does not know its own is found.

    Raises: RuntimeError if none of PyTorch's namespaces holds it.
    """
    path = torch_path(orig_method)
    if path is not None:
        return path.rpartition(".")[0]
    raise RuntimeError(f"cannot find module for {orig_method}")


def _get_qualified_name(func: Callable[..., Any]) -> str:
    """The path of a function in generated code, such as `torch.relu`, `len` or `mine.scale`."""
    name = getattr(func, "__name__", None)
    if name is not None and getattr(builtins, name, None) is func:
        return name
    if (path := torch_path(func)) is not None and "<lambda>" not in path:
        return path
    if isinstance(func, (types.MethodDescriptorType, types.WrapperDescriptorType)):
        return f"{func.__objclass__.__module__}.{func.__objclass__.__qualname__}.{name}"
    if name is None:  # an object with __call__
        name = type(func).__name__
    if name == "<lambda>":
        name = _name_of_lambda(func)
    module = getattr(func, "__module__", None) or type(func).__module__
    return f"{module}.{name}"


def _name_of_lambda(func: Callable[..., Any]) -> str:
    """The variable that the source assigns the lambda to. Raises: RuntimeError if there is no source to look at."""
    try:
        return inspect.getsource(func).split("=")[0].strip()
    except Exception as error:
        raise RuntimeError(f"Unable to represent lambda {func}: its source cannot be read") from error


def _format_arg(arg: object, max_list_len: float = math.inf) -> str:
    """An argument as `Graph.__str__` writes it, with a percent sign before each node."""
    if isinstance(arg, dict):
        return "{" + ", ".join(f"{key}: {_format_arg(value)}" for key, value in arg.items()) + "}"
    if isinstance(arg, (list, tuple)):
        custom = getattr(type(arg), "_custom_fx_repr_fn", None)
        if custom is not None:
            return custom(arg)
        items = [_format_arg(each) for place, each in enumerate(arg) if place < max_list_len]
        if len(arg) > max_list_len:
            items.append(f"...[total_len={len(arg)}]")
        text = ", ".join(items)
        if isinstance(arg, list):
            return f"[{text}]"
        return f"({text},)" if len(arg) == 1 else f"({text})"
    return f"%{arg}" if isinstance(arg, Node) else str(arg)


# ---- Nodes ------------------------------------------------------------------------------------------------------------


@compatibility(is_backward_compatible=True)
class Node:
    """One step of a graph.

    | `op` | `target` | what the step does |
    |---|---|---|
    | `placeholder` | name of a parameter | is an input; `args` holds its default |
    | `get_attr` | path of an attribute | takes it from the module that owns the graph |
    | `call_function` | the function | calls it with `args` and `kwargs` |
    | `call_method` | name of the method | calls it on `args[0]` |
    | `call_module` | path of the module | calls its forward |
    | `output` | "output" | gives back `args[0]` |

    `users` holds the nodes that use this one, `meta` is free for notes, `type` is the annotation of the result.
    """

    graph: Graph
    name: str
    op: str
    target: Target
    _args: tuple[Argument, ...]
    _kwargs: dict[str, Argument]
    _input_nodes: dict[Node, None]
    users: dict[Node, None]
    type: Any
    meta: dict[str, Any]
    _sort_key: tuple[int, ...]  # nodes compare by it in the order of the graph
    _repr_fn: Callable[[Node], str] | None
    _erased: bool
    _prev: Node
    _next: Node

    def __init__(
        self,
        graph: Graph,
        name: str,
        op: str,
        target: Target,
        args: tuple[Argument, ...],
        kwargs: dict[str, Argument],
        return_type: Any = None,
    ) -> None:
        if op not in _legal_ops:
            raise AssertionError(f"op {op!r} is not in _legal_ops")
        if op == "call_function":
            if not callable(target):
                raise ValueError(
                    f"Node [graph = {graph}, name = '{name}'] target {target} has type {_torch_typename(target)} "
                    "but a Callable is expected"
                )
        elif not isinstance(target, str):
            raise ValueError(
                f"Node [graph = {graph}, name = '{name}'] target {target} has type {_torch_typename(target)} "
                "but a str is expected"
            )
        self.__dict__.update(
            graph=graph, name=name, op=op, target=target, users={}, type=return_type, meta={}, _sort_key=(),
            _repr_fn=None, _erased=False, _input_nodes={}, _prev=self, _next=self,
        )  # fmt: skip
        self._update_args_kwargs(args, kwargs)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "target" and self.__dict__.get("op") in ("call_function", "call_module"):
            self._change_target(value)
            return
        object.__setattr__(self, name, value)

    def _change_target(self, target: Target) -> None:
        """The graph finds functions and modules by their targets, so its table must hear of the change."""
        table = getattr(self.graph, "_find_nodes_lookup_table", None)
        known = table is not None and self in table
        if known:
            table.remove(self)  # type: ignore[union-attr]
        object.__setattr__(self, "target", target)
        if known:
            table.insert(self)  # type: ignore[union-attr]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_repr_fn": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    # ---- Order ----------------------------------------------------------------------------------------------------------

    def __lt__(self, other: Node) -> bool:
        return self._sort_key < other._sort_key

    def __gt__(self, other: Node) -> bool:
        return self._sort_key > other._sort_key

    def __le__(self, other: Node) -> bool:
        return self is other or self._sort_key < other._sort_key

    def __ge__(self, other: Node) -> bool:
        return self is other or self._sort_key > other._sort_key

    @property
    def next(self) -> Node:
        """The node after this one; after the last one stands the root of the graph, whose op is "root"."""
        return self._next

    @property
    def prev(self) -> Node:
        """The node before this one."""
        return self._prev

    @compatibility(is_backward_compatible=True)
    def prepend(self, x: Node) -> None:
        """Move `x`, which may be anywhere in this graph, to just before this node."""
        if x.graph is not self.graph:
            raise AssertionError("Attempting to move a Node into a different Graph")
        if x is self:
            return
        x._remove_from_list()
        before = self._prev
        before._next, x._prev, x._next, self._prev = x, before, self, x
        x._sort_key = _key_between(before._sort_key, self._sort_key)

    @compatibility(is_backward_compatible=True)
    def append(self, x: Node) -> None:
        """Move `x`, which may be anywhere in this graph, to just after this node."""
        if x is not self:
            self._next.prepend(x)

    def _remove_from_list(self) -> None:
        before, after = self._prev, self._next
        before._next, after._prev = after, before

    # ---- Arguments ------------------------------------------------------------------------------------------------------

    @property
    def args(self) -> tuple[Argument, ...]:
        """The positional arguments. Assign a new tuple to change them."""
        return self._args

    @args.setter
    def args(self, values: tuple[Argument, ...]) -> None:
        self._update_args_kwargs(values, self._kwargs)

    @property
    def kwargs(self) -> dict[str, Argument]:
        """The keyword arguments. Assign a new dict to change them."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, values: dict[str, Argument]) -> None:
        self._update_args_kwargs(self._args, values)

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes among the arguments, each once, in the order of their first appearance."""
        return list(self._input_nodes)

    def _update_args_kwargs(self, args: Iterable[Argument], kwargs: Mapping[str, Argument]) -> None:
        """Take new arguments, and tell the nodes in the old and in the new ones."""
        for old in self._input_nodes:
            old.users.pop(self, None)
        found: dict[Node, None] = {}

        def note(node: Node) -> Node:
            found[node] = None
            node.users[self] = None
            return node

        state = self.__dict__
        state["_input_nodes"] = found
        state["_args"] = map_arg(tuple(args), note)
        state["_kwargs"] = map_arg(dict(kwargs), note)

    @compatibility(is_backward_compatible=True)
    def update_arg(self, idx: int, arg: Argument) -> None:
        """Replace positional argument number `idx`."""
        changed = list(self.args)
        changed[idx] = arg
        self.args = tuple(changed)

    @compatibility(is_backward_compatible=True)
    def insert_arg(self, idx: int, arg: Argument) -> None:
        """Put a positional argument before number `idx`."""
        if not 0 <= idx <= len(self.args):
            raise AssertionError("insert_args index must be between 0 and len(self.args)")
        self.args = (*self.args[:idx], arg, *self.args[idx:])

    @compatibility(is_backward_compatible=True)
    def update_kwarg(self, key: str, arg: Argument) -> None:
        """Replace or add the keyword argument `key`."""
        self.kwargs = {**self.kwargs, key: arg}

    @compatibility(is_backward_compatible=True)
    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Put `new_input` wherever `old_input` stands in the arguments."""
        module = getattr(self.graph, "owning_module", None)
        for hook in getattr(module, "_replace_hooks", None) or ():
            hook(old=old_input, new=new_input.name, user=self)

        def replaced(node: Node) -> Node:
            return new_input if node is old_input else node

        self._update_args_kwargs(map_arg(self.args, replaced), map_arg(self.kwargs, replaced))

    @compatibility(is_backward_compatible=True)
    def replace_all_uses_with(
        self,
        replace_with: Node,
        delete_user_cb: Callable[[Node], bool] | None = None,
        *,
        propagate_meta: bool = False,
    ) -> list[Node]:
        """Put `replace_with` into the arguments of all users of this node for which `delete_user_cb(user)` is true.

        Returns the users that there were. `propagate_meta` moves `meta` of this node to the new one, which must have none.
        """
        if propagate_meta:
            if replace_with.meta:
                raise AssertionError(
                    "Called node.replace_all_uses_with(replace_with, propagate_meta=True), but replace_with already has "
                    ".meta keys"
                )
            replace_with.meta.update(self.meta)
        users = list(self.users)
        for user in users:
            if delete_user_cb is None or delete_user_cb(user):
                user.replace_input_with(self, replace_with)
        return users

    @compatibility(is_backward_compatible=False)
    def normalized_arguments(
        self,
        root: Any,
        arg_types: tuple[Any, ...] | None = None,
        kwarg_types: dict[str, Any] | None = None,
        normalize_to_only_use_kwargs: bool = False,
    ) -> Any:
        """The arguments as `operator_schemas.ArgsKwargsPair`, sorted by the signature of the target; None if unknown."""
        from .operator_schemas import normalize_function, normalize_module

        if self.op == "call_function":
            return normalize_function(
                self.target,  # type: ignore[arg-type]
                self.args,
                self.kwargs,
                arg_types,
                kwarg_types,
                normalize_to_only_use_kwargs=normalize_to_only_use_kwargs,
            )
        if self.op == "call_module":
            return normalize_module(
                root,
                self.target,  # type: ignore[arg-type]
                self.args,
                self.kwargs,
                normalize_to_only_use_kwargs=normalize_to_only_use_kwargs,
            )
        return None

    # ---- Effects --------------------------------------------------------------------------------------------------------

    @compatibility(is_backward_compatible=False)
    def is_impure(self, impure_random: bool = True) -> bool:
        """Whether the node does something besides computing its result, so that it must stay even if nobody uses it.

        Functions that draw random numbers count.
        """
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_function":
            if public_name(self.target) in _RANDOM:
                return True
            return self.target in _effects() or _writes_arguments(self.target) or _marks_ranges(self.target)
        if self.op == "call_module":
            owner = self.graph.owning_module
            if owner is None:
                raise AssertionError("self.graph.owning_module not set for purity check")
            module = owner.get_submodule(str(self.target))
            if module is None:
                raise AssertionError(f"Did not find expected submodule target {self.target}")
            return getattr(module, "_is_impure", False)
        return False

    @property
    def stack_trace(self) -> str | None:
        """The lines of the program that made the node, if the tracer recorded them."""
        return self.meta.get("stack_trace")

    @stack_trace.setter
    def stack_trace(self, trace: str | None) -> None:
        self.meta["stack_trace"] = trace

    # ---- Text -----------------------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return self._repr_fn(self) if self._repr_fn else self.name

    @staticmethod
    def _pretty_print_target(target: object) -> str:
        if isinstance(target, str):
            return target
        name = getattr(target, "__name__", type(target).__name__)
        module = getattr(target, "__module__", None) or ""
        if module == "builtins":
            return f"builtins.{name}"
        if module == "_operator":
            return f"operator.{name}"
        return _get_qualified_name(target)  # type: ignore[arg-type]

    @compatibility(is_backward_compatible=True)
    def format_node(
        self,
        placeholder_names: list[str] | None = None,
        maybe_return_typename: list[str] | None = None,
        *,
        include_tensor_metadata: bool = False,
    ) -> str | None:
        """The node as a line of `str(graph)`.

        With a list of `placeholder_names` the line of a placeholder is put into it, without the rest of the line, and None
        is returned. With `maybe_return_typename`, the type of an output replaces its first element.
        """
        annotation = f"{_type_repr(self.type)} " if self.type else ""
        if self.op == "placeholder":
            if not isinstance(self.target, str):
                raise AssertionError(f"Expected target to be str for placeholder, got {type(self.target)}")
            if placeholder_names:
                head = self.target if not self.type else f"{self.target} : {_type_repr(self.type)}"
                placeholder_names.append(head)
                return None
            default = f"(default={self.args[0]})" if self.args else ""
            return f"%{self.name} : {annotation}[num_users={len(self.users)}] = {self.op}[target={self.target}]{default}"
        if self.op == "get_attr":
            target = self._pretty_print_target(self.target)
            return f"%{self.name} : {annotation}[num_users={len(self.users)}] = {self.op}[target={target}]"
        if self.op == "output":
            if self.type and maybe_return_typename:
                maybe_return_typename[0] = f" -> {_type_repr(self.type)}"
            return f"return {self.args[0]}"
        value = self.meta.get("val") if include_tensor_metadata else None
        metadata = ""
        if isinstance(value, Tensor):
            abbreviation = dtype_abbrs.get(value.dtype, str(value.dtype))
            strides = ", ".join(map(str, value.stride()))
            sizes = ", ".join(map(str, value.shape))
            metadata = f"{abbreviation}[{sizes}][{strides}]{value.device}"
            metadata = f"{metadata} "
        return (
            f"%{self.name} : {annotation}{metadata}[num_users={len(self.users)}] = "
            f"{self.op}[target={self._pretty_print_target(self.target)}]"
            f"(args = {_format_arg(self.args)}, kwargs = {_format_arg(self.kwargs)})"
        )

    def _rename(self, candidate: str) -> None:
        """Give the node the name `candidate`, or one like it that is free."""
        if candidate == self.name:
            return
        self.name = self.graph._graph_namespace.create_name(candidate, None)
        self.graph._graph_namespace._rename_object(self, self.name)


def _torch_typename(obj: object) -> str:
    from ..ops.tensor.predicates import typename

    return typename(obj)


_EFFECTS = ("_assert", "_assert_async")


def _effects() -> set[Callable]:
    """Functions that are called for what they do: those marked, and assertions."""
    return _side_effectful_functions.union(FUNCTIONS[name] for name in _EFFECTS if name in FUNCTIONS)


def _writes_arguments(target: object) -> bool:
    """Whether the schema of an operator of `torch.ops` says that it writes into its arguments."""
    schema = getattr(target, "_schema", None)
    return bool(getattr(schema, "is_mutable", False))


def _marks_ranges(target: object) -> bool:
    """Whether an operator of `torch.ops` begins or ends a range of a profile."""
    name = getattr(target, "_qualified_op_name", None) or getattr(target, "_name", None)
    return isinstance(name, str) and name.startswith("profiler::")


def _key_between(before: tuple[int, ...], after: tuple[int, ...]) -> tuple[int, ...]:
    """A key larger than `before` and smaller than `after`; the empty tuple stands for the root on both sides.

    >>> _key_between((), ()), _key_between((1,), ()), _key_between((), (0,)), _key_between((1,), (2,)), _key_between((1,), (1, 0))
    ((0,), (2,), (-1,), (1, 0), (1, -1))
    """
    following = (*before[:-1], before[-1] + 1) if before else (0,)
    if not after or before and following < after:
        return following
    if after[: len(before)] == before:
        return (*before, after[len(before)] - 1)
    return (*before, 0)
