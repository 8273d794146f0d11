"""`torch._logging`: the loggers of PyTorch's compilers, under the names by which programs ask for them."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from typing import Any

_LEVELS = "all dynamo aot inductor dynamic torch distributed onnx export"


def getArtifactLogger(module_qname: str, artifact_name: str) -> logging.Logger:
    """The logger of one kind of record of a module."""
    return logging.getLogger(f"{module_qname}.__{artifact_name}")


def set_logs(**levels: Any) -> None:
    """Set the levels of PyTorch's components, such as `dynamo=logging.DEBUG`. weft's compiler writes no records yet.

    Raises: NotImplementedError for kinds of records (`graph_code=True`), of which weft has none.
    """
    for name, level in levels.items():
        if name not in _LEVELS.split():
            raise NotImplementedError(f"torch._logging.set_logs: weft writes no records of the kind {name!r}")
        logger = "torch" if name in ("all", "torch") else f"torch._{name}"
        logging.getLogger(logger).setLevel(level)


@functools.lru_cache(None)
def warning_once(logger: logging.Logger, *args: Any, **kwargs: Any) -> None:
    """`logger.warning`, but only once for the same arguments."""
    logger.warning(*args, **kwargs)


class LazyString:
    """Text that is made when it is needed, so that records below the level cost nothing."""

    def __init__(self, func: Callable[..., str], *args: Any, **kwargs: Any):
        self.func = func
        self.args = args
        self.kwargs = kwargs

    def __str__(self) -> str:
        return self.func(*self.args, **self.kwargs)


def trace_structured(*args: Any, **kwargs: Any) -> None:
    """Nothing: traces of PyTorch's compilers are written only where somebody has asked for a folder of them."""


def dtrace_structured(*args: Any, **kwargs: Any) -> None:
    """Nothing, as `trace_structured`."""
