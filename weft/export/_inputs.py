"""The example inputs of an export: their names, their dynamic dimensions, and the inputs of the second run."""

from __future__ import annotations

import dataclasses
import inspect
import re
from typing import Any

from .. import Tensor, arange, device, dtype, layout, memory_format
from ..compiler.errors import UserError
from ..core.pytree import SUPPORTED_NODES, keystr, tree_flatten, tree_flatten_with_path
from ..nn import Module
from ._guards import UNBOUNDED
from .dynamic_shapes import AdditionalInputs, Dim, ShapesCollection, _DimHint, _DimHintType

_LEAVES = (Tensor, int, float, complex, bool, str, bytes, type(None), dtype, device, layout, memory_format)
_SEE = (
    "For more information about this error, see: "
    "https://pytorch.org/docs/main/generated/exportdb/index.html#dynamic-shapes-validation"
)


class ExampleInputs:
    """The arguments of a call, taken apart into leaves."""

    def __init__(self, module: Module, args: tuple, kwargs: dict[str, Any], shapes: Any):
        self.args, self.kwargs = args, kwargs
        parameters = list(inspect.signature(module.forward).parameters.values())
        names = argument_names(parameters, args)
        self.forward_names = [*names, *kwargs]
        self.leaves, self.spec = tree_flatten((args, kwargs))
        for leaf in self.leaves:
            _check_leaf(leaf)
        self.sources = source_names(names, args, kwargs)
        self.names = [_identifier(source) for source in self.sources]
        if isinstance(shapes, (ShapesCollection, AdditionalInputs)):
            shapes = shapes.dynamic_shapes(module, args, kwargs)
        self.hints = _hints(shapes, [*zip(names, args), *kwargs.items()], len(self.leaves))
        if shapes is not None:
            for leaf, hints, source in zip(self.leaves, self.hints, self.sources):
                _check_hints(leaf, hints, source)
        self.hints = [
            dynamic_dims(hints, leaf.dim()) if isinstance(leaf, Tensor) else {}
            for leaf, hints in zip(self.leaves, self.hints)
        ]


@dataclasses.dataclass
class Symbol:
    """A dynamic size: its name, its bounds, its value in each of the two runs, and where it is found."""

    name: str
    first: int
    second: int
    minimum: int
    maximum: int
    source: str
    is_named: bool
    is_auto: bool


class Symbols:
    """The dynamic sizes of all inputs.

    With `is_shared`, dimensions of the same size have the same symbol. Those in `static` have none. `limits` narrows the
    bounds of dimensions without a name.
    """

    def __init__(
        self,
        is_shared: bool = False,
        static: frozenset[str] = frozenset(),
        limits: dict[str, tuple[int, int]] | None = None,
    ) -> None:
        self.by_name: dict[str, Symbol] = {}
        self.is_shared, self.static, self.limits = is_shared, static, limits or {}

    def of(self, hint: Any, size: int, source: str) -> tuple[Symbol | None, int, Any]:
        """For a dimension: its symbol, its size in the second run, and how it is written."""
        if isinstance(hint, Dim):
            root, start = hint.root, hint.evaluate(0)
            slope = hint.evaluate(1) - start
            own = (size - start) // slope
            name = f"{hint.__name__}".replace("*", " * ") if hint is not root else root.__name__
            symbol = self._symbol(root.__name__, own, root.min, root.max, source, True, False)
            return (symbol, hint.evaluate(symbol.second), name) if symbol else (None, size, size)
        low = 0 if hint.min is None else hint.min
        high = UNBOUNDED if hint.max is None else hint.max
        limit = self.limits.get(source, (low, high))
        low, high = max(low, limit[0]), min(high, limit[1])
        is_auto = hint.type is _DimHintType.AUTO
        symbol = self._symbol(self._name(size, source), size, low, high, source, False, is_auto)
        return (symbol, symbol.second, symbol.name) if symbol else (None, size, size)

    def _name(self, size: int, source: str) -> str:
        if self.is_shared:
            return next(
                (each.name for each in self.by_name.values() if each.first == size), f"s{len(self.by_name)}"
            )
        return f"s{len(self.by_name)}"

    def _symbol(
        self, name: str, size: int, low: int, high: int, source: str, is_named: bool, is_auto: bool
    ) -> Symbol | None:
        if source in self.static or name in self.static:
            return None
        if not low <= size <= high:
            shown = "int_oo" if high == UNBOUNDED else high
            raise UserError(
                f"{source} is {size}, which is not in range [{low}, {shown}] of the dimension {name}"
            )
        found = self.by_name.get(name)
        if found is None:
            if self.is_shared and is_named:
                twin = next((each for each in self.by_name.values() if each.first == size), None)
                if twin is not None:
                    return twin
            # Another size in the second run for each symbol, so that equal sizes are equal for a reason.
            wanted = size + 3 + 2 * len(self.by_name)
            second = wanted if wanted <= high else (high if high != size else low)
            found = Symbol(name, size, second, low, high, source, is_named, is_auto)
            self.by_name[name] = found
        elif found.first != size:
            raise UserError(
                f"Constraints violated ({name})! The dimension {name} is {found.first} at {found.source} and {size} at "
                f"{source}: inputs that share a Dim have the same size there"
            )
        return found


