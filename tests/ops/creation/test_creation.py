"""Constructors against PyTorch: sizes, values, ranges."""

import numpy as np
import pytest
import torch
from expressions import check, lines
from hypothesis import given
from hypothesis import strategies as st

import weft

SIZES = """
torch.zeros(True)  # raises
torch.zeros(2.0)  # raises
torch.zeros("a")  # raises
torch.zeros(-1)  # raises
torch.zeros(2,-3)  # raises
torch.empty(2**63)  # raises
torch.zeros()  # raises
torch.zeros([])
torch.zeros(torch.tensor(2))
torch.zeros(np.int64(2), 3)
torch.zeros((2,3),(4,))  # raises
torch.zeros(2, foo=1)  # raises
torch.zeros(2, dtype=3)  # raises
torch.zeros(2, dtype=float)
torch.zeros(2, dtype=int)
torch.zeros(2, device="xx")  # raises
torch.zeros(2, out=torch.zeros(3), dtype=torch.float64)  # raises
torch.zeros(2, out=torch.zeros(3, dtype=torch.int64))
torch.zeros(2, out=torch.zeros(2, dtype=torch.int64), dtype=torch.float32)  # raises
torch.zeros(2, out=torch.zeros(2), device='meta')  # raises
torch.zeros(2, dtype=torch.int64, requires_grad=True)  # raises
torch.full((2,), 1)
torch.full((2,), True)
torch.full((2,), 1j)
torch.full((2,), 2.5, dtype=torch.int32)
torch.full((2,), torch.tensor(3))
torch.full((2,), torch.tensor([3]))  # raises
torch.full(2, 3)  # raises
torch.full((2,), 300, dtype=torch.uint8)  # raises
torch.full((2,), 2**64)  # raises
torch.full((2,), 1e300)  # raises
torch.full((2,), 1e300, dtype=torch.float16)  # raises
torch.full((2,), 'a')  # raises
torch.full((2,), -1, dtype=torch.uint8)
torch.full((2,), float('nan'), dtype=torch.int32)  # raises
torch.full((2,), 1j, dtype=torch.float32)  # raises
torch.full((2,), np.float64(2))
torch.full((2,), np.float32(2))
torch.full((2,), np.int32(2))
torch.full((), 3., out=torch.zeros(2, dtype=torch.int32))
torch.full((2,), 3., out=torch.zeros(2, dtype=torch.int32), dtype=torch.float32)  # raises
torch.full(size=[2], fill_value=1)
torch.full_like(torch.zeros(2, dtype=torch.int8), 300)  # raises
torch.full_like(torch.zeros(2, dtype=torch.int8), 2.5)
torch.full_like(torch.zeros(2, dtype=torch.int8), 2.5, dtype=torch.float16)
torch.eye(2)
torch.eye(2,3, dtype=torch.int64)
torch.eye(-1)  # raises
torch.eye(2,-1)  # raises
torch.eye(0)
torch.eye(2.0)  # raises
torch.eye(n=2, m=1)
torch.eye(2, out=torch.zeros(0, dtype=torch.bool))
torch.eye(2, dtype=torch.complex64, requires_grad=True)
torch.empty_strided((2,3),(1,2)).stride()
torch.empty_strided((2,3),(1,))  # raises
torch.empty_strided((2,-3),(1,1))  # raises
torch.empty_strided((2,3),(1,-1))  # raises
torch.empty_strided((2,3),(0,1)).stride()
torch.empty_permuted((2,3,4),(2,0,1)).stride()
torch.empty_permuted((2,3,4),(2,0))  # raises
torch.empty_permuted((2,3,4),(2,0,0))  # raises
torch.empty_permuted((2,3,4),(2,0,3))  # raises
torch.empty_permuted((2,3,4),(2,0,-2))  # raises
torch.empty_permuted((2,-3),(0,1))  # raises
torch.zeros_like(3)  # raises
torch.zeros_like(torch.ones(2,3).t()).stride()
torch.zeros_like(torch.ones(2,3,4,5), memory_format=torch.channels_last).stride()
torch.zeros_like(torch.ones(2,3,4), memory_format=torch.channels_last).stride()  # raises
torch.empty(2,3,4,5, memory_format=torch.channels_last).stride()
torch.zeros(2,3, memory_format=torch.contiguous_format)  # raises
torch.zeros_like(torch.ones(1,3).expand(2,3)).stride()
torch.ones(2).new_tensor([1,2])
torch.ones(2).new_tensor([1.5,2], dtype=torch.int64)
torch.ones(2, dtype=torch.int64).new_tensor([1.5,2])
torch.ones(2).new_zeros(2,3)
torch.ones(2).new_zeros((2,3))
torch.ones(2, dtype=torch.int8).new_ones(2, dtype=torch.float16, requires_grad=True)
torch.ones(2, dtype=torch.int8).new_full((2,), 300)  # raises
torch.ones(2, dtype=torch.int8).new_full((2,), 3.5)
torch.ones(2).new_full(2, 3.5)  # raises
torch.ones(2).new_empty(2).shape
torch.ones(2).new_zeros(size=(2,)).shape
torch.ones(2).new_empty_strided((2,3),(1,2)).stride()
torch.ones(2).new_empty()  # raises
torch.ones(2).new_zeros([])
torch.zeros(2, 2.0)  # raises
torch.zeros((2, 2.0))  # raises
torch.zeros(2, True)
torch.zeros((2, True))
torch.zeros(2, None)  # raises
torch.zeros(None)  # raises
torch.empty(-1)  # raises
torch.ones(-1)  # raises
torch.full((-1,), 1)  # raises
torch.zeros(2, dtype=torch.int64, requires_grad=True)  # raises
torch.full((2,), torch.tensor(3.5), dtype=torch.int64)
torch.eye(2, device='meta')
"""

