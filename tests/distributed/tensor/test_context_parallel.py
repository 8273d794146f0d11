"""Attention of sequences that are cut among processes is that of whole sequences; parts and refusals are PyTorch's."""

import pytest
from several_ranks import assert_same_on_every_rank, outcomes

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
