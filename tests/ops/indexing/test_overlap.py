"""Writes by index whose operands share memory with the target: refused, or warned of, as in PyTorch."""

import warnings

import pytest
import torch

import weft

# name -> (further arguments behind the source)
BY_DIM = {
    "index_add_": (), "index_copy_": (), "scatter_": (), "scatter_add_": (), "index_reduce_": ("prod",), "scatter_reduce_": ("sum",),
}  # fmt: skip


def numbers(lib):
    return lib.arange(6.0)


def index(lib):
    return lib.tensor([2, 1, 0])


def mask(lib):
    return lib.tensor([True, False, True, True, False, False])


def assign(target, where, value):
    target[where] = value
    return target


def by_dim(name):
    rest = BY_DIM[name]

    def write(target, where, source):
        return getattr(target, name)(0, where, source, *rest)

    return write


WRITES = {
    **{name: by_dim(name) for name in BY_DIM},
    "put_": lambda target, where, source: target.put_(where, source),
    "index_put_": lambda target, where, source: target.index_put_((where,), source),
    "accumulate": lambda target, where, source: target.index_put_((where,), source, accumulate=True),
    "setitem": assign,
}
BOTH = pytest.mark.parametrize("lib", [weft, torch], ids=["weft", "torch"])
OVERLAP = "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location"


@BOTH
@pytest.mark.parametrize("name", WRITES)
def test_operands_that_overlap_the_target_are_refused(lib, name):
    write, target, where = WRITES[name], numbers(lib), index(lib)
    for arguments in (
        (target, where, target[:3]),
        (target[:3], where, target[:3]),
        (where, where, where.clone()),
        (where, where.clone(), where),
    ):
        with pytest.raises(RuntimeError, match=OVERLAP):
            write(*arguments)
    assert target.tolist() == [0, 1, 2, 3, 4, 5] and where.tolist() == [2, 1, 0]


@BOTH
@pytest.mark.parametrize("name", WRITES)
def test_operands_in_other_parts_of_the_memory_are_fine(lib, name):
    expected = WRITES[name](numbers(lib)[:3].clone(), index(lib), numbers(lib)[3:].clone())
    whole = numbers(lib)
    found = WRITES[name](whole[:3], index(lib), whole[3:])
    assert found.tolist() == expected.tolist() and whole[:3].tolist() == expected.tolist()


@pytest.mark.parametrize("name", WRITES)
def test_operands_with_gaps_count_as_apart(name):
    """PyTorch does not ask whether they overlap, and may read what it has written; weft reads the old values."""
    expected = WRITES[name](numbers(weft), index(weft), numbers(weft)[::2].clone())
    whole = numbers(weft)
    assert WRITES[name](whole, index(weft), whole[::2]).tolist() == expected.tolist()


@BOTH
def test_other_writes_with_the_targets_own_values(lib):
    target = numbers(lib)
    with pytest.raises(RuntimeError, match=OVERLAP):
        assign(target, mask(lib), target[:3])
    with pytest.raises(RuntimeError, match=OVERLAP):
        target.put_(index(lib)[0], target[0])
    with pytest.raises(RuntimeError, match=OVERLAP):
        target.index_add_(0, index(lib), target[:3], alpha=2)
    assert numbers(lib).index_fill_(0, index(lib), numbers(lib)[5]).tolist() == [5, 5, 5, 3, 4, 5]
    assert target.index_fill_(0, index(lib), target[5]).tolist() == [5, 5, 5, 3, 4, 5]
    assert assign(target, mask(lib), target[3]).tolist() == [3, 5, 3, 3, 4, 5]


EXPANDED = {
    "index_fill_": lambda lib, target: target.index_fill_(0, index(lib), 1.0),
    "index_fill_ with a tensor": lambda lib, target: target.index_fill_(0, index(lib), lib.tensor(1.0)),
    "index_put_": lambda lib, target: target.index_put_((index(lib),), lib.ones(3)),
    "setitem": lambda lib, target: assign(target, index(lib), 1.0),
    "setitem with a mask": lambda lib, target: assign(target, mask(lib), 1.0),
    "masked_fill_": lambda lib, target: target.masked_fill_(mask(lib), 1.0),
    "masked_fill_ with a tensor": lambda lib, target: target.masked_fill_(mask(lib), lib.tensor(1.0)),
}


@BOTH
@pytest.mark.parametrize("name", EXPANDED)
def test_a_warning_for_expanded_targets(lib, name):
    for _ in range(5):
        with pytest.warns(UserWarning, match="on expanded tensors is deprecated"):
            assert EXPANDED[name](lib, lib.zeros(1).expand(6)).tolist() == [1] * 6
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        EXPANDED[name](lib, lib.zeros(6))


@BOTH
@pytest.mark.parametrize("name", [*BY_DIM, "put_"])
def test_other_writes_refuse_expanded_targets(lib, name):
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        WRITES[name](lib.zeros(1).expand(6), index(lib), lib.ones(3))
