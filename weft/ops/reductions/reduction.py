"""Reductions: sums, products, extrema, moments, any and all, softmax."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ...core import view_rules
from ...core.arguments import boolean, integers, number
from ...core.derivative import nondifferentiable
from ...core.dtype import (
    FLOAT,
    FLOAT8,
    LEGACY_NAMES,
    DType,
    bool_,
    complex128,
    compute_type,
    float32,
    float64,
    get_default_dtype,
    int64,
    uint8,
)
from ...core.public import public
from ...core.return_types import return_type
from ...core.spec import Spec
from ...core.tensor import Tensor
from ...engine.complexes import Complex
from ...engine.convert import convert
from ...engine.expr import Expr, cast, isnan, select
from ...engine.monoid import index
from ...engine.scalar import exp, isinf, log, sqrt, where
from ...families.custom_vjp import custom_vjp
from ...families.elements import as_type
from ...families.kernel_graph import GraphBuilder, KernelGraph, Value
from ...families.map import COPY, Map, to_float
from ...families.map import Types as MapTypes
from ...families.monoid_op import Types
from ...families.reduce import Reduce, dims_of, single_dim
from ..assembly.joining import cat
from ..creation.creation import ones_like
from ..tensor.rules import by_dims, kept, placed, restored, same, shared, sum_of
from ..views.views import EXPAND

# ---- Checks -----------------------------------------------------------------------------------------------------


def check_tensor(input: Any, name: str) -> None:
    if not isinstance(input, Tensor):
        raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")


def _check_not_empty(spec: Spec, dims: Sequence[int], name: str, whole: bool) -> None:
    """Extrema have no identity: there must be something to choose from."""
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
    """Raises what extrema raise."""
    _check_not_empty(spec, dims, name, whole)
    if spec.dtype.is_complex:
        with_position = name in ("max", "min") and not whole
        kind = RuntimeError if with_position else NotImplementedError
        raise kind(f"{name}(): complex numbers have no order (got {spec.dtype})")


def _check_position(name: str, spec: Spec, dims: Sequence[int], whole: bool) -> None:
    """Raises what positions of extrema raise."""
    if whole and spec.numel == 0:
        raise IndexError(
            f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim "
            "with the 'dim' argument."
        )
    _check_order(name, spec, dims, whole=False)


# ---- Types ---------------------------------------------------------------------------------------------------------


def _sum_types(dtype: DType, wanted: DType | None) -> Types:
    found = wanted or (int64 if dtype.category < 2 else dtype)
    return Types(found, (found,))


def _same_types(dtype: DType, wanted: DType | None) -> Types:
    return Types(dtype, (dtype,))


def _position_types(dtype: DType, wanted: DType | None) -> Types:
    if dtype is bool_ or dtype.is_complex:
        kind = "bool" if dtype is bool_ else "complex"
        raise RuntimeError(f"argmax() and argmin() do not support {kind} input")
    return _index_types(dtype, wanted)


def _index_types(dtype: DType, wanted: DType | None) -> Types:
    return Types(dtype, (int64,))


def _value_and_index_types(dtype: DType, wanted: DType | None) -> Types:
    return Types(dtype, (dtype, int64))


def _flag_types(dtype: DType, wanted: DType | None) -> Types:
    return Types(dtype, (uint8 if dtype is uint8 else bool_,))


def _moment_types(dtype: DType, wanted: DType | None) -> Types:
    """Moments are computed in float64 and rounded once."""
    return Types(complex128 if dtype.is_complex else float64, (wanted or dtype.to_real(),))


def _mean64_types(dtype: DType, wanted: DType | None) -> Types:
    found = complex128 if dtype.is_complex else float64
    return Types(found, (found,))


# ---- Elements ------------------------------------------------------------------------------------------------------


def lowest(dtype: DType) -> Any:
    """The identity of max."""
    if dtype.is_floating_point:
        return -math.inf
    return -(2 ** (8 * dtype.itemsize - 1)) if dtype.kind == "i" else 0


def highest(dtype: DType) -> Any:
    """The identity of min."""
    if dtype.is_floating_point:
        return math.inf
    if dtype is bool_:
        return 1
    return 2 ** (8 * dtype.itemsize - (dtype.kind == "i")) - 1


def _wins(a: Expr, b: Expr, largest: bool) -> Expr:
    """Whether `a` is beyond `b`; NaN is beyond everything."""
    beyond = b < a if largest else a < b
    return beyond | isnan(a) if a.dtype.is_floating_point else beyond


def _extremum(largest: bool):
    return lambda a, b: (select(_wins(a[0], b[0], largest), a[0], b[0]),)


def _arg_extremum(largest: bool):
    """Of (value, position) pairs the better one; of equals the first."""

    def combine(a, b):
        better = _wins(a[0], b[0], largest)
        worse = _wins(b[0], a[0], largest)
        take = (better & ~worse) | (~(better ^ worse) & (a[1] < b[1]))
        return select(take, a[0], b[0]), select(take, a[1], b[1])

    return combine


def _plus(a, b):
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


def _squared_distance(a, mean):
    if isinstance(a, Complex):
        real, imag = a.real - mean.real, a.imag - mean.imag
        return (real * real + imag * imag,)
    return ((a - mean) * (a - mean),)


def _rounded_once(common: DType) -> MapTypes:
    return MapTypes(compute_type(common), common)


def _finite_identity(value):
    return lambda compute: ((value, compute),)


# ---- Derivatives -----------------------------------------------------------------------------------------------------


def _sum_rule(ct, out, a, dims, keepdim, *, specs):
    return EXPAND(kept(ct, dims, keepdim), specs[0].shape)  # as `restored`, without the checks of `expand`


def _nansum_rule(ct, out, a, dims, keepdim):
    return kept(ct, dims, keepdim).where(~a.isnan(), 0)


def _mean_rule(ct, out, a, dims, keepdim, count, *, specs):
    return (
        restored(ct, specs[0], dims, keepdim) / count
    )  # in this order, so that the gradient may be written into


def _prod_rule(ct, out, a, dims, keepdim):
    """Of an element, the product of all others: by division, or, if there are zeros, from both sides."""
    if not a.is_meta and not bool((a == 0).any()):
        return kept(ct, dims, keepdim) * (kept(out, dims, keepdim) / a).conj()
    if dims is None:
        return ct * _products_of_others(a.reshape(-1), 0).conj().reshape(a.shape)
    return kept(ct, dims, keepdim) * _products_of_others(a, dims[0]).conj() if dims else ct.clone()


def _products_of_others(a: Tensor, dim: int) -> Tensor:
    """Of each element, the product of the others along `dim`."""
    n = a.shape[dim]
    ones = ones_like(a.narrow(dim, 0, min(n, 1)))
    before = cat((ones, a.narrow(dim, 0, max(n - 1, 0))), dim).cumprod(dim)
    after = cat((ones, a.narrow(dim, min(n, 1), max(n - 1, 0)).flip(dim)), dim).cumprod(dim).flip(dim)
    return before * after


def _var_rule(ct, out, a, dims, keepdim, divisor):
    if not divisor:  # as PyTorch has it: the variance is 0 / 0, or infinite whatever the elements are
        return kept(ct, dims, keepdim) * (a * 0 + math.inf).where(a != a.mean(dims, keepdim=True), math.nan)
    return 2 / divisor * kept(ct, dims, keepdim) * (a - a.mean(dims, keepdim=True))


def _std_rule(ct, out, a, dims, keepdim, divisor):
    return _var_rule((ct / (2 * out)).masked_fill(out == 0, 0), None, a, dims, keepdim, divisor)


def _extremum_rule(ct, out, a, dims, keepdim):
    """Equal elements share."""
    return shared(kept(ct, dims, keepdim), a == kept(out, dims, keepdim), dims)


def _extremum_of_all_rule(ct, out, a, dims, keepdim):
    return shared(ct, (a == out) | (a.isnan() & out.isnan()), None)


def _selected_rule(ct, out, a, dims, keepdim, *, specs):
    ct, indices = (kept(each, dims, keepdim) for each in (ct[0], out[1]))
    return placed(ct, indices, specs[0], dims[0] if dims else 0)


# fmt: off
SUM      = Reduce("sum",      _sum_types,  _finite_identity(0), lambda a: (a,), _plus, cascade=True, derivative=_sum_rule)
NANSUM   = Reduce("nansum",   _sum_types,  _finite_identity(0), lambda a: (a,), _plus, cascade=True, clean=_nan_to_zero, derivative=_nansum_rule)
PROD     = Reduce("prod",     _sum_types,  _finite_identity(1), lambda a: (a,), lambda a, b: (a[0] * b[0],), one_dim=True, derivative=_prod_rule)
MEAN     = Reduce("mean",     _sum_types,  _finite_identity(0), lambda a: (a,), _plus, lambda s, n: (_divided(s[0], n),), cascade=True, counted=True, derivative=_mean_rule)
MEAN64   = Reduce("mean",     _mean64_types, _finite_identity(0), lambda a: (a,), _plus, lambda s, n: (_divided(s[0], n),), cascade=True, counted=True, derivative=_mean_rule)
VAR      = Reduce("var",      _moment_types, lambda c: ((0, float64),), _squared_distance, _plus, lambda s, n: (s[0] / n,), cascade=True)
STD      = Reduce("std",      _moment_types, lambda c: ((0, float64),), _squared_distance, _plus, lambda s, n: (sqrt(s[0] / n),), cascade=True)
AMAX     = Reduce("amax",     _same_types, lambda c: (lowest(c),),  lambda a: (a,), _extremum(True), derivative=_extremum_rule)
AMIN     = Reduce("amin",     _same_types, lambda c: (highest(c),), lambda a: (a,), _extremum(False), derivative=_extremum_rule)
MAX_OF_ALL = Reduce("max",    _same_types, AMAX.identity, AMAX.to_state, AMAX.combine, derivative=_extremum_of_all_rule)
MIN_OF_ALL = Reduce("min",    _same_types, AMIN.identity, AMIN.to_state, AMIN.combine, derivative=_extremum_of_all_rule)
ARGMAX   = Reduce("argmax",   _position_types, lambda c: (lowest(c), (2**63 - 1, int64)), lambda a: (a, index()), _arg_extremum(True), lambda s: (s[1],), ordered=True, derivative=nondifferentiable)
ARGMIN   = Reduce("argmin",   _position_types, lambda c: (highest(c), (2**63 - 1, int64)), lambda a: (a, index()), _arg_extremum(False), lambda s: (s[1],), ordered=True, derivative=nondifferentiable)
MAX      = Reduce("max",      _value_and_index_types, lambda c: (lowest(c), (2**63 - 1, int64)), lambda a: (a, index()), _arg_extremum(True), ordered=True, derivative=_selected_rule)
MIN      = Reduce("min",      _value_and_index_types, lambda c: (highest(c), (2**63 - 1, int64)), lambda a: (a, index()), _arg_extremum(False), ordered=True, derivative=_selected_rule)
ANY      = Reduce("any",      _flag_types, lambda c: ((0, uint8),), lambda a: (_flag(a),), lambda a, b: (a[0] | b[0],), _flags_back, derivative=nondifferentiable)
ALL      = Reduce("all",      _flag_types, lambda c: ((1, uint8),), lambda a: (_flag(a),), lambda a, b: (a[0] & b[0],), _flags_back, derivative=nondifferentiable)
COUNT    = Reduce("count_nonzero", _index_types, lambda c: ((0, int64),), lambda a: (cast(as_type(a, bool_), int64),), _plus, derivative=nondifferentiable)
COUNT_NUMBERS = Reduce("nanmean", _index_types, lambda c: ((0, int64),), lambda a: (cast(~_is_nan(a), int64),), _plus, derivative=nondifferentiable)
SUM_EXP  = Reduce("sum_exp",  lambda d, w: Types(d, (compute_type(d),)), _finite_identity(0), lambda a, m: (exp(a - m),), _plus, cascade=True)
SUM_PRODUCTS = Reduce("sum_products", SUM_EXP.types, _finite_identity(0), lambda a, b: (a * b,), _plus, cascade=True,
                      derivative=(lambda ct, out, a, b, dims, keepdim: kept(ct, dims, keepdim) * b,
                                  lambda ct, out, a, b, dims, keepdim: kept(ct, dims, keepdim) * a))

# Parts of the functions below, which are steps of their own.
SOFTMAX     = Map("softmax",     _rounded_once, lambda a, m, s: exp(a - m) / s, deciding=1, contiguous=True)
LOG_SOFTMAX = Map("log_softmax", _rounded_once, lambda a, m, log_sum: (a - m) - log_sum, deciding=1, contiguous=True)
LOG         = Map("log",         to_float, log)
# Parts of their derivatives.
SOFTMAX_BACKWARD = Map("softmax_backward", _rounded_once, lambda ct, out, total: (ct - total) * out, deciding=1,
                       derivative=(lambda ct2, _, ct, out, total: ct2 * out,
                                   lambda ct2, _, ct, out, total: ct2 * (ct - total),
                                   lambda ct2, _, ct, out, total: -ct2 * out))
LOG_SOFTMAX_BACKWARD = Map("log_softmax_backward", _rounded_once, lambda ct, out, total: ct - exp(out) * total, deciding=1,
                           derivative=(same,
                                       lambda ct2, _, ct, out, total: -ct2 * out.exp() * total,
                                       lambda ct2, _, ct, out, total: -ct2 * out.exp()))
# fmt: on
for _op in (AMAX, AMIN, MAX_OF_ALL, MIN_OF_ALL, MAX, MIN):
    _op.check = _check_order
ARGMAX.check = ARGMIN.check = _check_position
for _op in (MAX, MIN, ARGMAX, ARGMIN):
    _op.one_dim = True
for _op, _name in ((SUM, "Sum"), (MEAN, "Mean"), (PROD, "Prod")):
    _op.node_name = by_dims(_name)
MAX_OF_ALL.node_name, MIN_OF_ALL.node_name = "MaxBackward1", "MinBackward1"


def _divided(value, n):
    return Complex(value.real / n, value.imag / n) if isinstance(value, Complex) else value / n


def _is_nan(a):
    return isnan(a.real) | isnan(a.imag) if isinstance(a, Complex) else isnan(a)


# ---- Public functions ------------------------------------------------------------------------------------------------


def _count(input: Tensor, dims: Sequence[int]) -> int:
    return math.prod(input.spec.shape[dim] for dim in dims)


@public("function method", out="decides", checks=False)
def sum(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: DType | None = None) -> Tensor:
    """The sum over `dim` (an int, several, or all). Integers and bools add up in int64.

    >>> import weft as torch
    >>> torch.tensor([[1.0, 2.0], [3.0, 4.0]]).sum(0)
    tensor([4., 6.])
    """
    check_tensor(input, "sum")
    return SUM.direct(input, dim, keepdim, dtype)


@public("method")
def sum_to_size(self: Tensor, *size: Any) -> Tensor:
    """The sum over the dims that broadcasting from `size` would have repeated: the derivative of `expand`.

    Raises: RuntimeError if a tensor of `size` does not broadcast to this shape.
    """
    wanted = integers(size, "sum_to_size", "size")
    own = self.spec.shape
    missing = len(own) - len(wanted)
    if missing < 0 or any(w not in (1, o) for w, o in zip(wanted, own[missing:])):
        raise RuntimeError(f"size {{{list(wanted)}}} is not expandable to size {{{list(own)}}}.")
    repeated = [d for d, w in enumerate(wanted, missing) if w == 1 and own[d] != 1]
    if wanted and not missing and not repeated:
        return self
    if not wanted:
        return SUM.direct(self)
    kept = SUM(self, dims=(*range(missing), *repeated), keepdim=True)
    return kept.view(wanted) if missing else kept


@public("function method", out="decides")
def nansum(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: DType | None = None) -> Tensor:
    """The sum over `dim`, NaN counting as zero."""
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
    found = dtype or input.spec.dtype
    if found.category < 2:
        what = "optional dtype" if dtype is not None else "dtype"
        raise RuntimeError(
            f"{name}(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. "
            f"Got: {LEGACY_NAMES[found]} ({what}; convert with .float() first)"
        )
    return found


@public("function method", out=True)
def mean(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: DType | None = None) -> Tensor:
    """The mean over `dim` (an int, several, or all) of a floating point or complex tensor.

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

    def function(input: Tensor, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
        other = dim if isinstance(dim, Tensor) else other
        if other is not None:
            return getattr(input, elementwise)(other)
        if dim is None:
            return everything.direct(input)
        return Result(with_index.direct(input, dim, keepdim))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""The {name}imum of all elements; with `dim` the values and indices along it; with a tensor,
    elementwise. NaN wins; of equal elements the first one's index is given.
    """
    public("function method", out=True)(function)


_define_extremum("max", MAX_OF_ALL, MAX, "maximum")
_define_extremum("min", MIN_OF_ALL, MIN, "minimum")


def _define_over_dims(op: Reduce) -> None:
    def function(input: Tensor, dim: Any = (), keepdim: bool = False) -> Tensor:
        return op.direct(input, dim, keepdim)

    function.__name__ = function.__qualname__ = op.name
    function.__doc__ = f"The {op.name[1:]}imum over `dim` (an int, several, or all). NaN wins."
    public("function method", out="exact")(function)


_define_over_dims(AMAX)
_define_over_dims(AMIN)


def _define_arg(op: Reduce) -> None:
    def function(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
        return op.direct(input, dim, keepdim)

    function.__name__ = function.__qualname__ = op.name
    function.__doc__ = f"""The index of the {op.name[3:]}imum: of all elements as one row, or along `dim`. The first of equals."""
    public("function method", out=True)(function)


_define_arg(ARGMAX)
_define_arg(ARGMIN)

_AMINMAX = return_type("aminmax", ("min", "max"))


@public("function method", out="exact")
def aminmax(input: Tensor, *, dim: int | None = None, keepdim: bool = False) -> Any:
    """The minimum and the maximum of all elements or along `dim`, as a named pair."""
    check_tensor(input, "aminmax")
    ndim = len(input.spec.shape)
    dims = dims_of(None, ndim, "aminmax") if dim is None else single_dim(dim, ndim, "aminmax")
    _check_order("aminmax", input.spec, dims, whole=dim is None)
    return _AMINMAX(_aminmax(input, dims, keepdim))


def _aminmax_rule(ct, out, input, dims, keepdim):
    pairs = zip(ct, out, strict=True)
    return sum_of([_extremum_rule(c, o, input, dims, keepdim) for c, o in pairs if c is not None])


@custom_vjp(_aminmax_rule)
def _aminmax(input: Tensor, dims: tuple[int, ...], keepdim: bool) -> tuple[Tensor, Tensor]:
    return AMIN(input, dims=dims, keepdim=keepdim), AMAX(input, dims=dims, keepdim=keepdim)


# ---- Flags and counts --------------------------------------------------------------------------------------------------


def _define_flag(op: Reduce) -> None:
    def function(input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
        check_tensor(input, op.name)
        if isinstance(dim, (tuple, list)) and not dim:  # no dims at all
            return op(input, dims=(), keepdim=keepdim)
        return op.direct(input, dim, keepdim)

    function.__name__ = function.__qualname__ = op.name
    function.__doc__ = f"Whether {op.name} elements over `dim` (an int, several, or all) are nonzero."
    public("function method", out=True)(function)


_define_flag(ANY)
_define_flag(ALL)


@public("function method")
def count_nonzero(input: Tensor, dim: Any = None) -> Tensor:
    """How many elements over `dim` (an int, several, or all) are not zero."""
    check_tensor(input, "count_nonzero")
    return COUNT.direct(input, dim)


# ---- Moments -------------------------------------------------------------------------------------------------------------


def _moment_arguments(
    input: Tensor, args: tuple, kwargs: dict, name: str
) -> tuple[tuple[int, ...], float, bool]:
    """dims, correction and keepdim from (unbiased), (dim, unbiased, keepdim) or (dim, *, correction, keepdim)."""
    check_tensor(input, name)
    if input.spec.dtype.category < 2:
        raise RuntimeError(f"{name}: only support floating point and complex dtypes (got {input.spec.dtype})")
    names = ("unbiased",) if len(args) == 1 and isinstance(args[0], bool) else ("dim", "unbiased", "keepdim")
    if len(args) > len(names):
        raise TypeError(
            f"{name}() takes at most {len(names) + 1} positional arguments ({len(args) + 1} given)"
        )
    given = dict(zip(names, args)) | kwargs
    unknown = set(given) - {"dim", "unbiased", "keepdim", "correction"}
    if unknown:
        raise TypeError(f"{name}() got an unexpected keyword argument '{sorted(unknown)[0]}'")
    keepdim = boolean(given.get("keepdim", False), name, "keepdim")
    unbiased = boolean(given.get("unbiased", True), name, "unbiased")
    correction = given.get("correction")
    correction = int(unbiased) if correction is None else number(correction, name, "correction")
    return dims_of(given.get("dim"), len(input.spec.shape), name), correction, keepdim


def _build_moment(graph: Any, op: Reduce, dims: tuple[int, ...], correction: float, keepdim: bool) -> Any:
    """A moment about the mean, in two passes of float64."""
    (x,) = graph.inputs
    count = float(math.prod(x.spec.shape[dim] for dim in dims))
    (center,) = graph.reduce(MEAN64, x, dims=dims, numbers=(count,))
    divisor = float(max(0, count - correction))
    return graph.reduce(op, x, center, dims=dims, numbers=(divisor,), keepdim=keepdim)


def _define_moment(op: Reduce, spread_rule: Callable) -> None:
    def spread_of(ct, out, input, dims, correction, keepdim):
        divisor = float(max(0, _count(input, dims) - correction))
        return spread_rule(ct, out, input, dims, keepdim, divisor)

    # A rule that mentions the result saves it, and then a write to the result is an error in backward.
    rules: dict[str, Callable] = {
        "var": lambda ct, out, input, *static: spread_of(ct, None, input, *static),
        "std": lambda ct, out, input, *static: spread_of(ct, out, input, *static),
    }
    rule = rules[op.name]

    spread = KernelGraph(
        op.name, 1, lambda graph, *static: _build_moment(graph, op, *static), derivative=rule
    )

    def function(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return spread((input,), _moment_arguments(input, args, kwargs, op.name))

    words = {"var": "variance", "std": "standard deviation"}[op.name]
    function.__name__ = function.__qualname__ = op.name
    function.__doc__ = f"""The {words} over `dim` (an int, several, or all), divided by n - correction (1 unless given).

    Forms: {op.name}(unbiased), {op.name}(dim, unbiased, keepdim), {op.name}(dim, *, correction, keepdim).
    """
    public("function method", out=True)(function)

    def with_mean(input: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        dims, correction, keepdim = _moment_arguments(input, args, kwargs, f"{op.name}_mean")
        return both(input, dims, correction, keepdim)

    def both_rule(ct, out, input, dims, correction, keepdim):
        found = []
        if ct[0] is not None:
            found.append(spread_of(ct[0], out[0], input, dims, correction, keepdim))
        if ct[1] is not None:
            found.append(restored(ct[1] / _count(input, dims), input.spec, dims, keepdim))
        return sum_of(found)

    @custom_vjp(both_rule, results=(0,) if op is STD else ())
    def both(input: Tensor, dims: tuple[int, ...], correction: float, keepdim: bool) -> tuple[Tensor, Tensor]:
        mean = MEAN(input, dims=dims, keepdim=keepdim, params=(float(_count(input, dims)),))
        return spread((input,), (dims, correction, keepdim)), mean

    both.name = f"{op.name}_mean"
    with_mean.__name__ = with_mean.__qualname__ = f"{op.name}_mean"
    with_mean.__doc__ = f"The {words} over `dim` and the mean."
    public("function", out=True)(with_mean)


_define_moment(VAR, _var_rule)
_define_moment(STD, _std_rule)


# ---- Exponentials --------------------------------------------------------------------------------------------------------


def _stable_maximum(input: Tensor, dims: tuple[int, ...]) -> Tensor:
    """The maximum over `dims`, kept; 0 where it is infinite, so that subtracting it is safe."""
    found = AMAX(input, dims=dims, keepdim=True)
    return found.masked_fill(found.abs() == math.inf, 0)


def _as_float(input: Tensor, dtype: DType | None) -> Tensor:
    wanted = dtype or (input.spec.dtype if input.spec.dtype.category >= 2 else get_default_dtype())
    return input.to(wanted)


@public("function method", "special.logsumexp", out=True)
def logsumexp(input: Tensor, dim: Any, keepdim: bool = False) -> Tensor:
    """log(sum(exp(input))) over `dim`, without overflow.

    Source: the maximum is subtracted first, Blanchard, Higham, Higham 2021, "Accurately computing the log-sum-exp".
    """
    check_tensor(input, "logsumexp")
    spec = input.spec
    dims = dims_of(dim, len(spec.shape), "logsumexp")
    if spec.dtype.is_complex or not spec.numel:
        return _logsumexp(input, dims, keepdim)
    return _LOGSUMEXP((_as_float(input, None),), (dims, bool(keepdim)))


def _logsumexp_rule(ct, out, input, dims, keepdim):
    return kept(ct, dims, keepdim) * (input - kept(out, dims, keepdim)).exp().conj()


_FINITE = Map("finite", to_float, lambda a: where(isinf(a), 0, a))
_LOG_ABOVE = Map("log_above", to_float, lambda total, center: log(total) + center)


def _build_logsumexp(graph: GraphBuilder, dims: tuple[int, ...], keepdim: bool) -> list[Value]:
    (x,) = graph.inputs
    (highest,) = graph.reduce(AMAX, x, dims=dims)
    center = graph.map(_FINITE, highest)  # so that subtracting it is safe
    (total,) = graph.reduce(SUM_EXP, x, center, dims=dims)
    found = graph.map(_LOG_ABOVE, total, graph.to(center, total.spec.dtype))
    found = graph.to(found, x.spec.dtype)
    return [found if keepdim else graph.view(view_rules.squeeze, found, dims)]


_LOGSUMEXP = KernelGraph("logsumexp", 1, _build_logsumexp, derivative=_logsumexp_rule)


@custom_vjp(_logsumexp_rule)
def _logsumexp(input: Tensor, dims: tuple[int, ...], keepdim: bool) -> Tensor:
    """Of complex numbers, or of none."""
    if not input.spec.dtype.is_complex:
        return LOG(SUM(_as_float(input, None), dims=dims, keepdim=keepdim))
    center = _stable_maximum(input.real, dims).to(input.spec.dtype)
    total = SUM_EXP(input, center, dims=dims, keepdim=True)
    found = (LOG(total) + center.to(total.spec.dtype)).to(input.spec.dtype)
    return found if keepdim else found.squeeze(dims)


def _softmax_parts(graph: Any, op: Map, x: Any, dim: int) -> tuple[Any, Any]:
    """The maximum along `dim`, and the sum of the exponentials of what is left above it."""
    dims = single_dim(dim, len(x.spec.shape), op.name)
    if x.spec.dtype.category != FLOAT:
        raise NotImplementedError(
            f"\"{op.name}_lastdim_kernel_impl\" not implemented for '{LEGACY_NAMES[x.spec.dtype]}'"
        )
    (center,) = graph.reduce(AMAX, x, dims=dims)
    (total,) = graph.reduce(SUM_EXP, x, center, dims=dims)
    return center, total


def _of_none(graph: Any, x: Any, dim: int) -> Any:
    """The result for an input without elements, which may have any dtype; None for other inputs."""
    if x.spec.numel:
        return None
    single_dim(dim, len(x.spec.shape), "softmax")
    return graph.map(COPY, x)


def build_softmax(graph: Any, x: Any, dim: int) -> Any:
    if (nothing := _of_none(graph, x, dim)) is not None:
        return nothing
    return graph.map(SOFTMAX, x, *_softmax_parts(graph, SOFTMAX, x, dim))


def build_log_softmax(graph: Any, x: Any, dim: int) -> Any:
    if (nothing := _of_none(graph, x, dim)) is not None:
        return nothing
    center, total = _softmax_parts(graph, LOG_SOFTMAX, x, dim)
    return graph.map(LOG_SOFTMAX, x, center, graph.map(LOG, total))


def _build_softmax_backward(graph: Any, dim: int) -> list:
    ct, out = graph.inputs
    (total,) = graph.reduce(SUM_PRODUCTS, ct, out, dims=single_dim(dim, len(out.spec.shape), "softmax"))
    return [graph.map(SOFTMAX_BACKWARD, ct, out, total)]


def _build_log_softmax_backward(graph: Any, dim: int) -> list:
    ct, out = graph.inputs
    (total,) = graph.reduce(SUM, ct, dims=single_dim(dim, len(out.spec.shape), "log_softmax"))
    return [graph.map(LOG_SOFTMAX_BACKWARD, ct, out, total)]


def _softmax_graph(name: str, build: Callable, build_backward: Callable) -> KernelGraph:
    """The graph of (input, dim)."""
    backward = KernelGraph(f"{name}_backward", 2, build_backward)
    return KernelGraph(
        name,
        1,
        lambda graph, dim: [build(graph, *graph.inputs, dim)],
        derivative=lambda ct, out, input, dim: backward((ct, out), (dim,)),
    )


_SOFTMAX = _softmax_graph("softmax", build_softmax, _build_softmax_backward)
_LOG_SOFTMAX = _softmax_graph("log_softmax", build_log_softmax, _build_log_softmax_backward)


@public("function method", "special.softmax")
def softmax(input: Tensor, dim: int, dtype: DType | None = None) -> Tensor:
    """exp(input) scaled to sum 1 along `dim`.

    >>> import weft as torch
    >>> torch.softmax(torch.zeros(4), 0)
    tensor([0.2500, 0.2500, 0.2500, 0.2500])
    """
    return _SOFTMAX((input if dtype is None else input.to(dtype),), (dim,))


@public("function method", "special.log_softmax")
def log_softmax(input: Tensor, dim: int, dtype: DType | None = None) -> Tensor:
    """log(softmax(input)) along `dim`, without overflow."""
    return _LOG_SOFTMAX((input if dtype is None else input.to(dtype),), (dim,))
