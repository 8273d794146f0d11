"""Storages against PyTorch: the bytes, the typed elements, the messages, and who shares them."""

import copy
import ctypes
import gc
import io
import os
import pickle
import sys
import warnings

import numpy as np
import pytest
import torch
from expressions import check as check_expression
from expressions import lines

import weft

EXPRESSIONS = """
len(u)
u.nbytes()
u.size()
u.element_size()
u[0]
u[-1]
u[100]
u[48]
u[-48]
u[-49]
u['a']
u[2:6].tolist()
u[2:6:2]
u[-4:].nbytes()
u.tolist()
list(u)
repr(u)
str(u.device)
u is i.untyped_storage()
u is i.view(2, 3).untyped_storage()
u.is_cuda
u.is_sparse
u.is_shared()
u.is_pinned()
u.resizable()
u.type()
u.filename
u.get_device()
u.new().nbytes()
u.clone().tolist()
u.clone().fill_(300).tolist()
u.clone().fill_(7)[3]
u.clone().resize_(64).nbytes()
u.clone().resize_(8).tolist()
u.clone().resize_(-1)
u.clone().copy_(u).tolist()
u.clone().copy_(u[0:4])
u.float()
u.float().dtype
u.cpu() is u
u.to(device='cpu') is u
u.untyped() is u
u.__setitem__(0, 1.5)
torch.UntypedStorage(5).nbytes()
torch.UntypedStorage([1, 2, 300])
torch.UntypedStorage()
torch.UntypedStorage([1.5])
torch.UntypedStorage(3.5)
torch.UntypedStorage(5, device='meta')
torch.UntypedStorage.__module__ + '.' + torch.UntypedStorage.__name__
torch.UntypedStorage.from_buffer(b'abcd', dtype=torch.uint8)
torch.UntypedStorage.from_buffer(b'abcd', dtype=torch.int32)
i.storage()
i.to(torch.float32).storage()
i.to(torch.bool).storage()
i.to(torch.complex64).storage()
i.to(torch.bfloat16).storage()
torch.empty(2, device='meta').storage()
torch.tensor([]).storage()
len(i.storage())
i.storage().nbytes()
i.storage()[1]
i.storage()[-1]
i.storage()[1:3]
i.storage()[6]
i.storage()['a']
i.storage().tolist()
list(i.storage())
i.storage().dtype
str(i.storage().device)
i.storage().type()
i.storage().float()
i.storage().half().dtype
i.storage().element_size()
i.storage().pickle_storage_type()
i.storage().untyped() is u
i.storage().clone().fill_(3)
i.storage().copy_(torch.FloatStorage(6))
i.storage().resizable()
torch.FloatStorage(3).size()
torch.FloatStorage([1, 2, 3])
torch.FloatStorage()
torch.LongStorage([1, 2]).float()
torch.LongStorage([1.5, 2])
torch.LongStorage(wrap_storage=torch.UntypedStorage(15)).size()
torch.LongStorage('a')
torch.LongStorage(1, 2)
torch.BoolStorage([0, 3])
torch.FloatStorage.dtype
torch.TypedStorage([1, 2], dtype=torch.float64)
torch.TypedStorage(2).dtype
torch.LongStorage.from_buffer(b'abcdefgh', 'little')
torch.LongStorage.from_buffer(b'abcdefgh', 'big')
torch.ComplexFloatStorage.from_buffer(b'abcdefgh', 'big').tolist()
torch.LongStorage.from_buffer(b'abcdefghijklmnop', 'little', 1, 8)
torch.LongStorage.from_buffer(b'abcdefghijklmnop', 'little', 2, 8)
torch.LongStorage.from_buffer(b'abcdefg', 'little')
torch.LongStorage.from_buffer(b'abcdefgh')
torch.LongStorage.from_buffer(b'abcdefgh', 'mid')
isinstance(i.storage(), torch.LongStorage)
isinstance(i.storage(), torch.FloatStorage)
isinstance(i.storage(), torch.TypedStorage)
isinstance(u, torch.UntypedStorage)
i.storage_type().__name__
torch.is_storage(u)
torch.is_storage(i.storage())
torch.is_storage(i)
torch.storage.TypedStorage is torch.TypedStorage
""".strip().splitlines()


def evaluate(library, expression):
    i = library.tensor([0, 1, 2, 3, 4, 5])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = eval(expression, {"torch": library, "i": i, "u": i.untyped_storage()})
            return str(result).replace("weft", "torch")
    except Exception as error:
        return type(error)


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_like_pytorch(expression):
    assert evaluate(weft, expression) == evaluate(torch, expression)


def test_writing_to_a_storage_is_seen_by_tensors():
    a = weft.tensor([1, 2], dtype=weft.int16)
    a.untyped_storage()[0] = 9
    a.untyped_storage()[3] = 1
    assert a.tolist() == [9, 2 + 256]
    with pytest.warns(UserWarning, match="TypedStorage is deprecated"):
        weft.core.warn.warn_once.forget()
        typed = a.storage()
    typed[1] = 5
    assert a.tolist() == [9, 5]
    typed[0:2] = 3
    assert a.tolist() == [3, 3]
    assert typed.data_ptr() == a.data_ptr() == a.untyped_storage().data_ptr()