VALUES = """
torch.tensor([0.25, -2], dtype=torch.uint8)
torch.tensor([[3.5], [-2]], dtype=torch.uint16)
torch.tensor([3, -2.0], dtype=torch.uint8)  # raises
torch.tensor([0.5, 256], dtype=torch.uint8)  # raises
torch.tensor([])
torch.tensor([[]])
torch.tensor([[],[]])
torch.tensor([[[]],[]])
torch.tensor([1, 2.5])
torch.tensor([True, 2])
torch.tensor([True, 2.5])
torch.tensor([1, 1j])
torch.tensor([1, 2**63])  # raises
torch.tensor([1, 2**63], dtype=torch.uint64)
torch.tensor([-1, 2**63], dtype=torch.uint64)  # raises
torch.tensor(2**63)  # raises
torch.tensor(2**64)  # raises
torch.tensor(-2**63-1)  # raises
torch.tensor([2**64])  # raises
torch.tensor([2**64], dtype=torch.float64)
torch.tensor([2**63], dtype=torch.float64)
torch.tensor(2**63, dtype=torch.uint64)
torch.tensor(2**70, dtype=torch.float64)
torch.tensor([1,2**63,2.5])
torch.tensor([[1,2],[3]])  # raises
torch.tensor([[1,2],3])  # raises
torch.tensor([1,[2,3]])  # raises
torch.tensor([[1,2],[3,4],[5]])  # raises
torch.tensor([[[1],[2]],[[3],[4,5]]])  # raises
torch.tensor("a")  # raises
torch.tensor(["a"])  # raises
torch.tensor([1,"a"])  # raises
torch.tensor(b"ab")  # raises
torch.tensor([b"a"])  # raises
torch.tensor(None)  # raises
torch.tensor([None])  # raises
torch.tensor([1, None])  # raises
torch.tensor({1:2})  # raises
torch.tensor({1,2})  # raises
torch.tensor(object())  # raises
torch.tensor([object()])  # raises
torch.tensor(np.float32(2))
torch.tensor(np.float16(2))
torch.tensor(np.int8(2))
torch.tensor(np.bool_(True))
torch.tensor(np.complex64(2))
torch.tensor([np.float32(2)])
torch.tensor([np.float64(2)])
torch.tensor([np.float16(2)])
torch.tensor([np.int8(2)])
torch.tensor([np.int8(2), 1])
torch.tensor([np.float64(2), 1])
torch.tensor([np.float64(2), np.float32(1)])
torch.tensor([np.float32(2), 1j])
torch.tensor([np.bool_(True)])
torch.tensor([np.array([1,2]), np.array([3,4])])
torch.tensor([np.array([1.,2]), [3,4]])
torch.tensor([np.array([1.,2], dtype=np.float32)])
torch.tensor([torch.tensor(1), torch.tensor(2.5)])
torch.tensor([torch.tensor(1), 2])
torch.tensor([torch.tensor([1]), torch.tensor([2])])
torch.tensor([torch.tensor([1,2]), torch.tensor([2,3])])  # raises
torch.tensor([torch.tensor([1,2]), [2,3]])  # raises
torch.tensor([torch.tensor(1, dtype=torch.int8)])
torch.tensor([torch.tensor(1., dtype=torch.float16)])
torch.tensor([torch.tensor(1., dtype=torch.float64), 1])
torch.tensor([torch.tensor(1, dtype=torch.int8), torch.tensor(1, dtype=torch.uint8)])
torch.tensor(range(4))
torch.tensor((1,2))
torch.tensor(x for x in [1,2])  # raises
torch.tensor(np.array([1,2]))
torch.tensor(np.array(['a']))  # raises
torch.tensor(np.array([object()]))  # raises
torch.tensor(np.array([1,2], dtype='datetime64[s]'))  # raises
torch.tensor(np.array([1,2])[::-1])  # raises
torch.tensor(np.array([1,2], dtype='>i4'))  # raises
torch.tensor(np.arange(6).reshape(2,3).T).stride()
torch.tensor([1.5, 2.7], dtype=torch.int32)
torch.tensor([300], dtype=torch.uint8)  # raises
torch.tensor(300, dtype=torch.uint8)  # raises
torch.tensor(-1, dtype=torch.uint8)
torch.tensor([-1], dtype=torch.uint8)
torch.tensor([1e40])
torch.tensor([1e40], dtype=torch.float16)
torch.tensor(1e40, dtype=torch.float16)
torch.tensor([1e40], dtype=torch.int32)  # raises
torch.tensor([float('nan')], dtype=torch.int32)  # raises
torch.tensor([1j], dtype=torch.float32)  # raises
torch.tensor(1j, dtype=torch.float32)  # raises
torch.tensor([2], dtype=torch.bool)
torch.tensor(2.5, dtype=torch.bool)
torch.tensor(float('nan'), dtype=torch.bool)
torch.tensor([1], requires_grad=True)  # raises
torch.tensor([1.], requires_grad=True)
torch.tensor(torch.ones(2))
torch.tensor(torch.ones(2,3).t()).stride()
torch.tensor([1,2], 3)  # raises
torch.tensor()  # raises
torch.tensor([1,2], dtype=float)
torch.tensor(data=[1])
torch.tensor([1], device='meta')
torch.tensor([[1,2],[3,4]], dtype=torch.bfloat16)
torch.tensor([1,2], dtype=torch.float8_e4m3fn)
torch.tensor([1,2], dtype=torch.complex32)
torch.tensor([[1., 2]]*3, dtype=torch.uint16)
torch.tensor([-1.5], dtype=torch.uint8)  # raises
torch.tensor([-1.5], dtype=torch.uint16)  # raises
torch.tensor([70000], dtype=torch.uint16)  # raises
torch.tensor([2**40], dtype=torch.int32)  # raises
torch.tensor([True, False], dtype=torch.float32)
torch.tensor([1], dtype='float32')  # raises
torch.tensor(float('inf'))
torch.tensor([[np.float64(1), 2],[3, 4j]])
torch.as_tensor([1,2])
torch.as_tensor(np.array([1,2]))
torch.as_tensor(torch.ones(2), dtype=torch.int64)
torch.as_tensor(3)
torch.as_tensor(np.float32(3))
torch.as_tensor('a')  # raises
torch.asarray([1,2])
torch.asarray(np.array([1,2]))
torch.asarray(3., dtype=torch.float64)
torch.asarray(b'abcd', dtype=torch.uint8)
torch.asarray(bytearray(b'abcd'))
torch.asarray([1], copy=False)  # raises
torch.asarray(np.array([1]), dtype=torch.float32, copy=False)  # raises
torch.asarray(torch.ones(2), requires_grad=True)
torch.asarray(torch.ones(2, requires_grad=True))
torch.asarray(np.array([1.]), requires_grad=True)
torch.asarray(np.array([1]), requires_grad=True)  # raises
torch.asarray(torch.ones(2), copy=True)
torch.asarray(np.float32(3))
torch.asarray('a')  # raises
torch.asarray({1})  # raises
torch.asarray(memoryview(b'abc'))  # raises
torch.tensor([1, 1j], dtype=torch.int32)  # raises
torch.tensor([1, 1j], dtype=torch.bool)
torch.tensor([1.5], dtype=torch.int8)
torch.tensor(['1'], dtype=torch.float32)  # raises
torch.tensor([[1],'a'], dtype=torch.float32)  # raises
torch.tensor([2**63], dtype=torch.int64)  # raises
torch.tensor([2**100], dtype=torch.float32)
torch.tensor([2**1100], dtype=torch.float32)  # raises
torch.tensor([2**63])  # raises
torch.tensor([-2**63])
torch.tensor([float('nan')], dtype=torch.int64)  # raises
torch.tensor([1e19], dtype=torch.int64)  # raises
torch.tensor(np.array([300]), dtype=torch.uint8)
torch.tensor(np.array([300.]), dtype=torch.uint8)
torch.tensor(np.array([1j]), dtype=torch.float32)
torch.tensor(torch.tensor([1j]), dtype=torch.float32)
torch.tensor([np.float64(1e40)], dtype=torch.float32)
torch.tensor(np.ma.masked_array([1,2]))
torch.tensor(memoryview(b'ab'))
torch.tensor(bytearray(b'ab'))
"""

