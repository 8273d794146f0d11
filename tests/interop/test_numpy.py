"""NumPy's arrays and other buffers as tensors, tensors as arrays, and NumPy's functions of tensors."""

import operator
import re
import sys
import warnings

import numpy as np
import pytest
import torch
from expressions import check, lines

import weft
from weft.core.warn import warn_once

EXPRESSIONS = """
torch.frombuffer(bytearray(b'abcdefgh'), dtype=torch.int32)
torch.frombuffer(bytearray(b'abcdefgh'), dtype=torch.uint8, count=3, offset=1)
torch.frombuffer(bytearray(b'abcdefgh'), dtype=torch.int32, offset=3)  # raises
torch.frombuffer(bytearray(b'abcdefgh'), dtype=torch.int32, count=3)  # raises
torch.frombuffer(bytearray(b'abcdefgh'), dtype=torch.int32, count=0)  # raises
torch.frombuffer(bytearray(b'abcdefgh'), dtype=torch.int32, count=-2)
torch.frombuffer(bytearray(b'abcdefgh'), dtype=torch.int32, offset=8)  # raises
torch.frombuffer(bytearray(b'abcdefgh'), dtype=torch.int32, offset=-1)  # raises
torch.frombuffer(bytearray(b''), dtype=torch.int32)  # raises
torch.frombuffer(b'abcdefgh', dtype=torch.int32)
torch.frombuffer(bytearray(b'abcdefghi'), dtype=torch.int32)  # raises
torch.frombuffer(bytearray(b'abcdefghi'), dtype=torch.int32, requires_grad=True)  # raises
torch.frombuffer(bytearray(b'abcdefgh'), dtype=torch.float32, requires_grad=True)
torch.frombuffer([1], dtype=torch.float32)  # raises
torch.frombuffer(memoryview(b'abcdefgh')[::2], dtype=torch.uint8)  # raises
torch.frombuffer(bytearray(b'abcdefgh'))  # raises
torch.frombuffer(np.arange(3), dtype=torch.int64)
torch.from_numpy(3)  # raises
torch.from_numpy(np.array(['a']))  # raises
torch.from_numpy(np.arange(3, dtype='>i4'))  # raises
torch.from_numpy(np.arange(3)[::-1])  # raises
torch.from_numpy(np.float32(3))  # raises
torch.from_numpy(np.array(3.))
torch.from_numpy(np.zeros((0,3)))
torch.from_numpy(np.zeros((2,3))[:, ::2])
torch.from_numpy(np.zeros(2, dtype=[('a','i4'),('b','i2')])['a'])  # raises
np.sin(torch.ones(2))
np.greater(torch.ones(2), 0)
np.add(np.ones(2), torch.ones(2))
np.maximum(torch.ones(2), torch.zeros(2))
np.modf(torch.ones(2))
np.isnan(torch.ones(2))
np.sqrt(torch.tensor(4.0))
np.float64(2) * torch.ones(2)
np.float32(2) - torch.ones(2)
np.float64(2) ** torch.ones(2)
np.int64(3) + torch.ones(2, dtype=torch.int32)
np.ones(2) == torch.ones(2)
torch.ones(2) + np.ones(2)
torch.ones(2) * np.float64(2)
torch.ones(2, dtype=torch.int64) * np.float64(2)
np.concatenate([torch.ones(2), torch.ones(2)])
np.array([torch.ones(2), torch.ones(2)])
np.array(torch.ones(2), dtype=np.int32)
np.asarray(torch.ones(2, requires_grad=True))  # raises
np.asarray(torch.ones(2, dtype=torch.complex64).conj())  # raises
torch.ones(2, requires_grad=True).numpy(force=True)
torch.ones(2, device='meta').numpy()  # raises
"""


@pytest.mark.parametrize("expression", lines(EXPRESSIONS))
def test_same_as_torch(expression):
    check(expression)


SHARED = [name for name, dtype in weft.core.dtype.DTYPES.items() if name != "complex32"]


@pytest.mark.parametrize("name", SHARED)
def test_writes_are_seen_on_either_side(name):
    tensor = weft.zeros(3, 2, dtype=getattr(weft, name)).t()
    array = tensor.numpy()
    assert array.shape == (2, 3) and tensor._storage.exposed
    array[0, 1] = 1
    assert tensor[0, 1] == 1
    tensor[1, 2] = 1
    assert array[1, 2] == 1
    back = weft.from_numpy(array)
    assert back.dtype is tensor.dtype and back.stride() == tensor.stride()
    back[0, 0] = 1
    assert tensor[0, 0] == 1


