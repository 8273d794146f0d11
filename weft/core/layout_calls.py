"""How a call of a public function reaches the rules of a layout.

`Rules` is a table: the public name of a function, such as "add", "sparse.mm" or "add_", and the function that computes it for
tensors of a layout. An entry (`core/entry.py`) asks the rules of its arguments after the modes and the classes.
Functions without an entry, or with a fast path in front of it, would not ask. So before the first tensor that is not plain is
made, `install` exchanges their code for a guard, which looks at the specs of the arguments. Machine code answers the usual
calls of plain tensors before a guard is reached, so a process that uses a sparse tensor stays as fast as it was.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Iterator
from types import CodeType, FunctionType
from typing import Any

from . import overrides
from .above import above
from .checking import check_tensors, write_checks
from .code_exchange import code_like, displaced, exchange_code, guarded, with_own_code
from .dispatch import PLAIN, recoverers
from .dtype import QUANTIZED
from .entry import numpy_names
from .layout import strided
from .layout_spec import LayoutSpec, NotStrided, first_layout_hooks
from .outputs import check_unrecorded, resize_out
from .overrides import (
    REFLECTED,
    DisableTorchFunctionSubclass,
    full_name,
    override_types,
    public_function,
    spec_of,
)
from .recording import unrecorded
from .registry import ALIASES, FUNCTIONS, entry_of
from .spec import Spec
from .tensor import Tensor

# (result of a rule, target): writes a result into the target, whose layout is the same.
Assign = Callable[[Any, Any], None]


# All Rules by name, for pickles of specs.
known_rules: dict[str, Rules] = {}


class Rules:
    """What the tensors of a layout do in the public functions.

    name: how messages call such tensors.
    assign: writes a result into another tensor, for the forms `name_` and `out=` of functions whose rule has neither.
    restrict: what a cotangent holds where a tensor has values, see `layouts/parts.py`.
    composed: whether functions without a rule run as they are, on functions that have rules.
    instead: what a user is to write where there is no rule.
    """

    def __init__(
        self,
        name: str,
        instead: str,
        assign: Assign | None = None,
        restrict: Callable[[Any, Any], Any] | None = None,
        composed: bool = True,
    ):
        self.name, self.instead, self.assign, self.restrict, self.composed = (
            name,
            instead,
            assign,
            restrict,
            composed,
        )
        self.functions: dict[str, Callable] = {}
        known_rules[name] = self

    def __reduce__(self) -> tuple:
        return _rules_called, (self.name,)

    def names_of(self, spec: LayoutSpec) -> tuple[str | None, ...] | None:
        """The names of the dims of a tensor with this spec."""
        return None

    def numel_of(self, spec: LayoutSpec) -> int:
        """The number of elements of a tensor with this spec."""
        return math.prod(spec.shape)

    def is_dense(self, spec: LayoutSpec) -> bool:
        """Whether the strides of a tensor with this spec leave no gaps."""
        return Spec.is_dense.fget(spec)  # type: ignore[attr-defined]

    def operands(self, args: tuple) -> tuple:
        """The operands of a function whose result is going to overwrite the first of them."""
        return args

    def gradient(self, ct: Tensor) -> Tensor:
        """What a leaf gets as its `grad` if only the backward pass holds this gradient: a tensor with the same parts."""
        return ct

    def memory(self, x: Tensor) -> Tensor:
        """A plain tensor of the memory that holds the elements, for updates that write each element in place.

        Tensors of one structure give tensors of one shape, whose elements correspond.
        Raises: NotStrided if the layout has no such memory.
        """
        raise NotStrided(x.spec)  # type: ignore[arg-type]

    def cotangent(self, tensor: Tensor) -> Tensor:
        """A tensor that a user gives as a cotangent, as it goes through the graph."""
        return tensor

    def rule(self, *names: str) -> Callable[[Callable], Callable]:
        """Decorator: the function computes the public functions of these names."""

        def note(function: Callable) -> Callable:
            for name in names:
                if name in self.functions:
                    raise ValueError(f"the rules of {self.name} tensors have a function for {name!r} already")
                self.functions[name] = function
            return function

        return note

    def _write_out(self, result: Tensor, out: Tensor, name: str) -> None:
        assert self.assign is not None
        if result.layout is out.layout is strided and result.shape != out.shape:
            resize_out(out, result.shape, name)
        self.assign(result, out)

    def answer(self, name: str, function: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The result of a call of the public function `name`; PLAIN if it runs as it is."""
        name, args = self.forward(name, args)
        rule = self.functions.get(name)
        if rule is not None:
            if self.assign is None or (out := kwargs.pop("out", None)) is None:
                return rule(*args, **kwargs)
            check_unrecorded(name, (*args, *kwargs.values(), out))
            result = rule(*args, **kwargs)
            if not isinstance(out, tuple | list):
                self._write_out(result, out, name)
                return out
            for each, target in zip(result, out, strict=True):
                self._write_out(each, target, name)
            return type(result)(out)
        if self.assign is not None:
            if name.endswith("_") and (rule := self.functions.get(name[:-1])) is not None:
                self.assign(rule(*self.operands(args), **kwargs), args[0])
                return args[0]
        if self.composed:
            return PLAIN
        raise self.missing(name)

    @staticmethod
    def forward(name: str, args: tuple) -> tuple[str, tuple]:
        """The function and its operands for an operator with swapped operands, `__rsub__`; all others as they are."""
        return (_reflected[name], args[::-1]) if name in _reflected and len(args) == 2 else (name, args)

    def missing(self, name: str) -> NotImplementedError:
        return NotImplementedError(
            f"{_shown(name)} is not implemented for {self.name} tensors: {self.instead}"
        )


