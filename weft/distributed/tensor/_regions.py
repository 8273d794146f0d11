"""Regions in which operations take plain tensors beside DTensors: these count as the same on all processes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_LOSSES = frozenset(("cross_entropy", "nll_loss"))
_takers: ContextVar[frozenset[str] | None] = ContextVar("takers of plain tensors", default=frozenset())


def takes_plain(function: str) -> bool:
    """Whether a function takes plain tensors beside DTensors here."""
    takers = _takers.get()
    return takers is None or function in takers


@contextmanager
def _region(takers: frozenset[str] | None) -> Iterator[None]:
    token = _takers.set(takers)
    try:
        yield
    finally:
        _takers.reset(token)


@contextmanager
def implicit_replication() -> Iterator[None]:
    """A region in which all operations take plain tensors beside DTensors.

    >>> import weft as torch
    >>> with implicit_replication():
    ...     torch.ones(2) + 1
    tensor([2., 2.])
    """
    with _region(None):
        yield


@contextmanager
def loss_parallel() -> Iterator[None]:
    """A region in which `cross_entropy` of a DTensor takes a plain target.

    In PyTorch, scores whose classes are cut stay where they are only in this region. In weft they do so everywhere, and label smoothing,
    class probabilities, and means on meshes of several dims work too.

    >>> import weft as torch
    >>> with loss_parallel():
    ...     torch.nn.functional.cross_entropy(torch.zeros(1, 4), torch.tensor([2]))
    tensor(1.3863)
    """
    with _region(_LOSSES):
        yield
