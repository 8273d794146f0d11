"""Weights that are prepared for quantized layers, with their biases: what `torch.ops.quantized.linear_prepack` and the others return."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ...core.dtype import float16, float32, int16, qint8, quint8, uint8
from ...core.tensor import Tensor
from ...engine.workers import get_num_threads
from ...ops.creation.from_data import tensor as new_tensor
from ...ops.elementwise.qparams import QParams
from .convolution import ImagePlan, Window, convolved, image_plan, pack_kernel, spread, transposed_kernel
from .linear import linear_dynamic, linear_to_float, scaling
from .numbers import quantize_per_tensor
from .products import Packed, clamping, pack, requantized
from .quantizers import PerChannel
from .ranges import dynamic_qparams
from .script_object import ScriptObject
from .tensors import BITS, dequantize, is_quantized, per_tensor, plain, quantized, quantizer_of


def _check_numbers(input: Tensor, name: str) -> None:
    if input.dtype is not float32:
        raise RuntimeError(
            f"quantized.{name}: expected an input of torch.float32, but got one of {input.dtype}: write x.float()"
        )


class PackedLayer(ScriptObject):
    """A quantized weight and a bias. They are prepared when they are first used."""

    _ready: Any  # the Packed weight and its scales, a cached property

    def __init__(self, weight: Tensor, bias: Tensor | None):
        if weight.dtype is not qint8:
            raise RuntimeError(
                f"a quantized layer has a weight of torch.qint8, not of {weight.dtype}: write torch.quantize_per_tensor(weight, scale, 0, "
                "torch.qint8)"
            )
        self._weight, self._bias = weight, None if bias is None else bias.detach()
        self._last: tuple[Any, tuple[Tensor, Tensor]] | None = None

    def _requantized(self, a: Any, by: QParams, result: QParams, relu: bool) -> Tensor:
        packed, of_columns = self._ready[0], self._scaling(by.scale, result)
        return requantized(a, by.zero_point, packed, *of_columns, (uint8, result.zero_point), relu)

    def _scaling(self, scale: float, result: QParams) -> tuple[Tensor, Tensor]:
        """What `requantized` multiplies and adds. It is kept for the next call, which usually has the same scales."""
        bias = self._bias
        version = None if bias is None else bias._storage.version
        key = scale, result.scale, version if type(version) is int or bias is None else object()
        last = self._last  # which another thread may exchange
        if last is None or last[0] != key:
            packed, scales = self._ready
            last = self._last = key, scaling(scale, packed, scales, bias, result.scale)
        return last[1]

    def __deepcopy__(self, memo: dict) -> PackedLayer:
        return self  # because nothing changes it

    def unpack(self) -> tuple[Tensor, Tensor | None]:
        """Return the weight and the bias."""
        return self._weight, self._bias

    def bias(self) -> Tensor | None:
        """Return the bias."""
        return self._bias

    def _check_bias(self, columns: int) -> None:
        if self._bias is not None and self._bias.shape != (columns,):
            raise RuntimeError(
                f"the bias of a quantized layer is a vector of {columns} elements, one for each column of its results, but has the shape "
                f"{list(self._bias.shape)}"
            )

    def _parameters(self, axis: int = 0) -> tuple[Tensor, Tensor | None]:
        """The scales, float32, and the zero points; None if all of them are 0."""
        quantizer = quantizer_of(self._weight)
        if isinstance(quantizer, PerChannel):
            if quantizer.axis != axis:
                raise RuntimeError(
                    f"a quantized layer has a scale for each channel of its results, dim {axis}, not dim {quantizer.axis}"
                )
            scales = quantizer.scales_on("cpu").to(float32)
            return scales, quantizer.zero_points_on("cpu")
        scales = new_tensor([quantizer.scale], dtype=float32)
        return scales, None if quantizer.zero_point == 0 else new_tensor([quantizer.zero_point])


class _Linear(PackedLayer):
    _script_name = "__torch__.torch.classes.quantized.LinearPackedParamsBase"

    def _state(self) -> tuple:
        return self.unpack()

    def _check(self) -> None:
        if self._weight.dim() != 2:
            raise RuntimeError(
                f"the weight of a quantized linear layer is 2-dimensional, not {self._weight.dim()}-dimensional"
            )
        self._check_bias(self._weight.shape[0])


class LinearPackedParams(_Linear):
    """Holds the weight [columns, terms] of a linear layer."""

    def __init__(self, weight: Tensor, bias: Tensor | None):
        super().__init__(weight, bias)
        self._check()

    @functools.cached_property
    def _ready(self) -> tuple[Packed, Tensor]:
        scales, points = self._parameters()
        each = None if points is None else points.expand(len(self._weight))
        return pack(plain(self._weight), each), scales

    def __call__(self, input: Tensor, result: QParams, relu: bool = False) -> Tensor:
        by = per_tensor(input, "quantized.linear")
        made = self._requantized(plain(input), by, result, relu)
        return quantized(made, result, input.dtype)

    def in_floats(self, input: Tensor) -> Tensor:
        """Return the layer of a quantized tensor, as float32."""
        by = per_tensor(input, "quantized.linear")
        packed, scales = self._ready
        return linear_to_float(plain(input), by, packed, scales, self._bias)

    def dynamic(self, input: Tensor, reduce_range: bool = False, relu: bool = False) -> Tensor:
        """The layer of float32 numbers, which are quantized with parameters that suit them."""
        _check_numbers(input, "linear_dynamic")
        packed, scales = self._ready
        return linear_dynamic(input, packed, scales, self._bias, reduce_range, relu)


class LinearPackedParamsFp16(_Linear):
    """The weight of a linear layer that is stored as float16."""

    def __init__(self, weight: Tensor, bias: Tensor | None):
        greatest = 65504.0
        self._weight = weight.detach().clamp(-greatest, greatest).to(float16)
        self._bias = None if bias is None else bias.detach()
        self._check()

    def unpack(self) -> tuple[Tensor, Tensor | None]:
        """Return the weight, in float32, and the bias."""
        return self._weight.float(), self._bias

    def dynamic(self, input: Tensor, reduce_range: bool = False, relu: bool = False) -> Tensor:
        """Return the layer of float32 numbers."""
        _check_numbers(input, "linear_dynamic_fp16")
        found = input @ self._weight.to(float32).t()
        if self._bias is not None:
            found = found + self._bias
        return found.relu() if relu else found


class ConvPackedParams(PackedLayer):
    """Holds the weight [channels made, channels / groups, *kernel] of a convolution, also of a transposed one."""

    def __init__(
        self,
        weight: Tensor,
        bias: Tensor | None,
        stride: Sequence[int],
        padding: Sequence[int],
        output_padding: Sequence[int],
        dilation: Sequence[int],
        groups: int,
        transpose: bool,
    ):
        super().__init__(weight, bias)
        self._output_padding, self.is_transposed = tuple(output_padding), transpose
        kernel = tuple(weight.shape[2:])
        dims = len(kernel)
        steps, borders, gaps = (
            tuple(each) * (dims if len(each) == 1 else 1) for each in (stride, padding, dilation)
        )
        self.window = Window(kernel, steps, borders, gaps, groups)
        if not all(len(each) == dims for each in (steps, borders, gaps, self._output_padding)):
            raise RuntimeError(
                f"stride, padding, output_padding and dilation of a convolution of {dims} dims have {dims} elements each"
            )
        if min(*steps, *gaps, groups) < 1 or min(*borders, *self._output_padding) < 0:
            raise RuntimeError(
                "a quantized convolution: stride, dilation and groups are positive, padding and output_padding are not negative"
            )
        self._check_bias(weight.shape[1] * groups if transpose else len(weight))
        # The plan of the last input's spec and number of threads; None if there is none for them.
        self._planned: tuple[Any, ImagePlan | None] | None = None

    def weight(self) -> Tensor:
        """Return the weight."""
        return self._weight.unsqueeze(2) if len(self.window.kernel) == 1 else self._weight

    def stride(self) -> list[int]:
        """Return the stride of each dim."""
        return self._for_each_dim(1, self.window.stride)

    def padding(self) -> list[int]:
        """Return the padding of each dim."""
        return self._for_each_dim(0, self.window.padding)

    def output_padding(self) -> list[int]:
        """Return the padding of the results of a transposed convolution."""
        return self._for_each_dim(0, self._output_padding)

    def dilation(self) -> list[int]:
        """Return the dilation of each dim."""
        return self._for_each_dim(1, self.window.dilation)

    def _for_each_dim(self, first: int, numbers: Sequence[int]) -> list[int]:
        """PyTorch has a convolution with one dim as one with two, of which the first has the size 1."""
        return [first, *numbers] if len(numbers) == 1 else [*numbers]

    def groups(self) -> int:
        """Return the number of groups."""
        return self.window.groups

    def transpose(self) -> bool:
        """Whether the convolution is transposed."""
        return self.is_transposed

    @property
    def _script_name(self) -> str:  # type: ignore[override]
        return f"__torch__.torch.classes.quantized.Conv{max(len(self.window.kernel), 2)}dPackedParamsBase"

    def _state(self) -> tuple:
        """Version 2 of PyTorch's states."""
        moves = self.stride(), self.padding(), self.dilation(), self.output_padding()
        numbers = [
            len(moves[0]),
            *(number for each in moves for number in each),
            self.groups(),
            int(self.is_transposed),
        ]
        return "2", [new_tensor(numbers, dtype=int16), self.weight()], [self._bias]

    @functools.cached_property
    def _ready(self) -> tuple[Packed, Tensor]:
        groups = self.window.groups
        kernel = transposed_kernel(plain(self._weight), groups) if self.is_transposed else plain(self._weight)
        scales, points = self._parameters(1 if self.is_transposed else 0)
        if points is not None:
            points = (
                points.repeat(groups) if len(points) * groups == len(kernel) else points.expand(len(kernel))
            )
        if self.is_transposed and len(scales) > 1:
            scales = scales.repeat(groups)
        return pack_kernel(kernel, points, groups), scales

    def _convolved(self, integers: Tensor, zero_point: int, layer: Callable[[Tensor], Tensor]) -> Tensor:
        dims = len(self.window.kernel)
        if dims == 2 and integers.dim() == 3:  # a convolution with one dim that was read from a file
            return self._convolved(integers.unsqueeze(2), zero_point, layer).squeeze(2)
        if integers.dim() != dims + 2:
            raise RuntimeError(
                f"quantized convolution: a kernel of {dims} dims needs an input of {dims + 2} dims, but got {list(integers.shape)}"
            )
        window = self.window
        if self.is_transposed:
            integers, window = spread(integers, zero_point, window, self._output_padding)
        return convolved(integers, zero_point, window, self._ready[0], layer)

    def __call__(self, input: Tensor, result: QParams, relu: bool = False) -> Tensor:
        by, integers = per_tensor(input, "quantized.conv"), plain(input)
        plan = self._plan(integers)
        if plan is None:
            made = self._convolved(
                integers, by.zero_point, lambda rows: self._requantized(rows, by, result, relu)
            )
        else:
            vectors, numbers = self._scaling(by.scale, result), clamping(uint8, result.zero_point, relu)
            made = plan(integers, by.zero_point, vectors, numbers)
        return quantized(made, result, input.dtype)

    def _plan(self, integers: Tensor) -> ImagePlan | None:
        """The plan for an input. It is kept for the next call, which usually has the same spec."""
        key, planned = (integers.spec, get_num_threads()), self._planned  # which another thread may exchange
        if planned is None or planned[0] != key:
            is_image = not self.is_transposed and integers.dim() == len(self.window.kernel) + 2
            plan = image_plan(integers, self.window, self._ready[0], uint8) if is_image else None
            planned = self._planned = key, plan
        return planned[1]

    def in_floats(self, input: Tensor) -> Tensor:
        """Return the convolution of a quantized tensor, as float32."""
        by = per_tensor(input, "quantized.conv")
        packed, scales = self._ready
        layer = functools.partial(
            linear_to_float, by=by, packed=packed, weight_scales=scales, bias=self._bias
        )
        return self._convolved(plain(input), by.zero_point, layer)

    def dynamic(self, input: Tensor, reduce_range: bool = False) -> Tensor:
        """The convolution of float32 numbers, which are quantized with parameters that suit them.

        PyTorch quantizes the result with the same parameters, so that it lies between the least and the greatest number of the input.
        """
        _check_numbers(input, "conv_dynamic")
        by = dynamic_qparams(input, uint8, reduce_range)
        return dequantize(self(quantized(quantize_per_tensor(input, *by, uint8), by, quint8), by))


