"""Convolutions of quantized tensors, as functions of their integers: what each position reads is a row of a linear layer.

    packed = pack_kernel(weight, zero_points, groups)
    convolved(input, zero_point, window, packed, lambda rows: linear(rows, ..., packed, ...))

Memory beyond the border holds the zero point, which stands for 0. The channels of an element lie side by side in the result, as in PyTorch's.

Shapes: input [N, C, *sizes], weight [M, C / groups, *kernel] -> [N, M, *positions].
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ...core.dtype import DType, float32, int32
from ...core.tensor import Tensor
from ...engine.byte_tiles import QUAD
from ...engine.depthwise import Places, block_channels
from ...ops.assembly.joining import cat
from ...ops.assembly.padding import constant_pad
from ...ops.nn.convolution import convolution
from ...ops.nn.window_views import windows
from ...ops.views.transposing import PERMUTE
from .products import Image, ImageKernel, Packed, in_taps, pack, requantizing_kernel

# Bytes of patches that are made at a time. They fit the second cache of current processors.
PATCH_BYTES = 1 << 20
# Channels that a group makes, if its terms have to be copied into patches: with fewer, most lanes of a line would hold nothing, and a
# convolution of float32 is faster (64 groups of two channels of 28x28, each with two kernels of 3x3, take 0.34 ms instead of 2.0 on AMD
# Zen 4).
FEW_COLUMNS = 8
# Terms: sums of as many products of differences of bytes are exact in float32.
EXACT_TERMS = 2**24 // 255**2


class Window(NamedTuple):
    """How the kernel moves over the input: a number for each dim, and the number of groups of channels."""

    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int = 1


def pack_kernel(weight: Tensor, zero_points: Tensor | None = None, groups: int = 1) -> Packed:
    """Prepare an int8 weight. zero_points: integers [M]."""
    if zero_points is not None and not zero_points.any():
        zero_points = None
    by_taps = weight.shape[1] == 1 and len(weight) == groups and zero_points is None
    by_taps = by_taps and "depthwise" in weight.device.backend.extras
    if groups == 1 and zero_points is None and not by_taps:  # whole quads of channels need no patches
        weight = constant_pad(weight.movedim(1, -1), [0, -weight.shape[1] % QUAD], 0).movedim(-1, 1)
    rows = weight.movedim(1, -1).reshape(len(weight), math.prod(weight.shape[1:]))
    packed = pack(rows, zero_points, groups)
    return packed._replace(taps=in_taps(rows)) if by_taps else packed


def _channels_last(input: Tensor) -> Tensor:
    """Return [N, C, *sizes] as [N, *sizes, C]."""
    dims = len(input.spec.shape)
    return PERMUTE(input, (0, *range(2, dims), 1))


def _channels_second(input: Tensor) -> Tensor:
    """Return [N, *sizes, C] as [N, C, *sizes]."""
    dims = len(input.spec.shape)
    return PERMUTE(input, (0, dims - 1, *range(1, dims - 1)))


def _patches(input: Tensor, window: Window) -> Tensor:
    """The elements that each position of an input with its border reads, group by group, in the order of `pack_kernel`."""
    dims, groups = len(window.kernel), window.groups
    seen = windows(input, window.kernel, window.stride, window.dilation)
    # The shape is [N, groups, C / groups, *positions, *kernel] now.
    seen = seen.unflatten(1, (groups, seen.shape[1] // groups))
    places = range(3, 3 + dims)
    seen = seen.permute(0, *places, 1, *range(3 + dims, 3 + 2 * dims), 2)
    images, *positions = seen.shape[: 1 + dims]
    return seen.reshape(images, *positions, math.prod(seen.shape[1 + dims :]))


def _border(window: Window, more: int) -> list[int]:
    """What is added around [N, *sizes, C], as `constant_pad` takes it; empty if it is nothing."""
    border = [0, more, *(width for each in reversed(window.padding) for width in (each, each))]
    return border if any(border) else []


def _bordered(input: Tensor, zero_point: int, border: list[int]) -> Tensor:
    """Return the input with its border, [N, *sizes, C]."""
    last = _channels_last(input)
    return constant_pad(last, border, zero_point) if border else last


def _image_channels(window: Window, packed: Packed) -> int:
    """The channels of an image are a multiple of this number; 0 if the kernel cannot read images, so that they become patches."""
    if packed.taps is not None:
        return block_channels()
    by_kernel = packed.lines is not None and packed.zero_points is None
    return QUAD if by_kernel and packed.terms // math.prod(window.kernel) % QUAD == 0 else 0


class ImagePlan(NamedTuple):
    """A requantized convolution of inputs with one spec: what is decided before their elements are read."""

    border: list[int]
    kernel: ImageKernel

    def __call__(
        self, input: Tensor, zero_point: int, vectors: Sequence[Tensor], numbers: tuple[float, ...]
    ) -> Tensor:
        elements = _bordered(input, zero_point, self.border)
        return _channels_second(self.kernel(elements, zero_point, vectors, numbers))


def image_plan(input: Tensor, window: Window, packed: Packed, dtype: DType) -> ImagePlan | None:
    """The plan for inputs with this spec, whose results are integers of `dtype`; None if the kernel cannot read them as images."""
    multiple = _image_channels(window, packed)
    if not multiple:
        return None
    image = _image(input, 0, window, _positions(input.shape[2:], window), multiple)
    border = _border(window, -input.shape[1] % multiple)
    return ImagePlan(border, requantizing_kernel(image, packed, dtype))


def convolved(
    input: Tensor, zero_point: int, window: Window, packed: Packed, layer: Callable[[Any], Tensor]
) -> Tensor:
    """What a linear layer makes of what each position reads: of an image, of sums, or of patches of a few images at a time (`products.py`).

    Shapes: [N, C, *sizes] -> [N, M, *positions].
    """
    positions = _positions(input.shape[2:], window)
    multiple = _image_channels(window, packed)
    if multiple:
        return _channels_second(layer(_image(input, zero_point, window, positions, multiple)))
    own = packed.terms // math.prod(window.kernel)
    if window.groups > 1 and packed.columns < FEW_COLUMNS and packed.terms <= EXACT_TERMS:
        return layer(_float_sums(input, zero_point, window, packed)).contiguous().movedim(-1, 1)
    border = _border(window, own * window.groups - input.shape[1])
    elements = _bordered(input, zero_point, border).movedim(-1, 1)
    each = math.prod((elements.shape[1], *window.kernel, *positions))
    at_once = max(1, PATCH_BYTES // max(1, each))
    parts = [layer(_patches(part, window)) for part in elements.split(at_once)]
    return (parts[0] if len(parts) == 1 else cat(parts)).movedim(-1, 1)


def _image(
    input: Tensor, zero_point: int, window: Window, positions: tuple[int, ...], multiple: int
) -> Image:
    """Return the input with its border and a multiple of so many channels."""
    elements = _bordered(input, zero_point, _border(window, -input.shape[1] % multiple))
    sizes = tuple(elements.shape[1:-1])
    return Image(elements, Places(sizes, window.kernel, window.stride, window.dilation, positions))


def _float_sums(input: Tensor, zero_point: int, window: Window, packed: Packed) -> Tensor:
    """Return the sums of a linear layer, int32 [N, *positions, M], by a convolution of float32."""
    weight = packed.integers.to(float32)
    if packed.zero_points is not None:
        weight = weight - packed.zero_points.unsqueeze(1)
    weight = weight.reshape(len(weight), *window.kernel, -1).movedim(-1, 1).contiguous()
    differences = input.contiguous().to(float32) - zero_point
    none = (0,) * len(window.kernel)
    sums = convolution(
        differences, weight, None, window.stride, window.padding, window.dilation, False, none, window.groups
    )
    return sums.to(int32).movedim(1, -1)


@functools.lru_cache(maxsize=1024)
def _positions(sizes: Sequence[int], window: Window) -> tuple[int, ...]:
    """Return the number of positions of the kernel in each dim.

    Raises: RuntimeError if the kernel does not fit.
    """
    found = []
    for size, kernel, step, width, gap in zip(sizes, *window[:4], strict=True):
        room = size + 2 * width - gap * (kernel - 1) - 1
        if room < 0:
            raise RuntimeError(
                f"quantized convolution: a kernel of {kernel} elements {gap} apart does not fit into {size} elements with "
                f"padding {width}"
            )
        found.append(room // step + 1)
    return tuple(found)


# ---- Transposed convolutions -----------------------------------------------------------------------------------------


def transposed_kernel(weight: Tensor, groups: int) -> Tensor:
    """Return the weight [C, M / groups, *kernel] of a transposed convolution as [M, C / groups, *kernel]."""
    flipped = weight.flip(list(range(2, weight.dim())))
    each = flipped.unflatten(0, (groups, len(weight) // groups)).transpose(1, 2)
    return each.reshape(groups * weight.shape[1], len(weight) // groups, *weight.shape[2:])


def spread(
    input: Tensor, zero_point: int, window: Window, output_padding: Sequence[int]
) -> tuple[Tensor, Window]:
    """The input of the ordinary convolution that equals a transposed one, and its window: elements move apart by the stride."""
    sizes, borders = [], []
    for size, kernel, step, width, gap, more in zip(
        input.shape[2:], *window[:4], output_padding, strict=True
    ):
        border = gap * (kernel - 1) - width
        borders.append(border)
        sizes.append((size - 1) * step + 1 + 2 * border + more)
    made = input.new_full((input.shape[0], *sizes, input.shape[1]), zero_point).movedim(-1, 1)
    ones = (1,) * len(sizes)
    return _placed(made, input, borders, window.stride), window._replace(
        stride=ones, padding=(0,) * len(sizes)
    )


def _placed(made: Tensor, input: Tensor, borders: Sequence[int], stride: Sequence[int]) -> Tensor:
    """Write each element of the input `stride` behind the last, from `borders` on; those at negative places are left out."""
    source: list[slice] = [slice(None), slice(None)]
    target: list[slice] = [slice(None), slice(None)]
    for size, own, border, step in zip(made.shape[2:], input.shape[2:], borders, stride, strict=True):
        first = max(0, -(border // step))
        count = max(0, min(own, -((border - size) // step)) - first)
        begin = border + first * step
        source.append(slice(first, first + count))
        target.append(slice(begin, begin + step * count, step))
    made[tuple(target)] = input[tuple(source)]
    return made
