"""More elements at the borders: `pad` in its four modes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core import view_rules
from ...core.arguments import integers, number, text
from ...core.autocast import casting
from ...core.dtype import FLOAT, bool_
from ...core.layout import contiguous_format, strides_for, suggested_format
from ...core.limits import check_number
from ...core.public import public
from ...core.spec import Spec, make_spec
from ...core.tensor import Tensor
from ...families.array_op import on_device
from ...families.custom_vjp import CustomVjp
from ...families.kernel_graph import GraphBuilder, KernelGraph, Value
from ...families.map import COPY, FILL
from ..nn.window_views import like_format


def _by_dim(pad: Sequence[int], ndim: int) -> list[tuple[int, int]]:
    """(before, after) of each dim; `pad` begins with the last one."""
    pairs = [(pad[i], pad[i + 1]) for i in range(0, len(pad), 2)]
    return [(0, 0)] * (ndim - len(pairs)) + pairs[::-1]


def _inside(graph: GraphBuilder, operand: Value, pairs, outside: bool) -> Value:
    """The part that both share: the result without its padding, the input without the elements that are cut off."""
    for dim, (before, after) in enumerate(pairs):
        before, after = (max(before, 0), max(after, 0)) if outside else (max(-before, 0), max(-after, 0))
        if before or after:
            end = operand.spec.shape[dim] - after
            operand = graph.view(view_rules.slice, operand, dim, before, end, 1)
    return operand


# Bytes of a result and of its rows. From both on, only the borders are filled: 1000 x 1000 floats take 105 us instead of 158, 4000 x
# 256 take 124 instead of 175 (AMD Zen 4, one thread). Below them more launches, or short runs at the ends of rows, take longer.
_LARGE_RESULT, _LONG_ROW = 1 << 16, 1 << 10


def _has_long_rows(result: Spec, pairs: Sequence[tuple[int, int]]) -> bool:
    """Whether a large, contiguous result has long rows in its last padded dim, and no side of the input is cut off."""
    padded = [dim for dim, pair in enumerate(pairs) if any(pair)]
    row = math.prod(result.shape[padded[-1] :]) * result.dtype.itemsize
    return (
        result.is_contiguous
        and result.nbytes >= _LARGE_RESULT
        and row >= _LONG_ROW
        and all(min(pair) >= 0 for pair in pairs)
    )


def _borders(graph: GraphBuilder, result: Value, pairs: Sequence[tuple[int, int]]) -> list[Value]:
    """What surrounds the input, in parts that do not overlap: the first and the last positions of each dim, inside of the dims before."""
    parts = []
    for dim, (before, after) in enumerate(pairs):
        between = _inside(graph, result, pairs[:dim], outside=True)
        size = result.spec.shape[dim]
        for begin, end in ((0, before), (size - after, size)):
            if begin < end:
                parts.append(graph.view(view_rules.slice, between, dim, begin, end, 1))
    return parts


def _build_constant(graph: GraphBuilder, pad: tuple[int, ...]) -> list[Value]:
    (x,) = graph.inputs
    spec = x.spec
    pairs = _by_dim(pad, len(spec.shape))
    sizes = tuple(size + before + after for size, (before, after) in zip(spec.shape, pairs, strict=True))
    if any(size < 0 for size in sizes):
        raise RuntimeError(
            f"The input size {list(spec.shape)}, plus negative padding {list(pad)}, resulted in a negative output "
            f"size {list(sizes)}, which is invalid. Check dimension {sizes.index(min(sizes))} of your input."
        )
    inner = _inside(graph, x, pairs, outside=False)
    if all(width <= 0 for width in pad):
        return [graph.map(COPY, inner)]
    result = graph.new(make_spec(sizes, strides_for(sizes, suggested_format(spec)), spec.dtype, spec.device))
    for part in _borders(graph, result, pairs) if _has_long_rows(result.spec, pairs) else [result]:
        graph.write(FILL, part, graph.numbers[0])
    graph.write(COPY, _inside(graph, result, pairs, outside=True), inner)
    return [result]


# By the type of the value. Negative widths cut elements off.
_CONSTANT = {
    kind: KernelGraph(
        "constant_pad_nd",
        1,
        _build_constant,
        numbers=(kind,),
        derivative=lambda ct, out, a, pad, value: constant_pad(ct, tuple([-n for n in pad])),
    )
    for kind in (int, float, complex)
}


def constant_pad(input: Tensor, pad: Sequence[int], value: Any = 0) -> Tensor:
    """A border of `value`, which is converted to the tensor's dtype."""
    dtype = input.spec.dtype
    if value:
        check_number(value, dtype)
    if dtype is bool_:
        value = bool(value)  # 0.25 is True
    kind = int if dtype.category < FLOAT else complex if dtype.is_complex else float
    return _CONSTANT[kind]((input,), (tuple(pad),), (kind(value),))


