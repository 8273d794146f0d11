"""What all operations share: plan caches, how results are recorded, how public names come to be."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakValueDictionary

from .autocast import cast_arguments
from .checking import check_tensors, checked
from .dtype import LEGACY_NAMES, int64, when_default_changes
from .grad_mode import mode
from .names import FUNCTIONS
from .out_of_memory import from_memory_error
from .overrides import PLAIN, insides, known, meets, overridable, overridden, twin
from .restoring import Restoring
from .spec import Spec, contiguous_spec, make_spec
from .storage import Storage
from .tensor import Tensor

PLANS_PER_OP = 4096


_caches: WeakValueDictionary[int, PlanCache] = WeakValueDictionary()


@when_default_changes.append
def _forget_plans() -> None:
    for cache in list(_caches.values()):
        cache.clear()


class PlanCache(dict):
    """Plans by key (specs and static arguments); a missing one is made by `plan(*key)`.

    Bounded: when full, the oldest quarter goes. A lookup that hits is a plain dictionary lookup, so 2.0 and True find the
    plans of 2 and 1: what users give as an int is made one before it becomes part of a key.
    """

    __slots__ = ("plan", "__weakref__")

    def __init__(self, plan: Callable):
        super().__init__()
        self.plan = plan
        _caches[id(self)] = self

    def __missing__(self, key):
        found = self.plan(*key)
        if len(self) >= PLANS_PER_OP:
            for old in list(self)[: PLANS_PER_OP // 4]:
                self.pop(old, None)
        self[key] = found
        return found


# ---- Recording for autograd -------------------------------------------------------------------------------------

# What a rule that is not there is reported with, when backward needs it.
NO_RULE = "the derivative of {} is not implemented"


class Tape:
    """What records steps; `weft/autograd` fills it in."""

    record: Callable  # (op, result, inputs, static) -> result
    begin_write: Callable  # (op, target, inputs, static) -> node or None
    finish_write: Callable  # (node, target, inputs)
    recorded_view: Callable  # (view, input, several=False)
    check_write: Callable  # (target)
    adopt: Callable  # (target, result)
    become: Callable  # (target, result)
    rename: Callable  # (result, change): the node that made a result gets the name change(its name)


tape = Tape()


def needs_recording(tensors: Sequence[Any]) -> bool:
    """Whether grad mode is on and one of the tensors takes part in autograd."""
    for each in tensors:
        if isinstance(each, Tensor) and each._autograd is not None:
            return mode.enabled
    return False


def record(op: Any, result: Any, inputs: Sequence[Any], static: tuple = ()) -> Any:
    """`result`, a tensor or a tuple of them, as the result of a recorded step."""
    return tape.record(op, result, inputs, static)


def recorded_write(
    op: Any, target: Tensor, inputs: Sequence[Any], static: tuple, write: Callable, *args: Any
) -> Tensor:
    """Call `write(*args)`, which writes `target`, as a recorded step with these inputs."""
    node = tape.begin_write(op, target, inputs, static)
    outer = mode.enabled
    mode.enabled = False
    try:
        write(*args)
    finally:
        mode.enabled = outer
    if node is not None:
        tape.finish_write(node, target, inputs)
    return target


def check_recorded_write(target: Tensor, *others: Any) -> None:
    """Raises: RuntimeError where autograd forbids the write. PyTorch raises this before it looks at other arguments."""
    if needs_recording((target, *others)):
        tape.check_write(target)


class unrecorded(Restoring):  # noqa: N801 (used like a function)
    """Recording is off inside: what happens is part of a step that is recorded as a whole."""

    __slots__ = ("outer",)

    def __enter__(self) -> None:
        self.outer = mode.enabled
        mode.enabled = False

    def _restore(self) -> None:
        mode.enabled = self.outer


# ---- Public names -----------------------------------------------------------------------------------------------

# Other names of arguments that PyTorch accepts, after NumPy.
_NUMPY_ARGUMENTS = {
    "axis": "dim",
    "keepdims": "keepdim",
    "x": "input",
    "a": "input",
    "x2": "other",
    "x1": "input",
}


def public(
    forms: str = "function",
    *aliases: str,
    name: str | None = None,
    out: bool | str = False,
    checks: bool = True,
):
    """Decorator: make a function part of the public interface.

    The types of its arguments are checked by the annotations of its parameters (`core/checking.py`), unless `checks` is
    False, because the function does so itself in less time.
    `forms` lists where it appears: "function" (weft.name), "method" (Tensor.name), "inplace" (Tensor.name_,
    which computes and then writes into the tensor). `out=True` gives it an `out=` argument: the results are
    written into given tensors, which are resized if need be; with `out="exact"` they must be of the results' dtype,
    with `out="apart"` they must not share memory with an argument either, with `out="decides"` the dtype of the tensor
    is that of the computation unless the caller states dtype=. `aliases` are further names for all forms.
    """
    wanted = forms.split()

    def decorate(function: Callable) -> Callable:
        own = name or function.__name__
        if checks:
            function = checked(function, own)
        asking = _with_keywords(function, own, out)
        if asking is function and _takes_tensors(function, further="function" not in wanted):
            asking = overridable(function, own)
        complete = cast_arguments(asking, own, *aliases)
        if complete is not asking:
            insides[asking] = complete
        for each in (own, *aliases):
            if "function" in wanted:
                FUNCTIONS[each] = complete
            if "method" in wanted:
                add_method(each.rpartition(".")[2], complete)
            if "inplace" in wanted:
                add_method(f"{each.rpartition('.')[2]}_", inplace(function, own))
        return complete

    return decorate


def show_out(name: str) -> None:
    """Let `inspect.signature` of a public function have the argument `out=`, where PyTorch's function is in Python."""
    function = FUNCTIONS[name]
    shown = inspect.signature(function)
    parameters = list(shown.parameters.values())
    if "out" not in shown.parameters:
        place = inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY, default=None)
        function.__signature__ = shown.replace(parameters=[*parameters, place])  # type: ignore[attr-defined]


