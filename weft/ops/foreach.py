"""`torch._foreach_*`: the same op on each tensor of a list, as optimizers call them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core.dtype import DType
from ..core.registry import add_function
from ..core.tensor import Tensor
from ..families.map import NUMBERS
from .creation.from_data import scalar_tensor
from .elementwise.powers import pow
from .reductions.norms import vector_norm
from .tensor.predicates import result_type

# fmt: off
_UNARY = (
    "abs", "acos", "asin", "atan", "ceil", "cos", "cosh", "erf", "erfc", "exp", "expm1", "floor", "frac", "lgamma", "log",
    "log10", "log1p", "log2", "neg", "reciprocal", "round", "rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt", "tan", "tanh",
    "trunc",
)
_SCALED = ("add", "sub")  # they take alpha=
_BINARY = ("mul", "div", "clamp_min", "clamp_max")
_EXTREMA = ("maximum", "minimum")
_TERNARY = ("addcmul", "addcdiv")
# fmt: on


def _check(name: str, tensors: Any) -> None:
    if not isinstance(tensors, (list, tuple)):
        raise TypeError(
            f"{name}() received an invalid combination of arguments - got ({type(tensors).__name__}), but expected a "
            "list of tensors"
        )
    if not tensors:
        raise RuntimeError("Tensor list must have at least one tensor.")
    for position, each in enumerate(tensors):
        if not isinstance(each, Tensor):
            raise TypeError(
                f"expected Tensor as element {position} in argument 0, but got {type(each).__name__} ({name})"
            )


def _one_each(name: str, tensors: Sequence[Tensor], given: Any) -> Sequence[Any]:
    """Return the other operands: a list of tensors or of numbers, or one for all."""
    if isinstance(given, (list, tuple)):
        if len(given) != len(tensors):
            if given and isinstance(given[0], NUMBERS):
                raise RuntimeError("Tensor list must have same number of elements as scalar list.")
            raise RuntimeError(
                f"Tensor lists must have the same number of tensors, got {len(tensors)} and {len(given)}"
            )
        return given
    if isinstance(given, Tensor):
        if given.dim() != 0:
            raise RuntimeError(
                f"scalar tensor expected to be 0 dim but it has {given.dim()} dimensions and {given.numel()} elements."
            )
    elif not isinstance(given, NUMBERS):
        raise TypeError(
            f"{name}(): expected a list, a tensor or a number for each tensor, not {type(given).__name__}"
        )
    return [given] * len(tensors)


def _define(name: str, make: Callable[[str, Callable], Callable], inplace: bool = True) -> None:
    """`_foreach_name`, which returns a tuple, and `_foreach_name_`, which returns the list that it was given."""
    plain = make(f"_foreach_{name}", getattr(Tensor, name))

    def function(self, *args, **kwargs):
        return tuple(plain(self, *args, **kwargs))

    _publish(f"_foreach_{name}", function)
    if inplace:
        write = make(
            f"_foreach_{name}_", getattr(Tensor, f"{name}_", None) or _written(getattr(Tensor, name))
        )

        def function_(self, *args, **kwargs):
            write(self, *args, **kwargs)
            return self

        _publish(f"_foreach_{name}_", function_)


def _written(op: Callable) -> Callable:
    """In place, where no method does it."""
    return lambda tensor, *operands: tensor.copy_(op(tensor, *operands))


def _publish(name: str, function: Callable) -> None:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`{name.removeprefix('_foreach_')}` of each tensor of a list."
    add_function(name, function)


def _unary(name: str, op: Callable) -> Callable:
    def each(tensors: Sequence[Tensor]) -> list[Tensor]:
        _check(name, tensors)
        return [op(tensor) for tensor in tensors]

    return each


def _binary(name: str, op: Callable) -> Callable:
    def each(
        tensors: Sequence[Tensor], other: Any = None, *, scalar: Any = None, scalars: Any = None
    ) -> list:
        _check(name, tensors)
        others = _one_each(name, tensors, next((g for g in (other, scalar, scalars) if g is not None), None))
        return [op(a, b) for a, b in zip(tensors, others)]

    return each


def _extremum(name: str, op: Callable) -> Callable:
    """The single operations take tensors only, so numbers become tensors without dims."""

    def one(tensor: Tensor, other: Any) -> Tensor:
        if isinstance(other, NUMBERS):
            other = scalar_tensor(other, dtype=result_type(tensor, other), device=tensor.device)
        return op(tensor, other)

    return _binary(name, one)


def _scaled(name: str, op: Callable) -> Callable:
    plain = _binary(name, op)

    def each(
        tensors: Sequence[Tensor], other: Any = None, *, alpha: Any = None, **named: Any
    ) -> list[Tensor]:
        if alpha is None:
            return plain(tensors, other, **named)
        _check(name, tensors)
        if isinstance(other, NUMBERS) or other is None:
            raise TypeError(
                f"{name}() received an invalid combination of arguments: alpha goes with tensors, not {other!r}"
            )
        return [op(a, b, alpha=alpha) for a, b in zip(tensors, _one_each(name, tensors, other))]

    return each


def _ternary(name: str, op: Callable) -> Callable:
    def each(
        tensors: Any, tensor1: Any, tensor2: Any, value: Any = 1, *, scalars: Any = None
    ) -> list[Tensor]:
        _check(name, tensors)
        first, second = (_one_each(name, tensors, each) for each in (tensor1, tensor2))
        factors = value if scalars is None else scalars
        if isinstance(factors, Tensor):
            factors = factors.tolist()
            if not isinstance(factors, list) or len(factors) != len(tensors):
                count = len(factors) if isinstance(factors, list) else 1
                raise RuntimeError(
                    f"Expected length of scalars to match input of length {len(tensors)} but got {count} instead."
                )
        factors = _one_each(name, tensors, factors)
        return [op(a, b, c, value=k) for a, b, c, k in zip(tensors, first, second, factors)]

    return each


def _lerp(name: str, op: Callable) -> Callable:
    def each(tensors: Any, tensors1: Any, weight: Any = None, *, weights: Any = None) -> list[Tensor]:
        _check(name, tensors)
        ends = _one_each(name, tensors, tensors1)
        shares = _one_each(name, tensors, weight if weights is None else weights)
        return [op(a, b, share) for a, b, share in zip(tensors, ends, shares)]

    return each


def _pow(name: str, op: Callable) -> Callable:
    def each(tensors: Any, exponent: Any) -> list[Tensor]:
        if isinstance(tensors, NUMBERS):
            _check(name, exponent)
            return [pow(tensors, power) for power in exponent]
        _check(name, tensors)
        return [op(a, power) for a, power in zip(tensors, _one_each(name, tensors, exponent))]

    return each


def _copy_(self: Any, src: Any, non_blocking: bool = False) -> Any:
    _check("_foreach_copy_", self)
    for target, source in zip(self, _one_each("_foreach_copy_", self, src)):
        target.copy_(source, non_blocking)
    return self


def _zero_(self: Any) -> Any:
    _check("_foreach_zero_", self)
    for tensor in self:
        tensor.zero_()
    return self


def _norm(self: Any, ord: Any = 2, dtype: DType | None = None) -> tuple[Tensor, ...]:
    _check("_foreach_norm", self)
    return tuple([vector_norm(tensor, ord, dtype=dtype) for tensor in self])


def _powsum(self: Any, ord: Any = 2, dtype: DType | None = None) -> tuple[Tensor, ...]:
    _check("_foreach_powsum", self)
    return tuple([tensor.abs().pow(ord).sum(dtype=dtype) for tensor in self])


def _max(self: Any) -> tuple[Tensor, ...]:
    _check("_foreach_max", self)
    if not all(tensor.numel() for tensor in self):
        raise RuntimeError(
            "_foreach_max cannot compute the maximum of an empty tensor; max over zero elements is undefined."
        )
    return tuple([tensor.max() for tensor in self])


for _names, _make in (
    (_UNARY, _unary), (_SCALED, _scaled), (_BINARY, _binary), (_EXTREMA, _extremum), (_TERNARY, _ternary)
):  # fmt: skip
    for _name in _names:
        _define(_name, _make)
_define("lerp", _lerp)
_define("pow", _pow)
_define("clone", _unary, inplace=False)
_define("mm", _binary, inplace=False)
_OTHERS: dict[str, Callable] = {
    "copy_": _copy_,
    "zero_": _zero_,
    "norm": _norm,
    "powsum": _powsum,
    "max": _max,
}
for _name, _function in _OTHERS.items():
    _publish(f"_foreach_{_name}", _function)
