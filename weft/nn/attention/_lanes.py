"""Defines functions of one score, evaluated on all scores at once.

`score_mod` and `mask_mod` are written for one score and its four indices, which are tensors without dims. Here they are called
once, with *lanes*: a Lane looks like such a tensor, and holds the values of all scores. Elementwise functions and indexing by
lanes are one operation on all values; any other function runs once for each value that differs.

Shapes: the values of a Lane are [B, H, Q, K, *its own shape], where a size of 1 stands for "the same for all".
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ...core.overrides import switch
from ...core.registry import FUNCTIONS
from ...core.restoring import Restoring
from ...core.tensor import Tensor
from ...ops.creation.ranges import arange

BATCH_DIMS = 4


class Lane(Tensor):
    """A tensor of one sample; `whole` holds its values for all samples."""

    whole: Tensor

    @classmethod
    def __torch_function__(
        cls, func: Callable, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        rule = _rules().get(func, _one_by_one)
        return rule(func, args, kwargs)

    def __iter__(self) -> Any:
        if not own_rank(self):
            raise TypeError("iteration over a 0-d tensor")
        return iter([self[k] for k in range(self.whole.shape[BATCH_DIMS])])


class _Asked(Restoring):
    """Classes of tensors are asked inside, also within a backward pass, whose rules ask none."""

    def __enter__(self) -> None:
        self._outer = switch.on
        switch.on = True

    def _restore(self) -> None:
        switch.on = self._outer


def lane(values: Tensor) -> Lane:
    """Return a Lane of these values, whose first four dims are those of the scores."""
    made: Any = values.detach().as_subclass(Lane)
    made.whole = values
    return made


def own_rank(x: Tensor) -> int:
    """Return the number of dims that `x` has as the function sees it."""
    return x.whole.dim() - BATCH_DIMS if isinstance(x, Lane) else x.dim()


def over_indices(function: Callable, indices: Sequence[Tensor], scores: Tensor | None = None) -> Tensor:
    """`function([score,] b, h, q, k)` for all of them; its values broadcast to [B, H, Q, K].

    indices: four vectors, the numbers of batches, heads, queries and keys. scores: [B, H, Q, K].

    Raises: ValueError if the function returns something else than a tensor.
    """
    arguments = [] if scores is None else [lane(scores)]
    for dim, each in enumerate(indices):
        shape = [1] * BATCH_DIMS
        shape[dim] = -1
        arguments.append(lane(each.reshape(shape)))
    with _Asked():
        found = function(*arguments)
    if isinstance(found, Lane):
        return found.whole
    if isinstance(found, Tensor):
        return found.reshape([1] * BATCH_DIMS + list(found.shape))
    name = getattr(function, "__name__", repr(function))
    raise ValueError(
        f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(found)}. Did you mean to set out_dims= to "
        "None for output?"
    )


# ---- What functions do with lanes ------------------------------------------------------------------------------------

_ELEMENTWISE = (
    "abs absolute neg negative positive sign sgn signbit exp exp2 expm1 log log2 log10 log1p sqrt rsqrt square reciprocal "
    "sin cos tan asin acos atan arcsin arccos arctan sinh cosh tanh asinh acosh atanh arcsinh arccosh arctanh sigmoid logit "
    "erf erfc erfinv lgamma digamma sinc ceil floor round trunc fix frac relu deg2rad rad2deg nan_to_num "
    "isnan isinf isfinite isneginf isposinf isreal "
    "add sub subtract mul multiply div divide true_divide floor_divide remainder fmod pow float_power "
    "maximum minimum fmax fmin atan2 arctan2 hypot copysign nextafter xlogy logaddexp logaddexp2 lerp addcmul addcdiv "
    "eq ne lt le gt ge not_equal less less_equal greater greater_equal isclose heaviside gcd lcm ldexp "
    "logical_and logical_or logical_xor logical_not bitwise_and bitwise_or bitwise_xor bitwise_not "
    "bitwise_left_shift bitwise_right_shift where clamp clip clamp_min clamp_max masked_fill threshold rsub "
    "clone contiguous detach zeros_like ones_like full_like alias "
    "to type type_as float double half bfloat16 int long short char byte bool "
    "special.expit special.erf special.erfc special.exp2 special.expm1 special.log1p special.logit special.round special.sinc "
    "special.xlogy special.xlog1py special.i0 special.i0e special.ndtr special.digamma special.gammaln "
    "nn.functional.relu nn.functional.relu6 nn.functional.silu nn.functional.gelu nn.functional.elu nn.functional.selu "
    "nn.functional.celu nn.functional.softplus nn.functional.sigmoid nn.functional.tanh nn.functional.logsigmoid "
    "nn.functional.leaky_relu nn.functional.hardtanh nn.functional.hardsigmoid nn.functional.hardswish nn.functional.mish "
    "nn.functional.softsign nn.functional.tanhshrink nn.functional.softshrink nn.functional.hardshrink"
).split()
_OPERATORS = (
    "add radd sub rsub mul rmul truediv rtruediv floordiv rfloordiv mod rmod pow rpow neg pos abs invert and rand or ror xor "
    "rxor lshift rlshift rshift rrshift eq ne lt le gt ge div rdiv iadd isub imul itruediv ifloordiv imod ipow iand ior ixor "
    "ilshift irshift"
).split()
# Properties that are the same for one sample and for all.
_SHARED = (
    "dtype device layout requires_grad is_leaf is_cuda is_cpu is_meta is_sparse is_quantized is_mkldnn is_nested is_mps "
    "is_xpu names itemsize grad_fn"
).split()
_VALUE_READERS = "__bool__ item __float__ __int__ __index__ __complex__ tolist numpy __array__ is_nonzero __contains__".split()
_SAME_FOR_ALL = "new_tensor new_zeros new_ones new_full new_empty".split()
_QUESTIONS = "is_floating_point is_complex is_signed get_device element_size is_inference".split()


@functools.cache
def _rules() -> dict[Any, Callable]:
    """Return a table: function or method -> `rule(func, args, kwargs)`."""
    members = vars(Tensor)
    found: dict[Any, Callable] = {}

    def put(rule: Callable, *names: str) -> None:
        for name in names:
            for each in (FUNCTIONS.get(name), members.get(name)):
                if each is not None:
                    found[each.__get__ if isinstance(each, property) else each] = rule

    put(
        _elementwise,
        *_ELEMENTWISE,
        *(f"{name}_" for name in _ELEMENTWISE),
        *(f"__{name}__" for name in _OPERATORS),
    )
    put(_extremum, "max", "min")
    put(_shared, *_SHARED, *_QUESTIONS)
    put(_same_for_all, *_SAME_FOR_ALL)
    put(_refuse, *_VALUE_READERS)
    put(_shape, "shape", "size")
    put(_rank, "ndim", "dim", "ndimension")
    put(_count, "numel", "nelement")
    put(_getitem, "__getitem__")
    put(_describe, "__repr__", "__str__")
    return found


def _plain(x: Any) -> Any:
    return x.whole if isinstance(x, Lane) else x


def _aligned(x: Any, rank: int) -> Any:
    """Return the values of a Lane, with sizes of 1 before its own dims, so that these are `rank`.

    A plain tensor without dims gets some if nothing else has dims of its own, so that its dtype counts as much.
    """
    if not isinstance(x, Lane):
        return x.reshape([1] * BATCH_DIMS) if isinstance(x, Tensor) and rank == 0 else x
    values, missing = x.whole, rank - own_rank(x)
    if missing <= 0:
        return values
    shape = values.shape
    return values.reshape(*shape[:BATCH_DIMS], *[1] * missing, *shape[BATCH_DIMS:])


def _elementwise(func: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
    """One call on all values, with the dims of the samples aligned at their ends."""
    operands = (*args, *kwargs.values())
    rank = max(own_rank(each) for each in operands if isinstance(each, Tensor))
    found = func(
        *[_aligned(each, rank) for each in args],
        **{name: _aligned(each, rank) for name, each in kwargs.items()},
    )
    for each in operands:
        if isinstance(each, Lane) and each.whole is found:  # computed in place
            return each
    return lane(found)


def _extremum(func: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
    """`max` and `min` of two tensors are elementwise, of one they are reductions."""
    count = sum(isinstance(each, Tensor) for each in (*args, *kwargs.values()))
    return (_elementwise if count > 1 else _one_by_one)(func, args, kwargs)


def _shared(func: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Return a result that is the same for all samples, such as a dtype."""
    owner = getattr(func, "__self__", None)
    if isinstance(owner, property):
        return owner.__get__(args[0].whole)
    return func(*map(_plain, args), **kwargs)


