"""Attention of sequences that are cut among processes is that of whole sequences; parts and refusals are PyTorch's."""

import pytest
from several_ranks import assert_same_on_every_rank, outcomes

import weft
from weft.distributed.tensor.experimental import context_parallel
from weft.distributed.traffic import traffic

MODULE = "context_programs"


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("name", ["buffers", "refusals"])
def test_parts_are_pytorchs(size, name):
    assert_same_on_every_rank(size, MODULE, name)


@pytest.mark.parametrize("size", [2, 3])
def test_results_and_gradients_are_those_of_one_process(size):
    for rank in outcomes("weft", size, MODULE):
        narrow = rank["attention"].pop("narrow")
        assert narrow < 1e-2
        assert rank["attention"] and max(rank["attention"].values()) < 1e-14, rank["attention"]


@pytest.mark.parametrize("size", [2, 3])
def test_training(size):
    for rank in outcomes("weft", size, MODULE):
        plain, cut = rank["curves"]
        assert plain == pytest.approx(cut, rel=1e-12)


@pytest.mark.parametrize("size", [2, 3])
def test_layers_of_plans(size):
    for rank in outcomes("weft", size, MODULE):
        assert rank["layer"] < 1e-14


def test_only_blocks_of_keys_and_values_are_sent():
    """This process is one of 8 that do not exist: blocks pass it by 7 times, and gradients 8 times."""
    weft.distributed.init_process_group("fake", rank=3, world_size=8)
    try:
        q, k, v = (weft.ones(1, 2, 4, 8, requires_grad=True) for _ in range(3))
        with context_parallel(weft.distributed.init_device_mesh("cpu", (8,))), traffic() as forward:
            result = weft.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        with traffic() as backward:
            result.sum().backward()
    finally:
        weft.distributed.destroy_process_group()
    block = 2 * 4 * 8 * 4
    assert [call.nbytes for call in forward.calls if call.name == "send"] == [block] * 2 * 7
    assert [call.nbytes for call in backward.calls] == [block] * 2 * (7 + 8)
    assert {call.name for call in backward.calls} == {"send"}
