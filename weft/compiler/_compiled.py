"""What `torch.compile` makes of a function: its records, when a new one is made, and when the function runs as it is.

A call tries the records, the newest first. If none fits, it records the call, unless the function has too many records
or a record of such arguments has failed before; then the function itself runs. It also runs for arguments of which only the sizes are new,
if that has happened before: a record takes as long as many calls, and such sizes may not come again. Each reason is logged once by the logger
"weft.compiler", at level INFO, and with TORCH_LOGS=graph_breaks or TORCH_LOGS=dynamo in the environment on stderr.
"""

from __future__ import annotations

import copy
import functools
import logging
import os
import weakref
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any

from ..core.device import default_device_hooks
from ..core.dtype import when_plans_expire
from ..core.filling import when_filling_changes
from ..core.locks import new_lock
from ..core.restoring import Restoring
from ..core.spec import Spec, kind_of
from ..core.tensor import Tensor
from ._interpreter import IS_KNOWN, VALUES
from ._record import MISS, Unsupported, is_usual, record
from ._tape import GraphBreak

log = logging.getLogger("weft.compiler")
if {"graph_breaks", "dynamo", "+dynamo", "recompiles"} & set(os.environ.get("TORCH_LOGS", "").split(",")):
    log.addHandler(logging.StreamHandler())
    log.setLevel(logging.INFO)

MOST_FAILURES = 8  # calls of one function that could not be recorded; after that, it runs as it is
# Calls of one kind that are recorded at once: PyTorch compiles for any size when it meets the second one. Calls with further sizes are
# recorded when these sizes come again.
SIZES_AT_ONCE = 2
MOST_SEEN = 1024  # arguments of one function that are remembered because they may come again


class _Stance:
    name = "default"  # of all compiled functions, see `set_stance`


stance = _Stance()


class set_stance(Restoring):  # noqa: N801 (PyTorch's name)
    """How compiled functions run: "default", "force_eager" (as if they were not compiled), "eager_on_recompile" (existing records
    are used, and no new ones made), or "fail_on_recompile". A call, a context or a decorator.

    Raises: RuntimeError for a stance that does not exist.
    """

    def __init__(
        self,
        stance: str = "default",
        *,
        skip_guard_eval_unsafe: bool = False,
        force_backend: str | Callable[..., Any] | None = None,
    ) -> None:
        if stance not in ("default", "force_eager", "eager_on_recompile", "fail_on_recompile", "eager_then_compile",
                          "aot_eager_then_compile"):  # fmt: skip
            raise RuntimeError(f"invalid torch.compile stance '{stance}'")
        if force_backend is not None and stance != "default":
            raise RuntimeError("non-default stance cannot have force_backend set")
        self.name, self.outer = stance, _Stance.name
        _Stance.name = stance

    def __enter__(self) -> None:
        _Stance.name = self.name

    def _restore(self) -> None:
        _Stance.name = self.outer

    def __call__(self, fn: Callable) -> Callable:
        self._restore()

        @functools.wraps(fn)
        def inner(*args: Any, **kwargs: Any) -> Any:
            with set_stance(self.name):
                return fn(*args, **kwargs)

        return inner


