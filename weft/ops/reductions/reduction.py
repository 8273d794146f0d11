"""Defines reductions: sums, products, means, extrema, any and all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...core.arguments import integers
from ...core.batched import beneath
from ...core.checking import check_tensor
from ...core.derivative import nondifferentiable
from ...core.dtype import FLOAT8, LEGACY_NAMES, DType, bool_, float32, int64, uint8
from ...core.public import public
from ...core.return_types import return_type
from ...core.spec import Spec
from ...core.tensor import Tensor
from ...engine.complexes import Complex
from ...engine.convert import convert
from ...engine.expr import Expr, cast, isnan, select
from ...families.elements import as_type
from ...families.monoid_op import Types
from ...families.reduce import Reduce
from ..assembly.joining import cat
from ..creation.creation import ones_like
from ..tensor.node_names import by_dims
from ..tensor.rules import broadcast_back, scatter_into_zeros, split_among_ties, sum_of, with_reduced_dims
from ..views.views import EXPAND
from .extrema import BOTH, FIRST_LARGEST, FIRST_SMALLEST, LARGEST, SMALLEST

# ---- Checks -----------------------------------------------------------------------------------------------------


def _check_not_empty(spec: Spec, dims: Sequence[int], name: str, whole: bool) -> None:
    """Raises: an error if there are no elements, because extrema have no identity."""
    shape = spec.shape
    if whole and spec.numel == 0:
        raise RuntimeError(
            f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with "
            f"the 'dim' argument. (shape {list(shape)})"
        )
    for dim in dims:
        if shape[dim] == 0:
            raise IndexError(
                f"{name}(): Expected reduction dim {dim} to have non-zero size. (shape {list(shape)})"
            )


def _check_order(name: str, spec: Spec, dims: Sequence[int], whole: bool) -> None:
    """Raises: PyTorch's errors of extrema."""
    _check_not_empty(spec, dims, name, whole)
    if spec.dtype.is_complex:
        with_position = name in ("max", "min") and not whole
        kind = RuntimeError if with_position else NotImplementedError
        raise kind(f"{name}(): complex numbers have no order (got {spec.dtype})")


def _check_position(name: str, spec: Spec, dims: Sequence[int], whole: bool) -> None:
    """Raises: PyTorch's errors of positions of extrema."""
    if whole and spec.numel == 0:
        raise IndexError(
            f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim "
            "with the 'dim' argument."
        )
    _check_order(name, spec, dims, whole=False)


# ---- Types ---------------------------------------------------------------------------------------------------------


def _sum_types(dtype: DType, wanted: DType | None) -> Types:
    result = wanted or (int64 if dtype.category < 2 else dtype)
    return Types(result, (result,))


def _same_types(dtype: DType, wanted: DType | None) -> Types:
    return Types(dtype, (dtype,))


def _position_types(dtype: DType, wanted: DType | None) -> Types:
    if dtype is bool_ or dtype.is_complex:
        kind = "bool" if dtype is bool_ else "complex"
        raise RuntimeError(f"argmax() and argmin() do not support {kind} input")
    return _index_types(dtype, wanted)


def _both_types(dtype: DType, wanted: DType | None) -> Types:
    return Types(dtype, (dtype, dtype))


def _index_types(dtype: DType, wanted: DType | None) -> Types:
    return Types(dtype, (int64,))


def _value_and_index_types(dtype: DType, wanted: DType | None) -> Types:
    return Types(dtype, (dtype, int64))


def _flag_types(dtype: DType, wanted: DType | None) -> Types:
    return Types(dtype, (uint8 if dtype is uint8 else bool_,))


# ---- Elements ------------------------------------------------------------------------------------------------------


def plus(a, b):
    return tuple(x + y for x, y in zip(a, b))


def _nan_to_zero(a):
    if isinstance(a, Complex):
        bad = isnan(a.real) | isnan(a.imag)
        return Complex(select(bad, 0.0, a.real), select(bad, 0.0, a.imag))
    return select(isnan(a), 0.0, a) if a.dtype.is_floating_point else a


def _flag(a) -> Expr:
    return cast(as_type(a, bool_), uint8)


def _flags_back(state):
    return (convert(state[0], bool_),)


def finite_identity(value):
    return lambda compute: ((value, compute),)


# ---- Derivatives -----------------------------------------------------------------------------------------------------


def _sum_rule(ct, out, a, dims, keepdim, *, specs):
    # As `broadcast_back`, in fewer calls.
    return EXPAND(ct if keepdim or dims is None else with_reduced_dims(ct, dims, keepdim), specs[0].shape)


