"""Plan caches: an op looks up its plan by the specs of its operands and its static arguments."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any
from weakref import WeakValueDictionary

from .dtype import when_default_changes
from .layout_spec import first_layout_hooks, refuse_layouts
from .symbols import Symbol, Trace, Untraceable
from .templates import MOST_KINDS, UNFIT, Kind, kind_of_key, template

# Plans of one cache. One takes 1 to 5 KB with its key and spec, so ever new sizes cost at most 5 MB for each op. A plan that was
# dropped is made again by its template.
PLANS_PER_OP = 1024


_caches: WeakValueDictionary[int, PlanCache] = WeakValueDictionary()


@when_default_changes.append
def _forget_plans() -> None:
    for cache in list(_caches.values()):
        cache.clear()


class PlanCache(dict):
    """A dictionary from keys (specs and static arguments) to plans. `plan(*key)` creates missing plans.

    The size is bounded: a full cache drops its oldest quarter. A cache hit is an ordinary dictionary lookup, so 2.0 and True
    would find the plans for 2 and 1. Therefore callers convert integer arguments to int before they build a key.

    `plan` sees sizes only as numbers that it computes with, or it runs for each key: see `core/templates.py`. `with_sizes`: the
    ints among the static arguments are sizes or positions, which change from call to call.
    """

    __slots__ = ("plan", "with_sizes", "kinds", "__weakref__")

    def __init__(self, plan: Callable, with_sizes: bool = False):
        super().__init__()
        self.plan, self.with_sizes = plan, with_sizes
        self.kinds: dict[tuple, Kind] = {}
        _caches[id(self)] = self

    def __missing__(self, key):
        if not first_layout_hooks:
            refuse_layouts(key)
        kind = kind_of_key(key, self.with_sizes)
        if type(kind) is Trace:
            return self._planned_on_symbols(key, kind)
        plan = self._from_template(key, kind)
        if plan is UNFIT:
            plan = self.plan(*key)
        if len(self) >= PLANS_PER_OP:
            for old in list(self)[: PLANS_PER_OP // 4]:
                self.pop(old, None)
        self[key] = plan
        return plan

    def clear(self) -> None:
        super().clear()
        self.kinds.clear()

    def _from_template(self, key: tuple, kind: tuple) -> Any:
        """The plan for a key by the template of its kind; UNFIT if the planning code has to make it."""
        found = self.kinds.get(kind)
        if found is None:
            if len(self.kinds) >= MOST_KINDS:
                self.kinds.clear()
            found = self.kinds[kind] = Kind()
        templates = found.templates
        for make in templates:
            try:
                plan = make(key)
            except ZeroDivisionError:  # a divisor that is never 0 where the guards hold
                continue
            if plan is not UNFIT:
                if make is not templates[0]:  # other threads read the list
                    found.templates = [make, *[each for each in templates if each is not make]]
                return plan
        if not found.needs_template(key, len(self.kinds)):
            return UNFIT
        try:
            make = template(self.plan, key, self.with_sizes)
        except Untraceable as error:
            found.reason = str(error)
            return UNFIT
        found.add(make)
        return make(key)

    def _planned_on_symbols(self, key: tuple, trace: Trace) -> Any:
        """The plan for a key with symbols, for planning code that looks up plans of other ops."""
        own = (id(self), *key) if not any(type(each) is Symbol for each in key) else None
        try:
            return trace.memo[own]
        except (KeyError, Untraceable):
            plan = self.plan(*key)
        if own is not None:
            with contextlib.suppress(Untraceable):
                trace.memo[own] = plan
        return plan
