"""How a function becomes public: its names, its forms (function, method, in place) and the arguments that all forms share."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from . import outputs
from .checking import checked
from .entry import entry, numpy_names
from .names import Function, named
from .outputs import check_dtype, check_inplace, with_out
from .recording import needs_recording, tape
from .registry import FUNCTIONS, add_function, add_method


def public(
    forms: str = "function",
    *aliases: str,
    name: str | None = None,
    out: bool | str | Callable = False,
    checks: bool = True,
    autocast: str | None = None,
    asks: bool = False,
    words: dict[str, Any] | None = None,
) -> Callable[[Function], Function]:
    """Decorator: make a function part of the public interface.

    The types of its arguments are checked by the annotations of its parameters (`core/checking.py`), unless `checks` is
    False, because the function does so itself in less time.
    `forms` lists where it appears: "function" (weft.name), "method" (Tensor.name), "inplace" (Tensor.name_,
    which computes and then writes into the tensor). `out=True` gives it an `out=` argument: the results are
    written into given tensors, which are resized if need be; with `out="exact"` they must be of the results' dtype,
    with `out="apart"` they must not share memory with an argument either, with `out="decides"` the dtype of the tensor
    is that of the computation unless the caller states dtype=, and with `out="flags"` it must be bool or uint8. A function as `out`
    writes the result itself where it can (`with_out`). `autocast` is the class of the function under autocast
    ("lower", "raise", "raise on cpu" or "widen", see `core/autocast.py`). With `asks` it asks the classes of its arguments although none is
    annotated as a Tensor. `aliases` are further names for all forms. `words` are for a function that another one makes: it gets its
    own name, and its docstring is a template of these words.
    """
    form_names = forms.split()

    def decorate(function: Any) -> Any:
        own = name or function.__name__
        if words is not None:
            function = named(own.removeprefix("nn.functional.").replace(".", "_"), **words)(function)
        body = checked(function, own) if checks else function
        complete = body
        if (
            out
            or asks
            or autocast
            or numpy_names(body)
            or _takes_tensors(body, further="function" not in form_names)
        ):
            writing = with_out(body, own, out) if out else None
            complete = entry(body, own, writing=writing, autocast=autocast)
        for each in (own, *aliases):
            if "function" in form_names:
                add_function(each, complete)
        for each in dict.fromkeys([path.rpartition(".")[2] for path in (own, *aliases)]):
            if "method" in form_names:
                add_method(each, complete)
            if "inplace" in form_names:
                add_method(f"{each}_", inplace(body, own))
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


def add_inplace(name: str, function: Callable) -> None:
    """Make a function that writes its first argument the method `name_`."""
    function = checked(function, f"{name}_")
    add_method(
        f"{name}_", entry(function, f"{name}_") if _takes_tensors(function, further=True) else function
    )


def inplace(function: Callable, name: str) -> Callable:
    """The in-place form: compute, then write into the first argument, which keeps its shape and dtype."""

    @functools.wraps(function)
    def body(self, *args, **kwargs):
        check_inplace(self, name)
        old = self
        if needs_recording((self,)):  # because the steps save values that must survive the write
            tape.check_write(self)
            old = self.clone()
        result = function(old, *args, **kwargs)
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

    method = entry(body, f"{name}_")
    method.__name__ = f"{name}_"
    return method
