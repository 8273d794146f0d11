"""Padding and packing of sequences of different lengths."""

import oracle
import pytest
import torch
from expressions import check as check_expression
from expressions import lines

import weft
from weft.nn.utils import rnn

RAGGED = [torch.randn(3, 2), torch.randn(1, 2), torch.randn(4, 2)]


def check(name, *args, **kwargs):
    oracle.check(f"nn.utils.rnn.{name}", *args, **kwargs)


@pytest.mark.parametrize("batch_first", [False, True])
def test_padding(batch_first):
    for options in ({}, {"padding_value": -1.0}, {"padding_side": "left"}):
        check("pad_sequence", RAGGED, batch_first, **options)
    check("pad_sequence", [torch.arange(3), torch.arange(2)], batch_first)
    check("pad_sequence", torch.ones(2, 3), batch_first)


@pytest.mark.parametrize("batch_first", [False, True])
def test_packing_and_back(batch_first):
    padded = torch.nn.utils.rnn.pad_sequence(RAGGED, batch_first)
    for lengths in ([3, 1, 4], torch.tensor([3, 1, 4]), torch.tensor([2.0, 2.0, 2.0])):
        check("pack_padded_sequence", padded, lengths, batch_first, enforce_sorted=False)
    packed = torch.nn.utils.rnn.pack_sequence(RAGGED, enforce_sorted=False)
    mine = rnn.pack_sequence([oracle.to_weft(each) for each in RAGGED], enforce_sorted=False)
    oracle.assert_same(tuple(mine), tuple(packed))
    for options in ({}, {"padding_value": 2.5}, {"total_length": 6}):
        got = rnn.pad_packed_sequence(mine, batch_first, **options)
        oracle.assert_same(got, torch.nn.utils.rnn.pad_packed_sequence(packed, batch_first, **options))
    for one, other in zip(rnn.unpack_sequence(mine), RAGGED, strict=True):
        oracle.assert_same(one, other)


@pytest.mark.refuses("all")
def test_errors():
    padded = torch.ones(4, 3, 1)
    for lengths in ([2, 4, 1], [4, 2, 0], [4, 2]):
        check("pack_padded_sequence", padded, lengths)
    for arguments in ([], 3, [torch.ones(2, 2), torch.ones(3, 3)]):
        check("pad_sequence", arguments)
    check("pad_sequence", RAGGED, padding_side="x")
    with pytest.raises(RuntimeError, match="got 5"):
        rnn.pack_padded_sequence(weft.ones(4, 3, 1), [5, 2, 1])
    with pytest.raises(ValueError, match="total_length=2 and max sequence length being 4"):
        rnn.pad_packed_sequence(rnn.pack_padded_sequence(weft.ones(4, 1, 1), [4]), total_length=2)


def test_packed_sequence_converts():
    packed = rnn.pack_sequence([weft.ones(3), weft.ones(2)])
    assert packed.double().data.dtype is weft.float64
    assert packed.to(weft.float16).data.dtype is weft.float16
    assert packed.cpu() is packed
    assert packed.batch_sizes.tolist() == [2, 2, 1]
    assert not packed.is_cuda


def test_gradients_pass():
    sequences = [weft.ones(3, requires_grad=True), weft.ones(2, requires_grad=True)]
    padded, _ = rnn.pad_packed_sequence(rnn.pack_sequence(sequences))
    (padded * weft.arange(6.0).view(3, 2)).sum().backward()
    assert [each.grad.tolist() for each in sequences] == [[0.0, 2.0, 4.0], [1.0, 3.0]]


UNFIT = """
torch.nn.utils.rnn.pad_sequence([torch.ones(2), None])  # raises
torch.nn.utils.rnn.pad_sequence([None])  # raises
torch.nn.utils.rnn.pad_sequence([torch.ones(2)], padding_value="a")  # raises
torch.nn.utils.rnn.pad_sequence([torch.tensor(1.0), torch.ones(2)])  # raises
"""


@pytest.mark.parametrize("expression", lines(UNFIT))
def test_arguments_that_do_not_fit(expression):
    check_expression(expression)
