"""What NumPy checks once and then trusts must not be memory that another thread may write meanwhile."""

import numpy as np
import pytest

import weft
from weft.ops.order import sorting
from weft.ops.order.keys import order_keys

CALLS = {
    "bincount": lambda t: t.bincount(weights=weft.ones(8)),
    "repeat": lambda t: t.repeat_interleave(t),
    "take_along_axis": lambda t: weft.searchsorted(weft.rand(8), weft.rand(3), sorter=t),
    "argsort": lambda t: t.to(weft.uint16).argsort(),
    "partition": lambda t: t.to(weft.uint8).kthvalue(4),
}


@pytest.mark.parametrize("name", CALLS)
def test_numpy_gets_a_copy(name, monkeypatch):
    tensor = weft.arange(8)
    made = []
    to, real = weft.Tensor.to, getattr(np, name)

    def seen(*arguments, **options):
        for each in (each for each in arguments if isinstance(each, np.ndarray) and each.dtype.kind in "iu"):
            assert not any(np.shares_memory(each, t.numpy()) for t in [tensor, *made])
        return real(*arguments, **options)

    monkeypatch.setattr(weft.Tensor, "to", lambda *arguments: (made.append(to(*arguments)), made[-1])[1])
    monkeypatch.setattr(np, name, seen)
    monkeypatch.setattr(sorting, "FEW", 0)
    monkeypatch.setattr(sorting, "SHORT_ROW", 0)
    CALLS[name](tensor)


@pytest.mark.parametrize(
    "dtype", ["bool", "uint8", "int8", "uint16", "uint64", "int64", "float16", "float64"]
)
def test_keys_are_not_the_memory_of_the_values(dtype):
    values = np.arange(5).astype(dtype)
    assert not np.shares_memory(order_keys(weft.from_numpy(values), 0), values)
