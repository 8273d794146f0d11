"""Pooling: averages and norms over windows, adaptive and fractional windows, and the way back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.arguments import integer
from ..core.dtype import LEGACY_NAMES, bool_, int64, uint8
from ..core.op import needs_recording, public
from ..core.tensor import Tensor
from ..families.library import array, tensor_of
from .creation import zeros
from .padding import constant_pad
from .random import rand
from .reduction import MAX
from .windows import like_format, wide, window_sum

# ---- Arguments ---------------------------------------------------------------------------------------------------------


def _per_dim(value: Any, n: int, name: str, argument: str) -> tuple[int, ...]:
    if not isinstance(value, (tuple, list)):
        return (integer(value, name, argument),) * n
    if len(value) not in (1, n):
        count = "a single int" if n == 1 else f"a single int, or a tuple of {n} ints"
        raise RuntimeError(f"{name}: {argument} must either be {count} (got {value})")
    found = tuple(integer(each, name, argument) for each in value)
    return found * n if len(found) == 1 else found


def check_input(name: str, input: Tensor, n: int, refused: tuple = (bool_,)) -> None:
    if not isinstance(input, Tensor):
        raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
    sizes = input.spec.shape
    if len(sizes) not in (n + 1, n + 2) or 0 in sizes[-n - 1 :]:
        raise RuntimeError(
            f"{name}: Expected {n + 1}D or {n + 2}D (batch mode) tensor with optional 0 dim batch size for input, but got:"
            f"{list(sizes)}"
        )
    if input.spec.dtype.is_complex or input.spec.dtype in refused:
        raise NotImplementedError(f"\"{name}\" not implemented for '{LEGACY_NAMES[input.spec.dtype]}'")


class Geometry:
    """Where the windows of a pooling lie: one entry per dim in each of these."""

    def __init__(
        self,
        name: str,
        sizes: Sequence[int],
        kernel: Any,
        stride: Any,
        padding: Any,
        dilation: Any,
        ceil_mode: bool,
    ):
        n = len(sizes)
        self.sizes = tuple(sizes)
        self.kernel = _per_dim(kernel, n, name, "kernel_size")
        no_stride = stride is None or isinstance(stride, (tuple, list)) and not stride
        self.stride = self.kernel if no_stride else _per_dim(stride, n, name, "stride")
        self.padding = _per_dim(padding, n, name, "padding")
        self.dilation = _per_dim(dilation, n, name, "dilation")
        self._check(name)
        self.counts = tuple(self._count(dim, ceil_mode) for dim in range(n))
        if min(self.counts) < 1:
            raise RuntimeError(
                f"Given input size: {self.sizes}. Calculated output size: {self.counts}. Output size is too small "
                f"({name} with kernel_size={self.kernel})"
            )

    def _check(self, name: str) -> None:
        if min(self.stride) == 0:
            raise RuntimeError("stride should not be zero")
        for what, values in (
            ("kernel size", self.kernel),
            ("stride", self.stride),
            ("dilation", self.dilation),
        ):
            if min(values) <= 0:
                raise RuntimeError(f"{what} should be greater than zero, but got {values} ({name})")
        for pad, k in zip(self.padding, self.kernel, strict=True):
            if pad < 0:
                raise RuntimeError(f"pad must be non-negative, but got pad: {pad}")
            if pad > k // 2:
                raise RuntimeError(
                    f"pad should be smaller than or equal to half of kernel size, but got pad={pad} and kernel_size={k}"
                )

    def _count(self, dim: int, ceil_mode: bool) -> int:
        size, pad, step = self.sizes[dim], self.padding[dim], self.stride[dim]
        room = size + 2 * pad - self.dilation[dim] * (self.kernel[dim] - 1) - 1
        count = -(-room // step) + 1 if ceil_mode else room // step + 1
        # A window must begin inside the input or its left padding.
        return count - 1 if ceil_mode and (count - 1) * step >= size + pad else count

    @property
    def border(self) -> tuple[int, ...]:
        """The padding that makes all windows fit, as `constant_pad` takes it."""
        found: list[int] = []
        for dim in reversed(range(len(self.sizes))):
            reach = (
                (self.counts[dim] - 1) * self.stride[dim] + self.dilation[dim] * (self.kernel[dim] - 1) + 1
            )
            found += [self.padding[dim], max(0, reach - self.padding[dim] - self.sizes[dim])]
        return tuple(found)

    @property
    def disjoint(self) -> bool:
        """Whether no element is in two windows."""
        spans = (gap * (k - 1) + 1 for k, gap in zip(self.kernel, self.dilation, strict=True))
        return all(span <= step for span, step in zip(spans, self.stride, strict=True))

    @property
    def looking(self) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        return self.kernel, self.stride, self.dilation


def padded(input: Tensor, geometry: Geometry, value: Any) -> Tensor:
    return constant_pad(input, geometry.border, value) if any(geometry.border) else input


# ---- Averages ------------------------------------------------------------------------------------------------------------


def _average(
    name: str, n: int, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
) -> Tensor:
    check_input(name, input, n, (bool_, uint8))
    if divisor_override == 0:
        raise RuntimeError("divisor must be not zero")
    geometry = Geometry(name, input.spec.shape[-n:], kernel_size, stride, padding, 1, ceil_mode)
    if n == 3 and any(size < k for size, k in zip(geometry.sizes, geometry.kernel, strict=True)):
        raise RuntimeError(f"input image {geometry.sizes} smaller than kernel size {geometry.kernel}")
    dtype = input.spec.dtype
    (source,) = wide(dtype, input)
    total = window_sum(padded(source, geometry, 0), *geometry.looking, geometry.counts)
    divisor = divisor_override or _divisor(geometry, count_include_pad)
    if isinstance(divisor, np.ndarray):
        divisor = tensor_of(divisor, total.spec.dtype).to(total.spec.device)
    found = total / divisor if dtype.category >= 2 else total.div(divisor, rounding_mode="trunc")
    return like_format(found.to(dtype), input)


def _divisor(geometry: Geometry, count_include_pad: bool) -> Any:
    """How many elements each window averages over: one number if all agree."""
    counted: Any = np.ones((), np.int64)
    for size, k, step, pad, count in zip(
        geometry.sizes, geometry.kernel, geometry.stride, geometry.padding, geometry.counts, strict=True
    ):
        starts = np.arange(count) * step - pad
        ends = np.minimum(starts + k, size + pad)
        if not count_include_pad:
            starts, ends = np.maximum(starts, 0), np.minimum(ends, size)
        counted = counted[..., None] * (ends - starts)
    return int(counted.flat[0]) if (counted == counted.flat[0]).all() else counted


@public("function", "nn.functional.avg_pool1d")
def avg_pool1d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """The mean of each window along the last dim. Shapes: [N, C, L] or [C, L]."""
    return _average("avg_pool1d", 1, input, kernel_size, stride, padding, ceil_mode, count_include_pad, None)


@public(name="nn.functional.avg_pool2d")
def avg_pool2d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The mean of each window over the last two dims. Shapes: [N, C, H, W] or [C, H, W]."""
    return _average(
        "avg_pool2d", 2, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )


