"""The public functions, methods and operators of elementwise ops: arguments checked, a short way for plain tensors."""

from __future__ import annotations

import builtins
import functools
import inspect
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np

from ..core.checking import checked
from ..core.dispatch import fast_path_switches
from ..core.dtype import DType, bool_, from_numpy_dtype, numpy_dtype
from ..core.entry import declined, entry, in_front_of
from ..core.grad_mode import mode
from ..core.promotion import common_dtype
from ..core.recording import new_recorder
from ..core.registry import FUNCTIONS, add_function, add_method
from ..core.spec import Spec
from ..core.tensor import Tensor
from ..engine.defer import promised, rewritten
from .map import NUMBERS, Map, normalise, not_a_tensor, spec_or_type, to_float

_new = object.__new__
# Whether plain tensors take the short way. `core/dispatch.py` turns it off while a watcher must see them.
_fast = True


@fast_path_switches.append
def _set_fast(on: bool) -> None:
    global _fast
    _fast = on


class _Nothing:
    """No object is of this class: in place of `Tensor` it closes the short way of ops that are not a kernel."""


def unary(op: Map) -> Callable:
    """`function(input, *, out=None)`, with a fast path for plain tensors."""
    plans = op.plans
    plain = Tensor if op.is_kernel else _Nothing

    def body(input, *, out=None):
        if not isinstance(input, Tensor):
            raise not_a_tensor(op.name, 0, input)
        return op(input) if out is None else op.into(out, input)

    general = entry(body, op.name)

    @in_front_of(general)
    def function(input, *, out=None):
        if _fast and type(input) is plain and out is None:
            plan = plans[(input.spec,)]
            if plan.deferred is not None:
                storage = promised(plan, (input,), ())
            else:
                storage = plan.allocate()
                plan.entry(storage.ptr, input._storage.ptr + input._byte_offset, plan.meta, plan.count)
            result = _new(Tensor)
            result._storage = storage
            result._byte_offset = 0
            result.spec = plan.spec
            result._autograd = result._base = None
            if input._autograd is not None and mode.enabled:
                (plan.record or new_recorder(plan, op, result, (input,)))(result, input)
            return result
        if out is None:
            return general(input)
        return out if _fast and type(input) is plain and _into(op, out, input) else general(input, out=out)

    return _named(function, op)


def binary(op: Map, operator: bool = False, numbers: str = "other") -> Callable:
    """`function(input, other, *, out=None)`; `numbers` says which may be a number (see `publish`).

    As an `operator` it answers NotImplemented to types it does not know, which may have their own.
    """
    plans = op.plans
    plain = Tensor if op.is_kernel else _Nothing
    fast_numbers = operator or numbers in ("all", "other", "input other")

    def body(input, other, *, out=None):
        if operator:
            if not is_operand(other):
                return declined(other)
            if isinstance(other, np.ndarray):
                input, other = with_array(op, input, other)
        elif type(input) is not Tensor or type(other) is not Tensor:
            check_operands(op.name, numbers, input, other)
        return op(input, other) if out is None else op.into(out, input, other)

    general = entry(body, op.name, is_operator=operator)

    @in_front_of(general)
    def function(input, other, *, out=None):
        if _fast and type(input) is plain and out is None:
            if type(other) is Tensor:
                plan = plans[input.spec, other.spec]
                if plan.deferred is not None:
                    storage = promised(plan, (input, other), ())
                else:
                    storage = plan.allocate()
                    plan.entry(
                        storage.ptr,
                        input._storage.ptr + input._byte_offset,
                        other._storage.ptr + other._byte_offset,
                        plan.meta,
                        plan.count,
                    )
                result = _new(Tensor)
                result._storage = storage
                result._byte_offset = 0
                result.spec = plan.spec
                result._autograd = result._base = None
                if (input._autograd is not None or other._autograd is not None) and mode.enabled:
                    (plan.record or new_recorder(plan, op, result, (input, other)))(result, input, other)
                return result
            if fast_numbers and ((kind := type(other)) is float or kind is int and -(2**63) <= other < 2**64):
                plan = plans[input.spec, kind]
                if plan.operand_dtype.kind != "c":  # the kernel reads floats and ints itself
                    if plan.deferred is not None:
                        storage = promised(plan, (input,), (other,))
                    else:
                        storage = plan.allocate()
                        plan.entry(
                            storage.ptr, input._storage.ptr + input._byte_offset, other, plan.meta, plan.count
                        )
                    result = _new(Tensor)
                    result._storage = storage
                    result._byte_offset = 0
                    result.spec = plan.spec
                    result._autograd = result._base = None
                    if input._autograd is not None and mode.enabled:
                        (plan.record or new_recorder(plan, op, result, (input, other)))(result, input, other)
                    return result
        if out is None:
            return general(input, other)
        if _fast and type(input) is plain and type(other) is Tensor and _into(op, out, input, other):
            return out
        return general(input, other, out=out)

    return _named(function, op)


