"""Random numbers against PyTorch's: the same bits, and the same state afterwards."""

import hashlib

import numpy as np
import pytest
import torch

from weft.core import dtype as dtypes
from weft.core.generator import Generator
from weft.engine import distributions

SIZES = [0, 1, 7, 15, 16, 17, 31, 1000, 1001, 100003]
FLOATS = ["float16", "bfloat16", "float32", "float64"]
NUMBERS = [*FLOATS, "uint8", "int8", "int16", "int32", "int64"]


def dtype_named(name):
    return dtypes.DTYPES[name]


def draw(function, generator, n, *parameters, dtype, **options):
    dtype = dtype_named(dtype)
    out = np.empty(n, dtype.numpy)
    function(generator, out.ctypes.data, n, *parameters, dtype, **options)
    return out


def as_numpy(tensor):
    """The elements of an oracle's tensor; bfloat16, which it cannot export, by its bits."""
    if tensor.dtype is torch.bfloat16:
        return tensor.view(torch.int16).numpy().view(dtypes.bfloat16.numpy)
    return tensor.numpy()


def bits(array):
    return np.ascontiguousarray(array).view(f"u{array.itemsize}")


def assert_same(generator, values, expected):
    np.testing.assert_array_equal(bits(values), bits(as_numpy(expected)))
    np.testing.assert_array_equal(generator.state_bytes(), torch.get_rng_state().numpy())


def seeded(seed, used=0):
    """A generator in the state of the oracle's, after `used` numbers, an odd one of which leaves a normal behind."""
    torch.manual_seed(seed)
    torch.empty(used, dtype=torch.float64).log_normal_()
    generator = Generator()
    generator.load_state_bytes(torch.get_rng_state().numpy())
    return generator


@pytest.mark.parametrize("n", SIZES)
def test_raw_draws(n):
    oracle = np.random.MT19937()
    oracle._legacy_seeding(n)
    generator = Generator().manual_seed(n)
    np.testing.assert_array_equal(distributions.u32(generator, n), oracle.random_raw(n))
    words = oracle.random_raw(2 * n).reshape(n, 2)
    np.testing.assert_array_equal(distributions.u64(generator, n), words[:, 0] << np.uint64(32) | words[:, 1])


# name in torch, function, parameters here, parameters in torch, dtypes
FILLS = [
    ("uniform_", distributions.uniform, (0.0, 1.0), (), FLOATS),
    ("uniform_", distributions.uniform, (-3.7, 5.123), (-3.7, 5.123), FLOATS),
    ("normal_", distributions.normal, (0.0, 1.0), (), FLOATS),
    ("normal_", distributions.normal, (1.3, 2.7), (1.3, 2.7), FLOATS),
    ("exponential_", distributions.exponential, (1.7,), (1.7,), FLOATS),
    ("cauchy_", distributions.cauchy, (0.1, 1.7), (0.1, 1.7), FLOATS),
    ("log_normal_", distributions.log_normal, (0.1, 1.7), (0.1, 1.7), FLOATS),
    ("geometric_", distributions.geometric, (0.3,), (0.3,), NUMBERS),
    ("bernoulli_", distributions.bernoulli, (0.3,), (0.3,), [*NUMBERS, "bool"]),
    ("random_", distributions.any_integers, (), (), [*NUMBERS, "bool"]),
    ("random_", distributions.integers, (3, 98), (3, 101), NUMBERS),
]


@pytest.mark.parametrize("used", [0, 3])
@pytest.mark.parametrize(("name", "function", "here", "there", "names"), FILLS)
def test_fill(name, function, here, there, names, used):
    for dtype in names:
        for n in SIZES:
            generator = seeded(n + used, used)
            expected = getattr(torch.empty(n, dtype=getattr(torch, dtype)), name)(*there)
            assert_same(generator, draw(function, generator, n, *here, dtype=dtype), expected)


@pytest.mark.parametrize("span", [7, 2**27 + 3, 2**28 - 1, 2**28, 2**40, 2**63 - 1])
def test_integers_below_a_bound(span):
    for n in SIZES:
        generator = seeded(n)
        expected = torch.randint(-3, span - 3, (n,))
        assert_same(generator, draw(distributions.integers, generator, n, -3, span, dtype="int64"), expected)


def test_integers_of_all_64_bits():
    generator = seeded(1)
    expected = torch.empty(1001, dtype=torch.int64).random_(-(2**63), None)
    assert_same(generator, draw(distributions.integers, generator, 1001, 0, 2**64, dtype="int64"), expected)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("n", [2, 16, 1001])
