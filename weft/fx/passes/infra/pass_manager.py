"""Passes that are carried out in an order that keeps given constraints."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable
from functools import wraps
from typing import Any

from ....nn import Module
from ..._compatibility import compatibility
from ...graph_module import GraphModule
from ..pass_list import PassList
from ..pass_manager import this_before_that_pass_constraint as _this_before_that
from .pass_base import PassResult

__all__ = ["PassManager", "pass_result_wrapper", "this_before_that_pass_constraint"]

logger = logging.getLogger(__name__)
logger.setLevel(logging.WARNING)


@compatibility(is_backward_compatible=False)
def pass_result_wrapper(fn: Callable) -> Callable:
    """Let a function that changes a module and returns None return a PassResult."""
    if fn is None:
        return None

    @wraps(fn)
    def wrapped(gm: GraphModule) -> PassResult | None:
        result = fn(gm)
        if result is None:
            return PassResult(gm, True)
        if isinstance(result, PassResult):
            return result
        if isinstance(result, Module):
            return PassResult(result, True)  # type: ignore[arg-type]
        return None

    if not inspect.isfunction(fn):
        wrapped.__name__ = type(fn).__name__
    return wrapped


def _topological_sort_passes(
    passes: list[Callable], constraints: list[Callable[[Callable, Callable], bool]]
) -> list[Callable]:
    """The passes in an order that keeps the constraints. Raises: RuntimeError if there is none."""
    if not constraints:
        return passes
    after: dict[Callable, list[Callable]] = {each: [] for each in passes}
    waiting = dict.fromkeys(passes, 0)
    candidates = list(passes)
    for first in passes:
        for second in passes:
            if first is second:
                continue
            # `first` may not come before `second`, so it comes after.
            if any(not constraint(first, second) for constraint in constraints):
                after[second].append(first)
                waiting[first] += 1
    ready = [each for each in candidates if not waiting[each]]
    found: list[Callable] = []
    while ready:
        each = ready.pop(0)
        found.append(each)
        for following in after[each]:
            waiting[following] -= 1
            if not waiting[following]:
                ready.append(following)
    circular = [each for each in passes if waiting[each]]
    if circular:
        raise RuntimeError(f"Circular dependency detected within the following passes: {circular}")
    return found


def _name(each: Callable) -> str:
    return getattr(each, "__name__", str(each))


@compatibility(is_backward_compatible=False)
def this_before_that_pass_constraint(this: Callable, that: Callable) -> Callable:
    """The constraint that `this` comes before `that`."""
    return _this_before_that(this, that)


@compatibility(is_backward_compatible=False)
class PassManager(PassList):
    """Carries out passes, up to `steps` times as long as they change something."""

    steps: int = 1

    def __init__(
        self,
        passes: Any = None,
        constraints: Any = None,
        steps: int | None = None,
        run_checks_after_each_pass: bool = False,
        suppress_check_failures: bool = False,
    ) -> None:
        super().__init__(passes, constraints)
        if steps:
            self.steps = steps
        self.run_checks_after_each_pass = run_checks_after_each_pass
        self.suppress_check_failures = suppress_check_failures

    def validate_constraints(self) -> None:
        """Check that the order of the passes keeps the constraints. Raises: RuntimeError if not."""
        self._check_order()

    def solve_constraints(self) -> None:
        """Put the passes into an order that keeps the constraints."""
        self.passes = _topological_sort_passes(self.passes, self.constraints)
        self._validated = True

    def add_checks(self, check: Callable) -> None:
        """Let `check(module)` look at the module after the passes."""
        parameters = list(inspect.signature(check).parameters.values())
        if len(parameters) != 1:
            raise TypeError("PassManager check function should only take in one variable, a module")
        self.check = check  # type: ignore[method-assign]

    def check(self, module: Module) -> None:
        """Called after the passes: raise if the module is not as it must be."""

    def __call__(self, module: Module) -> PassResult:
        """Carry out the passes on the module."""
        if not self._validated:
            self.solve_constraints()
        self.check(module)
        changed = False
        for _ in range(self.steps):
            changed_now = False
            for each in self.passes:
                result = self._run(each, module)
                module = result.graph_module
                changed_now = changed_now or result.modified
            changed = changed or changed_now
            if not changed_now:
                break
        return PassResult(module, changed)  # type: ignore[arg-type]

    def _run(self, each: Callable, module: Module) -> PassResult:
        """The result of one pass. Raises: Exception, which names the pass and those before it."""
        name = each.__name__ if inspect.isfunction(each) else type(each).__name__
        logger.debug("Running pass '%s'", name)
        try:
            result = each(module)
            if not isinstance(result, PassResult):
                raise TypeError(
                    f"The result of the pass {name} should be type PassResult. Please wrap it with pass_result_wrapper()"
                )
            changed = result.graph_module
            if isinstance(changed, GraphModule):
                logger.debug("Graph after pass '%s': %s", name, changed.graph)
                changed.recompile()
            if self.run_checks_after_each_pass:
                self.check(changed)
        except Exception as error:
            previous = [_name(other) for other in self.passes[: self.passes.index(each)]]
            raise Exception(
                f"An error occurred when running the '{name}' pass after the following passes: {previous}"
            ) from error
        return result
