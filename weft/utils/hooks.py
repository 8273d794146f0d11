"""Handles of registered hooks."""

from __future__ import annotations

import itertools
import weakref
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

_ids = itertools.count()


class RemovableHandle:
    """Takes a hook out of the dictionary that it was registered in; as a context manager, at the end of the block.

    `extra_dict` is one more dictionary, or several, that say something about the hook under the same id.

    >>> hooks = {}
    >>> handle = RemovableHandle(hooks)
    >>> hooks[handle.id] = print
    >>> handle.remove(); hooks
    {}
    """

    def __init__(self, hooks_dict: Any, *, extra_dict: Any = None):
        self.id = next(id for id in _ids if id not in hooks_dict)  # unpickled hooks bring theirs along
        self._dicts = [_Dict(each) for each in (hooks_dict, *_several(extra_dict))]

    def remove(self) -> None:
        """Take the hook out; nothing happens if it is out already, or if what it belongs to is gone."""
        for each in self._dicts:
            hooks = each()
            if hooks is not None:
                hooks.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exception: Any) -> None:
        self.remove()


def _several(extra: Any) -> Sequence[Any]:
    if extra is None:
        return ()
    return extra if isinstance(extra, (list, tuple)) else (extra,)


class _Dict:
    """A reference to a dictionary: weak where the type allows it, so that a handle keeps no module alive."""

    __slots__ = ("_get",)

    def __init__(self, hooks: Any):
        self._get = (lambda: hooks) if type(hooks) is dict else weakref.ref(hooks)

    def __call__(self) -> Any:
        return self._get()

    def __reduce__(self) -> tuple:
        hooks = self._get()
        return _Dict, (OrderedDict() if hooks is None else hooks,)
