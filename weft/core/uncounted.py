"""Writes through `.data` in the forward of a custom Function, which autograd does not count.

A Function says by `ctx.mark_dirty` what it writes to. One that writes through `.data` instead means to go uncounted: the solvers of torchdiffeq write each
step into a part of a tensor of which earlier steps have saved other parts.
"""

from __future__ import annotations

import threading
from typing import Any

from .grad_mode import mode
from .recording import unrecorded
from .storage import Storage

forwards: list[in_forward] = []  # those that run, of all threads
_thread = threading.get_ident


class in_forward(unrecorded):  # noqa: N801 (used like a function)
    """A context for the forward of a Function, without recording. Writes to what `ctx` has marked as dirty count."""

    __slots__ = ("ctx", "thread", "versions")

    def __init__(self, ctx: Any):
        self.ctx, self.thread = ctx, _thread()
        self.versions: dict[
            int, tuple[Storage, int]
        ] = {}  # by id: storages whose `.data` was taken, with their versions then

    def __enter__(self) -> None:
        self.outer = mode.enabled
        forwards.append(self)
        mode.enabled = False

    def _restore(self) -> None:
        mode.enabled = self.outer
        if self in forwards:
            forwards.remove(self)
        if self.versions:
            dirty = {id(each._storage) for each in self.ctx._dirty}
            for key, (storage, version) in self.versions.items():
                if key not in dirty and storage.version != version:
                    storage.version = version


def note_data(storage: Storage) -> None:
    """`.data` of a tensor on this storage is taken while forwards run."""
    for forward in reversed(forwards):
        if forward.thread == _thread():
            forward.versions.setdefault(id(storage), (storage, storage.version))
            break
