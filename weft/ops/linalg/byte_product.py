"""Products of matrices of float8 or int8 by kernels of a device that has them ("byte_product" among its extras)."""

from __future__ import annotations

from ...core import view_rules
from ...core.dtype import DType
from ...core.recording import needs_recording
from ...core.spec import contiguous_spec
from ...core.tensor import Tensor, is_whole
from ...families.kernel_graph import GraphBuilder, KernelGraph, Value

_TOGETHER = 16  # terms that the kernels load at once


def takes_bytes(a: Tensor, b: Tensor, *others: Tensor | None) -> bool:
    """Whether the device has a kernel for the product of these matrices. others: the scales and the bias, which it applies to the sums."""
    takes = a.spec.device.backend.extras.get("takes_bytes")
    given = [a, b, *(each for each in others if each is not None)]
    if takes is None or not takes(a.spec.dtype, b.spec.dtype) or needs_recording(given):
        return False
    on_device = all(each.spec.device == a.spec.device and is_whole(each) for each in given)
    return on_device and all(each.spec.numel for each in given)


def byte_product(a: Tensor, b: Tensor, dtype: DType, *epilogue: Tensor | None) -> Tensor:
    """The product of matrices [rows, terms] and [terms, columns]. epilogue: the scales of rows and of columns, and a bias of columns or None."""
    given = [None if each is None else each.contiguous().resolve_neg() for each in epilogue]
    graph = _SCALED_BYTE_PRODUCT if epilogue else _BYTE_PRODUCT
    found = graph((_terms_in_rows(a), _terms_in_rows(b.t()), *given), (dtype,))
    assert isinstance(found, Tensor)
    return found


def _terms_in_rows(x: Tensor) -> Tensor:
    """The matrix as the kernels read it: elements of a row are neighbours, rows begin at even addresses, and the number of terms is even."""
    rows, terms = x.shape
    down, across = x.spec.stride
    address = x._storage.ptr + x._byte_offset
    if across == 1 and down >= terms and not (terms % 2 or down % 2 or address % 2):
        return x
    padded = x.new_zeros(rows, -(-terms // _TOGETHER) * _TOGETHER)
    padded[:, :terms].copy_(x)
    return padded


def _build(graph: GraphBuilder, dtype: DType) -> list[Value]:
    a, b, *epilogue = graph.inputs
    columns = graph.view(view_rules.t, b)
    result = graph.new(contiguous_spec((a.spec.shape[0], b.spec.shape[0]), dtype, a.spec.device))
    scales = tuple([each.spec for each in epilogue[:2]]) or None
    bias = epilogue[2] if epilogue else None
    prepare = a.spec.device.backend.extras["byte_product"]
    launch = prepare(a.spec, columns.spec, result.spec, scales, None if bias is None else bias.spec)
    graph.launch(launch, result, a, columns, *(each for each in epilogue if each is not None))
    return [result]


_BYTE_PRODUCT = KernelGraph("byte_product", 2, _build)
_SCALED_BYTE_PRODUCT = KernelGraph("scaled_byte_product", 5, _build)