class EmbeddingPackedParams(ScriptObject):
    """Holds the table of an embedding: a quint8 or quint4x2 tensor with float parameters for each row."""

    _script_name = "__torch__.torch.classes.quantized.EmbeddingPackedParamsBase"

    def __init__(self, weight: Tensor):
        quantizer = quantizer_of(weight) if is_quantized(weight) else None
        if not isinstance(quantizer, PerChannel) or not quantizer.has_floats or quantizer.axis != 0:
            raise RuntimeError(
                "a quantized embedding has a weight with float parameters for each row: write "
                "torch.quantize_per_channel(weight, scales, zero_points, 0, torch.quint8) with zero points that are floats"
            )
        self.weight = weight

    @functools.cached_property
    def parameters(self) -> tuple[Tensor, Tensor]:
        """The scale and the bias of each row, float32. An integer stands for `integer * scale + bias`."""
        quantizer: Any = quantizer_of(self.weight)
        scales, points = (
            each(self.weight.device) for each in (quantizer.scales_on, quantizer.zero_points_on)
        )
        biases = -1.0 * (points * scales)
        if self.weight.dtype in BITS:  # PyTorch stores the parameters of such rows as float16
            scales, biases = scales.to(float16).to(float32), biases.to(float16).to(float32)
        return scales, biases

    def _state(self) -> tuple:
        return 1, [self.weight], [], [BITS.get(self.weight.dtype, 8)]

    def __deepcopy__(self, memo: dict) -> Any:
        return self  # because nothing changes it
