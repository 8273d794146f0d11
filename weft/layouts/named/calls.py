"""A call with named tensors: names of dims become their numbers, the function runs on plain tensors, its results get names."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from ...autograd.dual import levels
from ...core.dispatch import PLAIN
from ...core.overrides import public_function
from ...core.spec import Spec
from ...core.tensor import Tensor
from .contraction import named_dims
from .propagation import Call, tensors_in
from .rules import NAMED
from .table import rules_of
from .tensors import Names, dim_of, follow, named, names_of, plain, require_names, take

# Parameters that take dims.
_DIMS = frozenset(
    "dim dims dim0 dim1 dim2 axis axis0 axis1 start_dim end_dim source destination dimension *dims *order *along".split()
)
_DEVIATIONS = frozenset("std var std_mean var_mean".split())  # they take `unbiased` in the place of `dim`
_OF_ELEMENTS = frozenset("apply_ map_ map2_".split())  # they call a function for each element
_INSERTING = frozenset("unsqueeze unsqueeze_ stack".split())  # their `dim` is the place of a new dim


def run(name: str, function: Callable, args: tuple, kwargs: dict[str, Any], is_reflected: bool) -> Any:
    """The result of a call of `function`, public under this name, with its names; PLAIN if it runs as it is.

    is_reflected: whether the function is an operator with swapped operands, and the name that of the other operator.
    """
    if name not in _OF_ELEMENTS and any(callable(each) and not isinstance(each, type) for each in args):
        return PLAIN  # cond(x > 0, function, other, x): the functions may use the names
    rules = rules_of(name)
    if rules is None:
        return PLAIN  # the functions that it calls find the names, or an op refuses the named tensor
    args, kwargs = _numbered(name, function, args, kwargs)
    operands = args[::-1] if is_reflected else args
    call = Call(name if name.startswith("__") else name.removesuffix("_"), function, operands, kwargs, _given)
    targets = _targets(name, args, kwargs)
    is_inplace = kwargs.get("out") is None
    of_operands, of_results = rules
    stand_ins = _StandIns()
    plain_args = tuple(map(stand_ins.of, args))
    plain_kwargs = {key: stand_ins.of(value) for key, value in kwargs.items()}
    names: Names = ()
    if of_operands is not None:
        try:
            names = of_operands(call)
        except RuntimeError:
            raise
        except Exception:  # a wrong call: the function says what is wrong with it
            function(*plain_args, **plain_kwargs)
            raise
        for target in targets:
            require_names(target, names)
    result = function(*plain_args, **plain_kwargs)

    def finished(each: Tensor, place: int) -> Tensor:
        found = names if of_results is None else of_results(call, each.spec.shape, place)
        return stand_ins.result(each, found, targets, is_inplace)

    answer = _each_tensor(result, finished)
    stand_ins.carry_over()
    return answer


NAMED.run = run


def _each_tensor(result: Any, finished: Callable[[Tensor, int], Tensor], place: int = 0) -> Any:
    """Return the result with `finished(tensor, place)` in place of each tensor."""
    if isinstance(result, Tensor):
        return finished(result, place)
    if isinstance(result, (tuple, list)):
        kind: Any = type(result)
        items = [_each_tensor(item, finished, place) for place, item in enumerate(result)]
        return getattr(kind, "_make", kind)(items)
    return result


def _targets(name: str, args: tuple, kwargs: dict[str, Any]) -> list[Tensor]:
    """The tensors that the call writes."""
    if (out := kwargs.get("out")) is not None:
        return list(tensors_in(out))
    is_inplace = name.endswith("_") and not name.endswith("__")
    return [args[0]] if is_inplace and args and isinstance(args[0], Tensor) else []


class _StandIns:
    """The plain tensors that a function gets in place of named ones, one for each tensor."""

    def __init__(self) -> None:
        self.of_originals: dict[int, Tensor] = {}
        self.originals: dict[int, tuple[Tensor, Tensor, Spec]] = {}

    def of(self, value: Any) -> Any:
        """The argument of the function that stands for an argument of the call."""
        if isinstance(value, Tensor):
            found = self.of_originals.get(id(value))
            if found is None:
                found = self.of_originals[id(value)] = plain(value)
                self.originals[id(found)] = value, found, found.spec
            return found
        if type(value) in (tuple, list):
            return type(value)(map(self.of, value))
        return value

    def carry_over(self) -> None:
        """What a function did to the stand-ins besides writing elements: history, sizes, dtype, memory."""
        for original, found, before in self.originals.values():
            if found is not original and (
                found.spec is not before
                or found._autograd is not original._autograd
                or found._storage is not original._storage
                or levels
            ):
                own = names_of(original)
                take(original, found, own if len(own) == found.dim() else ())

    def result(self, each: Tensor, names: Names, targets: list[Tensor], is_inplace: bool) -> Tensor:
        """A result with its names; the tensor of the caller if the function returned its stand-in."""
        ndim = len(each.spec.shape)
        fits = len(names) == ndim
        known = self.originals.get(id(each))
        if known is None:
            if (of_base := self.originals.get(id(each._base))) is not None:
                follow(of_base[0], of_base[1])
            return named(each, names) if fits else each
        original = known[0]
        if any(original is target for target in targets):
            if not is_inplace:
                names = names if fits else (None,) * ndim
                require_names(original, names)
            elif not fits:
                names = names_of(original)
            take(original, each, names)
            return original
        return original if fits else each


# ---- Arguments -----------------------------------------------------------------------------------------------------------


@functools.lru_cache(4096)
def _parameters(name: str, function: Callable) -> dict[str, Any]:
    """The parameters, of which one for all further arguments begins with "*", and the defaults of dims."""
    shown = public_function(function)
    try:
        parameters = _of_signature(shown)
        if name in _DEVIATIONS:
            return {"input": None, "dim": None}
        # For example, `transpose_` takes (self, *args, **kwargs).
        if "*args" in parameters and name.removesuffix("_") in vars(Tensor):
            parameters = _of_signature(vars(Tensor)[name.removesuffix("_")])
    except (TypeError, ValueError):
        return {"*args": None}
    return parameters


def _of_signature(function: Callable) -> dict[str, Any]:
    result = {}
    for each in inspect.signature(function).parameters.values():
        if each.kind is not each.VAR_KEYWORD:
            is_dim = each.name in _DIMS and each.default is not each.empty
            result["*" * (each.kind is each.VAR_POSITIONAL) + each.name] = each.default if is_dim else None
    return result


def _given(name: str, function: Callable, args: tuple, kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments by the names of parameters, and the defaults of dims."""
    by_name = dict(kwargs)
    result = {}
    rest = len(args)
    for place, (parameter, default) in enumerate(_parameters(name, function).items()):
        if parameter.startswith("*"):
            result[parameter], rest = args[place:], 0
        elif place < rest:
            result[parameter] = args[place]
        elif (value := by_name.pop(parameter, default)) is not None:
            result[parameter] = value
    result.update(by_name)
    if type(result.get("dim")) is bool:  # std(input, unbiased)
        del result["dim"]
    return result


