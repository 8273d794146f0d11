"""Which names the results of a function have, by its kind:

    elementwise     the names of all operands, unified from the right           a + b, where, lerp
    keeping         the names of the input                                      softmax, cumsum, dropout, sort
    reducing        the names of the dims that are left                         sum, max, median
    viewing         the names of the dims whose strides the result has          permute, x[0], split
    contracting     the dims that are summed over lose theirs                   matmul, addmm, linear
    joining         the names of the inputs, which must agree                   cat, stack

The results of all other functions have no names.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.device import as_device
from ...core.registry import FUNCTIONS
from ...core.spec import make_spec
from ...core.tensor import Tensor, make
from ...families.calls import elementwise_names
from .tensors import Names, named, names_of, shown
from .unification import aligned, unified, unified_all

Rule = Callable[[str, tuple, dict[str, Any], Any], Any]


def propagated(name: str, args: tuple, kwargs: dict[str, Any], result: Any) -> Any:
    """The result of a public function with the names that it has; dims among the arguments are numbers."""
    rule = kind_of(name)
    return result if rule is None else rule(name.removesuffix("_"), args, kwargs, result)


def check_operands(name: str, args: tuple, kwargs: dict[str, Any]) -> None:
    """Raises: RuntimeError if the names of the operands of an elementwise function do not fit, before their sizes are compared."""
    if kind_of(name) is _unifying:
        _unifying(name, args, kwargs, None)


def kind_of(name: str) -> Rule | None:
    """The rule of a function; None if its results have no names."""
    rule = _rules.get(name) or _rules.get(name.removesuffix("_"))
    if rule is None and (name in elementwise_names or name.removesuffix("_") in elementwise_names):
        return _unifying
    return rule


def takes_dims(name: str) -> bool:
    """Whether the numbers that a function takes are dims."""
    return _rules.get(name) in (_reducing, _viewing)


def each_named(result: Any, names: Names) -> Any:
    """Results with these names; those with another number of dims have none."""
    if isinstance(result, Tensor):
        return named(result, names) if result.dim() == len(names) else result
    if isinstance(result, (tuple, list)):
        kind: Any = type(result)
        return getattr(kind, "_make", kind)(each_named(each, names) for each in result)
    return result


# ---- Elementwise --------------------------------------------------------------------------------------------------------


def _unifying(name: str, args: tuple, kwargs: dict[str, Any], result: Any) -> Any:
    operands = [names_of(each) for each in (*args, *kwargs.values()) if isinstance(each, Tensor)]
    return each_named(result, unified_all(operands, name))


def _keeping(name: str, args: tuple, kwargs: dict[str, Any], result: Any) -> Any:
    return each_named(result, names_of(_input(args, kwargs)))


def _input(args: tuple, kwargs: dict[str, Any]) -> Any:
    return args[0] if args else kwargs.get("input", kwargs.get("self"))


# ---- Reductions ---------------------------------------------------------------------------------------------------------


def _reducing(name: str, args: tuple, kwargs: dict[str, Any], result: Any) -> Any:
    names = names_of(_input(args, kwargs))
    dims: Any = kwargs.get("dim", kwargs.get("axis", next(_dims_in(args[1:]), None)))
    if isinstance(dims, int) and not isinstance(dims, bool):
        dims = (dims,)
    ndim = len(names)
    gone = range(ndim) if dims is None or dims == () else {dim % ndim for dim in dims}
    left = tuple(each for place, each in enumerate(names) if place not in gone)

    def with_names(each: Any) -> Any:
        if isinstance(each, Tensor):
            return (
                named(each, names if each.dim() == ndim else left)
                if each.dim() in (ndim, len(left))
                else each
            )
        kind: Any = type(each)
        return getattr(kind, "_make", kind)(map(with_names, each))

    return with_names(result) if isinstance(result, (Tensor, tuple)) else result


def _dims_in(args: tuple) -> Any:
    for each in args:
        is_dim = isinstance(each, int) and not isinstance(each, bool)
        if is_dim or isinstance(each, (tuple, list)) and all(isinstance(dim, int) for dim in each):
            yield each


# The first of these functions have another number before the dim: the order of the norm, the quantile, k.
def _reducing_after(name: str, args: tuple, kwargs: dict[str, Any], result: Any) -> Any:
    return _reducing(name, (*args[:1], *args[2:]), kwargs, result)


# ---- Views -------------------------------------------------------------------------------------------------------------


def _viewing(name: str, args: tuple, kwargs: dict[str, Any], result: Any) -> Any:
    """A dim of the result has the name of the dim whose stride it has, or a multiple of that.

    The function runs once more, on a tensor without memory that has the sizes of the input and a prime stride for each dim.
    """
    source = _input(args, kwargs)
    names = names_of(source)
    rest = args[1:]
    if any(isinstance(each, Tensor) for each in _flat(rest)):  # indexing by tensors
        return result
    steps = _PRIMES[: len(names)]
    probe = make(_META.backend.allocate(0), 0, make_spec(source.spec.shape, steps, source.spec.dtype, _META))
    probe._storage.nbytes_ = 2**62
    seen = _function(name)(
        probe, *rest, **{key: value for key, value in kwargs.items() if key not in ("input", "self")}
    )

    def with_names(each: Any, probed: Any) -> Any:
        if isinstance(each, Tensor):
            return named(each, tuple(_name(stride, steps, names) for stride in probed.spec.stride))
        kind: Any = type(each)
        return kind(map(with_names, each, probed))

    return with_names(result, seen)


_PRIMES = (
    10007,
    10009,
    10037,
    10039,
    10061,
    10067,
    10069,
    10079,
    10091,
    10093,
    10099,
    10103,
    10111,
    10133,
    10139,
    10141,
)
_META = as_device("meta")


def _name(stride: int, steps: tuple[int, ...], names: Names) -> str | None:
    found = [name for step, name in zip(steps, names, strict=True) if stride and stride % step == 0]
    return found[0] if len(found) == 1 else None


def _flat(values: Any) -> Any:
    for each in values:
        if isinstance(each, (tuple, list)):
            yield from _flat(each)
        else:
            yield each


def _function(name: str) -> Callable:
    member = vars(Tensor).get(name)
    if isinstance(member, property):
        return member.fget  # type: ignore[return-value]
    return member if member is not None else FUNCTIONS[name]


def _unsqueezing(name: str, args: tuple, kwargs: dict[str, Any], result: Any) -> Any:
    names = names_of(_input(args, kwargs))
    dim = kwargs.get("dim", args[-1]) % (len(names) + 1)
    return each_named(result, (*names[:dim], None, *names[dim:]))


def _indexing(name: str, args: tuple, kwargs: dict[str, Any], result: Any) -> Any:
    """Ints take a dim away, slices keep it, None makes a new one. Results of indexing by tensors have no names."""
    names, index = names_of(args[0]), args[1]
    items = list(index) if isinstance(index, tuple) else [index]
    if not all(
        each is None or each is ... or isinstance(each, (int, slice)) and not isinstance(each, bool)
        for each in items
    ):
        return result
    used = sum(each is not None and each is not ... for each in items)
    if ... not in items:
        items.append(...)
    found: list[str | None] = []
    place = 0
    for each in items:
        if each is None:
            found.append(None)
            continue
        count = len(names) - used if each is ... else 1
        if not isinstance(each, int):
            found.extend(names[place : place + count])
        place += count
    return each_named(result, tuple(found))


def _expanding(name: str, args: tuple, kwargs: dict[str, Any], result: Any) -> Any:
    names = names_of(args[0])
    return named(result, (None,) * (result.dim() - len(names)) + names)


# ---- Products ------------------------------------------------------------------------------------------------------------


def product_names(left: Names, right: Names, function: str) -> Names:
    """The names of `left @ right`.

    Raises: RuntimeError if names of batch dims do not fit, or if a name stands twice in the result.
    """
    batch = unified(left[:-2], right[:-2], function)
    rows = left[-2:-1] if len(left) > 1 else ()
    columns = right[-1:] if len(right) > 1 else ()
    result = (*batch, *rows, *columns)
    for name in result:
        if name is not None and result.count(name) > 1:
            raise RuntimeError(
                f"{function}: Matrix multiplying Tensor{shown(left)} with Tensor{shown(right)} produced output tensor with duplicate "
                f"names {shown(result)}: write other.rename(...) to give the dims different names."
            )
    return result


def _multiplying(name: str, args: tuple, kwargs: dict[str, Any], result: Any) -> Any:
    second = (kwargs[each] for each in ("other", "mat2", "vec", "tensor") if each in kwargs)
    other = args[1] if len(args) > 1 else next(second)
    return each_named(result, product_names(names_of(_input(args, kwargs)), names_of(other), name))


def _adding_product(name: str, args: tuple, kwargs: dict[str, Any], result: Any) -> Any:
    product = product_names(names_of(args[1]), names_of(args[2]), name)
    return each_named(result, unified(product, names_of(_input(args, kwargs)), name))


def _linear(name: str, args: tuple, kwargs: dict[str, Any], result: Any) -> Any:
    names, weight = names_of(_input(args, kwargs)), names_of(args[1] if len(args) > 1 else kwargs["weight"])
    return each_named(result, (*names[:-1], weight[0]) if len(weight) == 2 else names[:-1])


def _outer(name: str, args: tuple, kwargs: dict[str, Any], result: Any) -> Any:
    return each_named(result, names_of(args[0]) + names_of(args[1]))


# ---- Joining ---------------------------------------------------------------------------------------------------------------


def _common(name: str, tensors: Any) -> Names:
    """The names of tensors that are joined; each dim has one name, or none in some of them."""
    result: list[str | None] = list(names_of(tensors[0]))
    for each in tensors[1:]:
        names = names_of(each)
        for place, (a, b) in enumerate(zip(result, names, strict=False)):
            if a is not None and b is not None and a != b:
                marked = {place - len(names)}
                raise RuntimeError(
                    f"{name}: names of the tensors do not match: {shown(result)} and {shown(names)}{aligned(result, names, marked)}"
                )
            result[place] = b if a is None else a
    return tuple(result)


def _joining(name: str, args: tuple, kwargs: dict[str, Any], result: Any) -> Any:
    return each_named(result, _common(name, args[0] if args else kwargs["tensors"]))


def _stacking(name: str, args: tuple, kwargs: dict[str, Any], result: Any) -> Any:
    names = _common(name, args[0] if args else kwargs["tensors"])
    dim = kwargs.get("dim", args[1] if len(args) > 1 else 0) % (len(names) + 1)
    return each_named(result, (*names[:dim], None, *names[dim:]))


# ---- The table -----------------------------------------------------------------------------------------------------------

_KINDS: dict[Rule, str] = {
    _unifying: "where addcmul addcdiv masked_fill lerp clamp isclose ldexp nn.functional.prelu",
    _keeping: """as_tensor asarray tensor clone contiguous to detach data float double half bfloat16 int long short char byte bool cfloat cdouble chalf cpu cuda
        type requires_grad_ resolve_conj resolve_neg softmax log_softmax cumsum cumprod cummax cummin logcumsumexp sort argsort
        dropout alpha_dropout feature_dropout flip roll tril triu index_select index_fill index_copy index_add fill  fill_ zero_ zeros_like
        ones_like empty_like full_like rand_like randn_like randint_like bernoulli bernoulli_ normal_ uniform_ exponential_ copy_
        nan_to_num renorm nn.functional.relu nn.functional.relu6 nn.functional.gelu nn.functional.silu nn.functional.elu
        nn.functional.selu nn.functional.celu nn.functional.leaky_relu nn.functional.sigmoid nn.functional.tanh nn.functional.softmax
        nn.functional.log_softmax nn.functional.softmin nn.functional.dropout nn.functional.dropout1d nn.functional.dropout2d
        nn.functional.dropout3d nn.functional.alpha_dropout nn.functional.softplus nn.functional.hardtanh nn.functional.hardswish
        nn.functional.hardsigmoid nn.functional.mish nn.functional.softsign nn.functional.softshrink nn.functional.hardshrink
        nn.functional.tanhshrink nn.functional.logsigmoid nn.functional.normalize nn.functional.layer_norm nn.functional.batch_norm
        nn.functional.instance_norm nn.functional.group_norm nn.functional.rms_norm nn.functional.max_pool1d nn.functional.max_pool2d
        nn.functional.max_pool3d nn.functional.avg_pool1d nn.functional.avg_pool2d nn.functional.avg_pool3d
        nn.functional.adaptive_avg_pool1d nn.functional.adaptive_avg_pool2d nn.functional.adaptive_max_pool2d
        nn.functional.interpolate nn.functional.pad narrow_copy relu celu selu prelu""",
    _reducing: """sum nansum mean nanmean prod std var std_mean var_mean all any amax amin aminmax max min argmax argmin median nanmedian
        mode logsumexp count_nonzero special.logsumexp linalg.vector_norm""",
    _reducing_after: "norm linalg.norm kthvalue quantile nanquantile",
    _viewing: """transpose swapaxes swapdims movedim permute t T mT H mH adjoint select narrow split split_with_sizes tensor_split chunk
        unbind hsplit vsplit dsplit squeeze diagonal unfold as_subclass view_as_real""",
    _unsqueezing: "unsqueeze",
    _indexing: "__getitem__",
    _expanding: "expand expand_as broadcast_to",
    _multiplying: "matmul mm mv bmm dot",
    _adding_product: "addmm addmv baddbmm",
    _linear: "nn.functional.linear",
    _outer: "outer",
    _joining: "cat",
    _stacking: "stack",
}  # fmt: skip
_rules: dict[str, Rule] = {name: rule for rule, names in _KINDS.items() for name in names.split()}