def _nansum_rule(ct, out, a, dims, keepdim):
    return with_reduced_dims(ct, dims, keepdim).where(~a.isnan(), 0)


def mean_rule(ct, out, a, dims, keepdim, count, *, specs):
    # Divide last, so that the gradient may be written into.
    return broadcast_back(ct, specs[0], dims, keepdim) / count


def _prod_rule(ct, out, a, dims, keepdim):
    """The derivative by an element is the product of the others. Divide, or multiply from both sides if an element is zero."""
    if a.spec.device.backend.has_memory and not bool(beneath(a == 0).any()):
        return with_reduced_dims(ct, dims, keepdim) * (with_reduced_dims(out, dims, keepdim) / a).conj()
    if dims is None:
        return ct * _products_of_others(a.reshape(-1), 0).conj().reshape(a.shape)
    return (
        with_reduced_dims(ct, dims, keepdim) * _products_of_others(a, dims[0]).conj() if dims else ct.clone()
    )


def _products_of_others(a: Tensor, dim: int) -> Tensor:
    """Return, for each element the product of the others along `dim`."""
    n = a.shape[dim]
    ones = ones_like(a.narrow(dim, 0, min(n, 1)))
    before = cat((ones, a.narrow(dim, 0, max(n - 1, 0))), dim).cumprod(dim)
    after = cat((ones, a.narrow(dim, min(n, 1), max(n - 1, 0)).flip(dim)), dim).cumprod(dim).flip(dim)
    return before * after


def _extremum_rule(ct, out, a, dims, keepdim):
    """Equal elements share the cotangent."""
    return split_among_ties(
        with_reduced_dims(ct, dims, keepdim), a == with_reduced_dims(out, dims, keepdim), dims
    )


def _aminmax_rule(ct, out, a, dims, keepdim):
    pairs = zip(ct, out, strict=True)
    return sum_of([_extremum_rule(c, o, a, dims, keepdim) for c, o in pairs if c is not None])


def _extremum_of_all_rule(ct, out, a, dims, keepdim):
    """As `_extremum_rule`, but NaN is chosen, too. Only a batch of `vmap` has dims."""
    ct, out = (with_reduced_dims(each, dims, keepdim) for each in (ct, out))
    return split_among_ties(ct, (a == out) | (a.isnan() & out.isnan()), dims)


def _selected_rule(ct, out, a, dims, keepdim, *, specs):
    ct, indices = (with_reduced_dims(each, dims, keepdim) for each in (ct[0], out[1]))
    return scatter_into_zeros(ct, indices, specs[0], dims[0] if dims else 0)