def test_byteswap_reverses_every_element():
    a = weft.tensor([1, 2], dtype=weft.int32)
    a.untyped_storage().byteswap(weft.int32)
    assert a.tolist() == [1 << 24, 2 << 24]


def test_copies_of_storages():
    storage = weft.UntypedStorage([1, 2, 3])
    for duplicate in (copy.copy(storage), copy.deepcopy(storage), pickle.loads(pickle.dumps(storage))):
        assert duplicate.tolist() == [1, 2, 3]
        duplicate[0] = 9
    assert storage[0] == 1
    first, second = copy.deepcopy([storage, storage])
    assert first is second


def test_memory_of_numpy_cannot_grow():
    array = np.zeros(3)
    shared = weft.from_numpy(array)
    assert not shared.untyped_storage().resizable()
    with pytest.raises(RuntimeError, match="Trying to resize storage that is not resizable"):
        shared.resize_(10)


def test_an_address_given_away_stays_valid_when_the_storage_grows():
    tensor = weft.tensor([1.0, 2.0, 3.0])
    address = tensor.data_ptr()
    tensor.resize_(4000)
    del tensor
    gc.collect()
    others = [weft.zeros(3) for _ in range(100)]
    assert list((ctypes.c_float * 3).from_address(address)) == [1, 2, 3], len(others)


# `numpy` marks the storage: an array that reads its memory would be left behind if the memory moved.
LENT = """
(lambda t: (t.numpy(), t.untyped_storage().resizable())[1])(torch.zeros(3))
(lambda t: (np.asarray(t), t.untyped_storage().resizable())[1])(torch.zeros(3))
(lambda t: (t[1:].numpy(), t.untyped_storage().resizable())[1])(torch.zeros(3))
(lambda t: (t.numpy(), t.resize_(2))[1])(torch.zeros(3))
(lambda t: (t.numpy(), t.resize_(100))[1])(torch.zeros(3))  # raises
(lambda t: (t.numpy(), t.untyped_storage().resize_(2))[1])(torch.zeros(3))  # raises
(lambda t: (t.numpy(), torch.add(torch.ones(9), 1, out=t))[1])(torch.zeros(3))  # raises
(lambda t: (repr(t), t.untyped_storage().resizable())[1])(torch.zeros(3))
(lambda t: (t.tolist(), t.untyped_storage().resizable())[1])(torch.zeros(3))
(lambda t: (t.data_ptr(), t.untyped_storage().resizable())[1])(torch.zeros(3))
(lambda t: (torch.from_dlpack(t), t.untyped_storage().resizable())[1])(torch.zeros(3))
(lambda t: (torch.repeat_interleave(t, t), t.untyped_storage().resizable())[1])(torch.ones(3, dtype=torch.int64))
(lambda t: (t.numpy(), t.clone().untyped_storage().resizable())[1])(torch.zeros(3))
"""


@pytest.mark.parametrize("expression", lines(LENT))
def test_memory_that_an_array_reads_cannot_grow(expression):
    check_expression(expression)


SIZES = """
len(torch.TypedStorage(np.int64(3)))
len(torch.TypedStorage(np.uint8(3), dtype=torch.float64))
len(torch.FloatStorage(np.int32(3)))
len(torch.UntypedStorage(np.int64(3)))
torch.UntypedStorage(2).resize_(np.int16(5)).nbytes()
len(torch.FloatStorage(np.float64(3)))  # raises
len(torch.UntypedStorage(np.float64(3)))  # raises
len(torch.UntypedStorage(np.bool_(True)))  # raises
"""


@pytest.mark.parametrize("expression", lines(SIZES))
def test_integers_of_numpy_are_sizes(expression):
    check_expression(expression)


def test_files(tmp_path):
    path = str(tmp_path / "numbers")
    shared = weft.UntypedStorage.from_file(path, shared=True, nbytes=4)
    shared[1] = 7
    assert weft.UntypedStorage.from_file(path, nbytes=4).tolist() == [0, 7, 0, 0]
    assert shared.filename == path
    assert weft.FloatStorage.from_file(path, size=1).size() == 1


RESIZING_COUNTS_AS_A_WRITE = """
(lambda x: (x.resize_(3), x._version, x.resize_(5)._version, x.resize_(2)._version, x.resize_as_(torch.ones(1))._version))(torch.zeros(3))[1:]
"""


@pytest.mark.parametrize("expression", lines(RESIZING_COUNTS_AS_A_WRITE))
def test_resizing_counts_as_a_write(expression):
    """Only if the shape changes."""
    check_expression(expression)