@public("function")
def constant_pad_nd(input: Tensor, pad: Any, value: Any = 0) -> Tensor:
    """A border of one value; see `nn.functional.pad`."""
    return constant_pad(input, _widths(input, pad), value)


def _widths(input: Tensor, pad: Any) -> tuple[int, ...]:
    widths = integers((pad,), "pad", "pad")
    ndim = len(input.spec.shape)
    if len(widths) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    if len(widths) > 2 * ndim:
        raise RuntimeError(
            "Padding length should be less than or equal to two times the input dimension but got padding length "
            f"{len(widths)} and input of dimension {ndim}"
        )
    return widths


@public(name="nn.functional.pad")
def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: Any = None) -> Tensor:
    """Add `pad` = (before, after of the last dim, before, after of the one before it, ...) elements; negative cuts off.

    mode: "constant" (`value`, 0 unless given), "reflect" (mirrored at the border element), "replicate" (the border
    element) or "circular". Raises: RuntimeError or NotImplementedError for paddings that do not fit.

    >>> import weft as torch
    >>> torch.nn.functional.pad(torch.tensor([1.0, 2.0, 3.0]), (1, 2))
    tensor([0., 1., 2., 3., 0., 0.])
    """
    if value is not None:
        value = float(number(value, "pad", "value", 4))
    widths, sizes = _widths(input, pad), input.spec.shape
    if text(mode, "pad", "mode", 3) == "constant":
        return constant_pad(input, widths, 0 if value is None else value)
    if mode not in _INDEX_RULES:
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    if value is not None and value != 0:
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    n = len(widths) // 2
    if not 1 <= n <= 3 or len(sizes) not in (n + 1, n + 2):
        raise NotImplementedError(
            f"Padding size {len(widths)} is not supported for {len(sizes)}D input tensor.\n"
            "Supported combinations for non-constant padding:\n"
            "  - 2D or 3D input: padding size = 2 (pads last dimension)\n"
            "  - 3D or 4D input: padding size = 4 (pads last 2 dimensions)\n"
            "  - 4D or 5D input: padding size = 6 (pads last 3 dimensions)"
        )
    if 0 in sizes[len(sizes) - n - 1 :]:
        raise RuntimeError(
            f"Expected {n + 1}D or {n + 2}D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions "
            f"for input, but got: {list(sizes)}"
        )
    if mode != "circular":
        _check_something_left(sizes[len(sizes) - n :], widths)
    is_raised = mode == "replicate" or (mode == "reflect" and n < 3)
    return (_bordered_under_autocast if is_raised else _bordered)(input, tuple(widths), mode, n)


def _bordered(input: Tensor, widths: tuple[int, ...], mode: str, n: int) -> Tensor:
    if min(widths) < 0:
        return _CUTTING[mode, n](input, widths, mode)
    return _REPEATING[mode, n]((input,), (widths, mode))


_bordered_under_autocast = casting(_bordered, "raise on cpu")


def _check_something_left(sizes: Sequence[int], widths: Sequence[int]) -> None:
    """Raises: RuntimeError if none of the padded dims has an element left; PyTorch asks for no more."""
    left = [size + before + after for size, (before, after) in zip(sizes, reversed(_pairs(widths)))]
    if all(size < 1 for size in left):
        raise RuntimeError(
            f"input (sizes {list(sizes)}) is too small for the padding {tuple(widths)}. Calculated output sizes: {left}"
        )


def _pairs(widths: Sequence[int]) -> list[tuple[int, int]]:
    return list(zip(widths[::2], widths[1::2]))


def _build_repeating(graph: GraphBuilder, widths: tuple[int, ...], mode: str) -> list[Value]:
    """Copy the inside, then each border, dim by dim, from the elements that lie inside of it."""
    (x,) = graph.inputs
    spec, pairs = x.spec, _by_dim(widths, len(x.spec.shape))
    sizes = tuple([size + before + after for size, (before, after) in zip(spec.shape, pairs, strict=True)])
    for dim, (size, pair) in enumerate(zip(spec.shape, pairs, strict=True)):
        if any(pair):
            _CHECKS[mode](size, *pair, dim, spec)
    memory_format = contiguous_format if mode == "circular" else suggested_format(spec)
    result = graph.new(make_spec(sizes, strides_for(sizes, memory_format), spec.dtype, spec.device))
    if not result.spec.numel:
        return [result]
    graph.write(COPY, _inside(graph, result, pairs, outside=True), x)
    for dim, (before, after) in enumerate(pairs):
        outer = [(0, 0)] * (dim + 1) + pairs[dim + 1 :]
        filled = _inside(graph, result, outer, outside=True)
        size = spec.shape[dim]
        step, *firsts = _BORDERS[mode](size, before)
        for begin, count, first in ((0, before, firsts[0]), (before + size, after, firsts[1])):
            if count:
                source = graph.view(_run, filled, dim, before + first, count, step)
                graph.write(COPY, graph.view(_run, filled, dim, begin, count, 1), source)
    return [result]