RANGES = """
torch.arange(5)
torch.arange(5.)
torch.arange(True)
torch.arange(2, 5)
torch.arange(2, 5, 2)
torch.arange(1, 2.5, 0.5)
torch.arange(5, 2, -1)
torch.arange(5, 2)  # raises
torch.arange(1,2,0)  # raises
torch.arange(1,2,-1)  # raises
torch.arange(float('nan'))  # raises
torch.arange(float('inf'))  # raises
torch.arange(0, 5, dtype=torch.bool)  # raises
torch.arange(0, 2, dtype=torch.bool)  # raises
torch.arange(0, 5, dtype=torch.complex64)  # raises
torch.arange(torch.tensor(3))
torch.arange(torch.tensor(3.))
torch.arange(torch.tensor([3,4]))  # raises
torch.arange(end=3)
torch.arange(start=1, end=3)
torch.arange(3, step=2)  # raises
torch.arange(1, 9, step=2)
torch.arange(1, end=9, step=2)
torch.arange()  # raises
torch.arange('a')  # raises
torch.arange(1j)  # raises
torch.arange(3, out=torch.zeros(0))
torch.arange(2.5, out=torch.zeros(0, dtype=torch.int64))
torch.arange(3, out=torch.zeros(2))
torch.arange(3, out=torch.zeros(3,2).t()[0])
torch.arange(0, 300, dtype=torch.uint8).shape
torch.arange(-2**63, 2**63-1)  # raises
torch.arange(0, 2**64)  # raises
torch.arange(0, 1, 0.1, dtype=torch.int64)  # raises
torch.arange(0.5, 4, dtype=torch.int64)
torch.arange(0, 4, 0.5, dtype=torch.int64)  # raises
torch.arange(3, dtype=torch.float16)
torch.arange(3, requires_grad=True)  # raises
torch.arange(3., requires_grad=True)
torch.arange(3, device='meta')
torch.arange(np.int64(3))
torch.arange(np.float32(3))
torch.arange(1e20)  # raises
torch.range(0, 4)
torch.range(1, 4, 0.5)
torch.range(4)  # raises
torch.range(0, 4, dtype=torch.int64)
torch.range(1, 0)  # raises
torch.range(1, 3, 0)  # raises
torch.range(start=1, end=4, step=2)
torch.range(0,5,out=torch.zeros(0))
torch.linspace(0, 1, 5)
torch.linspace(0, 1)  # raises
torch.linspace(0, 1, steps=1)
torch.linspace(0, 1, 0)
torch.linspace(0, 1, -1)  # raises
torch.linspace(0, 10, 4, dtype=torch.int64)
torch.linspace(0, 1j, 4)
torch.linspace(0, 1, 4, dtype=torch.complex64)
torch.linspace(torch.tensor(0.), torch.tensor(1), 4)
torch.linspace(torch.tensor([0.]), torch.tensor(1), 4)  # raises
torch.linspace(0, 1, 2.5)  # raises
torch.linspace(0, 1, 4, dtype=torch.bool)  # raises
torch.linspace(0, 1, 4, dtype=torch.float16)
torch.linspace(0, 1j, 4, dtype=torch.float32)  # raises
torch.linspace(0, 300, 4, dtype=torch.uint8)  # raises
torch.linspace(0, 1, 4, out=torch.zeros(0, dtype=torch.float64))
torch.linspace(0, 1, 4, out=torch.zeros(0), dtype=torch.float64)  # raises
torch.linspace(start=0, end=1, steps=3)
torch.scalar_tensor(3)
torch.scalar_tensor(3.5)
torch.scalar_tensor(True)
torch.scalar_tensor(1j)  # raises
torch.scalar_tensor(3, dtype=torch.int64)
torch.scalar_tensor(torch.tensor(3))
torch.scalar_tensor([3])  # raises
torch.scalar_tensor(3, pin_memory=None)
torch.ones_like(torch.zeros(2), dtype=None, layout=None, device=None, pin_memory=None, memory_format=None)
torch.full([2], 1, pin_memory=None)
torch.eye(2, pin_memory=None)
torch.zeros(2).new_ones(2, pin_memory=None)
torch.arange(3, dtype=None, layout=None, device=None, pin_memory=None)
torch.linspace(0, 1, 3, dtype=None, layout=None, device=None, pin_memory=None)
torch.tril_indices(2, 2, pin_memory=None)
torch.hann_window(3, pin_memory=None)
torch.fft.fftfreq(3, pin_memory=None)
"""


