"""Linear and bilinear maps with weights, as neural networks use them."""

from __future__ import annotations

import math

from ...core import view_rules
from ...core.public import public
from ...core.spec import contiguous_spec
from ...core.tensor import Tensor
from ...families.kernel_graph import GraphBuilder, KernelGraph, Value
from ..elementwise.arithmetic import ADD
from ..linalg.matmul import MATMUL, MM, WIDE_MATMUL, check_same, check_tensors, matmul, outer, rows_of
from ..views.complex_views import conj
from ..views.views import T


@public("function", name="nn.functional.linear", autocast="lower")
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Compute input @ weight.T + bias.

    Shapes: [..., in], [out, in], [out] -> [..., out]; without `out` in weight and bias, also without it in the result.
    """
    if not isinstance(input, Tensor) or not isinstance(weight, Tensor):
        check_tensors("linear", input=input, weight=weight)
    if len(weight.spec.shape) != 2 or not input.spec.shape:
        return _unusual_linear(input, weight, bias)
    if bias is None:
        return _LINEAR((input, weight))
    if bias.spec.dtype is not weight.spec.dtype:
        check_same(bias, "self and mat2 must have the same dtype, but got {0} and {1}", weight)
    if input.spec.dtype is not weight.spec.dtype:
        advice = f"\nlinear: convert the input with .to({weight.spec.dtype})"
        check_same(input, "mat1 and mat2 must have the same dtype, but got {0} and {1}" + advice, weight)
    return _LINEAR_WITH_BIAS((bias, input, weight))


def _unusual_linear(input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """As `linear`, for a weight that is no matrix, or an input without dims."""
    n_dims = len(weight.spec.shape)
    if not n_dims or not input.spec.shape:
        raise RuntimeError(
            f"both arguments to linear need to be at least 1D, but they are {input.dim()}D and {weight.dim()}D"
        )
    if n_dims > 2:
        raise RuntimeError(
            f"t() expects a tensor with <= 2 dimensions, but self is {n_dims}D\nlinear: weight {list(weight.shape)}"
        )
    if bias is None:
        return MATMUL(input, weight)
    if len(input.spec.shape) == 2 or len(bias.spec.shape) == 1:  # in this case PyTorch calls addmm
        raise RuntimeError("mat2 must be a matrix, got 1-D tensor")
    return MATMUL(input, weight).add_(bias)


# One step is recorded, so that backward is two matrix products into new memory, and records neither the transpose of the
# weight nor that of its gradient.


def _bias_rule(ct, out, bias, input, weight, *, specs):
    *sizes, last = ct.spec.shape
    if sizes and specs[0].shape == (last,):
        return ct.sum(0 if len(sizes) == 1 else tuple(range(len(sizes))))
    return ct


# The rules call `conj` for complex numbers only, because a call that returns its argument takes 0.2 us (AMD Zen 4).


def _input_rule(ct, out, input, weight):
    return MATMUL(ct, conj(weight) if weight.spec.dtype.kind == "c" else weight)


def _weight_rule(ct, out, input, weight):
    if input.spec.dtype.kind == "c":
        input = conj(input)
    if len(ct.spec.shape) == 1:
        return outer(ct, input)
    return MM(T(rows_of(ct)), rows_of(input))


def _build(graph: GraphBuilder, input: Value, weight: Value) -> list[Value]:
    return [graph.matmul(MATMUL, input, graph.view(view_rules.t, weight))]


def _build_with_bias(graph: GraphBuilder) -> list[Value]:
    """The narrow floats stay wide until the end."""
    dtype = graph.inputs[1].spec.dtype
    bias, input, weight = graph.inputs
    if (together := _in_one_kernel(graph, bias, input, weight)) is not None:
        return [together]
    product = graph.matmul(WIDE_MATMUL, input, graph.view(view_rules.t, weight))
    result = product if product.spec.dtype is dtype else graph.new(product.spec.like(dtype=dtype))
    graph.write(ADD, result, product, graph.view(view_rules.expand, bias, result.spec.shape))
    return [result]


def _in_one_kernel(graph: GraphBuilder, bias: Value, input: Value, weight: Value) -> Value | None:
    """The result by a kernel of the device that adds the bias to the sums; None if it has none for these operands."""
    where = input.spec.device
    prepare = where.backend.extras.get("product_with_bias")
    turned = graph.view(view_rules.t, weight)
    if prepare is None or weight.spec.device != where or bias.spec.device != where:
        return None
    if input.spec.shape[-1] != weight.spec.shape[-1]:
        return None
    sizes = *input.spec.shape[:-1], weight.spec.shape[0]
    result = contiguous_spec(sizes, input.spec.dtype, where)
    launch = prepare(input.spec, turned.spec, bias.spec, result)
    if launch is None:
        return None
    together = graph.new(result)
    graph.launch(launch, together, input, turned, bias)
    return together


# PyTorch records several steps; the node has the name of the last one.
_NAMES = {1: "SqueezeBackward4", 2: "MmBackward0"}
_LINEAR = KernelGraph(
    "linear",
    2,
    lambda graph: _build(graph, *graph.inputs),
    derivative=(_input_rule, _weight_rule),
    node_name=lambda inputs, static: _NAMES.get(inputs[0].dim(), "UnsafeViewBackward0"),
)
_LINEAR_WITH_BIAS = KernelGraph(
    "linear",
    3,
    _build_with_bias,
    derivative=(
        _bias_rule,
        lambda ct, out, bias, input, weight: _input_rule(ct, None, None, weight),
        lambda ct, out, bias, input, weight: _weight_rule(ct, None, input, None),
    ),
    node_name=lambda inputs, static: "AddmmBackward0" if inputs[1].dim() == 2 else "ViewBackward0",
)


@public("function", "bilinear", name="nn.functional.bilinear", autocast="raise")
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Compute input1 @ weight[k] @ input2 + bias[k] for each output k.

    Shapes: [..., n], [..., m], [out, n, m], [out] -> [..., out].
    """
    check_tensors("bilinear", input1=input1, input2=input2, weight=weight)
    if weight.dim() != 3:
        raise RuntimeError(
            f"bilinear(): weight must have 3 dimensions [out, in1, in2], but got {list(weight.shape)}"
        )
    _check_bilinear(input1, input2, weight, bias)
    out, n, m = weight.shape
    count = math.prod(input1.shape[:-1])
    flat1, flat2 = input1.reshape(count, n), input2.reshape(count, m)
    half = matmul(flat1, weight.permute(1, 0, 2).reshape(n, out * m)).reshape(count, out, m)
    result = matmul(half, flat2.unsqueeze(-1)).reshape((*input1.shape[:-1], out))
    return result if bias is None else result + bias


def _check_bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None) -> None:
    if bias is not None and bias.size(0) != weight.shape[0]:
        raise RuntimeError(
            f"bilinear(): bias size does not match weight size: got {bias.size(0)} but expected {weight.shape[0]}"
        )
    given = {each.dtype for each in (input1, input2, weight, bias) if each is not None}
    if len(given) > 1:
        raise RuntimeError(f"All tensors must have the same dtype, got {', '.join(sorted(map(str, given)))}")
    if input1.dim() != input2.dim():
        raise RuntimeError(
            f"bilinear(): input dimensions do not match: got {input1.dim()} and {input2.dim()}"
        )
    for dim, (first, second) in enumerate(zip(input1.shape[:-1], input2.shape[:-1], strict=True)):
        if first != second:
            raise RuntimeError(
                f"bilinear(): input batch dimensions do not match at dim {dim}: got {first} and {second}"
            )
    for tensor, name, size in ((input1, "input1", weight.shape[1]), (input2, "input2", weight.shape[2])):
        if tensor.shape[-1] != size:
            raise RuntimeError(
                f"bilinear(): {name} size does not match weight size: got {tensor.shape[-1]} but expected {size}"
            )
