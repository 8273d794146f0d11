"""The three products of a convolution. Each of them computes one of input, weight and result from the other two.

convolve  (input, weight) -> result       sums over channels and kernel
spread    (result, weight) -> input       the adjoint in the input: a transposed convolution
correlate (input, result) -> weight       the adjoint in the weight

Each product is linear in both arguments, so its derivatives are the other two products. A device may have kernels for them ("convolutions"). One that has
the kernels of `engine/sliding.py` computes them directly, small ones as graphs of kernels (`conv_graphs.py`). Otherwise patches are copied out and multiplied by BLAS, a few images at a time, so that
they stay in the cache. A kernel of one element moved by one is a matrix product in any case.

Shapes: input [N, C, *sizes], weight [M, C / groups, *kernel], result [N, M, *positions].
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ...core.batched import BatchedStorage
from ...core.derivative import differentiate
from ...core.dtype import DType, compute_type, float32, float64
from ...core.spec import contiguous_spec
from ...core.tensor import Tensor, empty, is_whole
from ...families.custom_vjp import custom_vjp
from ...families.product import BLAS_DTYPES
from ..assembly.padding import constant_pad
from ..linalg.matmul import MATMUL
from . import conv_graphs
from .window_views import window_elements, windows

# elements of patches that are made at a time; they fit the cache that the cores share and give work to all cores
PATCH_ELEMENTS = 1 << 19
SLIDING_DTYPES = (float32, float64)

_convolution_step = functools.partial(custom_vjp, node_name="ConvolutionBackward0")


class Geometry(NamedTuple):
    """How the kernel moves over the input."""

    sizes: tuple[int, ...]  # of the input, without padding
    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    border: tuple[tuple[int, int], ...]  # (before, after) of each dim
    groups: int
    # The number of positions of the kernel in each dim: all that fit, or fewer if a transposed convolution has fewer.
    positions: tuple[int, ...]

    @property
    def padded(self) -> tuple[int, ...]:
        return tuple(
            size + before + after for size, (before, after) in zip(self.sizes, self.border, strict=True)
        )

    @property
    def is_pointwise(self) -> bool:
        """Whether the convolution is a matrix product of the channels at each position."""
        return set(self.kernel) == set(self.stride) == {1} and self.padded == self.sizes

    def at_once(self, channels: int, scale: int) -> int:
        """How many images are worked on at a time. scale: see `Backend.block_scale`."""
        return max(
            1, PATCH_ELEMENTS * scale // max(1, channels * math.prod(self.kernel) * math.prod(self.positions))
        )


def _parts(count: int, size: int) -> Iterator[slice]:
    for start in range(0, count, size):
        yield slice(start, min(start + size, count))


def _padded(input: Tensor, how: Geometry) -> Tensor:
    border = [width for pair in reversed(how.border) for width in pair]
    return constant_pad(input, border, 0) if any(border) else input


def _patches(input: Tensor, how: Geometry) -> Tensor:
    """Map [n, C, *sizes] -> [n, groups, C / groups * prod(kernel), prod(positions)]."""
    input, n = _padded(input, how), len(how.kernel)
    view = windows(input, how.kernel, how.stride, how.dilation)
    for dim, count in enumerate(how.positions, 2):
        view = view.narrow(dim, 0, count)
    images, channels = view.shape[:2]
    view = view.permute(0, 1, *range(n + 2, 2 * n + 2), *range(2, n + 2))
    terms = channels // how.groups * math.prod(how.kernel)
    return view.reshape(images, how.groups, terms, math.prod(how.positions))


def _rows(weight: Tensor, groups: int) -> Tensor:
    """Map [M, C / groups, *kernel] -> [groups, M / groups, C / groups * prod(kernel)]."""
    return weight.reshape(groups, weight.shape[0] // groups, math.prod(weight.shape[1:]))


def _multiply_into(target: Tensor, a: Tensor, b: Tensor) -> None:
    spec = target.spec
    if spec.dtype in BLAS_DTYPES and spec.is_contiguous and spec.device.backend.has_memory:
        MATMUL.write(target, a, b)
    else:
        target.copy_(a.matmul(b))


def _new(sizes: Sequence[int], like: Tensor) -> Tensor:
    return empty(contiguous_spec(sizes, like.spec.dtype, like.spec.device))


def _slides(like: Tensor, how: Geometry, *others: Tensor) -> bool:
    """Whether the device computes the convolution of these tensors directly. Samples of `vmap` take the ops that have batching rules."""
    spec = like.spec
    if spec.dtype not in SLIDING_DTYPES or "sliding_sums" not in spec.device.backend.extras:
        return False
    for each in (like, *others):
        if not each.spec.numel or type(each._storage) is BatchedStorage:
            return False
    return not how.is_pointwise


def _slide(
    source: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    how: Geometry,
    images: int,
    channels: int,
    made: int,
    adjoint: bool,
) -> Tensor:
    """Convolve `source`, or if `adjoint` apply the adjoint in the input, with `bias` added."""
    sizes = (images, channels, *how.sizes) if adjoint else (images, made, *how.positions)
    target = _new(sizes, source)
    bias = source.new_zeros(sizes[1]) if bias is None else bias
    _run("sliding_sums", target, source, weight, bias, static=(images, channels, made, how, adjoint))
    return target


def _run(kernel: str, target: Tensor, *sources: Tensor, static: tuple) -> None:
    """Call a kernel, which reads the elements of the sources in order, without pending negations."""
    operands = [target, *(source.contiguous().resolve_neg() for source in sources)]
    addresses = [each._storage.ptr + each._byte_offset for each in operands]
    target.spec.device.backend.extras[kernel](*addresses, target.spec.dtype, *static)


def on_device(dtype: DType, how: Geometry, channels: int, made: int, *tensors: Tensor) -> Any:
    """The device's kernels for a convolution of these tensors, which also compute in narrow floats; None if it has none."""
    kernels = tensors[0].spec.device.backend.extras.get("convolutions")
    if kernels is None or not kernels.takes(dtype, how, channels, made):
        return None
    return kernels if all(each.spec.numel and is_whole(each) for each in tensors) else None