def _rules_called(name: str) -> Rules:
    if name not in known_rules:
        above(f"layouts.{name}.rules")
    return known_rules[name]


# Operator with swapped operands -> the public function.
_reflected: dict[str, str] = {}


def _shown(name: str) -> str:
    return f"Tensor.{name}" if name not in FUNCTIONS and name in vars(Tensor) else f"torch.{name}"


_NUMBERS = frozenset((int, float, complex, bool, str))


def rules_of(values: Iterable[Any], depth: int = 3) -> Rules | None:
    """The rules of the first of the values, or of the items of lists and tuples among them, that is not a plain tensor.

    depth: how many levels of lists are looked into. A list that begins with a number is data, and may be long.
    """
    for value in values:
        if isinstance(value, Tensor):
            if type(spec_of(value)) is not Spec:
                return value.spec.rules  # type: ignore[attr-defined]
        elif (
            (type(value) is list or type(value) is tuple)
            and value
            and depth
            and type(value[0]) not in _NUMBERS
        ):
            found = rules_of(value, depth - 1)
            if found is not None:
                return found
    return None


def answer(function: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
    """The answer of the rules of the arguments to a call; PLAIN if all of them are plain, or the function runs as it is."""
    rules = rules_of(args) or kwargs and rules_of(kwargs.values())
    if not rules:
        return PLAIN
    if kwargs and (renamed := _other_names(function)):  # x.sum(axis=1) is x.sum(dim=1), also for a rule
        kwargs = {renamed.get(name, name): value for name, value in kwargs.items()}
    name = public_name(function)
    # While modes are on, setters and these members ask as well.
    if name.endswith(("__set__", "__delete__")) or name in _UNGUARDED and name not in rules.functions:
        return PLAIN
    try:
        return rules.answer(name, function, args, kwargs)
    except (AttributeError, KeyError, TypeError, NotImplementedError) as error:
        if isinstance(error, KeyError) and not _has_others(rules, (*args, *kwargs.values())):
            raise
        answered = _answer_of_types(function, args, kwargs)
        if answered is NotImplemented:
            return answered
        if isinstance(answered, TypeError) and not isinstance(error, TypeError):
            raise answered from None
        if isinstance(error, (AttributeError, KeyError)):
            name, args = rules.forward(name, args)
            check_tensors(rules.functions.get(name, function), name, args, kwargs)
            raise rules.missing(name) from error  # the rule is not for a tensor of this layout at this place
        raise


_other_names = functools.cache(numpy_names)


def _has_others(rules: Rules, values: Iterable[Any]) -> bool:
    """Whether a tensor of another layout is among the values or the items of lists among them."""
    items = (item for each in values for item in (each if type(each) in (list, tuple) else (each,)))
    return any(rules_of((each,)) not in (None, rules) for each in items)


def _answer_of_types(function: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
    """What a function says to the types of its arguments: its TypeError, NotImplemented if it is an operator, or something else.

    The function is called with plain tensors of the device meta in place of all tensors.
    """
    try:
        with unrecorded(), DisableTorchFunctionSubclass():
            return function(
                *map(_stand_in, args), **{name: _stand_in(value) for name, value in kwargs.items()}
            )
    except Exception as error:
        return error


def _stand_in(value: Any) -> Any:
    """A plain tensor with as many dims and the dtype of a tensor, or of its integers; the items of lists and tuples likewise."""
    if isinstance(value, Tensor):
        dtype = QUANTIZED.get(value.spec.dtype, value.spec.dtype)
        return FUNCTIONS["empty"]((1,) * value.spec.ndim, dtype=dtype, device="meta")
    return type(value)(map(_stand_in, value)) if type(value) in (list, tuple) else value


_names: dict[Callable, str] = {}
# Operators that handlers of `__torch_function__` are told of as such -> the public function.
_OPERATORS = {
    "__eq__": "eq", "__ne__": "ne", "__floordiv__": "floor_divide", "__and__": "bitwise_and", "__or__": "bitwise_or",
    "__xor__": "bitwise_xor", "__lshift__": "bitwise_left_shift", "__rshift__": "bitwise_right_shift", "__invert__": "bitwise_not",
    "__iand__": "bitwise_and_", "__ior__": "bitwise_or_", "__ixor__": "bitwise_xor_",
    "__ilshift__": "bitwise_left_shift_", "__irshift__": "bitwise_right_shift_",
}  # fmt: skip


def public_name(function: Callable) -> str:
    """ "add" for `torch.add`, `Tensor.add` and `Tensor.__add__`; "linalg.norm" for a function of a submodule."""
    name = _names.get(function)
    if name is None:
        public = public_function(function)
        member = getattr(public, "__self__", None)
        if isinstance(member, property) and public.__name__ == "__get__":  # how modes are told of a getter
            return _names[member.fget]  # type: ignore[index]
        name = full_name(public) or public.__name__
        name = name.removeprefix("torch.").removeprefix("Tensor.")
        name = _names[function] = canonical(_OPERATORS.get(name, name))
    return name


def canonical(name: str) -> str:
    """The first name of a function with several: "abs" for "absolute", "abs_" for "absolute_"."""
    if name.endswith("_") and name not in ALIASES and name[:-1] in ALIASES:
        return f"{ALIASES[name[:-1]]}_"
    return ALIASES.get(name, name)


def _recover(function: Callable, args: tuple, kwargs: dict[str, Any], error: Exception) -> Any:
    """Say which public function has no rule where an op within it refused a tensor."""
    rules = rules_of(args) or rules_of(kwargs.values())
    if isinstance(error, NotStrided) and rules:
        raise rules.missing(public_name(function)) from None
    return PLAIN


# ---- Guards ------------------------------------------------------------------------------------------------------------

# Members that read only what each tensor has, or what a LayoutSpec says as a Spec does.
_UNGUARDED = frozenset(
    "__init__ __hash__ dim ndimension numel nelement element_size is_floating_point is_complex is_signed is_conj is_neg shape "
    "dtype device layout ndim requires_grad is_leaf grad grad_fn is_meta is_cpu is_cuda itemsize name output_nr retains_grad "
    "_version _backward_hooks register_hook retain_grad backward _is_view requires_grad_ grad_dtype volatile _grad_fn "
    "register_post_accumulate_grad_hook _post_accumulate_grad_hooks is_sparse is_sparse_csr is_quantized is_nested is_mkldnn is_xpu "
    "is_mps is_vulkan is_maia is_ipu is_xla is_mtia __array_priority__ _has_symbolic_sizes_strides "
    "_make_subclass _legacy_new __init_subclass__ __torch_function__ __torch_dispatch__".split()
)


def install() -> None:
    """Let all public functions ask the rules of layouts."""
    overrides.layout_answer = answer
    override_types.add(LayoutSpec)  # so that entries ask
    recoverers.append(_recover)
    for forward, names in REFLECTED.items():
        if forward in vars(Tensor):
            called = public_name(vars(Tensor)[forward])
            _reflected.update({name: called for name in names if name != called})
    for name, member in vars(Tensor).items():
        if isinstance(member, property) and member.fget is not None:
            _names[member.fget] = name
    exchange_code(
        [(function, code) for function, code in map(_exchange, _unasking()) if function is not None]
    )


def _unasking() -> Iterator[FunctionType]:
    """The public functions, methods and getters of properties that do not ask themselves, each once."""
    seen: set[int] = set()
    members = (
        member.fget if isinstance(member, property) else member
        for name, member in vars(Tensor).items()
        if name not in _UNGUARDED
    )
    for function in (*FUNCTIONS.values(), *members):
        if isinstance(function, FunctionType) and id(function) not in seen:
            seen.add(id(function))
            if entry_of.get(function) is not function:
                yield function


def _exchange(function: FunctionType) -> tuple[FunctionType | None, CodeType]:
    """The function with the code of its guard; if machine code has taken its place, the guard goes to the copy behind that."""
    write_checks(function)
    copy = displaced.get(function)
    unguarded = with_own_code(function if copy is None else copy)
    guard = _guard(function, entry_of.get(function), unguarded)
    code = code_like(unguarded.__code__, _GUARDED, guard=guard)
    guarded[function] = code, unguarded.__code__
    if copy is None:
        return function, code
    copy.__code__ = code
    return None, code


_GUARDED = "def function(*args, **kwargs):\n    return 'guard'(*args, **kwargs)"


def _guard(function: FunctionType, behind: Callable | None, own: Callable) -> Callable:
    """A function that calls `own` for plain tensors, and else the entry `behind`, or the rules if there is no entry."""

    @functools.wraps(own)
    def guard(*args: Any, **kwargs: Any) -> Any:
        for each in args:
            if isinstance(each, Tensor):
                if type(each.spec) is not Spec:
                    break
            elif (type(each) is tuple or type(each) is list) and rules_of(each):
                break
        else:
            if not kwargs:
                return own(*args)
            if not rules_of(kwargs.values()):
                return own(*args, **kwargs)
        if behind is not None:
            return behind(*args, **kwargs)
        if (answered := answer(function, args, kwargs)) is not PLAIN:
            return answered
        try:
            return own(*args, **kwargs)
        except NotStrided as error:
            _recover(function, args, kwargs, error)
            raise

    return guard


first_layout_hooks.append(install)