def _same_for_all(func: Callable, args: tuple, kwargs: dict[str, Any]) -> Tensor:
    """Return a new tensor that takes only dtype and device from the Lane."""
    return func(_plain(args[0]), *args[1:], **kwargs)


def _refuse(func: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
    name = func.__name__
    if name in ("__bool__", "is_nonzero", "__contains__"):
        reason = "It looks like you're attempting to use a Tensor in some data-dependent control flow"
    else:
        reason = f"It looks like you're calling .{name}() on a Tensor"
    raise RuntimeError(
        f"vmap: {reason}. score_mod and mask_mod are called once for all scores, so their arguments have no single value: "
        "use torch.where and other operations on tensors"
    )


def _shape(func: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
    shape = args[0].whole.shape[BATCH_DIMS:]
    dim = kwargs.get("dim", args[1] if len(args) > 1 else None)
    return shape if dim is None else shape[dim]


def _rank(func: Callable, args: tuple, kwargs: dict[str, Any]) -> int:
    return own_rank(args[0])


def _count(func: Callable, args: tuple, kwargs: dict[str, Any]) -> int:
    return _shape(func, args[:1], {}).numel()


def _describe(func: Callable, args: tuple, kwargs: dict[str, Any]) -> str:
    x = args[0]
    return f"Lane(of shape {list(x.whole.shape[:BATCH_DIMS])}, each {list(x.whole.shape[BATCH_DIMS:])}, dtype={x.whole.dtype})"


def _getitem(func: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Indexing by lanes without dims: one advanced index over all of them."""
    x, index = args
    items = list(index) if isinstance(index, tuple) else [index]
    if not all(_is_simple(each) for each in items):
        return _one_by_one(func, args, kwargs)
    items = _without_ellipsis(items, own_rank(x))
    whole, lead = (x.whole, BATCH_DIMS) if isinstance(x, Lane) else (x, 0)
    lanes = [each for each in items if isinstance(each, Lane)]
    rest = [slice(None) if isinstance(each, Lane) else each for each in items]
    kept = whole[(*[slice(None)] * lead, *rest)]
    positions = _positions(items, lead)
    kept = kept.movedim(positions, tuple(range(lead, lead + len(lanes)))) if lanes else kept
    leading = [_numbers(size, dim, whole.device) for dim, size in enumerate(whole.shape[:lead])]
    return lane(kept[(*leading, *[each.whole for each in lanes])] if lanes else kept)


def _is_simple(item: Any) -> bool:
    if isinstance(item, Lane):
        return own_rank(item) == 0 and item.whole.dtype.is_signed and not item.whole.dtype.is_floating_point
    return item is None or item is Ellipsis or type(item) in (int, slice)


def _without_ellipsis(items: list, rank: int) -> list:
    consumed = sum(each is not None and each is not Ellipsis for each in items)
    missing = [slice(None)] * (rank - consumed)
    place = next((k for k, each in enumerate(items) if each is Ellipsis), len(items))
    return [*items[:place], *missing, *items[place + 1 :]]


def _positions(items: list, lead: int) -> tuple[int, ...]:
    """Return the dims that lanes index, once the ints among the items have taken theirs away."""
    found, dim = [], lead
    for each in items:
        if isinstance(each, Lane):
            found.append(dim)
        dim += type(each) is not int
    return tuple(found)


def _numbers(size: int, dim: int, device: Any) -> Tensor:
    """Return 0, 1, ..., size - 1 along one of the first four dims."""
    shape = [1] * BATCH_DIMS
    shape[dim] = size
    return arange(size, device=device).reshape(shape)


def _one_by_one(func: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
    """`func` once for each value that differs, by a loop."""
    from ...func import vmap

    names = list(kwargs)
    operands = [*args, *kwargs.values()]
    lanes = [each for each in operands if isinstance(each, Lane)]
    if not lanes:
        lanes = [
            each
            for group in operands
            if isinstance(group, (tuple, list))
            for each in group
            if isinstance(each, Lane)
        ]
        raise NotImplementedError(
            f"{getattr(func, '__name__', func)} of a list of {len(lanes)} values within score_mod or mask_mod"
        )
    batch = [
        max(sizes) if 0 not in sizes else 0
        for sizes in zip(*[each.whole.shape[:BATCH_DIMS] for each in lanes], strict=True)
    ]
    flat = [
        each.whole.expand(*batch, *each.whole.shape[BATCH_DIMS:]).flatten(0, BATCH_DIMS - 1) for each in lanes
    ]

    def call(*values: Tensor) -> Any:
        given = iter(values)
        filled = [next(given) if isinstance(each, Lane) else each for each in operands]
        return func(*filled[: len(args)], **dict(zip(names, filled[len(args) :], strict=True)))

    call.__name__ = getattr(func, "__name__", "function")
    found = vmap(call)(*flat)
    if isinstance(found, Tensor):
        return lane(found.unflatten(0, batch))
    return type(found)(lane(each.unflatten(0, batch)) for each in found)
