"""Defines the rows of the views, which change sizes, strides and offset on the same memory."""

from __future__ import annotations

from ...core import view_rules as rules
from ...core.derivative import nondifferentiable
from ...core.size import Size
from ...core.spec import Spec, contiguous_spec
from ...core.tensor import Tensor, empty, make, wrap_dim
from ...families.custom_vjp import custom_vjp
from ...families.map import FILL
from ...families.view import View
from ..assembly.copying import contiguous
from ..creation.creation import ones
from ..creation.ranges import arange
from ..elementwise.arithmetic import ADD


def _reshaped(ct, out, a, *static, specs):
    return ct.reshape(specs[0].shape)


def _permuted_back(ct, out, a, dims, *, specs):
    order = rules.distinct_dims(dims, len(dims))
    return PERMUTE(ct, tuple([order.index(dim) for dim in range(len(order))]))


def _windows_back(ct, out, a, dim, size, step, *, specs):
    return unfold_backward(ct, specs[0].shape, dim, size, step)


def _as_strided_back(ct, out, a, size, stride, offset, *, specs):
    spec, start, place = specs[0], max(-offset, 0), max(offset, 0)
    view = rules.moved(spec, size, stride)
    memory = _to_memory(ct, view, place, max(start + spec.span, place + view.span))
    if spec.overlaps:
        counts = ones(spec.shape, dtype=ct.dtype, device=ct.device)
        memory = memory / _to_memory(counts, spec, start, memory.numel()).clamp(min=1)
    return AS_STRIDED(memory, spec.shape, spec.stride, start)


def _to_memory(ct: Tensor, view: Spec, start: int, length: int) -> Tensor:
    """The adjoint of a view of `length` elements of memory. An element that the view shows several times gets the sum."""
    memory = contiguous_spec((length,), ct.spec.dtype, ct.spec.device)
    if not view.overlaps:
        return AS_STRIDED.adjoint(ct, memory, view.shape, view.stride, start)
    positions = AS_STRIDED(arange(length, device=ct.device), view.shape, view.stride, start)
    return ct.new_zeros((length,)).index_add(0, positions.reshape(-1), ct.reshape(-1))


def _windows_of(ct, out, a, sizes, dim, size, step):
    return UNFOLD(ct, dim, size, step)


@custom_vjp(_windows_of, inputs=1)
def unfold_backward(input: Tensor, sizes: Size, dim: int, size: int, step: int) -> Tensor:
    """The adjoint of `unfold`: zeros, to which each window's elements are added in the places they come from."""
    if not sizes:
        return input.sum()
    result = FILL.write(empty(contiguous_spec(sizes, input.spec.dtype, input.spec.device)), 0)
    dim = wrap_dim(dim, len(sizes))  # a negative dim would count the dim of the elements of a window
    values, places = make(input._storage, input._byte_offset, input.spec), UNFOLD(result, dim, size, step)
    apart = -(-size // step)  # windows at this distance do not overlap
    for first in range(min(apart, places.spec.shape[dim])):
        place = SLICE(places, dim, first, None, apart)
        ADD.write(place, place, SLICE(values, dim, first, None, apart))
    return result


# fmt: off
VIEW       = View(rules.view, _reshaped)
VIEW_DTYPE = View(rules.view_dtype, nondifferentiable)
UNSQUEEZE  = View(rules.unsqueeze, _reshaped)
SQUEEZE    = View(rules.squeeze, _reshaped)
SQUEEZE_DIM  = View(rules.squeeze, _reshaped, name="squeeze.dim", node_name="SqueezeBackward1")
SQUEEZE_DIMS = View(rules.squeeze, _reshaped, name="squeeze.dims", node_name="SqueezeBackward2")
PERMUTE    = View(rules.permute, _permuted_back)
TRANSPOSE: View = View(rules.transpose, lambda ct, out, a, dim0, dim1: TRANSPOSE(ct, dim0, dim1))
T: View = View(rules.t, lambda ct, out, a: T(ct))
EXPAND     = View(rules.expand, lambda ct, out, a, sizes: ct)
SELECT     = View(rules.select)
SLICE      = View(rules.slice)
DIAGONAL   = View(rules.diagonal)
UNFOLD     = View(rules.unfold, _windows_back)
AS_STRIDED = View(rules.as_strided, _as_strided_back)
VIEW_AS_REAL: View = View(rules.view_as_real, lambda ct, out, a: VIEW_AS_COMPLEX(contiguous(ct)))
VIEW_AS_COMPLEX: View = View(rules.view_as_complex, lambda ct, out, a: VIEW_AS_REAL(ct.resolve_conj()))
REAL       = View(rules.real, node_name="SelectBackward0")
IMAG       = View(rules.imag, node_name="SelectBackward0")
CONJ       = View(rules.conj, lambda ct, out, a: ct.conj())
NEG_VIEW   = View(rules.neg_view, lambda ct, out, a: -ct)
ALIAS      = View(rules.alias, lambda ct, out, a: ct)
# fmt: on


@custom_vjp(_reshaped, inputs=1)
def unsafe_view(input: Tensor, sizes: tuple[int, ...]) -> Tensor:
    """Another shape of a copy that only the caller holds; users cannot tell that the result is a view."""
    return make(input._storage, input._byte_offset, VIEW.plans[input.spec, sizes].spec)


def owned(result: Tensor) -> Tensor:
    """Mark `result`, a view of memory that no other tensor uses, as a tensor of its own."""
    result._base = None
    return result