def test_normal_of_a_tensor_that_is_not_contiguous(n, dtype):
    generator = seeded(n, used=1)
    expected = torch.empty(n, 2, dtype=getattr(torch, dtype))[:, 0].normal_(1.3, 2.7).clone()
    values = draw(distributions.normal, generator, n, 1.3, 2.7, dtype=dtype, contiguous=False)
    assert_same(generator, values, expected)


@pytest.mark.parametrize("n", SIZES)
def test_permutation(n):
    generator = seeded(n)
    expected = torch.randperm(n)
    assert_same(generator, distributions.permutation(generator, n), expected)


def multinomial(generator, p, count, replacement):
    rows = np.atleast_2d(as_numpy(p))
    dtype = dtype_named(str(p.dtype).removeprefix("torch."))
    return distributions.multinomial(generator, rows, count, replacement, dtype)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(1,), (15,), (1000,), (5, 100)])
def test_multinomial(shape, dtype):
    torch.manual_seed(8)
    p = torch.rand(shape, dtype=getattr(torch, dtype))
    for count, replacement in [(1, False), (1, True), (50, True)]:
        generator = seeded(9)
        expected = torch.multinomial(p, count, replacement).reshape(-1, count)
        assert_same(generator, multinomial(generator, p, count, replacement), expected)


def test_multinomial_without_replacement():
    torch.manual_seed(8)
    p = torch.rand(5, 100, dtype=torch.float64)
    generator = seeded(9)
    expected = torch.multinomial(p, 60)
    assert_same(generator, multinomial(generator, p, 60, False), expected)


def test_state_goes_to_torch_and_back():
    generator = Generator().manual_seed(11)
    for used in (1, 15, 623, 624, 700):
        draw(distributions.normal, generator, used, 0.0, 1.0, dtype="float64", contiguous=False)
        torch.set_rng_state(torch.from_numpy(generator.state_bytes()))
        expected = torch.randn(5)
        assert_same(generator, draw(distributions.normal, generator, 5, 0.0, 1.0, dtype="float32"), expected)
        generator.load_state_bytes(torch.get_rng_state().numpy())


# fmt: off
GOLDEN = [  # md5 over the bytes of 1000 elements (or as many as said) after manual_seed(0)
    ("f3df09026342", distributions.uniform, (0, 1), "float32", 1000),
    ("beee7ef91d7b", distributions.uniform, (0, 1), "float64", 1000),
    ("5b148daa4bf1", distributions.uniform, (0, 1), "bfloat16", 1000),
    ("45dee8272184", distributions.normal, (0, 1), "float32", 1000),
    ("55523f67f40c", distributions.normal, (0, 1), "float32", 1001),
    ("8a6229b97fbd", distributions.normal, (0, 1), "float64", 1000),
    ("fc940d940fe1", distributions.normal, (0, 1), "float32", 7),
    ("6a434f51d028", distributions.normal, (0, 1), "float16", 1000),
    ("15817aacefa9", distributions.normal, (1.3, 2.7), "float32", 1000),
    ("19f74776dd21", distributions.uniform, (-3.7, 5.123), "float32", 1000),
    ("7e523cabedf4", distributions.integers, (0, 10), "int64", 1000),
    ("46cdcfb577ae", distributions.integers, (0, 2**40), "int64", 1000),
    ("c47dc1605f6c", distributions.bernoulli, (0.3,), "float32", 1000),
    ("88603749ee8c", distributions.exponential, (1.7,), "float32", 1000),
    ("4eec38ab5676", distributions.cauchy, (0.1, 1.7), "float64", 1000),
    ("295286790b20", distributions.log_normal, (1, 2), "float64", 1000),
    ("ae852913bab4", distributions.geometric, (0.3,), "float32", 1000),
]
# fmt: on


def md5(array):
    return hashlib.md5(np.ascontiguousarray(array).tobytes()).hexdigest()[:12]


@pytest.mark.parametrize(("digest", "function", "parameters", "dtype", "n"), GOLDEN)
def test_golden(digest, function, parameters, dtype, n):
    assert md5(draw(function, Generator().manual_seed(0), n, *parameters, dtype=dtype)) == digest


def test_golden_indices():
    def fresh():
        return Generator().manual_seed(0)

    ten, hundred = (np.arange(1, n + 1, dtype=np.float32)[None] for n in (10, 100))
    assert md5(distributions.permutation(fresh(), 1000)) == "5c05c022c4c6"
    assert md5(distributions.multinomial(fresh(), ten, 500, True, dtypes.float32)) == "cd2b2bd93f9f"
    assert md5(distributions.multinomial(fresh(), hundred, 20, False, dtypes.float32)) == "be2da8b9219e"


def test_golden_dropout():
    mask = draw(distributions.bernoulli, Generator().manual_seed(0), 1000, 1 - 0.3, dtype="float32")
    assert md5(mask * np.float32(1 / (1 - 0.3))) == "68fa930c4450"
