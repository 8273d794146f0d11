"""`torch.utils.flop_counter`: how many floating-point operations products, convolutions and attention take, by module."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from ..compat.missing import module_getattr
from ..core.modes import TorchFunctionMode
from ..core.tensor import Tensor

__all__ = ["FlopCounterMode", "register_flop_formula"]


# ---- Formulas: from shapes to a number; a multiplication and an addition are two ---------------------------------------


def mm_flop(
    a_shape: Sequence[int], b_shape: Sequence[int], *args: Any, out_shape: Any = None, **kwargs: Any
) -> int:
    """Count the operations of [m, k] @ [k, n]."""
    (m, k), (k2, n) = a_shape, b_shape
    if k != k2:
        raise AssertionError(f"matmul: inner dimensions must match (k == k2), got {k} and {k2}")
    return m * n * 2 * k


def addmm_flop(
    self_shape: Sequence[int],
    a_shape: Sequence[int],
    b_shape: Sequence[int],
    out_shape: Any = None,
    **kwargs: Any,
) -> int:
    """Count the product only, without the addition."""
    return mm_flop(a_shape, b_shape)


def bmm_flop(a_shape: Sequence[int], b_shape: Sequence[int], out_shape: Any = None, **kwargs: Any) -> int:
    """Count the operations of [b, m, k] @ [b, k, n]."""
    return a_shape[0] * mm_flop(a_shape[1:], b_shape[1:])


def baddbmm_flop(
    self_shape: Sequence[int],
    a_shape: Sequence[int],
    b_shape: Sequence[int],
    out_shape: Any = None,
    **kwargs: Any,
) -> int:
    """Count the product only, without the addition."""
    return bmm_flop(a_shape, b_shape)


def conv_flop_count(
    x_shape: Sequence[int], w_shape: Sequence[int], out_shape: Sequence[int], transposed: bool = False
) -> int:
    """Count the operations of a convolution of [batch, channels, ...] with a weight [outputs, inputs per group, ...]."""
    positions = (x_shape if transposed else out_shape)[2:]
    return math.prod(positions) * math.prod(w_shape) * x_shape[0] * 2


def sdpa_flop_count(query_shape: Sequence[int], key_shape: Sequence[int], value_shape: Sequence[int]) -> int:
    """Count the operations of both products of attention: [b, heads, queries, e], [b, heads, keys, e], [b, heads, keys, v]."""
    b, h, queries, features = query_shape
    keys, values = key_shape[-2], value_shape[-1]
    return bmm_flop((b * h, queries, features), (b * h, features, keys)) + bmm_flop(
        (b * h, queries, keys), (b * h, keys, values)
    )


# Public function -> formula(result, *args, **kwargs) and the operator's name, "" where rows decide.
_registered: dict[Any, Callable] = {}


def register_flop_formula(targets: Any, get_raw: bool = False) -> Callable[[Callable], Callable]:
    """Decorator: `formula(*shapes, out_shape=...)` counts calls of these functions; with get_raw it is given the tensors.

    >>> import weft as torch
    >>> @register_flop_formula(torch.dot)
    ... def dot_flop(a_shape, b_shape, out_shape=None, **kwargs):
    ...     return 2 * a_shape[0]
    >>> with FlopCounterMode(display=False) as counter:
    ...     x = torch.dot(torch.ones(3), torch.ones(3))
    >>> counter.get_total_flops()
    6
    """

    def register(formula: Callable) -> Callable:
        for each in targets if isinstance(targets, (list, tuple)) else [targets]:
            if not callable(each):
                raise ValueError(f"register_flop_formula(targets): expected functions, got {type(each)}")
            _registered[each] = formula if get_raw else _of_shapes(formula)
        return formula

    return register


def _of_shapes(formula: Callable) -> Callable:
    def shape(x: Any) -> Any:
        if isinstance(x, (list, tuple)):
            return type(x)(map(shape, x))
        return x.shape if isinstance(x, Tensor) else x

    def count(*args: Any, out_val: Any = None, **kwargs: Any) -> int:
        return formula(
            *map(shape, args), out_shape=shape(out_val), **{k: shape(v) for k, v in kwargs.items()}
        )

    return count


def _matmul(result: Any, a: Tensor, b: Tensor, **kwargs: Any) -> tuple[str, int]:
    if min(a.dim(), b.dim()) == 1:
        return "", 0  # PyTorch does not count products with vectors
    count = 2 * math.prod(result.shape) * a.shape[-1]
    return ("mm" if max(a.dim(), b.dim()) == 2 or b.dim() == 2 else "bmm"), count


def _linear(result: Any, input: Tensor, weight: Tensor, bias: Any = None) -> tuple[str, int]:
    return ("mm" if bias is None else "addmm"), 2 * math.prod(result.shape) * weight.shape[1]


def _addmm(result: Any, input: Tensor, mat1: Tensor, mat2: Tensor, **kwargs: Any) -> tuple[str, int]:
    return ("baddbmm" if mat1.dim() == 3 else "addmm"), 2 * math.prod(result.shape) * mat1.shape[-1]


def _convolution(result: Any, input: Tensor, weight: Tensor, *args: Any, **kwargs: Any) -> tuple[str, int]:
    batched = [x if x.dim() == weight.dim() else x.unsqueeze(0) for x in (input, result)]
    return "convolution", conv_flop_count(batched[0].shape, weight.shape, batched[1].shape)


def _transposed_convolution(
    result: Any, input: Tensor, weight: Tensor, *args: Any, **kwargs: Any
) -> tuple[str, int]:
    x = input if input.dim() == weight.dim() else input.unsqueeze(0)
    return "convolution", conv_flop_count(x.shape, weight.shape, (), True)


def _attention(
    result: Any, query: Tensor, key: Tensor, value: Tensor, *args: Any, **kwargs: Any
) -> tuple[str, int]:
    shapes = [(1,) * max(0, 4 - x.dim()) + tuple(x.shape) for x in (query, key, value)]
    flat = [(math.prod(shape[:-3]), *shape[-3:]) for shape in shapes]
    return "_scaled_dot_product_flash_attention_for_cpu", sdpa_flop_count(*flat)


_COUNTED: dict[str, Callable] = {
    **dict.fromkeys(("matmul", "__matmul__", "__rmatmul__", "mm", "bmm"), _matmul),
    **dict.fromkeys(("addmm", "baddbmm"), _addmm),
    "linear": _linear,
    **{f"conv{n}d": _convolution for n in (1, 2, 3)},
    **{f"conv_transpose{n}d": _transposed_convolution for n in (1, 2, 3)},
    "scaled_dot_product_attention": _attention,
}


# ---- The mode --------------------------------------------------------------------------------------------------------


class FlopCounterMode(TorchFunctionMode):
    """Counts the operations of products, convolutions and attention within the context, by module.

    depth: how deep modules are nested in the table. display: print the table at the end. mods and custom_mapping (function
    -> formula, as for `register_flop_formula`) as in PyTorch. Only what Python calls is counted: a backward pass within the context
    raises NotImplementedError, and so is recurrent layers' work not counted.

    >>> import weft as torch
    >>> from weft.utils.flop_counter import FlopCounterMode
    >>> model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    >>> with FlopCounterMode(display=False) as counter:
    ...     y = model(torch.ones(3, 4))
    >>> counter.get_total_flops(), {name: sum(counts.values()) for name, counts in counter.get_flop_counts().items()}
    (288, {'Global': 288, 'Sequential': 288, 'Sequential.0': 192, 'Sequential.2': 96})
    """

    def __init__(
        self,
        mods: Any = None,
        depth: int = 2,
        display: bool = True,
        custom_mapping: dict[Any, Any] | None = None,
    ) -> None:
        super().__init__()
        self.depth, self.display = depth, display
        self.flop_counts: dict[str, dict[Any, int]] = defaultdict(lambda: defaultdict(int))
        self._formulas = {**_registered, **{k: _of_shapes(v) for k, v in (custom_mapping or {}).items()}}
        self._inside: list[str] = []  # names of the modules that run, outermost first
        self._names: dict[int, str] = {}
        self._handles: list[Any] = []

    def __enter__(self) -> FlopCounterMode:
        from ..nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

        self.flop_counts.clear()
        self._handles = [
            register_module_forward_pre_hook(self._enter_module),
            register_module_forward_hook(self._leave_module, always_call=True),
        ]
        return super().__enter__()

    def __exit__(self, *args: Any) -> None:
        super().__exit__(*args)
        for each in self._handles:
            each.remove()
        self._inside.clear()
        if self.display:
            print(self.get_table(self.depth))

    def _enter_module(self, module: Any, args: Any) -> None:
        if id(module) not in self._names:
            root = type(module).__name__
            self._names.update(
                {id(each): f"{root}.{name}" if name else root for name, each in module.named_modules()}
            )
        self._inside.append(self._names[id(module)])

    def _leave_module(self, module: Any, args: Any, result: Any) -> None:
        if self._inside:
            self._inside.pop()

    def __torch_function__(self, func: Any, types: Any, args: tuple = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func.__name__ == "backward":
            raise NotImplementedError(
                "FlopCounterMode: the operations of a backward pass are not counted; call backward outside of the context"
            )
        result = func(*args, **kwargs)
        if func in self._formulas:
            self._add(func, self._formulas[func](*args, out_val=result, **kwargs))
        elif func.__name__ in _COUNTED:
            name, count = _COUNTED[func.__name__](result, *args, **kwargs)
            if count:
                self._add(_operator(name, func), count)
        return result

    def _add(self, key: Any, count: int) -> None:
        for name in dict.fromkeys(("Global", *self._inside)):
            self.flop_counts[name][key] += count

    def get_total_flops(self) -> int:
        """Return all that was counted."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """Return the counts by module and then by operator; "Global" is the sum of all."""
        return {name: dict(counts) for name, counts in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """Return a table of modules up to a depth, with their counts and shares."""
        depth = self.depth if depth is None else depth
        total = self.get_total_flops()
        rows = [("Module", "FLOP", "% Total")]
        for name in sorted(self.flop_counts, key=lambda each: (each != "Global", each)):
            level = 0 if name == "Global" else name.count(".") + 1
            if level > depth:
                continue
            for label, count in [
                (name, sum(self.flop_counts[name].values())),
                *self.flop_counts[name].items(),
            ]:
                text = " " * level + (label if label == name else f" - {getattr(label, '__name__', label)}")
                rows.append((text, _with_suffix(count, total), f"{count / total:.2%}" if total else "0%"))
        widths = [max(len(row[column]) for row in rows) for column in range(3)]
        lines = [f"{a:<{widths[0]}}  {b:>{widths[1]}}  {c:>{widths[2]}}".rstrip() for a, b, c in rows]
        return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])


def _operator(name: str, func: Any) -> Any:
    """Return `torch.ops.aten.<name>` if it exists, else the function."""
    from .._ops import ops

    return getattr(ops.aten, name, func)


_SUFFIXES = ("", "K", "M", "B", "T")


def _with_suffix(number: int, total: int) -> str:
    """Return the number with the suffix (K, M, ...) that suits the total."""
    place = min(len(_SUFFIXES) - 1, (len(str(total)) - 1) // 3)
    return f"{number / 1000**place:.3f}{_SUFFIXES[place]}" if place else str(number)


__getattr__ = module_getattr(__name__)
