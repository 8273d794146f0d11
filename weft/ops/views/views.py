"""The rows of the views: other sizes, strides and offsets on the same memory."""

from __future__ import annotations

from ...core import view_rules as rules
from ...core.derivative import Derivative, nondifferentiable
from ...core.op import Op
from ...core.recording import needs_recording, record
from ...core.registry import FUNCTIONS
from ...core.size import Size
from ...core.spec import Spec, contiguous_spec
from ...core.tensor import Tensor, empty, make
from ...families.map import FILL
from ...families.view import View
from ..assembly.copying import contiguous
from ..elementwise.arithmetic import ADD


def _reshaped(ct, out, a, *static, specs):
    return ct.reshape(specs[0].shape)


def _permuted_back(ct, out, a, dims, *, specs):
    order = rules.distinct_dims(dims, len(dims))
    return PERMUTE(ct, tuple([order.index(dim) for dim in range(len(order))]))


def _windows_back(ct, out, a, dim, size, step, *, specs):
    return UNFOLD_BACKWARD(ct, specs[0].shape, dim, size, step)


def _as_strided_back(ct, out, a, size, stride, offset, *, specs):
    spec, start, place = specs[0], max(-offset, 0), max(offset, 0)
    view = rules.moved(spec, size, stride)
    memory = _to_memory(ct, view, place, max(start + spec.span, place + view.span))
    if spec.overlaps:
        ones = FUNCTIONS["ones"](spec.shape, dtype=ct.dtype)
        memory = memory / _to_memory(ones, spec, start, memory.numel()).clamp(min=1)
    return AS_STRIDED(memory, spec.shape, spec.stride, start)


def _to_memory(ct: Tensor, view: Spec, start: int, length: int) -> Tensor:
    """The elements of memory that a view shows, of `length` in all: sums where it shows an element several times."""
    memory = contiguous_spec((length,), ct.spec.dtype, ct.spec.device)
    if not view.overlaps:
        return AS_STRIDED.adjoint(ct, memory, view.shape, view.stride, start)
    positions = AS_STRIDED(FUNCTIONS["arange"](length), view.shape, view.stride, start)
    return ct.new_zeros((length,)).index_add(0, positions.reshape(-1), ct.reshape(-1))


def _windows_of(ct, out, a, sizes, dim, size, step):
    return UNFOLD(ct, dim, size, step)


class _UnfoldBackward(Op):
    """The adjoint of `unfold`: every element is added to where its window has it."""

    name = "unfold_backward"
    derivative = Derivative(_windows_of)

    def run(self, input: Tensor, sizes: Size, dim: int, size: int, step: int) -> Tensor:
        if not sizes:
            return input.sum()
        result = FILL.write(empty(contiguous_spec(sizes, input.spec.dtype, input.spec.device)), 0)
        values, places = make(input._storage, input._start, input.spec), UNFOLD(result, dim, size, step)
        apart = -(-size // step)  # windows so far apart do not overlap
        for first in range(min(apart, places.spec.shape[dim])):
            place = SLICE(places, dim, first, None, apart)
            ADD.write(place, place, SLICE(values, dim, first, None, apart))
        return (
            record(self, result, (input,), (sizes, dim, size, step)) if needs_recording((input,)) else result
        )


UNFOLD_BACKWARD = _UnfoldBackward()


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


class _UnsafeView(Op):
    """Another shape for a copy that nobody else has: no view, as far as users can tell."""

    name = "unsafe_view"
    derivative = Derivative(_reshaped)

    def run(self, input: Tensor, sizes: tuple[int, ...]) -> Tensor:
        result = make(input._storage, input._start, VIEW.plans[input.spec, sizes][0])
        return record(self, result, (input,), (sizes,)) if needs_recording((input,)) else result


UNSAFE_VIEW = _UnsafeView()


def owned(result: Tensor) -> Tensor:
    """`result`, a view of memory that nobody else has: no view, as far as users can tell."""
    result._base = None
    return result