def _placed(tensor: Tensor) -> tuple[int, tuple[int, ...]]:
    """The address of a tensor, and its strides in bytes."""
    return tensor._storage.ptr + tensor._byte_offset, tensor.spec.byte_stride


def _sums(
    kernels: Any,
    source: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    how: Geometry,
    channels: int,
    adjoint: bool,
) -> Tensor:
    images, made = source.shape[0], weight.shape[0]
    target = _new((images, channels, *how.sizes) if adjoint else (images, made, *how.positions), source)
    given = [None if each is None else each.contiguous().resolve_neg() for each in (weight, bias)]
    source = source.resolve_neg()
    addresses = [None if each is None else _placed(each)[0] for each in given]
    static = source.spec.dtype, images, channels, made, how, adjoint
    if target.spec.numel:
        kernels.sums(_placed(target), _placed(source), *addresses, static)
    return target


def _products(kernels: Any, input: Tensor, result: Tensor, how: Geometry) -> Tensor:
    (images, channels), made, dtype = input.shape[:2], result.shape[1], input.spec.dtype
    sizes = kernels.parts(images, channels, made, how), made, channels // how.groups, *how.kernel
    parts = empty(contiguous_spec(sizes, compute_type(dtype), input.spec.device))
    input, result = input.resolve_neg(), result.resolve_neg()
    kernels.products(_placed(parts)[0], _placed(input), _placed(result), (dtype, images, channels, made, how))
    return parts.sum(0, dtype=compute_type(dtype)).to(dtype)


def _with_bias(result: Tensor, bias: Tensor | None) -> Tensor:
    return result if bias is None else result.add_(bias.view(-1, *[1] * (result.dim() - 2)))


@_convolution_step()
def convolve(input: Tensor, weight: Tensor, how: Geometry) -> Tensor:
    """Slide `weight` over `input` and add up the products."""
    return _convolve(input, weight, None, how)


