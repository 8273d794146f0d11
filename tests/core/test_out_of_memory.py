"""Where there is no memory, exceptions name the bytes that the result takes."""

import re

import numpy as np
import pytest
import torch
from expressions import lines

import weft
from weft.core.out_of_memory import from_memory_error
from weft.families.array_op import array_op
from weft.families.custom_vjp import custom_vjp

SAME = """
torch.empty(2**45 + 3)
torch.zeros(2**40, dtype=torch.float64)
torch.ones(3_000_000_001, 3_000_001)
torch.arange(2**45)
torch.rand(3).repeat(2**44)
torch.rand(2**21).outer(torch.rand(2**21))
torch.rand(2**21, 1) + torch.rand(2**21)
torch.tril_indices(2**31, 21)
torch.triu_indices(21, 2**31)
torch.tril_indices(2**31, 2**20, dtype=torch.int32)
torch.bincount(torch.tensor([1]), minlength=2**44)
torch.bincount(torch.tensor([2**45]))
torch.rand(2).resize_(2**45)
torch.ones(1).untyped_storage().resize_(2**47 + 5)
"""

OVERFLOWING = """
torch.bincount(torch.tensor([1]), minlength=2**62)
torch.bincount(torch.tensor([2**62]))
torch.histc(torch.rand(3), bins=2**62)
torch.triu_indices(2**31, 2**31)
"""


def message(expression, lib):
    with pytest.raises(RuntimeError) as caught:
        eval(expression, {"torch": lib})
    return str(caught.value)


@pytest.mark.parametrize("expression", lines(SAME))
def test_exceptions_name_the_bytes_that_pytorch_names(expression):
    ours, theirs = (
        re.search(r"tried to allocate (\d+) bytes", message(expression, lib)) for lib in (weft, torch)
    )
    assert ours and theirs and ours.group(1) == theirs.group(1)


@pytest.mark.parametrize("expression", lines(OVERFLOWING))
def test_more_bytes_than_addresses(expression):
    for lib in (weft, torch):
        assert message(expression, lib).startswith("Storage size calculation overflowed with sizes=")


def test_counts_of_too_many_bins():  # PyTorch, which needs memory for the edges of the bins, names 4 bytes more
    assert f"allocate {2**42} bytes" in message("torch.histc(torch.rand(3), bins=2**40)", weft)


def test_exceptions_of_numpy_become_pytorchs():
    with pytest.raises(MemoryError) as caught:
        np.empty((3, 2**50), np.float64)
    assert f"tried to allocate {3 * 2**53} bytes" in str(from_memory_error(caught.value))
    assert "can't allocate memory" in str(from_memory_error(MemoryError()))


@pytest.mark.parametrize("kind", [array_op, custom_vjp()])
def test_ops_that_numpy_computes(kind):
    op = kind(lambda input: np.empty((3, 2**50), np.float64))
    for requires_grad in (False, True):
        with pytest.raises(RuntimeError, match=f"tried to allocate {3 * 2**53} bytes"):
            op(weft.ones(2, requires_grad=requires_grad))


def test_small_parts_of_large_triangles():
    size = 2**31  # a mask of this matrix would not fit into memory
    assert weft.tril_indices(size, size, 2 - size).tolist() == [[size - 2, size - 1, size - 1], [0, 0, 1]]
    assert weft.triu_indices(size, size, size - 2).tolist() == [
        [0, 0, 1],
        [size - 2, size - 1, size - 1],
    ]