def _takes_tensors(function: Callable, further: bool) -> bool:
    """Whether arguments of `function` are tensors; if `further`, others than the first."""
    kinds = [kind for name, kind in function.__annotations__.items() if name != "return"]
    return any("Tensor" in str(kind) for kind in kinds[further:])


def namespace(module: str) -> dict[str, Callable]:
    """The public functions of a submodule: those whose names are `module.name`."""
    prefix = module + "."
    return {
        name.removeprefix(prefix): function
        for name, function in FUNCTIONS.items()
        if name.startswith(prefix) and "." not in name.removeprefix(prefix)
    }


def add_method(name: str, function: Callable) -> None:
    setattr(Tensor, name, twin(function, name))


def add_inplace(name: str, function: Callable) -> None:
    """Make a function that writes its first argument the method `name_`."""
    function = checked(function, f"{name}_")
    add_method(
        f"{name}_", overridable(function, f"{name}_") if _takes_tensors(function, further=True) else function
    )


def add_function(name: str, function: Callable) -> None:
    FUNCTIONS[name] = function


def _with_keywords(function: Callable, name: str, out: bool | str) -> Callable:
    """Also take out=, and axis= for dim= and the like. Calls without keywords go straight through."""
    code = function.__code__
    parameters = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    renamed = {
        theirs: ours
        for theirs, ours in _NUMPY_ARGUMENTS.items()
        if ours in parameters and theirs not in parameters
    }
    if not renamed and not out:
        return function
    writing = with_out(function, name, out) if out else function

    @functools.wraps(function)
    def complete(*args, **kwargs):
        if known and (answer := overridden(complete, args, kwargs)) is not PLAIN:
            return answer
        try:
            if not kwargs:
                return function(*args)
            for theirs in renamed.keys() & kwargs.keys():
                kwargs[renamed[theirs]] = kwargs.pop(theirs)
            return writing(*args, **kwargs)
        except MemoryError as error:  # of NumPy, or of a list
            raise from_memory_error(error) from None
        except Exception as error:
            if meets((*args, *kwargs.values())):
                return complete(*args, **kwargs)
            if isinstance(error, AttributeError):
                check_tensors(function, name, args, kwargs)
            raise

    return complete


# ---- Writing results into given tensors --------------------------------------------------------------------------

# Set by `ops/assembly/copying.py`: copy_values(target, source) with conversion and broadcasting.
copy_values: Callable[[Tensor, Tensor], None]


def set_copy(function: Callable[[Tensor, Tensor], None]) -> None:
    global copy_values
    copy_values = function