def _into(op: Map, out: Any, input: Tensor, other: Tensor | None = None) -> bool:
    """Write the result for plain tensors into a plain tensor, if it fits without a copy, and autograd takes no part.

    Returns whether that is so; if it is not, nothing has happened.
    """
    if type(out) is not Tensor:
        return False
    storage = out._storage
    if input is not out and input._storage is storage or input._autograd is not None:
        return False
    if other is None:
        plan = op.into_plans[out.spec, input.spec]
    elif other is not out and other._storage is storage or other._autograd is not None:
        return False
    else:
        plan = op.into_plans[out.spec, input.spec, other.spec]
    if type(plan) is Spec or out._autograd is not None:
        return False
    storage.version += 1  # first, because it may raise, and may give the storage other memory
    address = storage.ptr + out._byte_offset
    if other is None:
        plan.entry(address, input._storage.ptr + input._byte_offset, plan.meta, plan.count)
    else:
        plan.entry(
            address,
            input._storage.ptr + input._byte_offset,
            other._storage.ptr + other._byte_offset,
            plan.meta,
            plan.count,
        )
    return True


def check_operands(name: str, numbers: str, *operands: Any) -> None:
    """Raises: TypeError for numbers where a tensor is wanted; `numbers` names the operands that may be numbers.

    All of them only where `numbers` says so by "all".
    """
    if numbers == "all":
        return
    are_tensors = [isinstance(operand, Tensor) for operand in operands]
    if True not in are_tensors:
        raise not_a_tensor(name, 0, operands[0])
    for position, is_tensor in enumerate(are_tensors):
        if not is_tensor and ("input", "other")[position] not in numbers:
            raise not_a_tensor(name, position, operands[position])


def is_operand(value: Any) -> bool:
    """Whether operators take this: a tensor, a number or an array of NumPy that holds numbers."""
    if isinstance(value, np.ndarray):
        return value.dtype.kind not in "OSUMm"  # objects, texts and times: NumPy knows what to do with them
    return isinstance(value, (Tensor, *NUMBERS, np.number, np.bool_))


def with_array(op: Map, tensor: Tensor, array: np.ndarray) -> tuple[Tensor, Any]:
    """Operands of `tensor op array`, both as tensors of the dtype that NumPy promotes them to, as in PyTorch.

    `==` takes a 0-dim array as a number, which is rounded to the dtype of the tensor.
    """
    if op.name in ("eq", "ne") and not array.ndim:
        return tensor, array.item()
    other = FUNCTIONS["from_numpy"](array if array.flags.writeable else array.copy())
    try:
        common = np.result_type(numpy_dtype(tensor.spec.dtype), array.dtype)
        dtype = from_numpy_dtype(
            np.dtype(np.float64) if common.kind in "biu" and op.promotion is to_float else common
        )
    except TypeError:  # NumPy has no such type, or no common one: as for two tensors
        return tensor, other
    return tensor.to(dtype), other.to(dtype)


def reflected(op: Map) -> Callable:
    """`other op self`, for the operators with an r in their names."""

    def body(self, other):
        if not is_operand(other):
            return declined(other)
        if isinstance(other, np.ndarray):
            self, other = with_array(op, self, other)
        return op(other, self)

    general = entry(body, op.name, is_operator=True)

    @in_front_of(general)
    def function(self, other):
        kind = type(other)
        return op(other, self) if kind is int or kind is float else general(self, other)

    return _named(function, op)


# What `tensor ** exponent` calls: for a tensor as exponent (under None), and for the numbers that have an op of their own.
powers: dict[Any, Any] = {}


def _named(function: Callable, op: Map) -> Callable:
    function.__name__ = function.__qualname__ = op.name
    return function