# fmt: off
SUM      = Reduce("sum",      _sum_types,  finite_identity(0), lambda a: (a,), plus, cascade=True, derivative=_sum_rule, node_name=by_dims("SumBackward0", "SumBackward1"))
NANSUM   = Reduce("nansum",   _sum_types,  finite_identity(0), lambda a: (a,), plus, cascade=True, clean=_nan_to_zero, derivative=_nansum_rule)
PROD     = Reduce("prod",     _sum_types,  finite_identity(1), lambda a: (a,), lambda a, b: (a[0] * b[0],), one_dim=True, derivative=_prod_rule, node_name=by_dims("ProdBackward0", "ProdBackward1"))
MEAN     = Reduce("mean",     _sum_types,  finite_identity(0), lambda a: (a,), plus, lambda s, n: (divided(s[0], n),), cascade=True, counted=True, derivative=mean_rule, node_name=by_dims("MeanBackward0", "MeanBackward1"))
AMAX     = Reduce("amax",     _same_types, LARGEST.identity,  LARGEST.to_state,  LARGEST.combine,  LARGEST.finish,  derivative=_extremum_rule)
AMIN     = Reduce("amin",     _same_types, SMALLEST.identity, SMALLEST.to_state, SMALLEST.combine, SMALLEST.finish, derivative=_extremum_rule)
AMINMAX  = Reduce("aminmax",  _both_types, BOTH.identity,     BOTH.to_state,     BOTH.combine,     BOTH.finish,     one_dim=True, derivative=_aminmax_rule)
MAX_OF_ALL = Reduce("max",    _same_types, LARGEST.identity,  LARGEST.to_state,  LARGEST.combine,  LARGEST.finish,  derivative=_extremum_of_all_rule, node_name="MaxBackward1")
MIN_OF_ALL = Reduce("min",    _same_types, SMALLEST.identity, SMALLEST.to_state, SMALLEST.combine, SMALLEST.finish, derivative=_extremum_of_all_rule, node_name="MinBackward1")
ARGMAX   = Reduce("argmax",   _position_types, FIRST_LARGEST.identity, FIRST_LARGEST.to_state, FIRST_LARGEST.combine, FIRST_LARGEST.position, append=FIRST_LARGEST.append, ordered=True, exact=True, derivative=nondifferentiable)
ARGMIN   = Reduce("argmin",   _position_types, FIRST_SMALLEST.identity, FIRST_SMALLEST.to_state, FIRST_SMALLEST.combine, FIRST_SMALLEST.position, append=FIRST_SMALLEST.append, ordered=True, exact=True, derivative=nondifferentiable)
MAX      = Reduce("max",      _value_and_index_types, FIRST_LARGEST.identity, FIRST_LARGEST.to_state, FIRST_LARGEST.combine, FIRST_LARGEST.finish, append=FIRST_LARGEST.append, ordered=True, derivative=_selected_rule)
MIN      = Reduce("min",      _value_and_index_types, FIRST_SMALLEST.identity, FIRST_SMALLEST.to_state, FIRST_SMALLEST.combine, FIRST_SMALLEST.finish, append=FIRST_SMALLEST.append, ordered=True, derivative=_selected_rule)
ANY      = Reduce("any",      _flag_types, lambda c: ((0, uint8),), lambda a: (_flag(a),), lambda a, b: (a[0] | b[0],), _flags_back, derivative=nondifferentiable)
ALL      = Reduce("all",      _flag_types, lambda c: ((1, uint8),), lambda a: (_flag(a),), lambda a, b: (a[0] & b[0],), _flags_back, derivative=nondifferentiable)
COUNT    = Reduce("count_nonzero", _index_types, lambda c: ((0, int64),), lambda a: (cast(as_type(a, bool_), int64),), plus, derivative=nondifferentiable)
COUNT_NUMBERS = Reduce("nanmean", _index_types, lambda c: ((0, int64),), lambda a: (cast(~_is_nan(a), int64),), plus, derivative=nondifferentiable)

# fmt: on
for _op in (AMAX, AMIN, AMINMAX, MAX_OF_ALL, MIN_OF_ALL, MAX, MIN):
    _op.check = _check_order
ARGMAX.check = ARGMIN.check = _check_position
for _op in (MAX, MIN, ARGMAX, ARGMIN):
    _op.one_dim = True


def divided(value, n):
    return Complex(value.real / n, value.imag / n) if isinstance(value, Complex) else value / n


def _is_nan(a):
    return isnan(a.real) | isnan(a.imag) if isinstance(a, Complex) else isnan(a)


# ---- Public functions ------------------------------------------------------------------------------------------------


def count_elements(input: Tensor, dims: Sequence[int]) -> int:
    return math.prod(input.spec.shape[dim] for dim in dims)


@public("function method", out="decides", checks=False)
def sum(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: DType | None = None) -> Tensor:
    """The sum over `dim` (an int, several, or all). Integers and bools add up in int64.

    >>> import weft as torch
    >>> torch.tensor([[1.0, 2.0], [3.0, 4.0]]).sum(0)
    tensor([4., 6.])
    """
    return SUM.direct(input, dim, keepdim, dtype)


@public("method")
def sum_to_size(self: Tensor, *size: Any) -> Tensor:
    """The sum over the dims that broadcasting from `size` would have repeated: the derivative of `expand`.

    Raises: RuntimeError if a tensor of `size` does not broadcast to this shape.
    """
    sizes = integers(size, "sum_to_size", "size")
    own = self.spec.shape
    missing = len(own) - len(sizes)
    if missing < 0 or any(w not in (1, o) for w, o in zip(sizes, own[missing:])):
        raise RuntimeError(f"size {{{list(sizes)}}} is not expandable to size {{{list(own)}}}.")
    repeated = [d for d, w in enumerate(sizes, missing) if w == 1 and own[d] != 1]
    if sizes and not missing and not repeated:
        return self
    if not sizes:
        return SUM.direct(self)
    kept = SUM(self, dims=(*range(missing), *repeated), keepdim=True)
    return kept.view(sizes) if missing else kept


@public("function method", out="decides")
def nansum(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: DType | None = None) -> Tensor:
    """Return the sum over `dim`, NaN counting as zero."""
    check_tensor(input, "nansum")
    if input.spec.dtype.is_complex:
        raise RuntimeError("nansum does not support complex inputs")
    return NANSUM.direct(input, dim, keepdim, dtype)