def test_arrays_outlive_tensors_and_the_other_way_round():
    array = weft.arange(1000).numpy()
    tensor = weft.from_numpy(np.arange(1000.0))
    for _ in range(20):
        weft.zeros(1000, dtype=weft.int64)
    assert array[999] == 999 and tensor[999] == 999


def test_read_only_arrays_warn():
    array = np.zeros(2)
    array.flags.writeable = False
    with pytest.warns(UserWarning, match="not writable"):
        weft.from_numpy(array)


def test_copies_on_request_only():
    tensor = weft.zeros(2)
    assert tensor.__array__(copy=True).base is None
    assert np.shares_memory(np.array(tensor, copy=False), tensor.numpy())
    assert not np.shares_memory(np.array(tensor, np.float64), tensor.numpy())
    with pytest.raises(ValueError, match="float32 to float64 needs a copy"):
        np.array(tensor, np.float64, copy=False)


@pytest.mark.parametrize("read", [weft.Tensor.numpy, np.asarray, np.array, np.sin], ids=lambda f: f.__name__)
def test_tensors_that_require_grad_are_refused(read):
    message = "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."
    with pytest.raises(RuntimeError, match=f"^{re.escape(message)}$"):
        read(weft.ones(2, requires_grad=True))


@pytest.mark.parametrize(
    "convert", [weft.from_numpy, weft.as_tensor, weft.asarray, weft.tensor, weft.from_dlpack]
)
def test_negative_strides_are_refused(convert):
    with pytest.raises(ValueError, match="negative"):
        convert(np.arange(3.0)[::-1])


def test_objects_with_an_array_interface():
    class Other:
        def __init__(self):
            self.values = np.arange(3.0)
            self.__array_interface__ = self.values.__array_interface__

    other = Other()
    tensor = weft.asarray(other)
    other.values[0] = 5
    assert tensor.tolist() == [5, 1, 2] and weft.tensor(other).tolist() == [5, 1, 2]


@pytest.mark.parametrize("view", [np.broadcast_to, np.lib.stride_tricks.as_strided], ids=lambda f: f.__name__)
def test_arrays_whose_elements_share_memory(view):
    array = np.arange(3.0)
    tensor = weft.as_tensor(view(array, (2, 3)) if view is np.broadcast_to else view(array, (2, 2), (8, 8)))
    assert tensor.stride() == ((0, 1) if view is np.broadcast_to else (1, 1)) and tensor[1, 0] in (0, 1)


def test_asarray_does_not_copy():
    tensor = weft.zeros(2)
    np.asarray(tensor)[0] = 5
    assert tensor[0] == 5
    assert np.array(tensor, copy=True).base is None


@pytest.mark.skipif(sys.version_info < (3, 12), reason="Python asks classes for buffers since 3.12")
def test_buffer_protocol():
    tensor = weft.zeros(2)
    memoryview(tensor)[0] = 3.0
    assert tensor[0] == 3


TENSORS = {"float32": [1.0, 2, 3], "int64": [1, 2, 3], "int8": [3, 2, 1], "bool": [True, False, True]}
ARRAYS = {"float64": [2.0, 1, 3], "float32": [2.0, 1, 3], "int64": [2, 1, 3], "uint8": [2, 1, 3]}


@pytest.mark.parametrize(
    "symbol", ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "iadd", "imul", "ipow"]
)
@pytest.mark.parametrize("ours", TENSORS)
@pytest.mark.parametrize("theirs", ARRAYS)
def test_arrays_as_operands(symbol, ours, theirs):
    apply, array = getattr(operator, symbol), np.array(ARRAYS[theirs], theirs)
    try:
        wanted = apply(torch.tensor(TENSORS[ours], dtype=getattr(torch, ours)), array)
    except TypeError:
        pytest.skip("PyTorch has no answer")
    found = apply(weft.tensor(TENSORS[ours], dtype=getattr(weft, ours)), array)
    assert str(found.dtype) == str(wanted.dtype)
    assert found.tolist() == pytest.approx(wanted.tolist(), rel=1e-6)


def test_arrays_in_front():
    array, tensor = np.array([1, 2, 4]), weft.tensor([2.0, 2, 2], requires_grad=True)
    for symbol in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow"):
        found = getattr(operator, symbol)(array, tensor)
        assert found.dtype is weft.float64
        assert found.tolist() == getattr(operator, symbol)(array, np.full(3, 2.0)).tolist()
    (array * tensor).sum().backward()
    assert tensor.grad.tolist() == [1, 2, 4]
    assert (np.broadcast_to(np.float32(2), (3,)) == tensor.detach()).all()  # it is read-only: nothing is said


