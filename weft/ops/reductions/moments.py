"""Computes the variance and the standard deviation, alone or with the mean."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

from ...core.arguments import boolean, number
from ...core.checking import check_tensor
from ...core.dtype import DType, complex128, float64
from ...core.nearest import unknown_keyword
from ...core.public import public
from ...core.spec import Spec
from ...core.symbols import as_float, per_plan
from ...core.tensor import Tensor
from ...core.warn import user_level
from ...engine.complexes import Complex
from ...engine.scalar import as_expr, eq, isfinite, sqrt, where
from ...families.custom_vjp import custom_vjp
from ...families.kernel_graph import KernelGraph
from ...families.monoid_op import Types
from ...families.reduce import Reduce, dims_of
from ..tensor.rules import broadcast_back, sum_of, with_reduced_dims
from .reduction import MEAN, count_elements, divided, finite_identity, mean_rule, plus


def _moment_types(dtype: DType, wanted: DType | None) -> Types:
    """Variances are computed in float64 and rounded once."""
    return Types(complex128 if dtype.is_complex else float64, (wanted or dtype.to_real(),))


def _both_types(dtype: DType, wanted: DType | None) -> Types:
    return Types(float64, (dtype, dtype))


def _mean64_types(dtype: DType, wanted: DType | None) -> Types:
    compute = complex128 if dtype.is_complex else float64
    return Types(compute, (compute,))


def _squared_distance(a, mean):
    if isinstance(a, Complex):
        real, imag = a.real - mean.real, a.imag - mean.imag
        return (real * real + imag * imag,)
    return ((a - mean) * (a - mean),)


def _var_rule(ct, out, a, dims, keepdim, divisor):
    # PyTorch does the same, because the variance is 0 / 0, or infinite for all elements that are not the mean.
    if not divisor:
        return with_reduced_dims(ct, dims, keepdim) * (a * 0 + math.inf).where(
            a != a.mean(dims, keepdim=True), math.nan
        )
    return 2 / divisor * with_reduced_dims(ct, dims, keepdim) * (a - a.mean(dims, keepdim=True))


def _std_rule(ct, out, a, dims, keepdim, divisor):
    return _var_rule((ct / (2 * out)).masked_fill(out == 0, 0), None, a, dims, keepdim, divisor)


# ---- One pass ------------------------------------------------------------------------------------------------------------
# A state is (how many elements, a finite number near them, the sum of their distances from it, the sum of the squares of these). The number
# is the first element, or the mean of two states that were combined. So no element takes a division, and the difference of the two sums loses
# at most log2(n) bits of 53, where sums of the elements and of their squares might lose all.


def _with_element(state: tuple, element: tuple) -> tuple:
    count, near, total, squares = state
    value = element[2]
    near = where(eq(count, 0), where(isfinite(value), value, as_expr(0.0, value)), near)
    distance = value - near
    return count + 1, near, total + distance, squares + distance * distance


def _mean(count: Any, total: Any) -> Any:
    return total / where(eq(count, 0), as_expr(1.0, count), count)


def _mean_and_squares(state: tuple) -> tuple:
    """The distance of the mean from the number near the elements, and the sum of the squared distances from the mean."""
    count, _, total, squares = state
    mean = _mean(count, total)
    return mean, squares - total * mean


def _together(a: tuple, b: tuple) -> tuple:
    """Of two states. Source: Chan, Golub and LeVeque 1983, "Algorithms for computing the sample variance"."""
    (mean_a, squares_a), (mean_b, squares_b) = _mean_and_squares(a), _mean_and_squares(b)
    count, between = a[0] + b[0], b[1] - a[1]
    apart = between + (mean_b - mean_a)
    squares = squares_a + squares_b + apart * apart * a[0] * _mean(count, b[0])
    total = a[2] + b[2] + between * b[0]
    near = a[1] + _mean(count, total)
    is_near = isfinite(near)
    return count, where(is_near, near, a[1]), where(is_near, as_expr(0.0, total), total), squares


def _one_pass(name: str, types: Callable, finish: Callable) -> Reduce:
    """The reduction whose results are `finish(mean, squared distances from it, divisor)`."""

    def finished(state: tuple, divisor: Any) -> tuple:
        count, near, total, _ = state
        _, squares = _mean_and_squares(state)
        return finish(near + total / count, squares, divisor)

    def one(a: Any) -> tuple:
        return as_expr(1.0, a), as_expr(0.0, a), a, a * a

    return Reduce(name, types, lambda compute: (0, 0, 0, 0), one, _together, finished, append=_with_element)


def _takes_one_pass(spec: Spec) -> bool:
    """Whether a pass over memory takes longer than the sums of a device, which are rounded to a narrower dtype."""
    return spec.device.backend.prefers_kernels and spec.dtype.is_floating_point and spec.dtype.itemsize <= 4


# fmt: off
ONE_PASS = {
    "var":      _one_pass("var",      _moment_types,      lambda mean, squares, n: (squares / n,)),
    "std":      _one_pass("std",      _moment_types,      lambda mean, squares, n: (sqrt(squares / n),)),
    "var_mean": _one_pass("var_mean", _both_types, lambda mean, squares, n: (squares / n, mean)),
    "std_mean": _one_pass("std_mean", _both_types, lambda mean, squares, n: (sqrt(squares / n), mean)),
}
MEAN64   = Reduce("mean",     _mean64_types, finite_identity(0), lambda a: (a,), plus, lambda s, n: (divided(s[0], n),), cascade=True, counted=True, derivative=mean_rule)
VAR      = Reduce("var",      _moment_types, lambda c: ((0, float64),), _squared_distance, plus, lambda s, n: (s[0] / n,), cascade=True)
STD      = Reduce("std",      _moment_types, lambda c: ((0, float64),), _squared_distance, plus, lambda s, n: (sqrt(s[0] / n),), cascade=True)
# fmt: on


_PARAMETERS = ("dim", "unbiased", "keepdim", "correction")


def _moment_arguments(
    input: Tensor, args: tuple, kwargs: dict, name: str
) -> tuple[tuple[int, ...], float, bool]:
    """Convert the arguments (unbiased), (dim, unbiased, keepdim) or (dim, *, correction, keepdim) to dims, correction, keepdim."""
    check_tensor(input, name)
    if input.spec.dtype.category < 2:
        raise RuntimeError(f"{name}: only support floating point and complex dtypes (got {input.spec.dtype})")
    names = ("unbiased",) if len(args) == 1 and isinstance(args[0], bool) else ("dim", "unbiased", "keepdim")
    if len(args) > len(names):
        raise TypeError(
            f"{name}() takes at most {len(names) + 1} positional arguments ({len(args) + 1} given)"
        )
    arguments = dict(zip(names, args)) | kwargs
    if unknown := arguments.keys() - _PARAMETERS:
        raise unknown_keyword(name, min(unknown), _PARAMETERS)
    keepdim = boolean(arguments.get("keepdim", False), name, "keepdim")
    unbiased = boolean(arguments.get("unbiased", True), name, "unbiased")
    correction = arguments.get("correction")
    correction = int(unbiased) if correction is None else number(correction, name, "correction")
    dims = dims_of(arguments.get("dim"), len(input.spec.shape), name)
    if (input.spec.numel and count_elements(input, dims)) <= correction:
        warnings.warn(
            f"{name}(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor (input numel "
            "divided by output numel).",
            stacklevel=user_level(),
        )
    return dims, correction, keepdim


def _build_moment(graph: Any, op: Reduce, dims: tuple[int, ...], correction: float, keepdim: bool) -> Any:
    """The variance or the standard deviation, in two passes of float64 (the mean, then the squared distances from it) or in one."""
    (x,) = graph.inputs
    count = math.prod(x.spec.shape[dim] for dim in dims)
    if _takes_one_pass(x.spec):
        numbers = (_divisor(count, correction),)
        return graph.reduce(ONE_PASS[op.name], x, dims=dims, numbers=numbers, keepdim=keepdim)
    (center,) = graph.reduce(MEAN64, x, dims=dims, numbers=(as_float(count),))
    return graph.reduce(op, x, center, dims=dims, numbers=(_divisor(count, correction),), keepdim=keepdim)


@per_plan
def _divisor(count: int, correction: float) -> float:
    return float(max(0, count - correction))


def _define_moment(op: Reduce, spread_rule: Callable) -> None:
    def spread_of(ct, out, input, dims, correction, keepdim):
        divisor = _divisor(count_elements(input, dims), correction)
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

    words = {"what": {"var": "variance", "std": "standard deviation"}[op.name]}

    @public("function method", name=op.name, out=True, words=words)
    def function(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """Return the {what} over `dim` (an int, several, or all), divided by n - correction (1 unless given).

        Forms: {name}(unbiased), {name}(dim, unbiased, keepdim), {name}(dim, *, correction, keepdim).
        """
        return spread((input,), _moment_arguments(input, args, kwargs, op.name))

    @public("function", name=f"{op.name}_mean", out=True, words=words)
    def with_mean(input: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """Return the {what} over `dim` and the mean."""
        dims, correction, keepdim = _moment_arguments(input, args, kwargs, f"{op.name}_mean")
        return both(input, dims, correction, keepdim)

    def both_rule(ct, out, input, dims, correction, keepdim):
        terms = []
        if ct[0] is not None:
            terms.append(spread_of(ct[0], out[0], input, dims, correction, keepdim))
        if ct[1] is not None:
            terms.append(broadcast_back(ct[1] / count_elements(input, dims), input.spec, dims, keepdim))
        return sum_of(terms)

    @custom_vjp(both_rule, results=(0,) if op is STD else (), name=f"{op.name}_mean")
    def both(input: Tensor, dims: tuple[int, ...], correction: float, keepdim: bool) -> tuple[Tensor, Tensor]:
        if _takes_one_pass(input.spec):
            divisor = _divisor(count_elements(input, dims), correction)
            return ONE_PASS[f"{op.name}_mean"](input, dims=dims, keepdim=keepdim, params=(divisor,))
        mean = MEAN(input, dims=dims, keepdim=keepdim, params=(float(count_elements(input, dims)),))
        return spread((input,), (dims, correction, keepdim)), mean


_define_moment(VAR, _var_rule)
_define_moment(STD, _std_rule)