@pytest.mark.parametrize("expression", lines(SIZES))
def test_sizes(expression):
    check(expression)


@pytest.mark.parametrize("expression", lines(VALUES))
def test_values(expression):
    check(expression)


@pytest.mark.parametrize("expression", lines(RANGES))
def test_ranges(expression):
    check(expression)


@pytest.mark.parametrize("size", [(2**62,), (2**40, 2**40), (2**61,)])
def test_a_size_beyond_all_addresses_is_an_error(size):
    for where in ("cpu", "meta"):
        with pytest.raises(RuntimeError, match="Storage size calculation overflowed"):
            weft.empty(size, device=where)


def test_a_size_beyond_memory_is_an_error():
    with pytest.raises(RuntimeError, match="can't allocate memory"):
        weft.empty(2**45)


def test_plans_of_sizes_do_not_accept_other_types():
    weft.zeros(2), weft.zeros(1)
    for size in (2.0, True, (2.0,)):
        with pytest.raises(TypeError):
            weft.zeros(size)


def test_ragged_sequences_name_the_sizes():
    with pytest.raises(ValueError, match=r"expected sequence of length 2 at dim 1 \(got 1\)"):
        weft.tensor([[1, 2], [3]])


def bits(tensor):
    return tensor.view(torch.uint8 if isinstance(tensor, torch.Tensor) else weft.uint8).numpy()


