"""From a graph to the source of its `forward`."""

from __future__ import annotations

import contextlib
import enum
import inspect
import re
import types
import typing
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Union

import weft

from ..core import pytree as pytree
from ..core.tensor import Tensor
from ..library.qualified_name import is_from_torch, is_operator
from ._namespace import _custom_builtins, _Namespace
from .node import Argument, Node, _get_qualified_name, _type_repr, dtype_abbrs, map_arg
from .tensor_type import Dyn, TensorType

# How calls of functions of the module `operator` are written.
magic_methods = {
    **{name: f"{{}} {sign} {{}}" for name, sign in (
        ("eq", "=="), ("ne", "!="), ("lt", "<"), ("gt", ">"), ("le", "<="), ("ge", ">="))},
    "pos": "+{}", "neg": "-{}", "invert": "~{}",
    **{name: f"{{}} {sign} {{}}" for name, sign in (
        ("add", "+"), ("sub", "-"), ("mul", "*"), ("floordiv", "//"), ("truediv", "/"), ("div", "/"), ("mod", "%"),
        ("pow", "**"), ("lshift", "<<"), ("rshift", ">>"), ("and_", "&"), ("or_", "|"), ("xor", "^"), ("matmul", "@"))},
    "getitem": "{}[{}]",
}  # fmt: skip
reflectable_magic_methods = {
    name: magic_methods[name]
    for name in "add sub mul floordiv truediv div mod pow lshift rshift and_ or_ xor".split()
} | {"getitem": "{}[{}]", "matmul": "{} @ {}"}
inplace_methods = {
    **{name: f"{{}} {sign}= {{}}" for name, sign in (
        ("iadd", "+"), ("iand", "&"), ("ifloordiv", "//"), ("ilshift", "<<"), ("imod", "%"), ("imul", "*"),
        ("imatmul", "@"), ("ior", "|"), ("ipow", "**"), ("irshift", ">>"), ("isub", "-"), ("itruediv", "/"),
        ("ixor", "^"))},
    "setitem": "{}[{}] = {}",
}  # fmt: skip
# Classes of containers -> how annotations of old name them.
_origin_type_map = {
    list: typing.List,  # noqa: UP006
    dict: typing.Dict,  # noqa: UP006
    set: typing.Set,  # noqa: UP006
    frozenset: typing.FrozenSet,  # noqa: UP006
    tuple: typing.Tuple,  # noqa: UP006
}

_color_codes = {
    "yellow": "\033[33m",
    "cyan": "\033[36m",
    "green": "\033[32m",
    "blue": "\033[34m",
    "red": "\033[31m",
    "dim": "\033[2m",
    "reset": "\033[0m",
}
INDENT = "    "


@dataclass
class PythonCode:
    """The source of a function, and the objects that its global names stand for."""

    src: str
    globals: dict[str, Any]
    # Line of the body (from 1) -> place of the node that it computes, None where a line computes none.
    _lineno_map: dict[int, int | None] | None
    _prologue_start: int = 0  # lines of `src` before the body


@dataclass(frozen=True)
class _ParsedStackTrace:
    """The innermost line of the program in a stack trace."""

    file: str
    lineno: str
    name: str
    code: str

    def get_summary_str(self) -> str:
        return f"File: {self.file}:{self.lineno} in {self.name}, code: {self.code}"


_FRAME = re.compile(r'^File "(.+)", line (\d+), in (.+)$')


def _parse_stack_trace(
    stack_trace: str, filter_fn: Callable[[str, str, str], bool] | None = None
) -> _ParsedStackTrace | None:
    """The last frame of a stack trace, of those for which `filter_fn(file, name, code)` is true."""
    lines = stack_trace.strip().split("\n")
    for place in range(len(lines) - 2, -1, -1):
        if (match := _FRAME.match(lines[place].strip())) is None:
            continue
        file, lineno, name = match.groups()
        code = lines[place + 1].strip()
        if filter_fn is None or filter_fn(file, name, code):
            return _ParsedStackTrace(file, lineno, name, code)
    return None


def _format_target(base: str, target: str) -> str:
    """The expression for the attribute `target` of `base`; parts that are no identifiers go through getattr.

    >>> _format_target("self", "layers.0.weight")
    'getattr(self.layers, "0").weight'
    """
    for part in target.split("."):
        base = f"{base}.{part}" if part.isidentifier() else f'getattr({base}, "{part}")'
    return base


