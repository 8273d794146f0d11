"""`torch.jit.trace`, which returns its argument, and the classes of traced objects."""

from __future__ import annotations

import functools
import warnings
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NoReturn

from ..nn.module import Module
from ._script import CompilationUnit, ScriptModule

__all__ = ["trace", "trace_module"]

_UNIT = CompilationUnit()


class TracerWarning(Warning):
    """A warning that a trace does not hold for other arguments."""

    @staticmethod
    def ignore_lib_warnings() -> None:
        """Do not show the warnings that PyTorch's own functions cause."""
        warnings.filterwarnings("ignore", category=TracerWarning, module="torch.(?!jit)")
        warnings.filterwarnings("ignore", "torch::jit::fuser::cuda")


TracerWarning.ignore_lib_warnings()


class TracingCheckError(Exception):
    """A trace gave another result than the function."""

    def __init__(
        self, graph_diff_error: str | None, tensor_compare_error: str | None, extra_msg: str | None = None
    ):
        self.message = "Tracing failed sanity checks!\n" + "".join(
            f"{each}\n" for each in (extra_msg, graph_diff_error, tensor_compare_error) if each is not None
        )
        super().__init__(self.message)


class ONNXTracedModule(Module):
    """A module that is traced for ONNX. There is none: `torch.onnx.export` works on Python modules."""

    def __init__(
        self,
        inner: Any,
        strict: bool = True,
        force_outplace: bool = False,
        return_inputs: bool = False,
        return_inputs_states: bool = False,
    ) -> None:
        raise NotImplementedError(
            "ONNXTracedModule: weft does not trace with TorchScript; use torch.onnx.export"
        )


class TracedModule(ScriptModule):
    """A traced module. There is none: modules run as they are."""

    def __init__(self, orig: Any, id_set: Any = None, _compilation_unit: Any = None) -> None:
        raise NotImplementedError("TracedModule: weft does not trace with TorchScript; use the module itself")


class TopLevelTracedModule(TracedModule):
    """The outermost of traced modules. There is none."""


def trace(
    func: Any,
    example_inputs: Any = None,
    optimize: Any = None,
    check_trace: bool = True,
    check_inputs: Any = None,
    check_tolerance: float = 1e-5,
    strict: bool = True,
    _force_outplace: bool = False,
    _module_class: Any = None,
    _compilation_unit: Any = _UNIT,
    example_kwarg_inputs: Any = None,
    _store_inputs: bool = True,
) -> Any:
    """`func`: functions and modules run as they are.

    >>> import weft as torch
    >>> layer = torch.nn.Linear(2, 2)
    >>> torch.jit.trace(layer, torch.ones(1, 2)) is layer
    True
    """
    return func


def trace_module(
    mod: Any,
    inputs: Any,
    optimize: Any = None,
    check_trace: bool = True,
    check_inputs: Any = None,
    check_tolerance: float = 1e-5,
    strict: bool = True,
    _force_outplace: bool = False,
    _module_class: Any = None,
    _compilation_unit: Any = _UNIT,
    example_inputs_is_kwarg: bool = False,
    _store_inputs: bool = True,
) -> Any:
    """`mod`: modules run as they are."""
    return mod


def is_tracing() -> bool:
    """Whether TorchScript traces this: never."""
    return False


def _script_if_tracing(fn: Callable) -> Callable:
    @functools.wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    wrapper.__original_fn = fn  # type: ignore[attr-defined]
    wrapper.__script_if_tracing_wrapper = True  # type: ignore[attr-defined]
    return wrapper


def _get_trace_graph(
    f: Any,
    args: Any = (),
    kwargs: Any = None,
    strict: bool = True,
    _force_outplace: bool = False,
    return_inputs: bool = False,
    _return_inputs_states: bool = False,
) -> NoReturn:
    """Raises: NotImplementedError."""
    raise NotImplementedError(
        "torch.jit._get_trace_graph: weft does not trace with TorchScript; torch.fx.symbolic_trace gives a graph"
    )


def _unique_state_dict(module: Module, keep_vars: bool = False) -> OrderedDict[str, Any]:
    """The state of a module without the second and further names of the same tensor."""
    found: OrderedDict[str, Any] = OrderedDict()
    seen: set[int] = set()
    for name, value in module.state_dict(keep_vars=True).items():
        if id(value) not in seen:
            seen.add(id(value))
            found[name] = value if keep_vars else value.detach()
    return found