@public("function method", out="decides", autocast="raise")
def prod(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: DType | None = None) -> Tensor:
    """The product over one dim, or of all elements. Integers and bools multiply in int64."""
    check_tensor(input, "prod")
    return PROD.direct(input, dim, keepdim, dtype)


def _floating(input: Tensor, dtype: DType | None, name: str) -> DType:
    check_tensor(input, name)
    result_dtype = dtype or input.spec.dtype
    if result_dtype.category < 2:
        what = "optional dtype" if dtype is not None else "dtype"
        raise RuntimeError(
            f"{name}(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. "
            f"Got: {LEGACY_NAMES[result_dtype]} ({what}; convert with .float() first)"
        )
    return result_dtype


@public("function method", out=True)
def mean(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: DType | None = None) -> Tensor:
    """Return the mean over `dim` (an int, several, or all) of a floating point or complex tensor.

    Raises: RuntimeError for integers and bools unless dtype= is given.
    """
    _floating(input, dtype, "mean")
    return MEAN.direct(input, dim, keepdim, dtype)


@public("function method", out=True)
def nanmean(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: DType | None = None) -> Tensor:
    """The mean over `dim` of the elements that are not NaN."""
    _floating(input, None, "nanmean")
    _floating(input, dtype, "nanmean")
    if input.spec.dtype.is_complex:
        raise RuntimeError("nansum on CPU does not support complex inputs")
    if input.spec.dtype in FLOAT8:  # it has no common dtype with the counts
        return nanmean(input.to(float32), dim, keepdim).to(dtype or input.spec.dtype)
    return NANSUM.direct(input, dim, keepdim, dtype) / COUNT_NUMBERS.direct(input, dim, keepdim)


# ---- Extrema ---------------------------------------------------------------------------------------------------------


def _define_extremum(name: str, everything: Reduce, with_index: Reduce, elementwise: str) -> None:
    Result = return_type(name, ("values", "indices"))

    @public("function method", name=name, out=True, words={})
    def function(input: Tensor, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
        """The {name}imum of all elements; with `dim` the values and indices along it; with a tensor,
        elementwise. NaN wins; of equal elements the first one's index is given.
        """
        other = dim if isinstance(dim, Tensor) else other
        if other is not None:
            return getattr(input, elementwise)(other)
        if dim is None:
            return everything.direct(input)
        return Result(with_index.direct(input, dim, keepdim))


_define_extremum("max", MAX_OF_ALL, MAX, "maximum")
_define_extremum("min", MIN_OF_ALL, MIN, "minimum")


def _define_over_dims(op: Reduce) -> None:
    @public("function method", name=op.name, out="exact", words={"which": op.name[1:]})
    def function(input: Tensor, dim: Any = (), keepdim: bool = False) -> Tensor:
        """Return the {which}imum over `dim` (an int, several, or all). NaN wins."""
        return op.direct(input, dim, keepdim)


_define_over_dims(AMAX)
_define_over_dims(AMIN)


def _define_arg(op: Reduce) -> None:
    @public("function method", name=op.name, out=True, words={"which": op.name[3:]})
    def function(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
        """The index of the {which}imum: of all elements as one row, or along `dim`. The first of equals."""
        return op.direct(input, dim, keepdim)


_define_arg(ARGMAX)
_define_arg(ARGMIN)

_AMINMAX = return_type("aminmax", ("min", "max"))


@public("function method", out="exact")
def aminmax(input: Tensor, *, dim: int | None = None, keepdim: bool = False) -> Any:
    """Return the minimum and the maximum of all elements or along `dim`, as a named pair."""
    check_tensor(input, "aminmax")
    return _AMINMAX(AMINMAX.direct(input, dim, keepdim))


# ---- Flags and counts --------------------------------------------------------------------------------------------------


def _define_flag(op: Reduce) -> None:
    @public("function method", name=op.name, out="flags", words={})
    def function(input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
        """Whether {name} elements over `dim` (an int, several, or all) are nonzero."""
        check_tensor(input, op.name)
        if isinstance(dim, (tuple, list)) and not dim:  # an empty list names no dims
            return op(input, dims=(), keepdim=keepdim)
        return op.direct(input, dim, keepdim)


_define_flag(ANY)
_define_flag(ALL)


@public("function method")
def count_nonzero(input: Tensor, dim: Any = None) -> Tensor:
    """How many elements over `dim` (an int, several, or all) are not zero."""
    check_tensor(input, "count_nonzero")
    return COUNT.direct(input, dim)