def _format_args(args: Iterable[Argument], kwargs: dict[str, Argument], text: Callable[[Any], str]) -> str:
    return ", ".join([*map(text, args), *(f"{key} = {text(value)}" for key, value in kwargs.items())])


def last_uses(nodes: Iterable[Node]) -> dict[Node, list[Node]]:
    """For each node, those nodes that no later one uses: their values can go after it."""
    dying: dict[Node, list[Node]] = {}
    seen: set[Node] = set()

    def note(used: Node, user: Node) -> Node:
        if used not in seen:
            seen.add(used)
            dying.setdefault(user, []).append(used)
        return used

    for node in reversed(list(nodes)):
        map_arg(node.args, lambda used, user=node: note(used, user))  # type: ignore[misc]
        map_arg(node.kwargs, lambda used, user=node: note(used, user))  # type: ignore[misc]
    return dying


class CodeGen:
    """How a graph becomes source: override the methods to change what the function takes and gives back."""

    _body_transformer: Callable[[list[str]], list[str]] | None
    _func_name: str

    def __init__(self) -> None:
        self._body_transformer = None
        self._func_name = "forward"

    # ---- What subclasses override -------------------------------------------------------------------------------------

    def gen_fn_def(
        self, free_vars: list[str], maybe_return_annotation: str, *, expanded_def: bool = False
    ) -> str:
        """The line with `def`. `free_vars` are the parameters with their annotations and defaults."""
        if not free_vars or free_vars[0] != "self":
            free_vars.insert(0, "self")
        if expanded_def:
            parameters = self._format_multiline_args(free_vars)
            return f"def {self._func_name}({parameters}){maybe_return_annotation}:"
        return f"def {self._func_name}({', '.join(free_vars)}){maybe_return_annotation}:"

    def generate_output(
        self,
        output_args: Argument,
        *,
        descs: object | None = None,
        repr_fn: Callable[[Argument], str] = repr,
    ) -> str:
        """The line with `return`."""
        if descs is not None and isinstance(output_args, (list, tuple)):
            return f"return {self._format_multiline_container(output_args, descs, '', repr_fn)}"
        return f"return {repr_fn(output_args)}"

    def process_inputs(self, *args: Any) -> Any:
        """The values of the placeholders, given the arguments of the function."""
        return args

    def process_outputs(self, outputs: Any) -> Any:
        """What the function gives back, given the argument of the output node."""
        return outputs

    def additional_globals(self) -> list[tuple[str, Any]]:
        """Names that the code of this class refers to, with what they mean."""
        return []

    # ---- Containers over several lines --------------------------------------------------------------------------------

    def _format_multiline_args(self, args: list[str]) -> str:
        return "\n" + "".join(self._format_single_arg(each) for each in args)

    def _format_single_arg(self, arg: str) -> str:
        line, _, comment = arg.partition("  # ")
        return f"{INDENT}{line},{f'  # {comment}' if comment else ''}\n"

    def _get_delimiters(self, container: object) -> tuple[str, str]:
        return ("(", ")") if isinstance(container, tuple) else ("[", "]")

    def _get_desc_trailers(self, items: Iterable[Any], descs: Any) -> list[str]:
        if descs is None:
            return [""] * len(list(items))
        return [f"  # {each}" for each in descs]

    def _format_multiline_container(
        self,
        items: Any,
        descs: Any = None,
        prefix: str = "",
        repr_fn: Callable[[Any], str] = repr,
    ) -> str:
        start, end = self._get_delimiters(items)
        trailers = self._get_desc_trailers(items, descs)
        lines = [
            f"{INDENT}{repr_fn(each)},{trailer}\n" for each, trailer in zip(items, trailers, strict=True)
        ]
        return f"{prefix}{start}\n{''.join(lines)}{end}"

    # ---- The source -----------------------------------------------------------------------------------------------------

    def _gen_python_code(
        self,
        nodes: Iterable[Node],
        root_module: str,
        namespace: _Namespace,
        *,
        verbose: bool = False,
        include_stride: bool = False,
        include_device: bool = False,
        colored: bool = False,
        expanded_def: bool = False,
        record_func: bool = False,
        additional_meta: list[str] | None = None,
    ) -> PythonCode:
        if record_func:
            raise NotImplementedError(
                "Graph.python_code(record_func=True): weft has no profiler to record in yet"
            )
        options = _Options(verbose, include_stride, include_device, colored, tuple(additional_meta or ()))
        writer = _Writer(self, root_module, namespace, options)
        nodes = list(nodes)
        writer.write(nodes)
        body = writer.lines or ["pass\n"]
        if self._body_transformer is not None:
            body = self._body_transformer(body)
        wrapped = "\n".join(f'torch.fx._symbolic_trace.wrap("{name}")' for name in writer.wrapped)
        for name, value in self.additional_globals():
            writer.add_global(name, value)
        head = _call_with_known(
            self.gen_fn_def, writer.parameters, writer.return_annotation, expanded_def=expanded_def
        )
        text, line_of_node = _without_marks("".join(body))
        code = "\n".join(INDENT + line for line in text.lstrip("\n").split("\n"))
        source = f"\n{wrapped}\n\n{head}\n{code}"
        prologue = len(source.split("\n")) - len(code.split("\n"))
        return PythonCode(source, writer.globals, line_of_node, _prologue_start=prologue)