def second_inputs(inputs: ExampleInputs, symbols: Symbols) -> tuple[list[Any], dict[str, list[Any]]]:
    """The leaves of the second run, and by name the sizes of each tensor, in which dynamic ones are formulas."""
    second: list[Any] = []
    all_sizes: dict[str, list[Any]] = {}
    for leaf, hints, name, source in zip(inputs.leaves, inputs.hints, inputs.names, inputs.sources):
        if not isinstance(leaf, Tensor):
            second.append(leaf)
            continue
        other, sizes = leaf.detach(), list(leaf.shape)
        for dim, hint in sorted(hints.items()):
            if isinstance(hint, _DimHint) and hint.type is _DimHintType.AUTO and leaf.shape[dim] < 2:
                continue  # PyTorch takes sizes 0 and 1 to be special, unless it is told
            _, size, sizes[dim] = symbols.of(hint, leaf.shape[dim], f"{source}.size()[{dim}]")
            if size != leaf.shape[dim]:
                # Elements of the first input again, so that indices stay valid.
                other = other.index_select(dim, arange(size) % max(leaf.shape[dim], 1))
        second.append(other.clone())
        all_sizes[name] = sizes
    return second, all_sizes


# ---- Names ----------------------------------------------------------------------------------------------------------------


def argument_names(parameters: list[inspect.Parameter], args: tuple) -> list[str]:
    """The names of positional arguments; `rest_0`, `rest_1` for those of `*rest`."""
    names = []
    first_rest = next((i for i, each in enumerate(parameters) if each.kind is each.VAR_POSITIONAL), None)
    for place in range(len(args)):
        if first_rest is not None and place >= first_rest:
            names.append(f"{parameters[first_rest].name}_{place - first_rest}")
        elif place < len(parameters):
            names.append(parameters[place].name)
        else:
            raise TypeError(
                f"forward() takes {len(parameters)} arguments, and {len(args)} example inputs were given"
            )
    return names


def source_names(names: list[str], args: tuple, kwargs: dict[str, Any]) -> list[str]:
    """How messages name the leaves of the inputs: `y['q']`."""
    leaves, _ = tree_flatten_with_path((args, kwargs))
    found = []
    for path, _ in leaves:
        is_keyword = path[0].idx == 1
        own = path[1].key if is_keyword else names[path[1].idx]
        found.append(f"{own}{keystr(path[2:])}")
    return found


def _identifier(source: str) -> str:
    """`y['q'][0]` -> y_q_0, as PyTorch names placeholders."""
    return re.sub(r"\W+", "_", source).strip("_").lower()


def _check_leaf(leaf: Any) -> None:
    if not isinstance(leaf, _LEAVES):
        raise ValueError(
            f"Unsupported input type {type(leaf)}. Export only supports pytree containers of basic types (Tensor, int, float, "
            "...) as input. To register a custom dataclass, use torch.export.register_dataclass. To register a custom container "
            "type, use torch.utils._pytree.register_pytree_node. To register a constant input, use "
            "torch.utils._pytree.register_constant"
        )


# ---- Dynamic dimensions ---------------------------------------------------------------------------------------------------


def _hints(shapes: Any, arguments: list[tuple[str, Any]], count: int) -> list[Any]:
    """For each leaf of the inputs, the hints of its dimensions as they were given."""
    if not shapes:
        return [None] * count
    names = [name for name, _ in arguments]
    if isinstance(shapes, (list, tuple)):
        if len(shapes) != len(names):
            raise UserError(
                f"Expected `dynamic_shapes` to have one entry for each of the inputs {names}, but got {len(shapes)}. {_SEE}"
            )
        shapes = dict(zip(names, shapes))
    elif not isinstance(shapes, dict):
        raise UserError(
            f"Expected `dynamic_shapes` to be a dict, list or tuple, but got {type(shapes)}. {_SEE}"
        )
    elif set(shapes) != set(names):
        if len(names) == len(shapes) == 1 or not _is_rest(shapes, names):
            raise UserError(
                "When `dynamic_shapes` is specified as a dict, its top-level keys must be the arg names "
                f"{names} of `inputs`, but here they are {list(shapes)}. Alternatively, you could also ignore arg names "
                f"entirely and specify `dynamic_shapes` as a list/tuple matching `inputs`. {_SEE}"
            )
        shapes = _spread(shapes, names)
    found: list[Any] = []
    for name, value in arguments:
        _collect(value, shapes.get(name), found, f"`dynamic_shapes['{name}']`")
    return found


