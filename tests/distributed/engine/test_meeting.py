"""Processes of several machines do not share memory, and say what to use."""

from datetime import timedelta

import pytest

from weft.distributed import HashStore
from weft.distributed.engine.meeting import machine, meet


def test_several_machines_need_mpi():
    store = HashStore()
    store.set("1/rank1", "node7/0a1b/pid:[1] 123 ")
    own = machine().partition("/")[0]
    with pytest.raises(NotImplementedError) as error:
        meet(store, 0, 2, timedelta(seconds=5))
    for part in (own, "node7", "one machine", "pip install 'weft[distributed]'", "mpiexec -n 2 -hosts"):
        assert part in str(error.value)