def test_arrays_are_assigned():
    tensor = weft.zeros(3)
    tensor[:2] = np.array([1, 2])
    tensor[[2]] = np.array(5.0)
    assert tensor.tolist() == [1, 2, 5]
    with pytest.raises(RuntimeError, match="must match"):
        tensor[:2] = np.ones(3)


def test_series():
    pandas = pytest.importorskip("pandas")
    for values, dtype in (([1.0, 2], "float64"), ([1, 2], "int8"), ([True, False], "bool")):
        series = pandas.Series(values, dtype=dtype)
        for function in ("tensor", "as_tensor"):
            found = getattr(weft, function)(series)
            assert found.dtype is getattr(weft, dtype) and found.tolist() == values
    assert weft.arange(3)[pandas.Series([2, 0])].tolist() == [2, 0]
    assert weft.arange(3)[pandas.Series([True, False, True])].tolist() == [0, 2]
    with pytest.raises(ValueError, match="shape of object type 'DataFrame'.*to_numpy"):
        weft.tensor(pandas.DataFrame({"a": [1.0]}))


@pytest.mark.parametrize("dtype", ["uint8", "int32", "complex128"])
def test_buffers_are_not_left(dtype):
    """All counts and offsets about a buffer of 16 bytes: the same elements, or an error in both libraries."""
    ours, theirs = getattr(weft, dtype), getattr(torch, dtype)
    size, accepted = ours.itemsize, 0
    for count in (-2, -1, 0, 1, 2, 3, 4, 5, 16, 17):
        for offset in (-4, -1, 0, 1, 3, 4, 8, 12, 15, 16, 17, 2**40):
            buffer = bytearray(range(1, 17))
            try:
                expected = torch.frombuffer(buffer, dtype=theirs, count=count, offset=offset).tolist()
            except ValueError:
                with pytest.raises(ValueError):
                    weft.frombuffer(buffer, dtype=ours, count=count, offset=offset)
                continue
            accepted += 1
            got = weft.frombuffer(buffer, dtype=ours, count=count, offset=offset)
            assert got.tolist() == expected, (count, offset)
            assert max(count, 0) * size + offset <= 16
    assert accepted >= 2
    with pytest.raises(ValueError):
        weft.frombuffer(bytearray(16), dtype=ours, count=2**62)  # PyTorch multiplies modulo 2**64


# ---- Numbers of NumPy ------------------------------------------------------------------------------------------------

NUMBERS = """
X == np.float64(1.3)
X == np.float32(1.3)
X != np.float32(1.3)
X < np.longdouble(1.3)
np.longdouble(1.3) >= X
X * np.longdouble(1.5)
X == np.array(1.3)
np.array(1.3) == X
X == np.array(1.3, dtype=np.float32)
np.float64(1.3) in X
np.float16(1.3) in X
np.int8(2) in X
torch.isin(X, np.float64(1.3))
torch.isin(X, 1.3)
torch.isin(X, 1.3, invert=True)
torch.isin(np.float64(1.3), X)
torch.isin(X, True)  # raises
torch.isin(X, 1j)  # raises
torch.isin(torch.tensor([1, 2], dtype=torch.uint8), 300)
X == np.array("a")
X < np.array("a")  # raises
"""


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("expression", lines(NUMBERS))
def test_numbers_of_numpy(expression, dtype):
    values = [1.0009765625, 2.0, 1.3]
    check(expression.replace("X", f"torch.tensor({values}, dtype=torch.{dtype})"))


@pytest.mark.parametrize(
    "call",
    [
        "torch.tensor([np.zeros(2), np.ones(2)])",
        "torch.tensor(((np.zeros(2), np.ones(2)),))",
        "torch.as_tensor([np.zeros(2)])",
        "torch.ones(1).new_tensor([np.zeros(2)])",
        "torch.tensor([np.zeros(0)])",
        "torch.tensor([np.float64(1.0)])",
        "torch.tensor(np.zeros(2))",
    ],
)
def test_a_list_of_arrays_warns(call):
    """Both libraries warn once for each process, unless `set_warn_always` asks for more."""

    def warnings_of(library):
        warn_once.forget()
        library.set_warn_always(True)
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                eval(call, {"torch": library, "np": np})
        finally:
            library.set_warn_always(False)
        return [(each.category, str(each.message).split("(")[0]) for each in caught][:1]

    assert warnings_of(weft) == warnings_of(torch)