def with_out(function: Callable, name: str, how: bool | str = True) -> Callable:
    """`function` with an argument `out=`: a tensor, or as many as there are results."""
    exact = how in ("exact", "apart")

    @functools.wraps(function)
    def complete(*args, out=None, **kwargs):
        if out is None:
            return function(*args, **kwargs)
        check_unrecorded(name, args)
        if isinstance(out, Tensor):
            if how == "apart":
                check_apart(out, (*args, *kwargs.values()), name)
            if how == "decides" and kwargs.get("dtype") is None:
                kwargs["dtype"] = out.spec.dtype
            return write_out(out, function(*args, **kwargs), name, exact)
        if not isinstance(out, (tuple, list)):
            raise TypeError(f"{name}(): argument 'out' must be Tensor, not {type(out).__name__}")
        check_unrecorded(name, out)
        if how == "apart":
            for each in out:
                check_apart(each, (*args, *kwargs.values()), name)
        results = function(*args, **kwargs)
        if isinstance(results, Tensor):
            raise TypeError(f"{name}(): argument 'out' must be Tensor, not {type(out).__name__}")
        if len(out) != len(results):
            raise TypeError(f"{name}(): expected {len(results)} tensors in 'out', got {len(out)}")
        pairs = list(zip(out, results, strict=True))
        for target, result in pairs:  # all of them before any is written
            _check_target(target, result, name, exact or result.spec.dtype is int64)
        written = [_fill(target, result, name) for target, result in pairs]
        return (
            type(results)(written)
            if hasattr(results, "_fields") or type(results) is not tuple
            else tuple(written)
        )

    return complete


def check_apart(out: Tensor, arguments: Sequence[Any], name: str) -> None:
    """Raises: RuntimeError if `out` shares memory with an argument or with itself."""
    check_no_repeats(out.spec, name)
    if any(isinstance(each, Tensor) and memory_overlaps(each, out) for each in arguments):
        raise overlap(name, out.spec)


def overlap(name: str, *specs: Spec) -> RuntimeError:
    facts = ", ".join(f"{list(each.shape)} with strides {each.stride}" for each in specs)
    return RuntimeError(
        "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single "
        f"memory location. Please clone() the tensor before performing the operation.\n{name}: {facts}"
    )


def memory_overlaps(a: Tensor, b: Tensor) -> bool:
    """Whether the ranges of memory that two tensors reach over meet."""
    if a._storage is not b._storage or not a.spec.numel or not b.spec.numel:
        return False
    (a_first, a_last), (b_first, b_last) = (
        (t._start, t._start + t.spec.span * t.spec.dtype.itemsize) for t in (a, b)
    )
    return a_first < b_last and b_first < a_last


def check_unrecorded(name: str, tensors: Sequence[Any]) -> None:
    """Raises: RuntimeError if one of the tensors of a call with `out=` takes part in autograd."""
    inner = [item for each in tensors if type(each) in (tuple, list) for item in each]
    if needs_recording(tensors) or inner and needs_recording(inner):
        raise RuntimeError(
            f"{name}(): functions with out=... arguments don't support automatic differentiation, but one of the "
            "arguments requires grad."
        )


def write_out(out: Tensor, result: Tensor, name: str, exact: bool = False) -> Tensor:
    """Put `result` into `out`, resized to fit, converted to its dtype.

    Raises: RuntimeError if the dtype is of a lower category (or, if `exact`, another one), or the devices differ.
    """
    _check_target(out, result, name, exact)
    return _fill(out, result, name)


def _check_target(out: Any, result: Any, name: str, exact: bool) -> None:
    if not isinstance(out, Tensor) or not isinstance(result, Tensor):
        wanted = "tuple of Tensors" if isinstance(out, Tensor) else "Tensor"
        raise TypeError(f"{name}(): argument 'out' must be {wanted}, not {type(out).__name__}")
    if exact and out.spec.dtype is not result.spec.dtype:
        raise RuntimeError(
            f"Expected out tensor to have dtype {result.spec.dtype.name}, but got {out.spec.dtype.name} instead\n{name}"
        )
    check_unrecorded(name, (out,))
    check_out(out, result.spec.dtype, result.spec.device, name)
    if out.spec.shape == result.spec.shape:
        check_no_repeats(out.spec, name)