def _is_rest(shapes: dict, names: list[str]) -> bool:
    """Whether the keys are those of the arguments, with one entry for all of `*rest`."""
    return set(_spread(shapes, names)) == set(names)


def _spread(shapes: dict, names: list[str]) -> dict:
    """`{"rest": (a, b)}` as `{"rest_0": a, "rest_1": b}`."""
    found: dict[Any, Any] = {}
    for key, value in shapes.items():
        parts = [name for name in names if re.fullmatch(rf"{re.escape(str(key))}_\d+", name)]
        if key not in names and isinstance(value, (list, tuple)) and len(parts) == len(value):
            found |= dict(zip(parts, value))
        else:
            found[key] = value
    return found


def _collect(value: Any, shapes: Any, found: list[Any], place: str) -> None:
    """Walk a value and its shapes at the same time."""
    is_named = isinstance(value, tuple) and hasattr(value, "_fields")
    if isinstance(value, Tensor) or not (is_named or type(value) in SUPPORTED_NODES):
        found.append(shapes)
        return
    children, context = (list(value), None) if is_named else SUPPORTED_NODES[type(value)].flatten_fn(value)
    if shapes is None:
        parts: list[Any] = [None] * len(children)
    elif isinstance(shapes, dict):
        keys = list(value) if isinstance(value, dict) else list(context[0] if context else ())
        if set(shapes) != set(keys):
            raise UserError(f"{place} has the keys {list(shapes)}, but the input has {keys}. {_SEE}")
        parts = [shapes[key] for key in keys]
    else:
        parts = (
            list(shapes)
            if isinstance(shapes, (list, tuple))
            else list(SUPPORTED_NODES[type(shapes)].flatten_fn(shapes)[0])
        )
        if len(parts) != len(children):
            raise UserError(f"{place} has {len(parts)} entries, but the input has {len(children)}. {_SEE}")
    for number, (child, part) in enumerate(zip(children, parts)):
        _collect(child, part, found, f"{place}[{number}]")


def _check_hints(leaf: Any, shapes: Any, source: str) -> None:
    if shapes is None:
        return
    if not isinstance(leaf, Tensor):
        return
    if isinstance(shapes, (list, tuple)) and len(shapes) != leaf.dim():
        raise UserError(
            f"Expected dynamic shape spec {shapes} specified at `dynamic_shapes['{source}']` to have the same length as the "
            f"actual tensor shape {leaf.shape} (expected {leaf.dim()}, but got {len(shapes)} instead)\n{_SEE}"
        )
    if not isinstance(shapes, (dict, list, tuple)):
        raise UserError(
            f"Unexpected dynamic_shape {shapes} of Tensor at `dynamic_shapes['{source}']`: expected a dict by dimension, or a "
            f"list or tuple with one entry for each dimension. {_SEE}"
        )
    items = shapes.items() if isinstance(shapes, dict) else enumerate(shapes)
    for dim, hint in items:
        if isinstance(dim, int) and not -leaf.dim() <= dim < leaf.dim():
            raise IndexError(
                f"dynamic_shapes of {source}: dimension {dim}, but the tensor has {leaf.dim()} dimensions"
            )
        if isinstance(hint, int) and hint != leaf.shape[dim]:
            raise UserError(
                f"Static shape constraint of {hint} does not match input size of {leaf.shape[dim]}, for {source}.size()[{dim}]"
            )
        if hint is not None and not isinstance(hint, (Dim, _DimHint, int)):
            raise UserError(
                f"Unexpected dimension mapped to index {dim} of Tensor at `dynamic_shapes['{source}']`: {hint!r}; expected a "
                f"Dim, Dim.AUTO, Dim.DYNAMIC, Dim.STATIC, an int or None. {_SEE}"
            )


def dynamic_dims(shapes: Any, rank: int) -> dict[int, Any]:
    """By dimension, the Dims and hints of one tensor, without those that say that a size is static."""
    if shapes is None:
        return {}
    items = shapes.items() if isinstance(shapes, dict) else enumerate(shapes)
    return {
        dim % max(rank, 1): hint
        for dim, hint in items
        if hint is not None and not isinstance(hint, int) and hint != Dim.STATIC
    }
