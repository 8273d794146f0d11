"""Functions from modules to modules, carried out one after the other. `infra.pass_manager` is for passes as objects."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import wraps
from inspect import unwrap
from typing import Any

from .pass_list import PassList

__all__ = [
    "PassManager", "inplace_wrapper", "log_hook", "loop_pass", "these_before_those_pass_constraint",
    "this_before_that_pass_constraint",
]  # fmt: skip

logger = logging.getLogger(__name__)
logger.setLevel(logging.WARNING)


def inplace_wrapper(fn: Callable) -> Callable:
    """Let a function that changes its argument return the argument."""

    @wraps(fn)
    def wrapped(gm: Any) -> Any:
        fn(gm)
        return gm

    return wrapped


def log_hook(fn: Callable, level: int = logging.INFO) -> Callable:
    """Let a function log what it returns."""

    @wraps(fn)
    def wrapped(gm: Any) -> Any:
        value = fn(gm)
        logger.log(level, "Ran pass %s\n Return value: %s", fn, value)
        return value

    return wrapped


def loop_pass(base_pass: Callable, n_iter: int | None = None, predicate: Callable | None = None) -> Callable:
    """A pass that carries out `base_pass` `n_iter` times, or while `predicate(value)` holds."""
    if (n_iter is not None) == (predicate is not None):
        raise AssertionError("Exactly one of `n_iter`or `predicate` must be specified.")

    @wraps(base_pass)
    def looped(source: Any) -> Any:
        output = source
        if n_iter is not None and n_iter > 0:
            for _ in range(n_iter):
                output = base_pass(output)
        elif predicate is not None:
            while predicate(output):
                output = base_pass(output)
        else:
            raise RuntimeError(
                f"loop_pass must be given positive int n_iter (given {n_iter}) xor predicate (given {predicate})"
            )
        return output

    return looped


def this_before_that_pass_constraint(this: Callable, that: Callable) -> Callable:
    """The constraint that `this` comes before `that`."""

    def depends_on(a: Callable, b: Callable) -> bool:
        return a != that or b != this

    return depends_on


def these_before_those_pass_constraint(these: Callable, those: Callable) -> Callable:
    """The constraint that passes made from `these` by decorators come before those made from `those`."""

    def depends_on(a: Callable, b: Callable) -> bool:
        return unwrap(a) != those or unwrap(b) != these

    return depends_on


class PassManager(PassList):
    """Carries out passes in their order, which must keep the constraints.

    >>> PassManager([lambda value: value + 1, lambda value: value * 2])(3)
    8
    """

    @classmethod
    def build_from_passlist(cls, passes: list[Callable]) -> PassManager:
        """A PassManager with these passes."""
        return cls(list(passes))

    def remove_pass(self, _passes: list[str]) -> None:
        """Remove the passes with these names."""
        if _passes is None:
            return
        self.passes = [each for each in self.passes if each.__name__ not in _passes]
        self._validated = False

    def replace_pass(self, _target: Callable, _replacement: Callable) -> None:
        """Put another pass in the place of those with the name of `_target`."""
        self.passes = [_replacement if each.__name__ == _target.__name__ else each for each in self.passes]
        self._validated = False

    def validate(self) -> None:
        """Check that the order keeps the constraints. Raises: RuntimeError if not."""
        self._check_order()

    def __call__(self, source: Any) -> Any:
        """The result of the last pass."""
        self.validate()
        for each in self.passes:
            source = each(source)
        return source