def _fill(out: Tensor, result: Tensor, name: str) -> Tensor:
    if out.spec.shape != result.spec.shape:
        resize_out(out, result.spec.shape, name)
    copy_values(out, result)
    return out


def check_out(out: Any, dtype, device, name: str) -> None:
    if not isinstance(out, Tensor):
        raise TypeError(f"{name}(): argument 'out' must be Tensor, not {type(out).__name__}")
    check_dtype(out.spec, dtype, name)
    if out.spec.device is not device:
        raise RuntimeError(
            f"Expected out tensor to have device {device}, but got {out.spec.device} instead ({name})"
        )


def check_dtype(target: Spec, dtype, name: str) -> None:
    """Raises: RuntimeError if results of `dtype` cannot be written into `target`."""
    if dtype.category > target.dtype.category:
        raise RuntimeError(
            f"result type {_type_name(dtype)} can't be cast to the desired output type {_type_name(target.dtype)}\n{name}"
        )


def _type_name(dtype) -> str:
    return LEGACY_NAMES[dtype]


def resize_out(out: Tensor, sizes, name: str, stride: tuple[int, ...] | None = None) -> None:
    """Give `out` other sizes and strides (contiguous ones if None), with new memory if its own is too small.

    Warns unless it is empty.
    """
    if out.spec.numel:
        warnings.warn(
            f"An output with one or more elements was resized since it had shape {list(out.spec.shape)}, which does not "
            f"match the required output shape {list(sizes)}. This behavior is deprecated, and in a future PyTorch "
            "release outputs will not be resized unless they have zero elements. You can explicitly reuse an out "
            f"tensor t by resizing it, inplace, to zero elements with t.resize_(0). ({name})",
            UserWarning,
            stacklevel=4,
        )
    spec = out.spec
    wanted = contiguous_spec(sizes, spec.dtype, spec.device)
    resize(out, wanted if stride is None else make_spec(wanted.shape, stride, spec.dtype, spec.device))


def resize(tensor: Tensor, spec: Spec) -> None:
    """Give `tensor` the metadata `spec`, growing its storage if that is too small."""
    grow(tensor._storage, tensor._start, spec)
    tensor.spec = spec


def grow(storage: Storage, start: int, spec: Spec) -> None:
    """Make room for a tensor of `spec` that begins at byte `start`.

    Raises: RuntimeError if it needs more bytes than an address has.
    """
    needed = start + spec.span * spec.dtype.itemsize
    if needed >= 2**63:
        raise RuntimeError(
            f"Storage size calculation overflowed with sizes={list(spec.shape)} and strides={list(spec.stride)}"
        )
    if needed > storage.nbytes_:
        storage.resize_(needed)


def inplace(function: Callable, name: str) -> Callable:
    """The in-place form: compute, then write into the first argument, which keeps its shape and dtype."""

    @functools.wraps(function)
    def method(self, *args, **kwargs):
        if known and (answer := overridden(method, (self, *args), kwargs)) is not PLAIN:
            return answer
        try:
            check_inplace(self, name)
            old = self
            if needs_recording((self,)):  # what the steps save must survive the write
                tape.check_write(self)
                old = self.clone()
            result = function(old, *args, **kwargs)
        except Exception as error:
            if meets((self, *args, *kwargs.values())):
                return method(self, *args, **kwargs)
            if isinstance(error, AttributeError):
                check_tensors(function, f"{name}_", (self, *args), kwargs)
            raise
        if result.spec.shape != self.spec.shape:
            raise RuntimeError(
                f"output with shape {list(self.spec.shape)} doesn't match the broadcast shape {list(result.spec.shape)}"
            )
        check_dtype(self.spec, result.spec.dtype, f"{name}_")
        if needs_recording((result,)):
            tape.adopt(self, result)
        else:
            copy_values(self, result)
        return self

    method.__name__ = f"{name}_"
    return method


def check_inplace(tensor: Tensor, name: str) -> None:
    """Raises: RuntimeError where elements of the tensor share memory."""
    check_no_repeats(tensor.spec, name)


def check_no_repeats(spec: Spec, name: str) -> None:
    if spec.repeats:
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
            f"Please clone() the tensor before performing the operation.\n{name}_: shape {list(spec.shape)}, strides "
            f"{spec.stride}"
        )