@given(
    dtype=st.sampled_from(["float32", "float64", "float16", "bfloat16"]),
    start=st.integers(-100_000, 100_000).map(lambda number: number / 1000),
    step=st.floats(0.01, 10),
    length=st.integers(1, 300),
)
def test_ranges_of_floats_have_the_same_bits(dtype, start, step, length):
    torch.set_num_threads(1)
    end = start + step * (length - 0.5)
    for name, arguments in (("arange", (start, end, step)), ("linspace", (start, end, length))):
        got = getattr(weft, name)(*arguments, dtype=getattr(weft, dtype))
        expected = getattr(torch, name)(*arguments, dtype=getattr(torch, dtype))
        np.testing.assert_array_equal(bits(got), bits(expected))


@pytest.mark.may_raise(least=0.55)
@given(
    dtype=st.sampled_from(["uint8", "int8", "int16", "int32", "int64"]),
    start=st.integers(0, 100),
    end=st.integers(0, 100),
    length=st.integers(0, 300),
)
def test_ranges_of_integers(dtype, start, end, length):
    options = f"dtype=torch.{dtype}"
    check(f"torch.linspace({start}, {end}, {length}, {options})")
    check(f"torch.arange({start}, {end}, {options})")
    check(f"torch.arange({end}, {start}, -3, {options})")


def test_long_ranges():
    np.testing.assert_array_equal(weft.arange(100_003).numpy(), np.arange(100_003))
    np.testing.assert_array_equal(
        weft.linspace(0, 100_002, 100_003, dtype=weft.float64).numpy(), np.arange(100_003.0)
    )


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "int64"])
@pytest.mark.parametrize(
    "arguments", [(0, 3, 4), (0, 1, 5, 2), (-1.5, 2, 7), (0, 3, 4, -2), (2, 1, 1), (0, 1, 0)]
)
def test_logspace(dtype, arguments):
    got = weft.logspace(*arguments, dtype=getattr(weft, dtype)).numpy()
    expected = torch.logspace(*arguments, dtype=getattr(torch, dtype)).numpy()
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


numbers = st.one_of(st.booleans(), st.integers(-(2**40), 2**40), st.floats(-1e6, 1e6))


@st.composite
def nested_lists(draw):
    sizes = draw(st.lists(st.integers(0, 3), max_size=3))
    leaves = np.empty(np.prod(sizes, dtype=int), dtype=object)
    for position in range(leaves.size):
        leaves[position] = draw(numbers)
    return leaves.reshape(sizes).tolist()


