"""Which names the results of a function have, by the kind of the function. `table.py` says of which kind each function is.

A rule sees the metadata of the arguments and nothing else. Rules of two sorts:

- a rule of the operands gives the names before the call. Operands whose names do not fit are an error before sizes that do not
  fit, and before anything is written.
- a rule of the results gives the names of a result of this shape. `place` counts the results of one call.

A result has the names that its rule gives if these are as many as its dims. Otherwise it has none.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ...core.device import as_device
from ...core.registry import FUNCTIONS
from ...core.size import Size
from ...core.spec import Spec, make_spec
from ...core.tensor import Tensor, make
from .tensors import Names, names_of, shown, spec_names
from .unification import aligned, unified, unified_all


class Call:
    """A call of a public function. Dims are numbers.

    bind: (name, function, args, kwargs) -> the arguments by the names of the parameters. Most rules look at the tensors only.
    """

    def __init__(
        self,
        name: str,
        function: Callable,
        args: tuple,
        kwargs: dict[str, Any],
        bind: Callable[..., dict[str, Any]],
    ):
        self.name, self.args, self.kwargs = name, args, kwargs
        self._function, self._bind = function, bind

    @functools.cached_property
    def given(self) -> dict[str, Any]:
        """The arguments by the names of the parameters. A parameter that stands for all further arguments has a tuple."""
        return self._bind(self.name, self._function, self.args, self.kwargs)

    def argument(self, *parameters: str, default: Any = None) -> Any:
        """The first of these arguments that the call has."""
        for each in parameters:
            if (value := self.given.get(each)) is not None:
                return value
        return default

    def operands(self) -> Iterator[Any]:
        """All tensors among the arguments, in the order of the parameters, but not those that are written."""
        if not self.kwargs:
            yield from tensors_in(self.args)
            return
        for parameter, value in self.given.items():
            if parameter != "out":
                yield from tensors_in(value)

    @property
    def input(self) -> Any:
        """Return the first tensor."""
        first = self.args[0] if self.args else None
        return first if isinstance(first, Tensor) else next(self.operands())

    @property
    def names(self) -> Names:
        """Return the names of the first tensor."""
        return names_of(self.input)

    def names_at(self, position: int) -> Names:
        """The names of the tensor that is the argument at this position."""
        return names_of(list(self.given.values())[position])


OfOperands = Callable[[Call], Names]
OfResults = Callable[[Call, Size, int], Names]


def tensors_in(value: Any) -> Iterator[Any]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for each in value:
            yield from tensors_in(each)


def distinct(names: Sequence[str | None]) -> Names:
    """Names of which each stands once: a dim that repeats the name of another has none."""
    return tuple(None if name in names[:place] else name for place, name in enumerate(names))


# ---- The operands decide -----------------------------------------------------------------------------------------------


def unifying(call: Call) -> Names:
    """Return the names of all operands, unified from the right: a + b, where, lerp."""
    return unified_all([names_of(each) for each in call.operands()], call.name)


def unifying_two(call: Call) -> Names:
    """The names of the first two operands, unified: losses whose further operands are weights."""
    operands = list(call.operands())
    return unified_all([names_of(each) for each in operands[:2]], call.name)


def keeping(call: Call) -> Names:
    """Return the names of the input: softmax, cumsum, sort, pooling."""
    return call.names


def choosing(call: Call) -> Names:
    """`unifying`, unless it gives the indices where a condition holds: where."""
    return unifying(call) if len(list(call.operands())) > 1 or len(call.given) > 1 else ()


def joining(call: Call) -> Names:
    """The names of the tensors that are joined, of which each dim has one name, or none in some of them: cat."""
    return _common(call, [names_of(each) for each in call.operands()])


def joining_rows(call: Call) -> Names:
    """`joining` of tensors that get further dims first: hstack, vstack, dstack, column_stack."""
    least = {"hstack": 1, "column_stack": 2, "vstack": 2, "dstack": 3}[call.name]
    wide = [names_of(each) for each in call.operands()]
    if call.name == "column_stack":
        return _common(call, [(*names, None) if len(names) == 1 else names for names in wide])
    return _common(call, [_at_least(names, least) for names in wide])


def stacking(call: Call) -> Names:
    """Compute `joining` with one dim more: stack."""
    names = _common(call, [names_of(each) for each in call.operands()])
    dim = call.argument("dim") % (len(names) + 1)
    return (*names[:dim], None, *names[dim:])


def _common(call: Call, several: list[Names]) -> Names:
    result = list(several[0])
    for names in several[1:]:
        if len(names) != len(result):  # cat accepts a tensor of size (0,), which has no part in the result
            continue
        for place, (a, b) in enumerate(zip(result, names, strict=True)):
            if a is not None and b is not None and a != b:
                raise RuntimeError(
                    f"{call.name}: names of the tensors do not match: {shown(result)} and {shown(names)}"
                    f"{aligned(result, names, {place - len(names)})}"
                )
            result[place] = b if a is None else a
    return tuple(result)


def pairing(call: Call) -> Names:
    """Return the names of the batches, unified, then that of each list of vectors: cdist."""
    left, right = call.names_at(0), call.names_at(1)
    return distinct((*unified(left[:-2], right[:-2], call.name), left[-2], right[-2]))


def looking_up(call: Call) -> Names:
    """Return the names of the indices, and behind them that of the vectors in a table: embedding."""
    indices, table = call.argument("input", "indices"), call.argument("weight")
    return distinct((*names_of(indices), names_of(table)[-1]))


def convolving(call: Call) -> Names:
    """Return the names of the input, with the name of the filters in the place of the channels: conv2d."""
    names, weight = call.names, call.names_at(1)
    if call.name == "conv_tbc":
        return distinct((*names[:-1], weight[-1]))
    place = len(names) - len(weight) + 1
    filters = weight["transpose" in call.name or call.argument("transposed") is True]
    return distinct((*names[:place], filters, *names[place + 1 :]))


def sampling(call: Call) -> Names:
    """The names of batch and channels, then those of the places that are sampled: grid_sample."""
    return distinct((*call.names[:2], *call.names_at(1)[1:-1]))


def searching(call: Call) -> Names:
    """The names of the values that are looked for: searchsorted."""
    return names_of(value) if isinstance(value := call.argument("input", "self"), Tensor) else ()


def selecting(call: Call) -> Names:
    """No names, but those of input and mask have to fit: masked_select."""
    unified_all([names_of(each) for each in call.operands()], call.name)
    return ()


# ---- The results decide -------------------------------------------------------------------------------------------------


def reducing(call: Call, shape: Size, place: int) -> Names:
    """The names of the dims that are left: sum, max, median. With `keepdim` all are. max(a, b) is elementwise."""
    names = call.names
    if len(shape) == len(names):
        return unifying(call)
    return _without(names, call.argument("dim", "axis"))


def _without(names: Names, dims: Any) -> Names:
    if dims is None or dims == ():
        return ()
    gone = {dim % len(names) for dim in ((dims,) if isinstance(dims, int) else dims)}
    return tuple(name for place, name in enumerate(names) if place not in gone)


def reducing_by_quantiles(call: Call, shape: Size, place: int) -> Names:
    """`reducing`, behind one dim for the quantiles if these are a vector."""
    names, q = call.names, call.argument("q")
    before = (None,) if isinstance(q, Tensor) and q.dim() == 1 else ()
    left = names if len(shape) == len(names) + len(before) else _without(names, call.argument("dim"))
    return (*before, *left)


def comparing(call: Call, shape: Size, place: int) -> Names:
    """The names of two operands, unified, without the dim that is summed: cosine_similarity, pairwise_distance."""
    operands = list(call.operands())
    names = unified(names_of(operands[0]), names_of(operands[1]), call.name)
    return names if len(shape) == len(names) else _without(names, call.argument("dim", default=-1))


def scoring(call: Call, shape: Size, place: int) -> Names:
    """Return the names of the scores without that of the classes, the last dim: multi_margin_loss."""
    return call.names[:-1]


def classifying(call: Call, shape: Size, place: int) -> Names:
    """Return the names of the scores without that of the classes, dim 1 of a batch: cross_entropy."""
    names = call.names
    return names if len(shape) == len(names) else _without(names, 1 if len(names) > 1 else 0)


def expanding(call: Call, shape: Size, place: int) -> Names:
    """The names of the input, behind dims without one: expand, repeat."""
    operands = list(call.operands())
    names = names_of(operands[place if call.name == "broadcast_tensors" else 0])
    return (None,) * (len(shape) - len(names)) + names


def prepending(call: Call, shape: Size, place: int) -> Names:
    """Return the names of each input, with a new dim on the sides: atleast_2d."""
    return _at_least(names_of(list(call.operands())[place]), len(shape))


def _at_least(names: Names, ndim: int) -> Names:
    if ndim < 2 or len(names) >= ndim:
        return names
    if ndim == 2:
        return (*(None,) * (2 - len(names)), *names)
    return {0: (None, None, None), 1: (None, *names, None), 2: (*names, None)}[len(names)]


def replacing(last: int) -> OfResults:
    """The names of the input but those of its last dims, in whose place the result has others: det, svd, one_hot."""

    def replacing_last_dims(call: Call, shape: Size, place: int) -> Names:
        names = call.names
        kept = names[: max(len(names) - last, 0)]
        return (*kept, *(None,) * (len(shape) - len(kept)))

    return replacing_last_dims


def swapping(call: Call, shape: Size, place: int) -> Names:
    """The names of the input, of which the last two are swapped: inverse, pinv."""
    names = call.names
    return (*names[:-2], names[-1], names[-2])


def rotating(call: Call, shape: Size, place: int) -> Names:
    """The names of the input, of which two are swapped after a quarter of a turn: rot90."""
    names = list(call.names)
    first, second = call.argument("dims", default=(0, 1))
    if call.argument("k", default=1) % 2:
        names[first], names[second] = names[second], names[first]
    return tuple(names)


def recurring(call: Call, shape: Size, place: int) -> Names:
    """The outputs have the names of the input but that of the features; states have that of the batch: lstm, gru."""
    names, arguments = call.names, call.argument("*args")
    if place == 0:
        return (*names[:-1], None)
    return (None, names[0 if arguments[-1] is True else 1], None) if len(names) == 3 else ()


def keeping_in_first(call: Call, shape: Size, place: int) -> Names:
    """The names of the input for the first result; further ones are statistics, or weights: native_batch_norm."""
    return call.names if place == 0 else ()


def unifying_each(call: Call, shape: Size, place: int) -> Names:
    """`unifying` of lists of tensors: _foreach_add."""
    arguments = (*call.given.values(), *call.argument("*args", default=()))
    lists = [value for value in arguments if isinstance(value, (tuple, list))]
    operands = [each[place] for each in lists if len(each) > place and isinstance(each[place], Tensor)]
    return unified_all([names_of(each) for each in operands], call.name)


def unsqueezing(call: Call, shape: Size, place: int) -> Names:
    """Return the names of the input, and none for the new dim."""
    names = call.names
    dim = call.argument("dim") % (len(names) + 1)
    return (*names[:dim], None, *names[dim:])


def reshaping(call: Call, shape: Size, place: int) -> Names:
    """The names of the first dims and of the last dims that keep their sizes: reshape, view. The dims between them are others."""
    source = call.input.spec
    names, old = spec_names(source), source.shape
    if not source.numel:
        return names if old == shape else ()
    room = min(len(old), len(shape))
    first = next((place for place in range(room) if old[place] != shape[place]), room)
    last = next(
        (place for place in range(room - first) if old[-1 - place] != shape[-1 - place]), room - first
    )
    between = (None,) * (len(shape) - first - last)
    return (*names[:first], *between, *names[len(names) - last :])


def viewing(call: Call, shape: Size, place: int) -> Names:
    """A dim of the result has the name of the dim whose stride it has, or a multiple of that: permute, select, split."""
    rest = tuple(_hashable(value) for value in list(call.given.items())[1:])
    return _viewed(call.name.removesuffix("_copy"), call.input.spec, rest)


def _hashable(value: Any) -> Any:
    return tuple(map(_hashable, value)) if isinstance(value, (tuple, list)) else value


@functools.lru_cache(4096)
def _viewed(name: str, source: Spec, rest: tuple[tuple[str, Any], ...]) -> Names:
    """The function runs on a tensor without memory that has the sizes of the input and a prime stride for each dim."""
    names = spec_names(source)
    steps = _PRIMES[: len(names)]
    probe = make(_META.backend.allocate(0), 0, make_spec(source.shape, steps, source.dtype, _META))
    probe._storage.nbytes_ = 2**62
    further: tuple = ()
    arguments = {}
    for parameter, value in rest:
        if parameter.startswith("*"):
            further = value
        else:
            arguments[parameter] = value
    seen = _function(name)(probe, *further, **arguments)
    first = seen if isinstance(seen, Tensor) else seen[0]
    return distinct([_name(stride, steps, names) for stride in first.spec.stride])


# One for each of the 64 dims that a tensor may have.
_PRIMES = tuple(
    each for each in range(10001, 10700, 2) if all(each % divisor for divisor in range(3, 105, 2))
)
_META = as_device("meta")


def _name(stride: int, steps: tuple[int, ...], names: Names) -> str | None:
    found = [name for step, name in zip(steps, names, strict=True) if stride and stride % step == 0]
    return found[0] if len(found) == 1 else None


def _function(name: str) -> Callable:
    member = vars(Tensor).get(name)
    if isinstance(member, property):
        return member.fget  # type: ignore[return-value]
    return member if member is not None else FUNCTIONS[name]