def test_all_bytes_move_when_the_memory_grows():
    t = weft.full((5001,), 255, dtype=weft.uint8)
    address = t.data_ptr()
    t.untyped_storage().resize_(1 << 20)
    assert t.data_ptr() != address and (t == 255).all()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "expression",
    [
        "torch.tensor(a.storage())",
        "torch.tensor(a.untyped_storage(), dtype=torch.float32)",
        "torch.tensor(a[1:].storage()).data_ptr() == a.data_ptr()",
        "torch.tensor(a.double().storage(), dtype=torch.float32)",
        "torch.tensor([]).set_(a.storage())",
        "torch.empty(2, device='meta').untyped_storage().cpu()",
        "torch.TypedStorage([1, 2], device='meta', dtype=torch.int32).cpu()",
    ],
)
def test_tensors_of_storages(expression):
    found = []
    for library in (weft, torch):
        try:
            found.append(repr(eval(expression, {"torch": library, "a": library.tensor([1.0, 2.0, 3.0])})))
        except Exception as error:
            found.append((type(error), str(error)))
    assert found[0] == found[1]


@pytest.mark.filterwarnings("ignore")
def test_a_storage_of_another_dtype_is_refused():
    for library in (weft, torch):
        with pytest.raises(
            RuntimeError, match="^Expected a Storage of type .* or an UntypedStorage, but got type Double"
        ):
            library.tensor([]).set_(library.ones(2).double().storage())


def test_memory_shared_by_its_file_descriptor():
    for t in (torch, weft):
        tensor = t.arange(4.0)
        storage = tensor.untyped_storage()
        fd, size = storage._share_fd_cpu_()
        assert size == 16 == os.fstat(fd).st_size and storage.is_shared()
        assert storage._share_fd_cpu_() == (fd, size)
        other = t.UntypedStorage._new_shared_fd_cpu(os.dup(fd), size)
        tensor += 1
        assert other.tolist() == storage.tolist() == list(np.arange(1, 5, dtype=np.float32).tobytes())
        typed = t.TypedStorage([1, 2], dtype=t.int16, device="cpu", _internal=True)
        assert typed._share_fd_cpu_()[1] == 2
        shared = typed._new_shared(3)
        assert (shared.dtype, len(shared), shared.is_shared()) == (t.int16, 3, True)
        assert t.UntypedStorage(0)._share_fd_cpu_() == (-1, 0)


@pytest.mark.parametrize("name", ["_share_fd_cpu_", "_share_filename_cpu_", "share_memory_"])
def test_only_memory_of_the_cpu_is_shared(name):
    for t in (torch, weft):
        with pytest.raises(RuntimeError, match="only available on CPU"):
            getattr(t.UntypedStorage(4, device="meta"), name)()
    with pytest.raises(NotImplementedError, match="a name"):
        weft.UntypedStorage(4)._share_filename_cpu_()


@pytest.mark.parametrize("read", [lambda s: s.tolist(), list, lambda s: s[0]])
def test_typed_storages_without_memory_have_no_values(read):
    for t in (torch, weft):
        storage = t.TypedStorage([1, 2], dtype=t.float32, device="meta", _internal=True)
        with pytest.raises(NotImplementedError, match="Not available for 'meta' device type"):
            read(storage)
        with pytest.raises(NotImplementedError, match="Cannot copy out"):
            storage.cpu()


def test_bytes_written_to_a_file(tmp_path):
    for t in (torch, weft):
        storage = t.arange(4.0).untyped_storage()
        with open(tmp_path / "bytes", "wb") as file:
            storage._write_file(file, True, True, 4)
            storage._write_file(file, True, False, 4)
        content = np.arange(4, dtype=np.float32).tobytes()
        assert (tmp_path / "bytes").read_bytes() == (4).to_bytes(8, "little") + 2 * content
        stream = io.BytesIO()
        storage._write_file(stream, False, True, 4)
        assert stream.getvalue() == (4).to_bytes(8, "little") + content
        with pytest.raises(NotImplementedError, match="Cannot copy out"):
            t.UntypedStorage(4, device="meta")._write_file(io.BytesIO(), False, True, 1)


def test_sizes_that_programs_add_up():
    """Summaries of models add `sys.getsizeof` of the storages of inputs."""

    def sizes(library):
        return [sys.getsizeof(library.ones(count).untyped_storage()) for count in (0, 1, 100)]

    assert sizes(weft) == sizes(torch)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["QUInt8Storage", "QInt8Storage", "QInt32Storage", "QUInt4x2Storage"])
def test_storages_of_quantized_numbers_hold_integers(name):
    found = []
    for lib in (weft, torch):
        storage = getattr(lib, name)([0, 1, 2, 127])
        storage[1] = 5
        with pytest.raises(TypeError):
            getattr(lib, name)(wrap_storage=storage)
        again = getattr(lib, name)(wrap_storage=storage.untyped())
        found.append((storage.tolist(), storage[3], storage.clone().tolist(), again.fill_(2).tolist()))
    assert found[0] == found[1]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("lib", [weft, torch])
def test_the_old_resize_copies_where_there_is_no_view(lib):
    x = lib.tensor([[1, 2, 3], [4, 5, 6]])
    assert x.resize(3, 2).tolist() == [[1, 2], [3, 4], [5, 6]]
    assert x.t().resize(6).tolist() == x.t().resize_as(lib.zeros(6)).tolist() == [1, 4, 2, 5, 3, 6]
