"""Broadcasting, the order of a loop over elements, and the strides of results. Pure functions on metadata."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from .device import device
from .dtype import DType
from .size import Size, shape
from .spec import Spec, contiguous_spec, make_spec, strides_in_order
from .symbols import Untraceable

MAX_DIMS = 64  # of a kernel's loop; PyTorch's own limit


def broadcast_shapes(name: str, *shapes: Sequence[int]) -> Size:
    """The common shape of operands, by the rules of broadcasting.

    Raises: RuntimeError that shows all shapes, aligned, and marks the dimension with the mismatch.
    """
    result: list[int] = []
    for sizes in shapes:
        for back in range(1, len(sizes) + 1):
            if back > len(result):
                result.insert(0, sizes[-back])
            elif sizes[-back] != 1:
                if result[-back] == 1:
                    result[-back] = sizes[-back]
                elif result[-back] != sizes[-back]:
                    raise RuntimeError(_mismatch(name, shapes, result[-back], sizes[-back], back))
    return shape(result)


def _mismatch(name: str, shapes, a: int, b: int, back: int) -> str:
    longest = max(map(len, shapes))
    first = f"The size of tensor a ({a}) must match the size of tensor b ({b}) at non-singleton dimension {longest - back}"
    return f"{first}\n{aligned_shapes(name, shapes, back)}"


def aligned_shapes(name: str, shapes, back: int) -> str:
    """The shapes as text, one per line, aligned at the last dimension. Marks the `back`-th dimension from the right."""
    texts = [[str(size) for size in sizes] for sizes in shapes]
    longest = max(map(len, texts))
    widths = [max((len(t[-k]) for t in texts if k <= len(t)), default=0) for k in range(longest, 0, -1)]
    rows = []
    for letter, text in zip("abcdefghij", texts, strict=False):
        cells = [""] * (longest - len(text)) + text
        rows.append(
            f"  {letter}: " + "  ".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True))
        )
    column = 5 + sum(width + 2 for width in widths[: longest - back])
    rows.append(" " * column + "^" * widths[longest - back])
    head = f"{name}: " if name else ""
    return f"{head}shapes, aligned at the last dimension:\n" + "\n".join(rows)


def broadcasts(shape: Sequence[int], sizes: Sequence[int]) -> bool:
    """Whether the shape `given` broadcasts to `sizes`."""
    return len(shape) <= len(sizes) and all(
        size in (1, target) for size, target in zip(reversed(shape), reversed(sizes), strict=False)
    )


def broadcast_stride(operand: Spec, sizes: Sequence[int]) -> tuple[int, ...]:
    """The strides (in elements) of `operand` broadcast to `sizes`: 0 in the broadcast dimensions.

    Raises: RuntimeError if the operand does not broadcast to `sizes`, because a kernel would read beyond its memory.
    """
    if not broadcasts(operand.shape, sizes):
        raise RuntimeError(
            f"The expanded size of the tensor must match the existing size: shape {list(operand.shape)} does not "
            f"broadcast to {list(sizes)}"
        )
    missing = len(sizes) - len(operand.shape)
    own = (
        0 if size == 1 and wanted != 1 else stride
        for size, stride, wanted in zip(operand.shape, operand.stride, sizes[missing:], strict=True)
    )
    return (0,) * missing + tuple(own)


def check_reach(
    name: str, operand: Spec, sizes: Sequence[int], strides: Sequence[int], start: int = 0
) -> None:
    """Check that a loop stays inside the memory of an operand. Plans call this, because kernels check no bounds.

    The loop visits the elements `start` + the sum of position * stride, for all positions within `sizes`.

    Raises: RuntimeError if one of these elements lies outside of the span of the operand.
    """
    if len(sizes) != len(strides):
        raise RuntimeError(f"{name}: sizes {list(sizes)} and strides {list(strides)} do not belong together")
    if 0 in sizes:
        return
    ends = [(size - 1) * stride for size, stride in zip(sizes, strides, strict=True)]
    first = start + sum(end for end in ends if end < 0)
    last = start + sum(end for end in ends if end > 0)
    if first < 0 or last >= operand.span:
        raise RuntimeError(
            f"{name}: a loop over {list(sizes)} with strides {list(strides)} from element {start} reaches the elements "
            f"{first} to {last} of an operand of shape {list(operand.shape)} with strides {list(operand.stride)}"
        )


def memory_order(sizes: Sequence[int], strides: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """The dimensions from outermost to innermost in memory. If operands disagree, the first ones decide.

    This is PyTorch's algorithm, a stable insertion sort in which pairs may be ambiguous, so that results get its strides.
    """
    order = list(reversed(range(len(sizes))))  # innermost first while sorting
    for i in range(1, len(order)):
        current = i
        for before in range(i - 1, -1, -1):
            decision = _compare_dims(order[before], order[current], sizes, strides)
            if decision > 0:
                order[before], order[current] = order[current], order[before]
                current = before
            elif decision < 0:
                break
    return tuple(reversed(order))


def _compare_dims(inner: int, outer: int, sizes, strides) -> int:
    """Positive if `outer` should run faster than `inner`, negative if the order is right, 0 if no operand decides."""
    for row in strides:
        a, b = row[inner], row[outer]
        if a == 0 or b == 0:
            continue
        if a != b:
            return -1 if a < b else 1
        if sizes[inner] > sizes[outer]:
            return 1
    return 0


def result_spec(operands: Sequence[Spec], sizes: Size, dtype: DType, where: device) -> Spec:
    """The Spec of a new elementwise result: dense, in the memory order of the operands."""
    # The lengths come first, because the comparison of tuples begins with their elements, which are symbols in a template.
    same_shape = all(len(operand.shape) == len(sizes) and operand.shape == sizes for operand in operands)
    if same_shape:
        if all(operand.is_contiguous for operand in operands):
            return contiguous_spec(sizes, dtype, where)
        first = operands[0]
        if first.is_dense and all(operand.stride == first.stride for operand in operands):
            return make_spec(sizes, first.stride, dtype, where)
    order = memory_order(sizes, [broadcast_stride(operand, sizes) for operand in operands])
    return make_spec(sizes, strides_in_order(sizes, order), dtype, where)


def loop_dims(
    sizes: tuple[int, ...], strides: tuple[tuple[int, ...], ...]
) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
    """The sizes and strides of a loop over all elements with as few dims as possible, outermost first; at least one dim.

    The function drops dims of size 1, sorts the others by memory order, and merges neighbours that are contiguous in all
    operands.
    """
    try:
        return _loop_dims(sizes, strides)
    except Untraceable:  # symbols are no keys of a cache
        return _loop_dims.__wrapped__(sizes, strides)


@functools.lru_cache(maxsize=8192)
def _loop_dims(
    sizes: tuple[int, ...], strides: tuple[tuple[int, ...], ...]
) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
    order = memory_order(sizes, strides)
    return merge_dims([sizes[dim] for dim in order], [[row[dim] for dim in order] for row in strides])


def merge_dims(
    sizes: Sequence[int], strides: Sequence[Sequence[int]]
) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
    """Like `loop_dims`, but the dims stay in the given order, so that elements are visited in that order."""
    merged_sizes: list[int] = []
    merged: list[list[int]] = []  # the strides of all operands, dim by dim
    for size, *row in zip(sizes, *strides, strict=True):
        if size == 1:
            continue
        if merged and all(outer == stride * size for outer, stride in zip(merged[-1], row, strict=True)):
            merged_sizes[-1] *= size
            merged[-1] = row
        else:
            merged_sizes.append(size)
            merged.append(row)
    if not merged:
        return (1,), tuple((0,) for _ in strides)
    return tuple(merged_sizes), tuple(zip(*merged, strict=True))