class Compiled:
    """The records of a function. Calling it runs one of them, or the function."""

    def __init__(self, function: Callable, fullgraph: bool = False, limit: int | None = None):
        functools.update_wrapper(self, function, updated=())
        self.function, self.fullgraph, self.limit = function, fullgraph, limit
        self._torchdynamo_orig_callable = function
        self.lock = new_lock()
        self.forget()
        _all.add(self)

    def forget(self) -> None:
        """Drop all records."""
        self.records: tuple[Callable, ...] = ()
        self.failed: set[Any] = set()
        self.attempts: dict[Any, int] = {}  # to record a call, by the kind of the arguments
        self.seen: set[Any] = (
            set()
        )  # arguments of calls that were not recorded because only their sizes were new
        self.failures = 0
        self.is_full = False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        for replay in self.records:
            result = replay(args, kwargs)
            if result is not MISS:
                return result
        return self.miss(args, kwargs)

    def miss(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Answer a call that no record fits."""
        if self.failures >= MOST_FAILURES or self.is_full or stance.name == "force_eager" or not is_usual():
            return self.function(*args, **kwargs)
        try:
            key, kind = _key((args, kwargs)), _key((args, kwargs), sizes=False)
        except RecursionError:  # a list that contains itself
            return self.function(*args, **kwargs)
        if key in self.failed or not self._may_record() or self._may_not_come_again(key, kind):
            return self.function(*args, **kwargs)
        try:
            replay = record(self.function, args, kwargs)
        except Unsupported as reason:
            self._note(key, reason)
            return self.function(*args, **kwargs)
        except Exception:
            log.warning(
                "%s runs eagerly, because of an error in the recorder", _name(self.function), exc_info=True
            )
            self._note(key, Unsupported("the recorder raised an error"))
            return self.function(*args, **kwargs)
        with self.lock:
            self.records = (replay, *self.records)
        result = replay(args, kwargs)
        return self.function(*args, **kwargs) if result is MISS else result

    def _may_record(self) -> bool:
        from . import dynamo_config as module  # loaded when first used

        config: Any = module

        if config.disable:
            return False
        if not IS_KNOWN or getattr(self.function, "_torchdynamo_disable", False):
            self.failures = MOST_FAILURES
            reason = (
                "it is disabled" if IS_KNOWN else "functions are recorded on CPython 3.11, 3.12 and 3.13 only"
            )
            log.info("%s runs eagerly: %s", _name(self.function), reason)
            return False
        if not self.records:
            return True
        if stance.name == "fail_on_recompile":
            raise RuntimeError(
                f"Detected recompile when torch.compile stance is 'fail_on_recompile'. filename: '{_name(self.function)}'"
            )
        if len(self.records) < (config.recompile_limit if self.limit is None else self.limit):
            return stance.name != "eager_on_recompile"
        self.is_full = True
        log.warning("%s runs eagerly for new arguments: it has %d records, see torch._dynamo.config.recompile_limit",
                    _name(self.function), len(self.records))  # fmt: skip
        return False

    def _may_not_come_again(self, key: Any, kind: Any) -> bool:
        """Whether this is the first call with these sizes, and others of its kind were recorded. Counts the attempt if it is not."""
        with self.lock:
            attempts = self.attempts.get(kind, 0)
            if attempts >= SIZES_AT_ONCE and key not in self.seen:
                if len(self.seen) >= MOST_SEEN:
                    self.seen.clear()
                self.seen.add(key)
                return True
            self.attempts[kind] = attempts + 1
            return False

    def _note(self, key: Any, reason: Unsupported) -> None:
        if self.fullgraph and isinstance(reason, GraphBreak):
            from .errors import Unsupported as Error

            raise Error(f"{_name(self.function)} cannot be compiled as a whole: {reason}") from reason
        with self.lock:
            self.failed.add(key)
            self.failures += 1
        log.info("%s runs eagerly: %s", _name(self.function), reason)

    def __deepcopy__(self, memo: dict[int, Any]) -> Compiled:
        return Compiled(copy.deepcopy(self.function, memo), self.fullgraph, self.limit)

    def __reduce__(self) -> tuple:
        return Compiled, (self.function, self.fullgraph, self.limit)


_all: weakref.WeakSet[Compiled] = weakref.WeakSet()


def forget_all() -> None:
    """Drop the records of all functions."""
    for each in list(_all):
        each.forget()


# What constructors make depends on these settings.
when_plans_expire.append(forget_all)
default_device_hooks.append(forget_all)
when_filling_changes.append(forget_all)


def wrapped(function: Callable, fullgraph: bool, limit: int | None) -> Callable:
    """A function that runs a record of `function` where one fits. For a method it is an object that is copied with its module."""
    compiled = Compiled(function, fullgraph, limit)
    if not isinstance(function, FunctionType):
        return compiled

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        for replay in compiled.records:
            result = replay(args, kwargs)
            if result is not MISS:
                return result
        return compiled.miss(args, kwargs)

    wrapper._torchdynamo_orig_callable = function  # type: ignore[attr-defined]
    return wrapper


def _name(function: Any) -> str:
    if isinstance(function, (FunctionType, MethodType)):
        code = function.__code__
        return f"{function.__qualname__} ({code.co_filename}:{code.co_firstlineno})"
    return type(function).__name__


def _key(value: Any, sizes: bool = True) -> Any:
    """What stands for arguments in the set of those that could not be recorded; without `sizes` for all that differ only in sizes."""
    if isinstance(value, Tensor):
        spec = value.spec
        return spec if sizes or type(spec) is not Spec else spec.kind or kind_of(
            spec
        ), value._autograd is None
    if type(value) in (tuple, list):
        return type(value), *[_key(each, sizes) for each in value]
    if type(value) is dict:
        return tuple(value), *[_key(each, sizes) for each in value.values()]
    if type(value) is int and not sizes:
        return int
    return (type(value), value) if type(value) in VALUES else id(value)
