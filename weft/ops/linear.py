"""Linear and bilinear maps with weights, as neural networks use them."""

from __future__ import annotations

from ..core.op import public
from ..core.tensor import Tensor
from .matmul import MATMUL, added, check_same, check_tensors, matmul


@public("function", name="nn.functional.linear")
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """input @ weight.T + bias.

    Shapes: [..., in], [out, in], [out] -> [..., out]; without `out` in weight and bias, also without it in the result.
    """
    check_tensors("linear", input=input, weight=weight)
    if not input.dim() or not weight.dim():
        raise RuntimeError(
            f"both arguments to linear need to be at least 1D, but they are {input.dim()}D and {weight.dim()}D"
        )
    transposed = weight.t()
    if bias is None:
        return MATMUL(input, transposed)
    if weight.dim() == 1:
        raise RuntimeError("mat2 must be a matrix, got 1-D tensor")
    check_same(bias, "self and mat2 must have the same dtype, but got {0} and {1}", weight)
    return added(bias, 1, 1, (input, transposed), MATMUL)


@public("function", "bilinear", name="nn.functional.bilinear")
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """input1 @ weight[k] @ input2 + bias[k] for each output k.

    Shapes: [..., n], [..., m], [out, n, m], [out] -> [..., out].
    """
    check_tensors("bilinear", input1=input1, input2=input2, weight=weight)
    _check_bilinear(input1, input2, weight)
    out, n, m = weight.shape
    flat1, flat2 = input1.reshape(-1, n), input2.reshape(-1, m)
    half = matmul(flat1, weight.permute(1, 0, 2).reshape(n, out * m)).reshape(-1, out, m)
    result = matmul(half, flat2.unsqueeze(-1)).reshape((*input1.shape[:-1], out))
    return result if bias is None else result + bias


def _check_bilinear(input1: Tensor, input2: Tensor, weight: Tensor) -> None:
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
