"""Writes through `.data` in the forward of a custom Function, which autograd does not count.

A Function says by `ctx.mark_dirty` what it writes to. One that writes through `.data` instead means to go uncounted: the solvers of torchdiffeq write each
step into a part of a tensor of which earlier steps have saved other parts.
"""

from __future__ import annotations

from typing import Any

from .grad_mode import mode
from .recording import unrecorded
from .storage import Storage


class in_forward(unrecorded):  # noqa: N801 (used like a function)
    """A context for the forward of a Function, without recording. Writes to what `ctx` has marked as dirty count."""

    __slots__ = ("ctx", "outer_forward", "versions")

    def __init__(self, ctx: Any):
        self.ctx = ctx
        # By the id of each storage whose `.data` was taken: the storage, and its version then.
        self.versions: dict[int, tuple[Storage, int]] = {}

    def __enter__(self) -> None:
        self.outer, self.outer_forward = mode.enabled, mode.forward
        mode.enabled, mode.forward = False, self

    def _restore(self) -> None:
        mode.enabled, mode.forward = self.outer, self.outer_forward
        if self.versions:
            dirty = {id(each._storage) for each in self.ctx._dirty}
            for key, (storage, version) in self.versions.items():
                if key not in dirty and storage.version != version:
                    storage.version = version

    def note_data(self, storage: Storage) -> None:
        """The forward takes `.data` of a tensor on this storage."""
        self.versions.setdefault(id(storage), (storage, storage.version))
