"""Writes find the memory of their target where it is after the deferred work that reads it, see `inplace_of` in families/calls.py."""

import pytest

import weft
from weft.core.promised import Watched, keeper
from weft.core.storage import Storage
from weft.families.indexed import spread


def spread_ones(x):
    spread(x, weft.ones(4).bool(), weft.full((4,), 2.0), 4)


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.add_(weft.ones(4)),
        lambda x: x.add_(1.0),
        lambda x: x.mul_(weft.full((4,), 2.0)),
        lambda x: x.exp2_(),
        lambda x: x.copy_(weft.full((4,), 2.0)),
        lambda x: x.fill_(2.0),
        lambda x: x.addcmul_(weft.ones(4), weft.ones(4)),
        lambda x: x.index_add_(0, weft.arange(4), weft.ones(4)),
        lambda x: x.index_copy_(0, weft.arange(4), weft.full((4,), 2.0)),
        lambda x: weft._foreach_add_([x, weft.ones(4)], 1.0),
        spread_ones,
    ],
)
def test_deferred_work_may_move_the_target(monkeypatch, write):
    write(weft.ones(4))  # compiles
    x = weft.ones(4)

    def settle(storage):
        storage.__class__ = Storage
        storage.resize_(1 << 16)  # as a finalizer or a signal handler could

    with monkeypatch.context() as patched:
        patched.setattr(keeper, "settle", settle)
        x._storage.__class__ = Watched
        write(x)
    assert x.tolist() == [2.0] * 4 and x._storage.nbytes() == 1 << 16