@public(name="nn.functional.avg_pool3d")
def avg_pool3d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The mean of each window over the last three dims. Shapes: [N, C, D, H, W] or [C, D, H, W]."""
    return _average(
        "avg_pool3d", 3, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )


def _define_lp(n: int, average: Any) -> None:
    name = f"lp_pool{n}d"

    def function(
        input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
    ) -> Tensor:
        check_input(name, input, n)
        places = math.prod(_per_dim(kernel_size, n, name, "kernel_size"))
        means = average(input.pow(norm_type), kernel_size, stride, 0, ceil_mode)
        return (means * places).pow(1.0 / norm_type)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"""The `norm_type`-th root of the sum of powers in each window over the last {n} dims."""
    )
    public(name=f"nn.functional.{name}")(function)


for _n, _average_pool in enumerate((avg_pool1d, avg_pool2d, avg_pool3d), 1):
    _define_lp(_n, _average_pool)


def elements_at(input: Tensor, indices: Tensor, n: int) -> Tensor:
    """The elements at positions in the flattened last n dims."""
    return input.flatten(-n).gather(-1, indices.flatten(-n)).view(indices.spec.shape)


# ---- Adaptive windows --------------------------------------------------------------------------------------------------------


def _output_size(name: str, input: Tensor, n: int, output_size: Any) -> tuple[int, ...]:
    """The wanted sizes; None keeps that of the input."""
    if not isinstance(input, Tensor):
        raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
    sizes = input.spec.shape
    if n > 1 and isinstance(output_size, (tuple, list)) and len(sizes) <= len(output_size):
        raise ValueError(f"Input dimension should be at least {len(output_size) + 1}")
    if len(sizes) not in (n + 1, n + 2):
        raise RuntimeError(f"{name}(): Expected {n + 1}D or {n + 2}D tensor, but got {list(sizes)}")
    given = output_size if isinstance(output_size, (tuple, list)) else (output_size,) * n
    if len(given) != n:
        raise RuntimeError(f"{name}: output_size must be {n} (got {list(given)})")
    wanted = tuple(
        size if each is None else integer(each, name, "output_size")
        for each, size in zip(given, sizes[-n:], strict=True)
    )
    if min(wanted) < 0:
        raise RuntimeError(
            f"{name}: elements of output_size must be greater than or equal to 0 but received {list(wanted)}"
        )
    if input.spec.dtype.kind != "f":
        raise NotImplementedError(f"\"{name}\" not implemented for '{LEGACY_NAMES[input.spec.dtype]}'")
    return wanted


def _check_filled(name: str, input: Tensor, dims: int) -> None:
    sizes = input.spec.shape
    for dim in range(len(sizes) - dims, len(sizes)):
        if sizes[dim] == 0:
            raise RuntimeError(
                f"{name}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes "
                f"{list(sizes)} with dimension {dim} being empty"
            )


def _adaptive_positions(size: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """For each of `count` windows the elements it looks at, [count, most], the last one repeated, and how many."""
    starts = np.arange(count) * size // max(count, 1)
    ends = -(-(np.arange(1, count + 1) * size) // max(count, 1))
    lengths = ends - starts
    places = np.arange(lengths.max(initial=1))
    return np.minimum(starts[:, None] + places, ends[:, None] - 1), lengths


def _adaptive_average(name: str, n: int, input: Tensor, output_size: Any) -> Tensor:
    wanted = _output_size(name, input, n, output_size)
    _check_filled(name, input, n)
    dtype = input.spec.dtype
    (found,) = wide(dtype, input)
    for dim, count in zip(range(input.spec.ndim - n, input.spec.ndim), wanted, strict=True):
        found = _averaged_along(found, dim, count)
    return like_format(found.to(dtype).clone() if found is input else found.to(dtype), input)


def _averaged_along(input: Tensor, dim: int, count: int) -> Tensor:
    size = input.spec.shape[dim]
    if count == size:
        return input
    if count and size % count == 0:
        return input.unflatten(dim, (count, size // count)).mean(dim + 1)
    positions, lengths = _adaptive_positions(size, count)
    most = positions.shape[1]
    taken = input.index_select(dim, tensor_of(positions.ravel()).to(input.spec.device)).unflatten(
        dim, (count, most)
    )
    behind = [1] * (input.spec.ndim - dim - 1)
    surplus = tensor_of((np.arange(most) >= lengths[:, None]).reshape(count, most, *behind)).to(
        input.spec.device
    )
    divisor = tensor_of(lengths.reshape(count, *behind), input.spec.dtype).to(input.spec.device)
    return taken.masked_fill(surplus, 0).sum(dim + 1) / divisor


@public("function", "nn.functional.adaptive_avg_pool1d")
def adaptive_avg_pool1d(input: Tensor, output_size: Any) -> Tensor:
    """Averages over as many windows of the last dim as wanted. Shapes: [N, C, L] -> [N, C, output_size]."""
    return _adaptive_average("adaptive_avg_pool1d", 1, input, output_size)


@public(name="nn.functional.adaptive_avg_pool2d")
def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """Averages over as many windows of the last two dims as wanted; None keeps a size."""
    return _adaptive_average("adaptive_avg_pool2d", 2, input, output_size)


@public(name="nn.functional.adaptive_avg_pool3d")
def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:
    """Averages over as many windows of the last three dims as wanted; None keeps a size."""
    return _adaptive_average("adaptive_avg_pool3d", 3, input, output_size)


def _max_of(input: Tensor, positions: Sequence[np.ndarray], counts: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Values and flat indices of the largest elements.

    positions: for each of the last n dims the elements of each window, [..., count, places]; leading dims, if any,
    are those of the input.
    """
    n = len(positions)
    flat: Any = 0
    for dim, (size, each) in enumerate(zip(input.spec.shape[-n:], positions, strict=True)):
        lead = each.shape[:-2]
        shape = [1] * (2 * n)
        shape[dim], shape[n + dim] = each.shape[-2:]
        flat = flat * size + each.reshape(*lead, *shape)
    lead = tuple(input.spec.shape[:-n])
    places = math.prod(flat.shape[-n:])
    flat = np.broadcast_to(flat, (*lead, *flat.shape[-2 * n :])).reshape(*lead, *counts, places)
    where = tensor_of(flat).to(input.spec.device)
    taken = input.detach().flatten(-n).gather(-1, where.flatten(-n - 1)).view(where.spec.shape)
    values, places = MAX(taken, dims=(taken.spec.ndim - 1,))
    indices = where.gather(-1, places.unsqueeze(-1)).squeeze(-1)
    return (elements_at(input, indices, n) if needs_recording((input,)) else values), indices