# Of a dim with `size` elements and `before` in front of them: the step from one source of a border to the next one, and the positions
# of the first sources of both borders.
_BORDERS: dict[str, Callable[[int, int], tuple[int, int, int]]] = {
    "reflect": lambda size, before: (-1, before, size - 2),
    "replicate": lambda size, before: (0, 0, size - 1),
    "circular": lambda size, before: (1, size - before, 0),
}


def _run(spec: Spec, dim: int, first: int, count: int, step: int) -> tuple[Spec, int]:
    """Take `count` positions of a dim from the first one on: forwards, backwards or (step 0) all the same."""
    sizes, strides = list(spec.shape), list(spec.stride)
    offset = first * strides[dim]
    sizes[dim], strides[dim] = count, strides[dim] * step
    return view_rules.moved(spec, tuple(sizes), tuple(strides)), offset


def _by_index(input: Tensor, widths: Sequence[int], mode: str) -> Tensor:
    """If some elements are cut off: each dim is read at computed positions."""
    result = input
    rule = _INDEX_RULES[mode]
    for dim, (before, after) in enumerate(_by_dim(widths, input.spec.ndim)):
        if before or after:
            size = input.spec.shape[dim]
            rule_positions = rule(size, before, after, dim, input.spec)
            result = result.index_select(dim, on_device(rule_positions, input.spec.device))
    if result is input:
        return input.clone(memory_format=contiguous_format)
    return like_format(result, input) if mode != "circular" else result.contiguous()


def _positions(size: int, before: int, after: int, input: Spec) -> np.ndarray:
    if size + before + after < 0:
        raise RuntimeError(
            f"input of size {list(input.shape)} with padding ({before}, {after}) is too small: the output would have "
            f"size {size + before + after}"
        )
    return np.arange(-before, size + after)


def _no_check(size: int, before: int, after: int, dim: int, input: Spec) -> None:
    """An element may be replicated any number of times."""


def _check_reflection(size: int, before: int, after: int, dim: int, input: Spec) -> None:
    if before >= size or after >= size:
        raise RuntimeError(
            "Argument #4: Padding size should be less than the corresponding input dimension, but got: padding "
            f"({before}, {after}) at dimension {dim} of input {list(input.shape)}"
        )


def _reflect(size: int, before: int, after: int, dim: int, input: Spec) -> np.ndarray:
    _check_reflection(size, before, after, dim, input)
    positions = np.abs(_positions(size, before, after, input))
    return np.where(positions >= size, 2 * (size - 1) - positions, positions)


def _replicate(size: int, before: int, after: int, dim: int, input: Spec) -> np.ndarray:
    return np.clip(_positions(size, before, after, input), 0, size - 1)


def _check_circle(size: int, before: int, after: int, dim: int, input: Spec) -> None:
    if before > size or after > size:
        raise RuntimeError(
            f"Padding value causes wrapping around more than once. (padding ({before}, {after}) at dimension {dim} of "
            f"input {list(input.shape)})"
        )


def _circular(size: int, before: int, after: int, dim: int, input: Spec) -> np.ndarray:
    _check_circle(size, before, after, dim, input)
    # The elements that negative padding leaves are repeated in a circle.
    left = np.arange(max(-before, 0), size - max(-after, 0))
    if size + before + after < 0 or not len(left) and max(before, after) > 0:
        raise RuntimeError("Negative padding value is resulting in an empty dimension")
    return left[np.arange(-max(before, 0), len(left) + max(after, 0)) % max(len(left), 1)]


_INDEX_RULES = {"reflect": _reflect, "replicate": _replicate, "circular": _circular}
_CHECKS = {"reflect": _check_reflection, "replicate": _no_check, "circular": _check_circle}


def _folded_back(ct, out, input, widths, mode, *, specs):
    """Each element collects the cotangents of its copies, dim by dim."""
    for dim, (before, after) in enumerate(_by_dim(widths, specs[0].ndim)):
        if before or after:
            size = specs[0].shape[dim]
            positions = on_device(_INDEX_RULES[mode](size, before, after, dim, specs[0]), ct.spec.device)
            whole = (*ct.shape[:dim], size, *ct.shape[dim + 1 :])
            ct = ct.new_zeros(whole).index_add_(dim, positions, ct)
    return ct


# As in PyTorch, one name for each number of dims.
_NAMES = {
    (mode, n): (f"{name}_pad{n}d", node_name)
    for mode, name, node_name in (
        ("reflect", "reflection", None),
        ("replicate", "replication", None),
        ("circular", "circular", "CopySlices"),
    )
    for n in (1, 2, 3)
}
_REPEATING = {
    key: KernelGraph(name, 1, _build_repeating, derivative=_folded_back, node_name=node_name)
    for key, (name, node_name) in _NAMES.items()
}
_CUTTING = {
    key: CustomVjp(_by_index, _folded_back, name=name, node_name=node_name)
    for key, (name, node_name) in _NAMES.items()
}
