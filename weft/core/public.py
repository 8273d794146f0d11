"""How a function becomes public: its names, its forms (function, method, in place) and the arguments that all forms share."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable

from . import outputs
from .autocast import cast_arguments
from .checking import check_tensors, checked
from .names import FUNCTIONS
from .out_of_memory import from_memory_error
from .outputs import check_dtype, check_inplace, with_out
from .overrides import PLAIN, insides, known, meets, overridable, overridden, twin
from .recording import needs_recording, tape
from .tensor import Tensor

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
            tape.rebase_history(self, result)
        else:
            outputs.copy_values(self, result)
        return self

    method.__name__ = f"{name}_"
    return method