@pytest.mark.may_raise(least=0.5)
@given(
    data=nested_lists(),
    dtype=st.sampled_from([None, "float32", "float64", "int64", "bool", "uint8", "bfloat16"]),
)
def test_nested_lists(data, dtype):
    check(f"torch.tensor(data, dtype={dtype and 'torch.' + dtype})", data=data)


def test_from_file(tmp_path):
    path = str(tmp_path / "numbers")
    shared = weft.from_file(path, shared=True, size=3, dtype=weft.int32)
    shared[1] = 7
    private = weft.from_file(path, size=3, dtype=weft.int32)
    assert private.tolist() == [0, 7, 0]
    private[0] = 1
    assert shared.tolist() == [0, 7, 0]
    with pytest.raises(RuntimeError, match="12 bytes"):
        weft.from_file(path, size=4, dtype=weft.int32)


UNFIT = """
torch.ones((True, 5))  # raises
torch.ones(True, 5)  # raises
torch.ones((5, True))
torch.zeros([True])  # raises
torch.full((True, 5), 1.0)  # raises
torch.ones(2).new_full((True, 2), 3)  # raises
torch.ones(2).new_empty_strided((1, 5), (True, 1))  # raises
torch.empty_strided((2, 5.0), (5, 1))  # raises
torch.empty_strided(2, (5, 1))  # raises
torch.empty_strided((2, 5), 1)  # raises
torch.empty_permuted((2, 3), None)  # raises
torch.empty_permuted((2, 3), (0, 1.0))  # raises
torch.empty_permuted((2, 3), (True, 0))  # raises
torch.arange(1.1, 5.1, nan)  # raises
torch.arange(1.1, 5.1, inf)
"""


@pytest.mark.parametrize("expression", lines(UNFIT))
def test_arguments_that_do_not_fit(expression):
    check(expression)


@pytest.mark.parametrize("lib", [torch, weft], ids=["torch", "weft"])
@pytest.mark.parametrize("data", [0, [1.0, 2.0], list(range(300)), [[True], [False]]], ids=repr)
def test_tensors_of_numbers_own_their_memory(lib, data):
    """They can be resized, and share it with lazy copies."""
    for options in ({}, {"device": "cpu"}, {"dtype": lib.float64}, {"dtype": lib.float64, "device": "cpu"}):
        x = lib.tensor(data, **options)
        expected = x.tolist()
        copy = lib._lazy_clone(x)
        assert lib._C._data_address(x) == lib._C._data_address(copy)
        x.fill_(1)
        assert copy.tolist() == expected
        assert x.resize_(1000).shape == (1000,)


FROM_NUMBERS = """
torch.asarray(np.float32(3), copy=False)  # raises
torch.asarray(np.float32(3), copy=True)
torch.normal(torch.tensor(0.0), -1, (10,))  # raises
torch.normal(torch.tensor(0.0), 1, (10,)).shape
torch.normal(0, torch.tensor(2.0), (10,)).shape
torch.Tensor(torch.ones(2), device="cpu")  # raises
torch.ones(2).new(torch.ones(3))
torch.ones(2).new(torch.ones(3), device="cpu")  # raises
torch.ones(2).new(torch.Size([0]), device="cpu")
torch.arange(6).view(2, 3).roll(1, dims=None)
torch.nn.functional.grad is torch.nn.grad
"""


@pytest.mark.parametrize("expression", lines(FROM_NUMBERS))
def test_from_numbers_as_in_torch(expression):
    check(expression)


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2", "int32", "complex64"])
def test_dtypes_that_cannot_be_the_default(dtype):
    for lib in (torch, weft):
        with pytest.raises(
            TypeError, match="couldn't find storage object Float8_e|only floating-point types"
        ):
            lib.set_default_dtype(getattr(lib, dtype))
        assert lib.get_default_dtype() is lib.float32


@pytest.mark.parametrize("lib", [torch, weft], ids=["torch", "weft"])
def test_the_storage_of_the_default_dtype(lib):
    before = lib.get_default_dtype()
    try:
        for dtype, name in (
            (lib.float64, "Double"),
            (lib.bfloat16, "BFloat16"),
            (lib.float16, "Half"),
            (lib.float32, "Float"),
        ):
            lib.set_default_dtype(dtype)
            assert lib.Storage is getattr(lib, f"{name}Storage")
    finally:
        lib.set_default_dtype(before)
