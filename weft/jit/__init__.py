"""`torch.jit`: programs run as they are, as PyTorch runs them with PYTORCH_JIT=0. `load` reads the weights of TorchScript files."""

import contextlib
import warnings
from collections.abc import Iterator
from typing import Any, Final

from ..compat.missing import module_getattr
from ..core.names import name_public
from ..core.warn import user_level
from ..library.script import ScriptFunction
from . import _recursive, _state, annotations, frontend
from ._async import Future, fork, wait
from ._await import _Await, _awaitable, _awaitable_nowait, _awaitable_wait
from ._freeze import freeze, optimize_for_inference, run_frozen_optimizations
from ._fuser import fuser, last_executed_optimized_graph, optimized_execution, set_fusion_strategy
from ._script import (
    Attribute,
    CompilationUnit,
    RecursiveScriptClass,
    RecursiveScriptModule,
    ScriptModule,
    ScriptWarning,
    _ScriptProfile,
    _unwrap_optional,
    interface,
    script,
    script_method,
)
from ._serialization import jit_module_from_flatbuffer, load, save, save_jit_module_to_flatbuffer
from ._trace import (
    ONNXTracedModule,
    TopLevelTracedModule,
    TracedModule,
    TracerWarning,
    TracingCheckError,
    _get_trace_graph,
    _script_if_tracing,
    _unique_state_dict,
    is_tracing,
    trace,
    trace_module,
)
from .internal import (
    _drop,
    _IgnoreContextManager,
    _isinstance,
    _overload,
    _overload_method,
    export,
    ignore,
    is_scripting,
    unused,
)

__all__ = [
    *("Attribute", "CompilationUnit", "Error", "Final", "Future", "ScriptFunction", "ScriptModule", "annotate"),
    *("enable_onednn_fusion", "export", "export_opnames", "fork", "freeze", "interface", "ignore", "isinstance", "load"),
    *("is_scripting", "is_tracing", "onednn_fusion_enabled", "optimize_for_inference", "save", "script"),
    *("script_if_tracing", "set_fusion_strategy", "strict_fusion", "trace", "trace_module", "unused", "wait"),
]  # fmt: skip

_fork, _wait, _set_fusion_strategy = fork, wait, set_fusion_strategy


class Error(Exception):
    """An error of a TorchScript program."""


JITException = Error


def annotate(the_type: Any, the_value: Any) -> Any:
    """`the_value`: the type is for TorchScript's compiler.

    >>> import weft as torch
    >>> torch.jit.annotate(int, 3)
    3
    """
    return the_value


def script_if_tracing(fn: Any) -> Any:
    """A function that calls `fn`, which TorchScript would compile while it traces."""
    return _script_if_tracing(fn)


def isinstance(obj: Any, target_type: Any) -> bool:  # noqa: A001 (PyTorch's name)
    """Whether `obj` is of a type, which may be one such as `List[int]`.

    Raises: RuntimeError for container types without the types of their elements.

    >>> import weft as torch
    >>> torch.jit.isinstance([1, 2], list[int]), torch.jit.isinstance([1, "a"], list[int])
    (True, False)
    """
    return _isinstance(obj, target_type)


class strict_fusion:  # noqa: N801 (PyTorch's name)
    """A context in which TorchScript must fuse; it has no effect on programs that run as they are."""

    def __init__(self) -> None:
        warnings.warn("Only works in script mode", stacklevel=user_level())

    def __enter__(self) -> None:
        """Nothing to begin."""

    def __exit__(self, type: Any, value: Any, tb: Any) -> None:
        """Nothing to end."""


@contextlib.contextmanager
def _hide_source_ranges() -> Iterator[None]:
    yield


_onednn_fusion = False


def enable_onednn_fusion(enabled: bool) -> None:
    """Keep a setting of TorchScript's compiler, which has no effect here."""
    global _onednn_fusion
    _onednn_fusion = bool(enabled)


def onednn_fusion_enabled() -> bool:
    """What `enable_onednn_fusion` was given last."""
    return _onednn_fusion


def export_opnames(m: Any) -> list[str]:
    """The operators of a TorchScript program.

    Raises: NotImplementedError, because there are none.
    """
    raise NotImplementedError(
        "torch.jit.export_opnames: weft runs Python programs and has no TorchScript code; torch.fx.symbolic_trace gives the "
        "operations of a module"
    )


__getattr__ = module_getattr(
    __name__,
    ("_async", "_await", "_builtins", "_freeze", "_fuser", "_pickle", "_script", "_serialization", "_trace"),
)

name_public(__name__)
