"""Plan caches: an op looks up its plan by the specs of its operands and its static arguments."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any
from weakref import WeakValueDictionary

from .dtype import when_plans_expire
from .kernel_names import planning
from .layout_spec import first_layout_hooks, refuse_layouts
from .spec import Spec, kind_of
from .symbols import Symbol, Trace, Untraceable, traces
from .templates import MOST_KINDS, UNFIT, Kind, kind_of_key, template, trace_of_key

# Plans of one cache. One takes 1 to 5 KB with its key and spec, so ever new sizes cost at most 5 MB for each op. A plan that was
# dropped is made again by its template.
PLANS_PER_OP = 1024
MOST_RECENT = 4  # templates for keys with first specs of one kind


# The caches whose planning code runs; a plan that it looks up is a part of theirs.
_planning: list[PlanCache] = []

_caches: WeakValueDictionary[int, PlanCache] = WeakValueDictionary()
_writes_templates = True


@when_plans_expire.append
def _forget_plans() -> None:
    for cache in list(_caches.values()):
        cache.clear()


@contextlib.contextmanager
def planned_anew() -> Iterator[None]:
    """Within the context, ops plan every call anew, for exact sizes. After it they have the plans of before.

    For contexts that note what planning prepares. Plans that were made before would not prepare it again, and a template would make
    plans for other sizes from the notes of one.
    """
    global _writes_templates
    caches = list(_caches.values())
    before = {id(cache): (dict(cache), cache.kinds, cache.recent) for cache in caches}
    for cache in caches:
        dict.clear(cache)
        cache.kinds, cache.recent = {}, {}
    writes_templates, _writes_templates = _writes_templates, False
    try:
        yield
    finally:
        _writes_templates = writes_templates
        for cache in list(_caches.values()):
            plans, cache.kinds, cache.recent = before.get(id(cache), ({}, {}, {}))
            dict.clear(cache)
            cache.update(plans)


class PlanCache(dict):
    """A dictionary from keys (specs and static arguments) to plans. `plan(*key)` creates missing plans.

    The size is bounded: a full cache drops its oldest quarter. A cache hit is an ordinary dictionary lookup, so 2.0 and True
    would find the plans for 2 and 1. Therefore callers convert integer arguments to int before they build a key.

    `plan` sees sizes only as numbers that it computes with, or it runs for each key: see `core/templates.py`. `with_sizes`: the
    ints among the static arguments are sizes or positions, which change from call to call. The kernels of the plans are named `name`; without
    one, as the op whose method `plan` is, or as the op whose planning code looks up the plan.
    """

    __slots__ = ("plan", "with_sizes", "name", "kinds", "recent", "__weakref__")

    def __init__(self, plan: Callable, with_sizes: bool = False, name: str | None = None):
        super().__init__()
        self.plan, self.with_sizes = plan, with_sizes
        self.name = name or getattr(getattr(plan, "__self__", None), "name", None)
        self.kinds: dict[tuple, Kind] = {}
        # The templates that are asked first, by the kind of the first spec of a key: finding the kind of all of it takes longer.
        self.recent: dict[Any, tuple[Callable[[tuple], Any], ...]] = {}
        _caches[id(self)] = self

    def __missing__(self, key):
        if not first_layout_hooks:
            refuse_layouts(key)
        if traces and (trace := trace_of_key(key)) is not None:
            return self._planned_on_symbols(key, trace)
        plan = UNFIT
        first = key[0] if key else None
        kind = (first.kind or kind_of(first)) if type(first) is Spec else None
        try:
            for make in self.recent.get(kind, ()):
                if (plan := make(key)) is not UNFIT:
                    break
        except ZeroDivisionError:  # a divisor that is never 0 where the guards hold
            plan = UNFIT
        if plan is UNFIT:
            plan = self._planned(key, kind)
        if len(self) >= PLANS_PER_OP:
            for old in list(self)[: PLANS_PER_OP // 4]:
                self.pop(old, None)
        self[key] = plan
        return plan

    def clear(self) -> None:
        super().clear()
        self.kinds.clear()
        self.recent.clear()

    def _planned(self, key: tuple, first: Any) -> Any:
        """The plan for a key for which no recent template holds, by another one, by a new one, or by the planning code.

        first: the kind of the first spec.
        """
        kind = kind_of_key(key, self.with_sizes)
        found = self.kinds.get(kind)
        if found is None:
            if len(self.kinds) >= MOST_KINDS:
                self.kinds.clear()
            found = self.kinds[kind] = Kind()
        for make in found.templates:
            with contextlib.suppress(ZeroDivisionError):
                if (plan := make(key)) is not UNFIT:
                    return self._use(make, plan, first)
        if _writes_templates and found.needs_template(key, len(self.kinds), inner=bool(_planning)):
            try:
                with planning(self.name):
                    make = template(self.plan, key, self.with_sizes)
            except Untraceable as error:
                found.reason = str(error)
            else:
                found.add(make)
                return self._use(make, make(key), first)
        _planning.append(self)
        try:
            with planning(self.name):
                return self.plan(*key)
        finally:
            _planning.pop()

    def _use(self, make: Callable, plan: Any, first: Any) -> Any:
        """Let a template be the first that is asked for the next key with such a first spec."""
        if len(self.recent) >= MOST_KINDS:
            self.recent.clear()
        others = [each for each in self.recent.get(first, ()) if each is not make]
        self.recent[first] = (make, *others)[:MOST_RECENT]
        return plan

    def _planned_on_symbols(self, key: tuple, trace: Trace) -> Any:
        """The plan for a key with symbols, for planning code that looks up plans of other ops."""
        own = (id(self), *key) if not any(type(each) is Symbol for each in key) else None
        try:
            return trace.memo[own]
        except (KeyError, Untraceable):
            with planning(self.name):
                plan = self.plan(*key)
        if own is not None:
            with contextlib.suppress(Untraceable):
                trace.memo[own] = plan
        return plan
