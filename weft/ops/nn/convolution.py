"""Computes convolutions and their transposes in 1, 2 and 3 dims, as matrix products with the patches of the input."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...core.dtype import LEGACY_NAMES, DType, bool_, compute_type
from ...core.layout import contiguous_format, suggested_format
from ...core.plans import PlanCache
from ...core.public import public
from ...core.spec import Spec
from ...core.tensor import Tensor
from ..assembly.padding import constant_pad
from ..linalg.matmul import cpp_name
from ..tensor.node_names import with_node_name
from . import conv_products as sliding
from .conv_products import Geometry
from .window_views import folded, ints, like_format, repeated, wide, windows

# ---- Checks ------------------------------------------------------------------------------------------------------------


def _check_parameters(stride, padding, dilation, groups) -> None:
    if min(padding) < 0:
        raise RuntimeError(f"negative padding is not supported (got padding={list(padding)})")
    if min(stride) <= 0:
        raise RuntimeError(f"non-positive stride is not supported (got stride={list(stride)})")
    if min(dilation) <= 0:
        raise RuntimeError(f"dilation should be greater than zero, but got {list(dilation)}")
    if groups <= 0:
        raise RuntimeError(f"non-positive groups is not supported (got groups={groups})")


def _check_tensors(name: str, input: Any, weight: Any, bias: Any) -> None:
    if type(input) is type(weight) is Tensor and (bias is None or type(bias) is Tensor):
        return
    for position, (argument, value) in enumerate((("input", input), ("weight", weight), ("bias", bias)), 1):
        if not isinstance(value, Tensor) and not (value is None and argument == "bias"):
            raise TypeError(
                f"{name}(): argument '{argument}' (position {position}) must be Tensor, not {type(value).__name__}"
            )


def _check_operands(
    name: str, input: Spec, weight: Spec, bias: Spec | None, n: int, transposed: bool
) -> None:
    if len(input.shape) not in (n + 1, n + 2):
        raise RuntimeError(
            f"Expected {n + 1}D (unbatched) or {n + 2}D (batched) input to {name}, but got input of size: "
            f"{list(input.shape)}"
        )
    if len(weight.shape) != n + 2:
        raise RuntimeError(
            f"{name}: expected a weight of {n + 2} dims, but got weight of size {list(weight.shape)}"
        )
    own = input.dtype
    if not transposed:
        _check_bias_type(name, own, bias)
    if own is bool_:
        raise NotImplementedError(f"\"{name}\" not implemented for 'Bool'")
    if weight.dtype is not own:
        raise RuntimeError(
            f"expected scalar type {LEGACY_NAMES[own]} but found {LEGACY_NAMES[weight.dtype]}\n"
            f"{name}: the input is {own}, the weight {weight.dtype}; convert one of them"
        )
    _check_bias_type(name, own, bias)


def _check_bias_type(name: str, own: DType, bias: Spec | None) -> None:
    if bias is not None and bias.dtype is not own:
        raise RuntimeError(
            f"Input type ({cpp_name(own)}) and bias type ({cpp_name(bias.dtype)}) should be the same\n"
            f"{name}: the input is {own}, the bias {bias.dtype}; convert one of them"
        )


def _check_bias(weight: Spec, bias: Spec | None, channels: int, transposed: bool) -> None:
    if bias is not None and bias.shape != (channels,):
        which = "transposed=1, weight" if transposed else "weight"
        raise RuntimeError(
            f"Given {which} of size {list(weight.shape)}, expected bias to be 1-dimensional with {channels} elements, "
            f"but got bias of size {list(bias.shape)} instead"
        )


def _check_groups(weight: Spec, groups: int) -> None:
    first = weight.shape[0]
    if first < groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be at least {groups} at dimension 0, but got weight of size "
            f"{list(weight.shape)} instead"
        )
    if first % groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, but got weight of size "
            f"{list(weight.shape)} instead"
        )


# ---- Convolution -----------------------------------------------------------------------------------------------------------


def _border(name: str, padding: Any, kernel, stride, dilation) -> list[tuple[int, int]]:
    """(before, after) of each dim, for padding as users give it."""
    n = len(kernel)
    if not isinstance(padding, str):
        return [(each, each) for each in repeated(padding, n, name, "padding")]
    if padding == "valid":
        return [(0, 0)] * n
    if padding != "same":
        raise RuntimeError(f"Invalid padding string: '{padding}'")
    if any(step != 1 for step in stride):
        raise RuntimeError("padding='same' is not supported for strided convolutions")
    totals = [gap * (k - 1) for k, gap in zip(kernel, dilation, strict=True)]
    return [(total // 2, total - total // 2) for total in totals]


def convolve(name: str, n: int, input, weight, bias, stride, padding, dilation, groups) -> Tensor:
    """Slide `weight` over `input`; [N, C, *sizes] with [M, C / groups, *kernel] -> [N, M, *positions]."""
    _check_tensors(name, input, weight, bias)
    given = (
        ints(stride, name, "stride"),
        padding if isinstance(padding, str) else ints(padding, name, "padding"),
        ints(dilation, name, "dilation"),
    )
    offset = None if bias is None else bias.spec
    how = _GEOMETRIES[name, n, input.spec, weight.spec, offset, *given, groups]
    batched = input if len(input.spec.shape) == n + 2 else input.unsqueeze(0)
    dtype = input.spec.dtype
    if compute_type(dtype) is dtype or _takes(
        batched, weight, how, batched.spec.shape[1], weight.spec.shape[0]
    ):
        found = sliding.convolution(batched, weight, bias, how)
    else:
        found = sliding.convolution(*wide(dtype, batched, weight, bias), how).to(dtype)
    found = _in_format(found, batched, weight)
    return found if batched is input else found.squeeze(0)


def _takes(input: Tensor, weight: Tensor, how: Geometry, channels: int, made: int) -> bool:
    """Whether the device has kernels that take these tensors as they are."""
    return sliding.on_device(input.spec.dtype, how, channels, made, input, weight) is not None


def _geometry(
    name: str, n: int, input: Spec, weight: Spec, bias: Spec | None, stride, padding, dilation, groups: int
) -> Geometry:
    """How the kernel of a convolution moves, whose arguments are checked here."""
    _check_operands(name, input, weight, bias, n, transposed=False)
    stride, dilation = repeated(stride, n, name, "stride"), repeated(dilation, n, name, "dilation")
    kernel = weight.shape[2:]
    border = _border(name, padding, kernel, stride, dilation)
    _check_parameters(stride, [width for pair in border for width in pair], dilation, groups)
    _check_groups(weight, groups)
    sizes = input.shape if len(input.shape) == n + 2 else (1, *input.shape)
    if sizes[1] != weight.shape[1] * groups:
        raise RuntimeError(
            f"Given groups={groups}, weight of size {list(weight.shape)}, expected input{list(sizes)} to have "
            f"{weight.shape[1] * groups} channels, but got {sizes[1]} channels instead"
        )
    _check_bias(weight, bias, weight.shape[0], transposed=False)
    padded = [size + before + after for size, (before, after) in zip(sizes[2:], border, strict=True)]
    reach = [gap * (k - 1) + 1 for k, gap in zip(kernel, dilation, strict=True)]
    if any(size < needed for size, needed in zip(padded, reach, strict=True)):
        raise RuntimeError(
            f"Calculated padded input size per channel: ({_product(padded)}). Kernel size: ({_product(kernel)}). Kernel "
            f"size can't be greater than actual input size (dilation {list(dilation)})"
        )
    counts = tuple(
        [(size - needed) // step + 1 for size, needed, step in zip(padded, reach, stride, strict=True)]
    )
    return Geometry(tuple(sizes[2:]), tuple(kernel), stride, dilation, tuple(border), groups, counts)


_GEOMETRIES = PlanCache(_geometry, with_sizes=True)


def _product(sizes: Sequence[int]) -> str:
    return " x ".join(map(str, sizes))


def _in_format(result: Tensor, input: Tensor, weight: Tensor) -> Tensor:
    """Channels last if the input or the weight is."""
    if len(result.spec.shape) == 3 and result.spec.is_contiguous:  # no other format has 3 dims
        return result
    return like_format(result, weight if suggested_format(input.spec) is contiguous_format else input)


# ---- Transposed convolution --------------------------------------------------------------------------------------------------


def convolve_transposed(
    name: str, n: int, input, weight, bias, stride, padding, output_padding, groups, dilation
) -> Tensor:
    """Return the adjoint of `convolve`: [N, C, *positions] with [C, M / groups, *kernel] -> [N, M, *sizes]."""
    _check_tensors(name, input, weight, bias)
    offset = None if bias is None else bias.spec
    _check_operands(name, input.spec, weight.spec, offset, n, transposed=True)
    stride, dilation = repeated(stride, n, name, "stride"), repeated(dilation, n, name, "dilation")
    padding = repeated(padding, n, name, "padding")
    extra = repeated(output_padding, n, name, "output_padding")
    _check_parameters(stride, padding, dilation, groups)
    if min(extra) < 0:
        raise RuntimeError(f"negative output_padding is not supported (got output_padding={list(extra)})")
    _check_groups(weight.spec, groups)
    batched = input if len(input.spec.shape) == n + 2 else input.unsqueeze(0)
    (_, channels, *positions), kernel = batched.spec.shape, weight.spec.shape[2:]
    if channels != weight.spec.shape[0]:
        raise RuntimeError(
            f"Given transposed=1, weight of size {list(weight.spec.shape)}, expected input{list(batched.spec.shape)} to have "
            f"{weight.spec.shape[0]} channels, but got {channels} channels instead"
        )
    made = weight.spec.shape[1] * groups
    _check_bias(weight.spec, offset, made, transposed=True)
    if any(more >= step and more >= gap for more, step, gap in zip(extra, stride, dilation, strict=True)):
        raise RuntimeError(
            "output padding must be smaller than either stride or dilation, but got "
            f"output_padding={list(extra)}, stride={list(stride)}, dilation={list(dilation)}"
        )
    sizes = [
        (count - 1) * step - 2 * pad + gap * (k - 1) + more + 1
        for count, step, pad, gap, k, more in zip(
            positions, stride, padding, dilation, kernel, extra, strict=True
        )
    ]
    if min(sizes) < 0:
        raise RuntimeError(
            f"Given input size per channel: ({_product(positions)}). Calculated output size per channel: "
            f"({_product(sizes)}). Output size is too small"
        )
    dtype = input.spec.dtype
    border = tuple((pad, pad) for pad in padding)
    how = Geometry(tuple(sizes), tuple(kernel), stride, dilation, border, groups, tuple(positions))
    if _takes(batched, weight, how, made, channels):
        found = sliding.transposed(batched, weight, bias, how)
    else:
        found = sliding.transposed(*wide(dtype, batched, weight, bias), how)
    found = _in_format(found.to(dtype), batched, weight)
    return found if batched is input else found.squeeze(0)


# ---- Public names ---------------------------------------------------------------------------------------------------------------


def _define(n: int) -> None:
    name, transposed_name = f"conv{n}d", f"conv_transpose{n}d"

    @public("function", f"nn.functional.{name}", name=name, autocast="lower", words={"n": n})
    def function(
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:
        """Slide `weight` over the last {n} dims of `input` and add up the products.

        Shapes: input [N, C, *sizes] or [C, *sizes], weight [M, C / groups, *kernel], bias [M] -> [N, M, *positions].
        padding: zeros at both sides, or "same" (as many positions as sizes) or "valid" (none).
        """
        return convolve(name, n, input, weight, bias, stride, padding, dilation, groups)

    @public(
        "function", f"nn.functional.{transposed_name}", name=transposed_name, autocast="lower", words={"n": n}
    )
    def transposed(
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        dilation: Any = 1,
    ) -> Tensor:
        """Apply the adjoint of `conv{n}d` in its input: spread every element over a window of the result.

        Shapes: input [N, C, *positions] or [C, *positions], weight [C, M / groups, *kernel], bias [M] -> [N, M, *sizes],
        where size = (position - 1) * stride - 2 * padding + dilation * (kernel - 1) + output_padding + 1.
        """
        return convolve_transposed(
            transposed_name, n, input, weight, bias, stride, padding, output_padding, groups, dilation
        )


for _n in (1, 2, 3):
    _define(_n)


@public("function")
def convolution(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
) -> Tensor:
    """A convolution, or a transposed one, in as many dims as `weight` has beyond two."""
    n = weight.spec.ndim - 2
    if transposed:
        return convolve_transposed(
            "convolution", n, input, weight, bias, stride, padding, output_padding, groups, dilation
        )
    return convolve("convolution", n, input, weight, bias, stride, padding, dilation, groups)


@public("function", "nn.functional.conv_tbc", autocast="lower")
def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """Convolve over time. Shapes: input [T, N, C], weight [kernel, C, M], bias [M] -> [positions, N, M]."""
    found = convolve("conv_tbc", 1, input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, 1, pad, 1, 1)
    return found.permute(2, 0, 1).contiguous()


# ---- Public: columns of patches ----------------------------------------------------------------------------------------


def _pair(value: Any, name: str, argument: str) -> tuple[int, ...]:
    """Raises: RuntimeError for a list of one number, which stands for two in convolutions only."""
    if isinstance(value, (tuple, list)) and len(value) != 2:
        raise RuntimeError(f"{name}(): It is expected {argument} equals to 2, but got size {len(value)}")
    return repeated(value, 2, name, argument)


def _check_positive(**arguments: Sequence[int]) -> None:
    for name, values in arguments.items():
        least, words = (0, "be non-negative") if name == "padding" else (1, "be greater than zero")
        if any(value < least for value in values):
            raise RuntimeError(f"{name} should {words}, but got {name}={list(values)}")


def _positions(sizes, kernel, stride, padding, dilation) -> tuple[int, ...]:
    """Return how many windows fit into each dim."""
    return tuple(
        (size + 2 * pad - gap * (k - 1) - 1) // step + 1
        for size, k, step, pad, gap in zip(sizes, kernel, stride, padding, dilation, strict=True)
    )


@public(name="nn.functional.unfold")
def unfold(input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
    """Return the patches that a window slides over, as columns.

    Shapes: [N, C, H, W] -> [N, C * prod(kernel_size), number of patches]; without N as well.
    """
    kernel, gap = _pair(kernel_size, "unfold", "kernel_size"), _pair(dilation, "unfold", "dilation")
    pad, step = _pair(padding, "unfold", "padding"), _pair(stride, "unfold", "stride")
    _check_positive(kernel_size=kernel, dilation=gap, padding=pad, stride=step)
    sizes = input.spec.shape
    if len(sizes) < 3:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-max(len(sizes), 1)}, {max(len(sizes), 1) - 1}], but got "
            f"{len(sizes)})\nunfold: the input has the shape {list(sizes)}, but needs three or four dims"
        )
    if len(sizes) > 4 or 0 in sizes[-3:]:
        raise RuntimeError(
            "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, "
            f"but got: {list(sizes)}"
        )
    counts = tuple(_positions(sizes[-2:], kernel, step, pad, gap))
    if min(counts) < 1:
        raise RuntimeError(
            f"Given input with spatial size {tuple(sizes[-2:])}, kernel_size={kernel}, dilation={gap}, padding={pad}, "
            f"calculated shape of the array of sliding blocks as {counts}, but its components must be at least one."
        )
    batched = input if len(sizes) == 4 else input.unsqueeze(0)
    if any(pad):
        batched = constant_pad(batched, (pad[1], pad[1], pad[0], pad[0]), 0)
    patches = windows(batched, kernel, step, gap)
    columns = patches.permute(0, 1, 4, 5, 2, 3).clone(memory_format=contiguous_format)
    columns = columns.view(
        patches.spec.shape[0], sizes[-3] * math.prod(kernel), math.prod(patches.spec.shape[2:4])
    )
    return with_node_name(columns if len(sizes) == 4 else columns.squeeze(0), "Im2ColBackward0")


@public(name="nn.functional.fold")
def fold(
    input: Tensor, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
) -> Tensor:
    """Add columns of patches up to images: the adjoint of `unfold`.

    Shapes: [N, C * prod(kernel_size), number of patches] -> [N, C, *output_size]; without N as well.
    """
    sizes = _pair(output_size, "fold", "output_size")
    kernel, gap = _pair(kernel_size, "fold", "kernel_size"), _pair(dilation, "fold", "dilation")
    pad, step = _pair(padding, "fold", "padding"), _pair(stride, "fold", "stride")
    _check_positive(kernel_size=kernel, dilation=gap, padding=pad, stride=step, output_size=sizes)
    own = input.spec.shape
    if len(own) not in (2, 3) or 0 in own[-2:]:
        raise RuntimeError(
            "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions for "
            f"input, but got: {list(own)}"
        )
    if own[-2] % math.prod(kernel):
        raise RuntimeError(
            "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got "
            f"input.size(1)={own[-2]} and kernel_size={kernel}."
        )
    counts = tuple(_positions(sizes, kernel, step, pad, gap))
    if min(counts) < 1:
        raise RuntimeError(
            f"Given output_size={sizes}, kernel_size={kernel}, dilation={gap}, padding={pad}, stride={step}, calculated shape "
            f"of the array of sliding blocks as {counts}, which is too small (non-positive)"
        )
    if own[-1] != math.prod(counts):
        raise RuntimeError(
            f"Given output_size={sizes}, kernel_size={kernel}, dilation={gap}, padding={pad}, stride={step}, expected "
            f"size of input's dimension 2 to match the calculated number of sliding blocks {counts[0]} * {counts[1]} = "
            f"{math.prod(counts)}, but got input.size(2)={own[-1]}."
        )
    batch, channels = (own[0] if len(own) == 3 else 1), own[-2] // math.prod(kernel)
    columns = input.reshape(batch * channels, *kernel, *counts)
    found = folded(columns, sizes, step, pad, gap).reshape(batch, channels, *sizes)
    return found if len(own) == 3 else found.squeeze(0)
