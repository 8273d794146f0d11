"""Functions of each element, and functions of the last dims: they run on the values, and the structure stays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.grad_mode import mode
from ...core.registry import FUNCTIONS
from ...core.tensor import Tensor
from ...families.calls import elementwise_names
from ..parts import parts_of, values_of
from .rules import NESTED
from .tensors import (
    components,
    contiguous,
    contiguous_pieces,
    is_jagged,
    is_nested,
    joined,
    like,
    pieces_of,
    ragged_dim_of,
    same_places,
    strided,
)


def plain_function(name: str) -> Callable:
    """Return the public function or method of this name."""
    return FUNCTIONS.get(name) or vars(Tensor)[name]


# ---- Elementwise ------------------------------------------------------------------------------------------------------


def _elementwise(name: str) -> Callable:
    function = plain_function(name)

    def rule(*args: Any, **kwargs: Any) -> Any:
        operands: Any = (*args, *kwargs.values())
        x = next(each for each in operands if is_nested(each))
        if len(operands) > 1:
            operands = _aligned(name, x, operands)
            if operands is None:
                return _by_components(function, x, args, kwargs)
            args, kwargs = operands[: len(args)], dict(zip(kwargs, operands[len(args) :], strict=True))
        values = values_of(x)

        def plain(operand: Any) -> Any:
            return values if operand is x else _values(operand)

        result = function(*map(plain, args), **{key: plain(each) for key, each in kwargs.items()})
        return x if result is values and name in _CONVERSIONS else with_structure(x, result)

    return rule


def _values(operand: Any) -> Any:
    return values_of(operand) if is_nested(operand) else operand


def with_structure(x: Tensor, result: Any) -> Any:
    """Return the values that a function of the values of `x` returned as nested tensors like `x`."""
    if isinstance(result, Tensor):
        return like(x, result) if is_jagged(x) else strided(result, pieces_of(x))
    if isinstance(result, tuple):
        kind: Any = type(result)
        return getattr(kind, "_make", kind)(with_structure(x, each) for each in result)
    return result


def _aligned(name: str, x: Tensor, operands: tuple) -> tuple | None:
    """Operands whose values broadcast to those of `x`; None if components have to be computed one by one.

    Raises: RuntimeError for nested tensors of another structure, and for tensors that have the ragged dim.
    """
    found = []
    for each in operands:
        if is_nested(each) and each is not x:
            _check_structure(name, x, each)
            if not same_places(x, each):
                return None
        elif isinstance(each, Tensor) and each.dim() and not is_nested(each):
            if not is_jagged(x) or each.dim() == x.dim() and each.shape[0] != 1:
                return None
            each = each[0] if each.dim() == x.dim() else each
            place = ragged_dim_of(x) - 1 - (x.dim() - 1 - each.dim())
            if each.dim() >= x.dim() or place >= 0 and each.shape[place] != 1:
                raise RuntimeError(
                    f"{name}: a tensor of size {tuple(each.shape)} does not broadcast to the nested tensor of size {tuple(x.shape)}: "
                    "its size in the ragged dim must be 1"
                )
        found.append(each)
    return tuple(found)


def _check_structure(name: str, x: Tensor, y: Tensor) -> None:
    shapes = [tuple(each.shape) for each in (x, y)]
    same = x.layout is y.layout and x.dim() == y.dim()
    if same and is_jagged(x):
        dim = ragged_dim_of(x)
        same = shapes[0][0] == shapes[1][0] and shapes[0][dim] == shapes[1][dim]
    if not same or not is_jagged(x) and shapes[0] != shapes[1]:
        raise RuntimeError(
            f"{name}: nested tensors of sizes {shapes[0]} and {shapes[1]} have different structures. Jagged tensors need the same "
            "offsets: make the second with torch.nested.nested_tensor_from_jagged(values, x.offsets())"
        )


def _by_components(function: Callable, x: Tensor, args: tuple, kwargs: dict[str, Any]) -> Tensor:
    def part(operand: Any, position: int) -> Any:
        if is_nested(operand):
            return pieces[id(operand)][position]
        if isinstance(operand, Tensor) and operand.dim() == x.dim():
            if operand.shape[0] not in (1, count):
                raise RuntimeError(
                    f"a tensor of size {tuple(operand.shape)} does not broadcast to a nested tensor with {count} components"
                )
            return operand[position if operand.shape[0] > 1 else 0]
        return operand

    pieces = {id(each): components(each) for each in (*args, *kwargs.values()) if is_nested(each)}
    count = len(pieces[id(x)])
    results = [
        function(*[part(each, k) for each in args], **{key: part(each, k) for key, each in kwargs.items()})
        for k in range(count)
    ]
    for own, result in zip(pieces[id(x)], results, strict=True):
        if own.shape != result.shape:
            raise RuntimeError(
                f"a component of size {tuple(own.shape)} became one of size {tuple(result.shape)}: the other operand must broadcast to it"
            )
    return joined(x, results)


# These return their argument if it has the dtype and the device already.
_CONVERSIONS = frozenset(
    "to float double half bfloat16 int long short char byte bool cfloat cdouble cpu type type_as pin_memory".split()
)
# Besides these and the elementwise functions: functions whose result has the sizes of the input, element for element.
_OTHERS = """
    where masked_fill zeros_like ones_like
    empty_like full_like rand_like randn_like randint_like dropout alpha_dropout feature_dropout bernoulli celu selu conj resolve_conj resolve_neg real imag threshold isclose fill
    nn.functional.relu nn.functional.relu6 nn.functional.gelu nn.functional.silu nn.functional.elu nn.functional.selu nn.functional.celu
    nn.functional.leaky_relu nn.functional.sigmoid nn.functional.tanh nn.functional.dropout nn.functional.alpha_dropout
    nn.functional.softplus nn.functional.hardtanh nn.functional.hardswish nn.functional.hardsigmoid nn.functional.mish
    nn.functional.softsign nn.functional.softshrink nn.functional.hardshrink nn.functional.tanhshrink nn.functional.logsigmoid
    nn.functional.threshold
