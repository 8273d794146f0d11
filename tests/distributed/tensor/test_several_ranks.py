"""DTensors on several processes give what PyTorch's give."""

import pytest
from several_ranks import outcomes, programs

MODULE = "dtensor_programs"


def close(ours, theirs):
    if isinstance(ours, float) and isinstance(theirs, float):
        return ours == theirs or ours == pytest.approx(theirs, rel=2e-4, abs=1e-5, nan_ok=True)
    if isinstance(ours, list | tuple) and isinstance(theirs, list | tuple):
        return len(ours) == len(theirs) and all(map(close, ours, theirs))
    return ours == theirs


def difference(ours, theirs):
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        return next(
            (f"item {k}: {a} and {b}" for k, (a, b) in enumerate(zip(ours, theirs)) if not close(a, b)), ""
        )
    return f"{ours} and {theirs}"


@pytest.mark.parametrize("name", programs(MODULE))
@pytest.mark.parametrize("size", [2, 4])  # PyTorch 2.13 waits for ever where pieces differ in size
def test_same_on_every_rank(size, name):
    found = outcomes("weft", size, MODULE), outcomes("torch", size, MODULE)
    assert str not in map(type, found), found
    for rank, (ours, theirs) in enumerate(zip(*found, strict=True)):
        assert close(ours[name], theirs[name]), f"rank {rank}: {difference(ours[name], theirs[name])}"
