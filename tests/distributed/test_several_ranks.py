"""Programs of several processes compute what they compute with PyTorch's Gloo."""

import pytest
from several_ranks import outcomes, programs

MODULE = "rank_programs"


def close(ours, theirs):
    if isinstance(ours, float | complex) and isinstance(theirs, float | complex):
        return ours == theirs or ours == pytest.approx(theirs, rel=1e-5, abs=1e-12, nan_ok=True)
    if isinstance(ours, list | tuple) and isinstance(theirs, list | tuple):
        return len(ours) == len(theirs) and all(map(close, ours, theirs))
    return ours == theirs


@pytest.mark.parametrize("name", programs(MODULE))
@pytest.mark.parametrize("size", [2, 3])
def test_same_on_every_rank(size, name):
    found = outcomes("weft", size, MODULE), outcomes("torch", size, MODULE)
    assert str not in map(type, found), found
    for rank, (ours, theirs) in enumerate(zip(*found, strict=True)):
        assert close(ours[name], theirs[name]), f"rank {rank}:\nweft: {ours[name]}\nPyTorch: {theirs[name]}"