def _convolve(input: Tensor, weight: Tensor, bias: Tensor | None, how: Geometry) -> Tensor:
    (images, channels), made = input.shape[:2], weight.shape[0]
    if (kernels := on_device(input.spec.dtype, how, channels, made, input, weight)) is not None:
        return _sums(kernels, input, weight, bias, how, channels, adjoint=False)
    if _slides(input, how, weight) and 0 not in how.positions:
        if conv_graphs.is_small(how, images, input.shape[1], made):
            return conv_graphs.convolution(input, weight, bias, how)
        return _slide(input, weight, bias, how, images, input.shape[1], made, adjoint=False)
    result = _new((images, made, *how.positions), input)
    rows = _rows(weight, how.groups)
    flat = result.view(images, how.groups, made // how.groups, -1) if result.numel() else result
    for part in _parts(
        images if result.numel() else 0, how.at_once(input.shape[1], input.spec.device.backend.block_scale)
    ):
        _multiply_into(flat[part], rows, _patches(input[part], how))
    return _with_bias(result, bias)


@_convolution_step()
def spread(result: Tensor, weight: Tensor, how: Geometry) -> Tensor:
    """Add the kernel, times each element of `result`, to where its window lies in the input."""
    return _spread(result, weight, None, how)


def _spread(result: Tensor, weight: Tensor, bias: Tensor | None, how: Geometry) -> Tensor:
    images, made = result.shape[:2]
    channels = weight.shape[1] * how.groups
    if (kernels := on_device(result.spec.dtype, how, channels, made, result, weight)) is not None:
        return _sums(kernels, result, weight, bias, how, channels, adjoint=True)
    if _slides(result, how, weight):
        if conv_graphs.is_small(how, images, channels, made):
            return conv_graphs.adjoint(result, weight, bias, how)
        return _slide(result, weight, bias, how, images, channels, made, adjoint=True)
    input = _new((images, channels, *how.sizes), result)
    columns = _rows(weight, how.groups).transpose(-1, -2)
    flat = result.reshape(images, how.groups, made // how.groups, math.prod(how.positions))
    for part in _parts(images, how.at_once(channels, result.spec.device.backend.block_scale)):
        count = part.stop - part.start
        patches = _new((count, how.groups, columns.shape[1], flat.shape[-1]), result)
        _multiply_into(patches, columns, flat[part])
        padded = _new((count, channels, *how.padded), result).zero_()
        pieces = patches.view(count, channels, math.prod(how.kernel), *how.positions).unbind(2)
        places = window_elements(padded, how.kernel, how.stride, how.dilation, how.positions)
        for place, piece in zip(places, pieces, strict=True):
            place.add_(piece)
        for dim, ((before, _), size) in enumerate(zip(how.border, how.sizes, strict=True), 2):
            padded = padded.narrow(dim, before, size)
        input[part].copy_(padded)
    return _with_bias(input, bias)


@_convolution_step()
def correlate(input: Tensor, result: Tensor, how: Geometry) -> Tensor:
    """Sum, for each element of the kernel, the input's element times the result's element over all positions."""
    images, channels = input.shape[:2]
    made = result.shape[1]
    if (kernels := on_device(input.spec.dtype, how, channels, made, input, result)) is not None:
        return _products(kernels, input, result, how)
    if _slides(input, how, result) and conv_graphs.is_small(how, images, channels, made):
        return conv_graphs.correlation(input, result, how)
    weight = _new((made, channels // how.groups, *how.kernel), input)
    if _slides(input, how, result):
        _run("sliding_products", weight, input, result, static=(images, channels, made, how))
        if weight.isfinite().all():
            return weight
    weight.zero_()
    total = weight.view(how.groups, made // how.groups, -1) if weight.numel() else weight
    flat = result.reshape(images, how.groups, made // how.groups, math.prod(how.positions))
    for part in _parts(
        images if weight.numel() else 0, how.at_once(channels, result.spec.device.backend.block_scale)
    ):
        products = flat[part].matmul(_patches(input[part], how).transpose(-1, -2))
        total.add_(products.sum(0))
    return weight


differentiate(
    convolve,
    lambda ct, out, input, weight, how: spread(ct, weight.conj(), how),
    lambda ct, out, input, weight, how: correlate(input.conj(), ct, how),
)
differentiate(
    spread,
    lambda ct, out, result, weight, how: convolve(ct, weight.conj(), how),
    lambda ct, out, result, weight, how: correlate(ct, result.conj(), how),
)
differentiate(
    correlate,
    lambda ct, out, input, result, how: spread(result.conj(), ct, how),
    lambda ct, out, input, result, how: convolve(input.conj(), ct, how),
)


# ---- With a bias, as users call them -----------------------------------------------------------------------------------


def _bias_rule(ct: Tensor, out: Any, *inputs: Any) -> Tensor:
    return ct.sum((0, *range(2, ct.dim())))


@_convolution_step(
    lambda ct, out, input, weight, bias, how: spread(ct, weight.conj(), how),
    lambda ct, out, input, weight, bias, how: correlate(input.conj(), ct, how),
    _bias_rule,
)
def convolution(input: Tensor, weight: Tensor, bias: Tensor | None, how: Geometry) -> Tensor:
    """`convolve`, and add `bias` [M]."""
    return _convolve(input, weight, bias, how)


@_convolution_step(
    lambda ct, out, result, weight, bias, how: convolve(ct, weight.conj(), how),
    lambda ct, out, result, weight, bias, how: correlate(ct, result.conj(), how),
    _bias_rule,
)
def transposed(result: Tensor, weight: Tensor, bias: Tensor | None, how: Geometry) -> Tensor:
    """`spread`, and add `bias` [M]."""
    return _spread(result, weight, bias, how)
