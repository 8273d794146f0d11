"""`torch.jit`, which weft does not have: programs run as they are. What only marks functions for it does nothing."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

from ..compat.missing import missing_function, module_getattr

__all__ = [
    "Final",
    "annotate",
    "export",
    "ignore",
    "is_scripting",
    "is_tracing",
    "load",
    "save",
    "script",
    "script_if_tracing",
    "trace",
    "unused",
]

script = missing_function("torch.jit.script", "run the function or module as it is")
trace = missing_function("torch.jit.trace", "run the function or module as it is")
save = missing_function("torch.jit.save", "save the state_dict with torch.save")


class ScriptModule:
    """What `script` and `trace` would give; there are none, so that nothing is an instance of it."""

    def __init__(self) -> None:
        raise NotImplementedError("torch.jit.ScriptModule: weft does not have it: use torch.nn.Module")


def is_scripting() -> bool:
    """Whether TorchScript runs this: never."""
    return False


is_tracing = is_scripting


def export(fn: Callable) -> Callable:
    """`fn` as it is."""
    return fn


def unused(fn: Callable) -> Callable:
    """`fn` as it is."""
    return fn


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """The decorated function as it is; `@ignore` and `@ignore()` are the same."""
    return drop if callable(drop) else lambda fn: fn


def _overload(func: Callable) -> Callable:
    """`func` as it is: one of the signatures that TorchScript would choose from."""
    return func


_overload_method = _overload


def annotate(the_type: Any, the_value: Any) -> Any:
    """The value as it is."""
    return the_value


def script_if_tracing(fn: Callable) -> Callable:
    """A function that calls `fn`: there is no tracing that would make it compile."""

    @functools.wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    return wrapper


_script_if_tracing = script_if_tracing


def load(f: Any, map_location: Any = None, *args: Any, **kwargs: Any) -> Any:
    """Raises: RuntimeError, for every file."""
    raise RuntimeError(
        f"torch.jit.load({str(f)!r}): weft does not run TorchScript. Load the model in PyTorch, save its state_dict with "
        "torch.save, and load that into the module's Python class"
    )


__getattr__ = module_getattr(__name__, lazy=("annotations",))