def _define_adaptive_max(n: int) -> None:
    name = f"adaptive_max_pool{n}d"

    def with_indices(input: Tensor, output_size: Any, return_indices: bool = False) -> tuple[Tensor, Tensor]:
        wanted = _output_size(name, input, n, output_size)
        _check_filled(name, input, n + 1 if n > 1 else n)
        if math.prod(wanted) == 0 or input.spec.numel == 0:
            sizes = (*input.spec.shape[:-n], *wanted)
            return zeros(sizes, dtype=input.spec.dtype, device=input.spec.device), zeros(
                sizes, dtype=int64, device=input.spec.device
            )
        positions = [
            _adaptive_positions(*pair)[0] for pair in zip(input.spec.shape[-n:], wanted, strict=True)
        ]
        values, indices = _max_of(input, positions, wanted)
        return like_format(values, input), like_format(indices, input)

    def function(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
        values, indices = with_indices(input, output_size)
        return (values, indices) if return_indices else values

    def plain(input: Tensor, output_size: Any) -> tuple[Tensor, Tensor]:
        return with_indices(input, output_size)

    function.__name__ = function.__qualname__ = plain.__name__ = plain.__qualname__ = name
    with_indices.__name__ = with_indices.__qualname__ = f"{name}_with_indices"
    function.__doc__ = f"""The largest elements of as many windows of the last {n} dims as wanted; None keeps a size.

    return_indices: also give where in the flattened {n} dims they lie.
    """
    with_indices.__doc__ = plain.__doc__ = f"The values and the indices of `nn.functional.{name}`."
    public(name=f"nn.functional.{name}")(function)
    public(name=f"nn.functional.{name}_with_indices")(with_indices)
    if n == 1:
        public("function")(plain)


for _n in (1, 2, 3):
    _define_adaptive_max(_n)


# ---- Fractional windows --------------------------------------------------------------------------------------------------------


def _fractional_starts(samples: np.ndarray, size: int, count: int, kernel: int) -> np.ndarray:
    """Where `count` windows begin, pseudo-randomly spaced. Source: Graham 2014, "Fractional max-pooling"."""
    samples = samples[..., None]
    last = np.full(samples.shape, size - kernel, np.int64)
    if count <= 1:
        return last[..., :count]
    ratio = samples.dtype.type(size - kernel) / samples.dtype.type(count - 1)
    steps = np.arange(count - 1).astype(samples.dtype)
    return np.concatenate(
        [((steps + samples) * ratio).astype(np.int64) - (samples * ratio).astype(np.int64), last], axis=-1
    )


def _define_fractional(n: int) -> None:
    name = f"fractional_max_pool{n}d"
    words = ("time", "height", "width")[-n:]

    def with_indices(
        input: Tensor,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        if output_size is None and output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
        sizes = input.spec.shape
        if output_size is None:
            if len(output_ratio) > n:
                raise ValueError(f"{name} requires output_ratio to either be a single Int or tuple of Ints.")
            output_size = [int(input.size(d - n) * ratio) for d, ratio in enumerate(output_ratio)]
        if _random_samples is None:
            batch = 1 if len(sizes) == n + 1 else input.size(0)
            _random_samples = rand(batch, input.size(-n - 1), n, dtype=input.dtype, device=input.device)
        wanted = _per_dim(output_size, n, name, "output_size")
        kernel = _per_dim(kernel_size, n, name, "kernel_size")
        if len(sizes) not in (n + 1, n + 2) or 0 in sizes[-n - 1 :]:
            raise RuntimeError(
                f"{name}: Expected {n + 1}D or {n + 2}D (batch mode) tensor with non-zero sizes behind the batch, but got:"
                f"{list(sizes)}"
            )
        for word, size, count, k in zip(words, sizes[-n:], wanted, kernel, strict=True):
            if count + k - 1 > size or min(count, k) < 1:
                raise RuntimeError(
                    f"{name}(): pool {word} {k} too large relative to input {word} {size} (output {count})"
                )
        _check_samples(name, n, input, _random_samples)
        samples = array(_random_samples)
        samples = samples[: sizes[0]] if len(sizes) == n + 2 else samples[0]
        # In two dims the first random number is for the last dim, in three for the first.
        order = range(n) if n == 3 else reversed(range(n))
        positions = [
            _fractional_starts(samples[..., which], size, count, k)[..., None] + np.arange(k)
            for which, size, count, k in zip(order, sizes[-n:], wanted, kernel, strict=True)
        ]
        return _max_of(input, positions, wanted)

    def function(
        input: Tensor,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> Any:
        found = with_indices(input, kernel_size, output_size, output_ratio, return_indices, _random_samples)
        return found if return_indices else found[0]

    function.__name__ = function.__qualname__ = name
    with_indices.__name__ = with_indices.__qualname__ = f"{name}_with_indices"
    function.__doc__ = f"""The largest elements of windows that begin at pseudo-random places of the last {n} dims.

    One of output_size and output_ratio says how many windows. return_indices: also give where the elements lie.
    Source: Graham 2014, "Fractional max-pooling".
    """
    with_indices.__doc__ = f"The values and the indices of `{name}`."
    public(name=f"nn.functional.{name}")(function)
    public(name=f"nn.functional.{name}_with_indices")(with_indices)


def _check_samples(name: str, n: int, input: Tensor, samples: Tensor) -> None:
    batch = input.spec.shape[0] if input.spec.ndim == n + 2 else 1
    channels, shape = input.spec.shape[-n - 1], samples.spec.shape
    if samples.spec.dtype is not input.spec.dtype:
        raise RuntimeError("Expect _random_samples to have the same dtype as input")
    if len(shape) != 3 or shape[0] < batch or shape[1] != channels or shape[2] != n:
        raise RuntimeError(
            f"Expect _random_samples of size [{batch}, {channels}, {n}] (batch, channels, dims), but got {list(shape)} ({name})"
        )


for _n in (2, 3):
    _define_fractional(_n)


# ---- Back from maxima -------------------------------------------------------------------------------------------------------------


def _unpooled_size(input: Tensor, geometry: tuple, output_size: Any) -> tuple[int, ...]:
    kernel, stride, padding = geometry
    n = len(kernel)
    usual = tuple(
        (size - 1) * step + k - 2 * pad
        for size, k, step, pad in zip(input.spec.shape[-n:], kernel, stride, padding, strict=True)
    )
    if output_size is None:
        return usual
    if len(output_size) == n + 2:
        output_size = output_size[2:]
    if len(output_size) != n:
        raise ValueError(
            f"output_size should be a sequence containing {n} or {n + 2} elements, but it has a length of "
            f"'{len(output_size)}'"
        )
    for dim, (size, middle, step) in enumerate(zip(output_size, usual, stride, strict=True)):
        if not middle - step < size < middle + step:
            raise ValueError(
                f'invalid output_size "{output_size}" (dim {dim} must be between {middle - step} and {middle + step})'
            )
    return tuple(output_size)


def _define_unpool(n: int) -> None:
    name = f"max_unpool{n}d"

    def function(
        input: Tensor,
        indices: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        output_size: Any = None,
    ) -> Tensor:
        kernel = _per_dim(kernel_size, n, name, "kernel_size")
        step = kernel if stride is None else _per_dim(stride, n, name, "stride")
        own = input.spec
        sizes = _unpooled_size(input, (kernel, step, _per_dim(padding, n, name, "padding")), output_size)
        if len(own.shape) not in (n + 1, n + 2):
            raise RuntimeError(
                f"Input to {name} should be a {n + 1}d or {n + 2}d Tensor, but got a tensor with {len(own.shape)} dimensions."
            )
        if indices.spec.dtype is not int64:
            raise RuntimeError(
                f"elements in indices should be type int64 but got: {LEGACY_NAMES[indices.spec.dtype]}"
            )
        if indices.spec.shape != own.shape:
            raise RuntimeError(
                f"Expected shape of indices to be same as that of the input tensor ({list(own.shape)}) but got indices tensor "
                f"with shape: {list(indices.spec.shape)}"
            )
        _check_filled(name, input, n + 1)
        volume = math.prod(sizes)
        if indices.spec.numel and own.device.backend.has_memory:
            low, high = (int(each) for each in indices.aminmax())
            if low < 0 or high >= volume:
                raise RuntimeError(
                    f"Found an invalid max index: {low if low < 0 else high} (output volumes are of size "
                    f"{'x'.join(map(str, sizes))})"
                )
        flat = zeros(*own.shape[:-n], volume, dtype=own.dtype, device=own.device)
        filled = flat.scatter(-1, indices.flatten(-n), input.flatten(-n)).view(*own.shape[:-n], *sizes)
        return like_format(filled, input)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"""Put the elements of `input` where `indices` (of max_pool{n}d) say, zeros elsewhere."""
    )
    public(name=f"nn.functional.{name}")(function)


for _n in (1, 2, 3):
    _define_unpool(_n)
