"""Plan caches: what an op decided for a combination of specs and static arguments is looked up by that combination."""

from __future__ import annotations

from collections.abc import Callable
from weakref import WeakValueDictionary

from .dtype import when_default_changes

PLANS_PER_OP = 4096


_caches: WeakValueDictionary[int, PlanCache] = WeakValueDictionary()


@when_default_changes.append
def _forget_plans() -> None:
    for cache in list(_caches.values()):
        cache.clear()


class PlanCache(dict):
    """Plans by key (specs and static arguments); a missing one is made by `plan(*key)`.

    Bounded: when full, the oldest quarter goes. A lookup that hits is a plain dictionary lookup, so 2.0 and True find the
    plans of 2 and 1: what users give as an int is made one before it becomes part of a key.
    """

    __slots__ = ("plan", "__weakref__")

    def __init__(self, plan: Callable):
        super().__init__()
        self.plan = plan
        _caches[id(self)] = self

    def __missing__(self, key):
        found = self.plan(*key)
        if len(self) >= PLANS_PER_OP:
            for old in list(self)[: PLANS_PER_OP // 4]:
                self.pop(old, None)
        self[key] = found
        return found
