"""Sums, extrema and norms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.dtype import bool_, int32, int64
from .._builder import Builder, element_type
from .arithmetic import _binary
from .base import dims_of, positive, translates


def _reduction(kind: str) -> Callable[..., Any]:
    def translation(
        b: Builder, input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
    ) -> str:
        axes = "" if dim is None or dim == () or dim == [] else b.axes(*dims_of(dim))
        return b.op(kind, b.tensor(input, b.result().dtype), axes, keepdims=int(keepdim))

    return translation


for _kind, _names in {"ReduceSum": "sum", "ReduceMean": "mean", "ReduceMax": "amax", "ReduceMin": "amin",
                      "ReduceLogSumExp": "logsumexp"}.items():  # fmt: skip
    translates(_names)(_reduction(_kind))


@translates("prod")
def prod(b: Builder, input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> str:
    return _reduction("ReduceProd")(b, input, dim, keepdim)


def _extremum(kind: str, argument: str, pointwise: str) -> Callable[..., Any]:
    def translation(b: Builder, input: Any, dim: Any = None, keepdim: bool = False) -> Any:
        if b.is_tensor(dim):
            return _binary(pointwise)(b, input, dim)
        if dim is None:
            return b.op(kind, b.tensor(input), keepdims=0)
        values = b.op(kind, b.tensor(input), b.axes(dim), keepdims=int(keepdim))
        return values, b.op(argument, b.tensor(input), axis=dim, keepdims=int(keepdim))

    return translation


translates("max")(_extremum("ReduceMax", "ArgMax", "Max"))
translates("min")(_extremum("ReduceMin", "ArgMin", "Min"))


def _argument(kind: str) -> Callable[..., Any]:
    def translation(b: Builder, input: Any, dim: Any = None, keepdim: bool = False) -> str:
        if dim is None:
            return b.op(kind, b.reshape(b.tensor(input), [-1]), axis=0, keepdims=0)
        return b.op(kind, b.tensor(input), axis=dim, keepdims=int(keepdim))

    return translation


translates("argmax")(_argument("ArgMax"))
translates("argmin")(_argument("ArgMin"))


@translates("var", "std")
def var(
    b: Builder,
    input: Any,
    dim: Any = None,
    unbiased: Any = True,
    keepdim: bool = False,
    *,
    correction: Any = None,
) -> str:
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    return _spread(b, input, dim, unbiased, keepdim, correction, b.result().dtype, b.called() == "std")


def _spread(
    b: Builder, input: Any, dim: Any, unbiased: Any, keepdim: bool, correction: Any, dtype: Any, rooted: bool
) -> str:
    """The variance, or its root."""
    less = (1 if unbiased else 0) if correction is None else correction
    value, known = b.tensor(input), b.meta(input)
    dims = list(range(known.dim())) if dim is None else [positive(each, known.dim()) for each in dims_of(dim)]
    axes = b.axes(*dims)
    away = b.op("Sub", value, b.op("ReduceMean", value, axes, keepdims=1))
    total = b.op("ReduceSum", b.op("Mul", away, away), axes, keepdims=int(keepdim))
    count = b.tensor(1, dtype)
    for each in dims:
        count = b.op("Mul", count, b.cast(b.tensor(b.size_of(input, each), int64), dtype))
    found = b.op("Div", total, b.op("Sub", count, b.constant(less, dtype)))
    return b.op("Sqrt", found) if rooted else found


@translates("norm", "vector_norm")
def norm(b: Builder, input: Any, p: Any = 2, dim: Any = None, keepdim: bool = False, **_: Any) -> str:
    kinds = {1: "ReduceL1", 2: "ReduceL2", None: "ReduceL2", "fro": "ReduceL2"}
    if p not in kinds:
        raise NotImplementedError(f"a norm with p={p}")
    return b.op(
        kinds[p], b.tensor(input), "" if dim is None else b.axes(*dims_of(dim)), keepdims=int(keepdim)
    )


@translates("normalize")
def normalize(
    b: Builder, input: Any, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Any = None
) -> str:
    size = norm(b, input, int(p), dim, True)
    return b.op("Div", b.tensor(input), b.op("Max", size, b.constant(eps, b.result().dtype)))


@translates("any", "all")
def any_all(b: Builder, input: Any, dim: Any = None, keepdim: bool = False) -> str:
    name = b.called()
    counted = b.op("Cast", b.tensor(input, bool_), to=element_type(int32))
    kind = "ReduceMax" if name == "any" else "ReduceMin"
    found = b.op(kind, counted, "" if dim is None else b.axes(*dims_of(dim)), keepdims=int(keepdim))
    return b.cast(found, bool_)


@translates("count_nonzero")
def count_nonzero(b: Builder, input: Any, dim: Any = None) -> str:
    axes = "" if dim is None else b.axes(*dims_of(dim))
    return b.op("ReduceSum", b.cast(b.tensor(input, bool_), int64), axes, keepdims=0)


@translates("var_mean", "std_mean")
def var_mean(
    b: Builder,
    input: Any,
    dim: Any = None,
    unbiased: Any = True,
    keepdim: bool = False,
    *,
    correction: Any = None,
) -> tuple:
    spread = _spread(
        b, input, dim, unbiased, keepdim, correction, b.result()[0].dtype, b.called() == "std_mean"
    )
    axes = "" if dim is None else b.axes(*dims_of(dim))
    return spread, b.op("ReduceMean", b.tensor(input), axes, keepdims=int(keepdim))


@translates("aminmax")
def aminmax(b: Builder, input: Any, *, dim: Any = None, keepdim: bool = False) -> tuple:
    axes = "" if dim is None else b.axes(dim)
    return tuple(
        b.op(kind, b.tensor(input), axes, keepdims=int(keepdim)) for kind in ("ReduceMin", "ReduceMax")
    )