def inplace_of(op: Map, numbers: str = "other") -> Callable:
    """`method_(self, other)`, with a fast path for a plain tensor and for numbers."""
    plans = op.inplace_plans
    plain = Tensor if op.is_kernel else _Nothing
    fast_numbers = "other" in numbers or numbers == "all"

    def body(self, other):
        if type(other) is not Tensor:
            check_operands(op.name, numbers, self, other)
        return op.inplace(self, other)

    general = entry(body, f"{op.name}_")

    @in_front_of(general)
    def method(self, other):
        if _fast and type(self) is plain and self._autograd is None:
            if type(other) is Tensor:
                if other._autograd is None and (storage := self._storage) is not other._storage:
                    plan = plans[self.spec, other.spec]
                    if plan.deferred is not None and rewritten(plan, self, (self, other), ()):
                        return self
                    # First, because it may raise, and may do deferred work, during which a finalizer may move the storage.
                    storage.version += 1
                    address = storage.ptr + self._byte_offset
                    plan.entry(
                        address, address, other._storage.ptr + other._byte_offset, plan.meta, plan.count
                    )
                    return self
            elif fast_numbers and (
                (kind := type(other)) is float or kind is int and -(2**63) <= other < 2**64
            ):
                plan = plans[self.spec, kind]
                if plan.operand_dtype.kind != "c":
                    if plan.deferred is not None and rewritten(plan, self, (self,), (other,)):
                        return self
                    storage = self._storage
                    storage.version += 1
                    address = storage.ptr + self._byte_offset
                    plan.entry(address, address, other, plan.meta, plan.count)
                    return self
        return general(self, other)

    method.__name__ = method.__qualname__ = f"{op.name}_"
    return method


def inplace_unary(op: Map) -> Callable:
    """`method_(self)`, with a fast path for a plain tensor."""
    plans = op.inplace_plans
    plain = Tensor if op.is_kernel else _Nothing
    general = entry(lambda self: op.inplace(self), f"{op.name}_")

    @in_front_of(general)
    def method(self):
        if _fast and type(self) is plain and self._autograd is None:
            plan = plans[(self.spec,)]
            if plan.deferred is not None and rewritten(plan, self, (self,), ()):
                return self
            storage = self._storage
            storage.version += 1
            address = storage.ptr + self._byte_offset
            plan.entry(address, address, plan.meta, plan.count)
            return self
        return general(self)

    method.__name__ = method.__qualname__ = f"{op.name}_"
    return method


# ---- Sums, which scale their second operand ----------------------------------------------------------------------------


_ONE = 1  # CPython has one object for the int 1, so `is` distinguishes it from True and 1.0


def with_alpha(name: str, plain: Callable, alias: str, op: Map, scaled: Map, what: str) -> Callable:
    """`function(input, other, *, alpha=1, out=None)` and its in-place form."""
    plain_inplace = inplace_of(op)

    def body(input, other, *, alpha=1, out=None):
        if type(alpha) is int and alpha == 1:
            return op(input, other) if out is None else op.into(out, input, other)
        check_alpha(alpha, name, input, other)
        return scaled(input, other, alpha) if out is None else scaled.into(out, input, other, alpha)

    def body_inplace(self, other, *, alpha=1):
        if type(alpha) is int and alpha == 1:
            return op.inplace(self, other)
        check_alpha(alpha, name, self, other)
        return scaled.inplace(self, other, alpha)

    body.__qualname__, body_inplace.__qualname__ = name, f"{name}_"
    general, general_inplace = entry(body, name), entry(body_inplace, f"{name}_")

    @in_front_of(general, plain)
    def function(input, other, *older, alpha=1, out=None):
        if alpha is _ONE and not older:
            return plain(input, other, out=out)
        keywords = {} if alpha is _ONE else {"alpha": alpha}
        if out is not None:
            keywords["out"] = out
        return general(input, other, *older, **keywords)

    @in_front_of(general_inplace, plain_inplace)
    def method(self, other, *older, alpha=1):
        if alpha is _ONE and not older:
            return plain_inplace(self, other)
        keywords = {} if alpha is _ONE else {"alpha": alpha}
        return general_inplace(self, other, *older, **keywords)

    # `older` are arguments in the order of `core/older_orders.py`; signatures do not show them.
    function.__signature__ = inspect.signature(body)  # type: ignore[attr-defined]
    method.__signature__ = inspect.signature(body_inplace)  # type: ignore[attr-defined]
    function.__name__ = function.__qualname__ = name
    function.__doc__ = what
    method.__name__ = method.__qualname__ = f"{name}_"
    for each in (name, alias):
        if each:
            add_forms(each, ("function", "method", "inplace"), function, method, function_inplace=False)
    return function


