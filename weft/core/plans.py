"""Plan caches: an op looks up its plan by the specs of its operands and its static arguments."""

from __future__ import annotations

from collections.abc import Callable
from weakref import WeakValueDictionary

from .dtype import when_default_changes
from .layout_spec import first_layout_hooks, refuse_layouts

# Plans of one cache. A plan of `a + b` with its key and spec takes 1.4 KB, so ever new shapes cost at most 6 MB for each op.
PLANS_PER_OP = 4096


_caches: WeakValueDictionary[int, PlanCache] = WeakValueDictionary()


@when_default_changes.append
def _forget_plans() -> None:
    for cache in list(_caches.values()):
        cache.clear()


class PlanCache(dict):
    """A dictionary from keys (specs and static arguments) to plans. `plan(*key)` creates missing plans.

    The size is bounded: a full cache drops its oldest quarter. A cache hit is an ordinary dictionary lookup, so 2.0 and True
    would find the plans for 2 and 1. Therefore callers convert integer arguments to int before they build a key.
    """

    __slots__ = ("plan", "__weakref__")

    def __init__(self, plan: Callable):
        super().__init__()
        self.plan = plan
        _caches[id(self)] = self

    def __missing__(self, key):
        if not first_layout_hooks:
            refuse_layouts(key)
        plan = self.plan(*key)
        if len(self) >= PLANS_PER_OP:
            for old in list(self)[: PLANS_PER_OP // 4]:
                self.pop(old, None)
        self[key] = plan
        return plan