"""


def _is_public(name: str) -> bool:
    return name in FUNCTIONS or name in vars(Tensor)


for _name in dict.fromkeys((*elementwise_names, *sorted(_CONVERSIONS), *_OTHERS.split())):
    if _is_public(_name):
        NESTED.rule(_name)(_elementwise(_name))


def _filling(name: str) -> Callable:
    """A function that writes into its first argument, and has no form that does not."""
    function = plain_function(name)

    def rule(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if self.requires_grad and mode.enabled:
            raise RuntimeError(f"{name}: write with torch.no_grad() into a nested tensor that requires grad")
        for each in args:
            if is_nested(each):
                _check_structure(name, self, each)
                if not same_places(self, each):
                    raise RuntimeError(
                        f"{name}: the components lie in other places: write x.contiguous() first"
                    )
        function(parts_of(self)[-1], *map(_values, args), **kwargs)
        return self

    return rule


for _name in "zero_ copy_ normal_ uniform_ exponential_ bernoulli_".split():
    NESTED.rule(_name)(_filling(_name))


# ---- The last dims ---------------------------------------------------------------------------------------------------


def by_rows(x: Tensor, function: Callable, dims: int, name: str) -> Tensor:
    """`function` of the values, of which it treats the last `dims` dims; their sizes in the result may be others.

    Raises: RuntimeError if one of these dims is ragged.
    """
    if is_jagged(x):
        if ragged_dim_of(x) >= x.dim() - dims:
            raise RuntimeError(
                f"{name}: the ragged dim of a nested tensor of size {tuple(x.shape)} is one of the last {dims}"
            )
        return like(x, function(values_of(x)))
    x = contiguous(x)
    last: Any = tuple(x.shape)[x.dim() - dims :]
    if not all(type(size) is int for size in last):
        raise RuntimeError(
            f"{name}: the nested tensor of size {tuple(x.shape)} is ragged in one of the last {dims} dims"
        )
    result = function(values_of(x).view(-1, *last))
    sizes = [(*piece.size[: len(piece.size) - dims], *result.shape[1:]) for piece in pieces_of(x)]
    return strided(result.reshape(-1), contiguous_pieces(sizes))


def _rows(name: str, dims: Callable[..., int]) -> None:
    function = plain_function(name)

    def rule(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return by_rows(input, lambda values: function(values, *args, **kwargs), dims(*args, **kwargs), name)

    NESTED.rule(name)(rule)


def _normalized(normalized_shape: Any, *args: Any, **kwargs: Any) -> int:
    return 1 if isinstance(normalized_shape, int) else len(normalized_shape)


_rows("nn.functional.linear", lambda *args, **kwargs: 1)
for _name in ("nn.functional.layer_norm", "layer_norm", "nn.functional.rms_norm", "rms_norm"):
    _rows(_name, _normalized)
for _name in ("nn.functional.embedding", "nn.functional.one_hot"):
    _rows(_name, lambda *args, **kwargs: 0)