def _numbered(
    name: str, function: Callable, args: tuple, kwargs: dict[str, Any]
) -> tuple[tuple, dict[str, Any]]:
    """Return the arguments with the numbers of dims in place of their names."""
    values = (*args, *kwargs.values())
    if name in _INSERTING or not any(map(_has_text, values)):
        return args, kwargs
    tensors = list(tensors_in(values))
    names = names_of(next((each for each in tensors if any(names_of(each))), tensors[0]))
    parameters = list(_parameters(name, function))

    def number(parameter: str, value: Any) -> Any:
        if parameter not in _DIMS:
            return value
        return named_dims(tensors, value) if name == "tensordot" else _number(value, names, name)

    found = [number(parameters[min(place, len(parameters) - 1)], value) for place, value in enumerate(args)]
    return tuple(found), {key: number(key, value) for key, value in kwargs.items()}


def _has_text(value: Any) -> bool:
    return isinstance(value, str) or type(value) in (tuple, list) and any(map(_has_text, value))


def _number(value: Any, names: Names, function: str) -> Any:
    """Return the number of a dim, or the numbers of several, in place of the names."""
    if isinstance(value, str):
        return dim_of(value, names, function)
    if type(value) in (tuple, list) and any(isinstance(each, str) for each in value):
        if None in value:
            raise RuntimeError(f"{function}: Please look up dimensions by name, got: name = None.")
        return type(value)(dim_of(each, names, function) if isinstance(each, str) else each for each in value)
    return value
