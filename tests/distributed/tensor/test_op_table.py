"""Operators on DTensors give what they give on plain tensors, with their gradients. PyTorch has rules for a part of them only."""

from several_ranks import outcomes


def test_like_plain_tensors():
    found = outcomes("weft", 3, "dtensor_op_table")
    assert isinstance(found, list), found
    assert found[0]["op_table"] == {}