def _call_with_known(method: Callable[..., str], *args: Any, **options: Any) -> str:
    """Call a method with those of the options that it has: subclasses may override it with the parameters of earlier versions."""
    known = inspect.signature(method).parameters
    return method(*args, **{name: value for name, value in options.items() if name in known})


class _Options(NamedTuple):
    verbose: bool
    include_stride: bool
    include_device: bool
    colored: bool
    additional_meta: tuple[str, ...]


_MARK = "\0{}\0"
_MARKED = re.compile("\0(\\d+)\0")


def _without_marks(text: str) -> tuple[str, dict[int, int | None]]:
    """The text without the marks at the beginning of nodes, and for each of its lines which node it belongs to."""
    lines: dict[int, int | None] = {}
    current: int | None = None
    for number, line in enumerate(text.lstrip("\n").split("\n"), 1):
        # There are several before the first line, because inputs have no lines of their own.
        if found := _MARKED.findall(line):
            current = int(found[-1])
        lines[number] = current
    return _MARKED.sub("", text), lines


class _Writer:
    """Writes the body of one function, and collects its parameters and globals."""

    def __init__(self, codegen: CodeGen, root_module: str, namespace: _Namespace, options: _Options) -> None:
        self.codegen = codegen
        self.root_module = root_module
        self.namespace = namespace
        self.options = options
        self.lines: list[str] = []
        self.parameters: list[str] = []
        self.return_annotation = ""
        self.globals: dict[str, Any] = {}
        self.wrapped: dict[str, None] = {}
        self.last_trace: str | None = ""
        for name, each in _custom_builtins.items():
            self.add_global(name, each.obj)

    def write(self, nodes: list[Node]) -> None:
        dying = last_uses(nodes)
        for place, node in enumerate(nodes):
            if self.options.verbose:
                self._write_origin(node)
            self.lines.append(_MARK.format(place))
            self._write_node(node)
            self._write_deletions(node, dying.get(node, ()))

    def _color(self, name: str, text: str) -> str:
        return f"{_color_codes[name]}{text}{_color_codes['reset']}" if self.options.colored else text

    # ---- Names ----------------------------------------------------------------------------------------------------------

    def add_global(self, name_hint: str, obj: Any) -> str:
        """The name by which the code refers to `obj`."""
        if is_from_torch(obj) and obj is not weft.device:
            return _get_qualified_name(obj)
        name = self.namespace.create_name(name_hint, obj)
        if self.globals.setdefault(name, obj) is not obj:
            raise AssertionError(f"Global name {name} already assigned to different object")
        return name

    def type_name(self, kind: Any) -> str:
        """The expression for a type."""
        if kind == ():
            return "()"
        if isinstance(kind, (list, tuple)):  # the parameters of a Callable
            return f"[{','.join(map(self.type_name, kind))}]"
        if isinstance(kind, str):
            return repr(kind)
        if kind is Dyn:  # PyTorch writes the class of the object, which generated code never evaluates
            return "torch.fx.tensor_type._DynType"
        if isinstance(kind, TensorType):
            sizes = ",".join(map(self.type_name, kind.dims))
            base = self.add_global(_type_repr(TensorType), TensorType)
            return f"{base}[{sizes}]" if sizes else base
        origin = typing.get_origin(kind)
        if origin is None:
            return self.add_global(_type_repr(kind), kind)
        arguments = typing.get_args(kind)
        if isinstance(kind, types.UnionType):
            return "|".join(map(self.type_name, arguments))
        if origin is Union:
            base = self.add_global("typing_Union", Union)
        elif isinstance(kind, types.GenericAlias) or not hasattr(kind, "__args__"):
            base = self.add_global(_type_repr(origin), origin)
        else:
            origin = _origin_type_map.get(origin, origin)
            base = self.add_global(_type_repr(origin), origin)
        return f"{base}[{','.join(map(self.type_name, arguments))}]" if arguments else base

    def text(self, arg: Any) -> str:
        """The expression for an argument."""
        if isinstance(arg, dict):
            # One colour for all of it, as in PyTorch.
            return self._color("blue", self._without_color(arg))
        return self._text(arg)

    def _without_color(self, arg: dict) -> str:
        outer, self.options = self.options, self.options._replace(colored=False)
        try:
            return (
                "{" + ", ".join(f"{self.text(key)}: {self.text(value)}" for key, value in arg.items()) + "}"
            )
        finally:
            self.options = outer

    def _text(self, arg: Any) -> str:
        if isinstance(arg, Node):
            return repr(arg)
        if isinstance(arg, tuple):
            items = ", ".join(map(self.text, arg)) + ("," if len(arg) == 1 else "")
            if hasattr(arg, "_fields"):
                return f"{self.add_global(_type_repr(type(arg)), type(arg))}({items})"
            return f"({items})"
        if isinstance(arg, list):
            return f"[{', '.join(map(self.text, arg))}]"
        if isinstance(arg, dict):
            return (
                "{" + ", ".join(f"{self.text(key)}: {self.text(value)}" for key, value in arg.items()) + "}"
            )
        if isinstance(arg, slice):
            return f"slice({self.text(arg.start)}, {self.text(arg.stop)}, {self.text(arg.step)})"
        if isinstance(arg, enum.Enum):
            kind = type(arg)
            return f"{self.add_global(_type_repr(kind), kind)}.{arg.name}"
        if isinstance(arg, type) or is_operator(arg):
            return self.add_global(
                _type_repr(arg) if isinstance(arg, type) else _get_qualified_name(arg), arg
            )
        return self._color("blue", repr(arg))

    # ---- Lines ----------------------------------------------------------------------------------------------------------

    def _write_node(self, node: Node) -> None:
        annotation = "" if node.type is None else f" : {self.type_name(node.type)}"
        if self.options.verbose:
            annotation = self._tensor_annotation(node) or annotation
        if node.op == "placeholder":
            self._write_placeholder(node, annotation)
        elif node.op == "output":
            if node.type is not None:
                self.return_annotation = f" -> {self.type_name(node.type)}"
            self.lines.append(_call_with_known(self.codegen.generate_output, node.args[0], repr_fn=self.text))
        else:
            self._write_step(node, annotation)

    def _write_placeholder(self, node: Node, annotation: str) -> None:
        target = str(node.target)
        default = f" = {self.text(node.args[0])}" if node.args else ""
        self.parameters.append(f"{target}{annotation}{default}")
        name = target.replace("*", "")
        if name != repr(node):
            self.lines.append(f"{node!r} = {name}\n")

    def _write_step(self, node: Node, annotation: str) -> None:
        head = f"{node!r}{annotation} = "
        target: Any = node.target
        if node.op == "get_attr":
            self.lines.append(head + _format_target(self.root_module, target))
        elif node.op == "call_module":
            call = _format_args(node.args, node.kwargs, self.text)
            self.lines.append(f"{head}{_format_target(self.root_module, target)}({call})")
        elif node.op == "call_method":
            call = _format_args(node.args[1:], node.kwargs, self.text)
            self.lines.append(f"{head}{_format_target(self.text(node.args[0]), target)}({call})")
        elif node.op == "call_function":
            self._write_function(node, head)
        else:
            raise NotImplementedError(f"node: {node.op} {node.target}")

    def _write_function(self, node: Node, head: str) -> None:
        target: Any = node.target
        module, name = getattr(target, "__module__", None), getattr(target, "__name__", "")
        if module == "_operator" and name in magic_methods:
            self.lines.append(head + magic_methods[name].format(*map(self.text, node.args)))
            return
        if module == "_operator" and name in inplace_methods:
            arguments = [*map(self.text, node.args)]
            self.lines.append(f"{inplace_methods[name].format(*arguments)};  {head}{arguments[0]}")
            return
        path = _get_qualified_name(target)
        shown = self.add_global(path, target)
        is_attribute = len(node.args) == 2 and isinstance(node.args[1], str) and node.args[1].isidentifier()
        if shown == "getattr" and is_attribute:
            self.lines.append(head + _format_target(self.text(node.args[0]), node.args[1]))
            return
        self.lines.append(f"{head}{shown}({_format_args(node.args, node.kwargs, self.text)})")
        if node.meta.get("is_wrapped", False):
            self.wrapped[shown] = None

    def _write_deletions(self, node: Node, dying: Iterable[Node]) -> None:
        """Set the names of values that no line after this one uses to None, so that their memory is free."""
        if node.op == "placeholder":
            return
        if node.op == "output":
            self.lines.append("\n")
            return
        names = [repr(each) for each in dying]
        if not node.users:
            names.append(repr(node))
        if names:
            self.lines.append(f";  {self._color('dim', ' = '.join([*names, 'None']))}\n")
        else:
            self.lines.append("\n")

    # ---- What verbose code says besides ----------------------------------------------------------------------------------

    def _write_origin(self, node: Node) -> None:
        """A comment with the line of the program that the node comes from, before the first node of that line."""
        if node.op in ("placeholder", "output"):
            return
        further = "".join(
            f" {key}: {node.meta[key]}" for key in self.options.additional_meta if key in node.meta
        )
        trace = node.stack_trace
        if not trace:
            if self.last_trace != "none":
                self.last_trace = "none"
                self._comment("No stacktrace found for following nodes")
        elif trace != self.last_trace:
            self.last_trace = trace
            from . import config

            if not config.do_not_emit_stack_traces and (parsed := _parse_stack_trace(trace)) is not None:
                self._comment(parsed.get_summary_str() + further)

    def _comment(self, text: str) -> None:
        self.lines.append(f"\n{self._color('dim', f'# {text}')}\n")

    def _tensor_annotation(self, node: Node) -> str:
        """The dtype and shape that a pass found out, as an annotation in quotes."""
        value = node.meta.get("val", node.meta.get("tensor_meta", node.meta.get("example_value")))
        shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
        if shape is None or dtype not in dtype_abbrs:
            return ""
        sizes = f"[{', '.join(map(str, shape))}]"
        text = dtype_abbrs[dtype] + sizes
        if isinstance(value, Tensor):
            text = self._color("red", dtype_abbrs[dtype]) + self._color("blue", sizes)
            if self.options.include_stride:
                text += self._color("dim", f"[{', '.join(map(str, value.stride()))}]")
            if self.options.include_device:
                text += self._color("green", str(value.device))
        return f': "{text}"'


