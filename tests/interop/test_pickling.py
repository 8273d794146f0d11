"""Copies and pickles of tensors."""

import copy
import pickle

import pytest

import weft


class Special(weft.Tensor):
    pass


def pickled(value):
    return pickle.loads(pickle.dumps(value))


@pytest.mark.parametrize("duplicate", [pickled, copy.deepcopy])
class TestDuplicates:
    def test_shared_memory_stays_shared(self, duplicate):
        whole = weft.arange(6.0).reshape(2, 3)
        copied, row, storage = duplicate((whole, whole[1], whole.untyped_storage()))
        row[0] = 99
        assert copied[1, 0] == 99 and whole[1, 0] == 3
        assert copied.untyped_storage().data_ptr() == storage.data_ptr()

    @pytest.mark.parametrize("dtype", list(weft.core.dtype.DTYPES.values()), ids=str)
    def test_dtypes_and_strides(self, duplicate, dtype):
        tensor = weft.tensor([[0, 1], [1, 1]]).to(dtype).t()
        copied = duplicate(tensor)
        assert copied.spec is tensor.spec and copied.tolist() == tensor.tolist()

    def test_attributes_and_requires_grad(self, duplicate):
        tensor = weft.ones(2, requires_grad=True)
        tensor.note = "mine"
        copied = duplicate(tensor)
        assert copied.requires_grad and copied.note == "mine"

    def test_subclasses(self, duplicate):
        tensor = Special([1, 2])
        tensor.note = 3
        copied = duplicate(tensor)
        assert type(copied) is Special and copied.note == 3 and copied.tolist() == [1, 2]

    def test_meta_and_pending_conjugation(self, duplicate):
        assert duplicate(weft.ones(2, device="meta")).is_meta
        assert duplicate(weft.tensor([1 + 2j]).conj()).tolist() == [1 - 2j]


def test_copy_shares_memory():
    tensor = weft.zeros(2)
    copy.copy(tensor)[0] = 1
    assert tensor[0] == 1


def test_what_metadata_is_made_of():
    parts = [
        weft.Size([2]),
        weft.device("cpu"),
        weft.device("cuda:1"),
        weft.float32,
        weft.strided,
        weft.channels_last,
    ]
    assert pickled(parts) == parts
    assert all(type(a) is type(b) for a, b in zip(pickled(parts), parts))


def test_pickles_need_no_torch(run):
    """`Tensor` says that it is torch's, yet a program without the name `torch` reads and writes pickles."""
    program = (
        "import pickle, sys, weft; print(pickle.loads(pickle.dumps(weft.ones(2))), 'torch' in sys.modules)"
    )
    assert run("-c", program).stdout == "tensor([1., 1.]) False\n"