def check_alpha(alpha: Any, name: str, *operands: Any) -> None:
    if type(alpha) is int:  # fits every dtype
        return
    dtype = common_dtype(map(spec_or_type, normalise(name, operands)))
    if isinstance(alpha, builtins.complex) and not dtype.is_complex:
        raise RuntimeError("For non-complex input tensors, argument alpha must not be a complex number.")
    check_factor(alpha, "alpha", dtype)


def check_factor(factor: Any, name: str, dtype: DType) -> None:
    """Raises: RuntimeError for a bool if the result is not one, and for another number than an integer if the result is integral."""
    if isinstance(factor, bool) and dtype is not bool_:
        raise RuntimeError(f"Boolean {name} only supported for Boolean results.")
    if isinstance(factor, (float, builtins.complex)) and dtype.category < 2:
        raise RuntimeError(
            f"For integral input tensors, argument {name} must not be a floating point number."
        )


# ---- Functions that are an op for usual arguments ----------------------------------------------------------------------------


class Shortcut(NamedTuple):
    """A call with `arity` positional arguments, which are tensors and numbers, is a call of `op.method` with these operands, if
    `fits` says so of their specs and types. `small`: numbers must be at most 100 in size.
    """

    op: Map
    arity: int
    fits: Callable[..., bool]
    small: bool
    method: str


shortcuts: dict[Callable, Shortcut] = {}  # by the body of the function's entry


def shortcut(
    function: Callable,
    op: Map,
    arity: int,
    fits: Callable[..., bool] = lambda *kinds: True,
    small: bool = False,
    method: str = "run",
) -> None:
    """Let calls of a public function go to an op without the function's checks, where machine code runs the op."""
    shortcuts[_body(function)] = Shortcut(op, arity, fits, small, method)


def shortcut_of(function: FunctionType) -> Shortcut | None:
    """The shortcut of a public function or of a copy of it."""
    return shortcuts.get(_body(function)) if "body" in function.__code__.co_freevars else None


def _body(function: Any) -> Any:
    position = function.__code__.co_freevars.index("body")
    return function.__closure__[position].cell_contents


# ---- Making functions public ---------------------------------------------------------------------------------------------


def publish(
    op: Map, arity: int, forms: str, *aliases: str, numbers: str = "other", doc: str = ""
) -> Callable:
    """Make an op public: `forms` are "function", "method", "inplace". Names with a dot are functions only.

    `numbers` says which operands of a binary op may be numbers: "", "other", "input other" (one of them) or "all".
    """
    function = unary(op) if arity == 1 else binary(op, numbers=numbers)
    method = inplace_unary(op) if arity == 1 else inplace_of(op, numbers)
    function.__doc__ = doc
    method.__doc__ = f"In-place form of `{op.name}`."
    for name in (op.name, *aliases):
        add_forms(name, forms.split(), function, method, function_inplace=arity == 1)
    return function


elementwise_names: set[str] = set()  # the public names of elementwise functions


def add_forms(
    name: str, forms: Sequence[str], function: Callable, method: Callable, function_inplace: bool
) -> None:
    elementwise_names.add(name)
    if "." in name:
        add_function(name, function)
        return
    if "function" in forms:
        add_function(name, function)
    if "method" in forms:
        add_method(name, function)
    if "inplace" in forms:
        add_method(f"{name}_", method)
        if function_inplace:
            add_function(f"{name}_", method)


def chosen(forms: str, *aliases: str) -> Callable:
    """Decorator for a public op whose arguments choose the row: `function(...)` returns (op, operands).

    It gets the same forms as any Map: function, method, in place, `out=`.
    """

    def decorate(choose: Callable) -> Callable:
        name = choose.__name__.rstrip("_")
        choose = checked(choose, name, tensors_alone=True)  # Maps take numbers, too

        @functools.wraps(choose)
        def computed(*args, out=None, **kwargs):
            op, operands = choose(*args, **kwargs)
            return op(*operands) if out is None else op.into(out, *operands)

        @functools.wraps(choose)
        def written(*args, **kwargs):
            op, operands = choose(*args, **kwargs)
            return op.inplace(*operands)

        function, method = entry(computed, name), entry(written, f"{name}_")
        method.__name__ = method.__qualname__ = f"{name}_"
        for each in (name, *aliases):
            add_forms(each, forms.split(), function, method, function_inplace=True)
        return function

    return decorate