# ---- Arguments and results that are containers --------------------------------------------------------------------------


class _PyTreeInfo(NamedTuple):
    """The signature of a function that was traced with containers of placeholders."""

    orig_args: list[str]
    in_spec: pytree.TreeSpec
    out_spec: pytree.TreeSpec | None


class _PyTreeCodeGen(CodeGen):
    """Takes containers, and takes them apart into the placeholders; puts the result together again."""

    def __init__(self, pytree_info: _PyTreeInfo) -> None:
        super().__init__()
        self.pytree_info: _PyTreeInfo = pytree_info

    def process_inputs(self, *inputs: Any) -> Any:
        return pytree.arg_tree_leaves(*inputs)

    def process_outputs(self, out: Any) -> Any:
        if not isinstance(out, (list, tuple)) or self.pytree_info.out_spec is None:
            return out
        return pytree.tree_unflatten(out, self.pytree_info.out_spec)

    def additional_globals(self) -> list[tuple[str, Any]]:
        return []

    def _format_annotations(self, free_vars: list[str], expanded_def: bool) -> str:
        """Lines that annotate the placeholders: parameters that are containers cannot carry these annotations."""
        annotated = [each for each in free_vars if ":" in each]
        return "".join(f"{each.partition('=')[0].strip()}\n" for each in annotated)

    def gen_var_bindings(self, fn_args: list[str], free_vars: list[str], expanded_def: bool) -> str:
        """The line that takes the arguments apart."""
        names = [each.partition(":")[0].partition("=")[0].strip() for each in free_vars]
        in_spec = self.pytree_info.in_spec
        left = f"{', '.join(names)}, "
        is_call = in_spec.type is tuple and [each.type for each in in_spec.children_specs] == [tuple, dict]
        if is_call:
            keys = list(in_spec.child(1).context)
            count = in_spec.child(0).num_children
            positional = "".join(f"{each}, " for each in fn_args[:count])
            keywords = ", ".join(f"'{key}':{name}" for key, name in zip(keys, fn_args[count:], strict=False))
            return (
                f"\n    {left}= fx_pytree.tree_flatten_spec((({positional}), {{{keywords}}}), self._in_spec)"
            )
        return f"\n    {left}= fx_pytree.tree_flatten_spec([{', '.join(fn_args)}], self._in_spec)"

    def gen_fn_def(
        self, free_vars: list[str], maybe_return_annotation: str, *, expanded_def: bool = False
    ) -> str:
        arguments = self.pytree_info.orig_args
        if arguments and arguments[0] == "self":  # the module is one of the arguments that are taken apart
            free_vars.insert(0, "self")
        head = super().gen_fn_def(list(arguments), maybe_return_annotation, expanded_def=expanded_def)
        if free_vars:
            head += self.gen_var_bindings(list(arguments), free_vars, expanded_def)
        return head

    def generate_output(
        self,
        output_args: Argument,
        *,
        descs: object | None = None,
        repr_fn: Callable[[Argument], str] = repr,
    ) -> str:
        if self.pytree_info.out_spec is None:
            return super().generate_output(output_args, descs=descs, repr_fn=repr_fn)
        return f"return pytree.tree_unflatten({repr_fn(output_args)}, self._out_spec)"


class _BoxedCodeGen(CodeGen):
    """The function takes one list of all its arguments, and empties it, so that they can be freed on the way."""

    def gen_fn_def(
        self, free_vars: list[str], maybe_return_annotation: str, *, expanded_def: bool = False
    ) -> str:
        names = [each.partition(":")[0].partition("=")[0].strip() for each in free_vars if each != "self"]
        head = f"def {self._func_name}(self, args_list){maybe_return_annotation}:"
        if not names:
            return head
        return f"{head}\n    {', '.join(names)}, = args_list\n    args_list.clear()"


class _ExportCodeGen(_PyTreeCodeGen):
    """The code of `torch.export`: like `_PyTreeCodeGen`, and calls the graph through modules that reorder its ends."""

    def __init__(
        self,
        pytree_info: _PyTreeInfo,
        in_shuffle_graph: Any,
        out_shuffle_graph: Any,
        tree_leaf_names: list[str],
        root: Any,
    ) -> None:
        super().__init__(pytree_info)
        self.in_shuffle_graph = in_shuffle_graph
        self.out_shuffle_graph = out_shuffle_graph
        self.tree_leaf_names = tree_leaf_names
        self.root = root

    def process_inputs(self, *inputs: Any) -> Any:
        return self.in_shuffle_graph(*super().process_inputs(*inputs))

    def process_outputs(self, out: Any) -> Any:
        return super().process_outputs(self.out_shuffle_graph(*out))


@contextlib.contextmanager
def own_names(nodes: Iterable[Node], namespace: _Namespace) -> Iterator[None]:
    """Inside, nodes print under the names that they have in `namespace`."""
    nodes = list(nodes)
    previous = [node._repr_fn for node in nodes]
    for node in nodes:
        node._repr_fn = lambda each: namespace.create_name(each.name, each)
    try:
        yield
    finally:
        for node, function in zip(nodes, previous, strict=True):
            node._repr_fn = function


for _class in (
    CodeGen,
    PythonCode,
    _BoxedCodeGen,
    _ParsedStackTrace,
    _PyTreeInfo,
    _PyTreeCodeGen,
    _ExportCodeGen,
):
    _class.__module__ = __name__.replace("_codegen", "graph")
