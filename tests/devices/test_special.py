"""Special functions on a device give what they give on the CPU, without arrays on the host.

The device is the reference device, or the one that TESTED_DEVICE names.
"""

import pytest
from drawn import HERE

import weft as torch

pytestmark = pytest.mark.usefixtures("without_arrays")
NAN, INF = float("nan"), float("inf")


def check(function, *tensors, rtol=0.0):
    expected, found = function(*tensors), function(*(each.to(HERE) for each in tensors))
    assert (found.dtype, found.shape, found.stride()) == (expected.dtype, expected.shape, expected.stride())
    assert found.device == torch.device(HERE)
    torch.testing.assert_close(found.cpu(), expected, rtol=rtol, atol=rtol * 1e-2, equal_nan=True)


def integers(dtype, seed):
    low, high = torch.iinfo(dtype).min, torch.iinfo(dtype).max
    found = torch.randint(
        max(low, -(10**6)), min(high, 10**6), (200,), generator=torch.Generator().manual_seed(seed)
    ).to(dtype)
    found[:4] = torch.tensor([low, 0, 0, high] if seed else [low, 0, high, low]).to(dtype)
    return found


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int8, torch.uint8])
def test_divisors_and_multiples(dtype):
    a, b = integers(dtype, 0), integers(dtype, 1)
    check(torch.gcd, a, b)
    check(torch.lcm, a, b)
    check(torch.gcd, a[:20, None], b[:30])
    check(lambda a, b: a.clone().gcd_(b), a, b)
    check(torch.gcd, torch.zeros_like(a[:1]), b)


POLYNOMIALS = [name for name in dir(torch.special) if "polynomial" in name]


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_polynomials(name):
    function = getattr(torch.special, name)
    x = torch.cat([torch.linspace(-1.5, 1.5, 31), torch.tensor([NAN, INF, -INF, 1.0, -1.0, 0.0, 5.0, -7.0])])
    degrees = (torch.arange(len(x)) * 7 % 90 - 1).float()
    degrees[3:5] = torch.tensor([NAN, 2.5])
    check(lambda x: function(x, 5), x, rtol=2e-5)
    check(lambda x: function(x, 70), x.double(), rtol=1e-11)
    check(function, x, degrees, rtol=2e-5)
    check(lambda n: function(0.3, n), degrees, rtol=2e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_zeta(dtype):
    q = torch.tensor([0.1, 1, 2.5, 9, 17, 0, -1, -2.5, -7.25, 1e-30, 1e30, NAN, INF], dtype=dtype)
    s = torch.tensor([2, 3, 1, 0.5, 1.5, 10, 40, 300, NAN, -2], dtype=dtype)
    rtol = 3e-6 if dtype is torch.float32 else 1e-12
    check(torch.special.zeta, s[:, None], q, rtol=rtol)
    check(lambda q: torch.special.zeta(2.0, q.half().abs() + 0.1), q, rtol=2e-3)
    for n in (0, 1, 2, 3, 11):
        check(lambda q, n=n: torch.polygamma(n, q), q, rtol=10 * rtol)


def incomplete(dtype):
    """Shapes and places in all regions of the plane, with the edges."""
    generator = torch.Generator().manual_seed(5)
    a = 10 ** (torch.rand(300, generator=generator, dtype=torch.float64) * 8 - 3)
    x = a * 10 ** (torch.rand(300, generator=generator, dtype=torch.float64) * 3 - 2)
    x[:100] = a[:100] + torch.randn(100, generator=generator, dtype=torch.float64) * a[:100].sqrt()
    edges = torch.cartesian_prod(
        *[torch.tensor([0, 1, -1, INF, NAN, 0.3, 24.9, 25.0, 1e30, 1e-30])] * 2
    ).double()
    return (torch.cat(pair).to(dtype) for pair in ((a, edges[:, 0]), (x.abs(), edges[:, 1])))


@pytest.mark.parametrize("name", ["gammainc", "gammaincc"])
@pytest.mark.parametrize(
    "dtype, rtol", [(torch.float32, 2e-6), (torch.float64, 5e-11), (torch.bfloat16, 1e-2)]
)
def test_incomplete_gamma(name, dtype, rtol):
    a, x = incomplete(dtype)
    check(getattr(torch.special, name), a, x, rtol=rtol)
    check(getattr(torch.special, name), a[:4, None], x[:3], rtol=rtol)
    check(
        lambda a: getattr(a.clone(), name.replace("gammainc", "igamma") + "_")(x[0].to(a.device)),
        a,
        rtol=rtol,
    )


def test_the_slope_of_gamma_numbers():
    shapes, samples = (each[:200] for each in incomplete(torch.float64))
    samples = samples.clamp(0.9 * shapes, 1.1 * shapes)
    check(torch._standard_gamma_grad, shapes, samples, rtol=1e-6)
    check(torch._standard_gamma_grad, shapes, samples * 1e-9, rtol=1e-6)


def test_gradients():
    def slope(x):
        x = x.detach().clone().requires_grad_()
        (torch.polygamma(1, x) + torch.special.zeta(2.0, x) + torch.special.ndtri(x / 9)).sum().backward()
        return x.grad

    check(slope, torch.linspace(0.5, 8, 20, dtype=torch.float64), rtol=1e-10)


FUNCTIONS = """
bessel_j0 bessel_j1 bessel_y0 bessel_y1 modified_bessel_k0 modified_bessel_k1 scaled_modified_bessel_k0 scaled_modified_bessel_k1
spherical_bessel_j0 erfcx log_ndtr ndtri airy_ai
""".split()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_expressions(name):
    x = torch.tensor([0.0, -0.0, 1e-5, 0.3, 0.99, 1, 2.5, 8, 8.1, 30, -3, INF, -INF, NAN])
    check(getattr(torch.special, name), x, rtol=1e-6)
    check(getattr(torch.special, name), x.double(), rtol=1e-13)
    check(lambda x: x.mvlgamma(3), x.abs() + 2, rtol=1e-5)


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int8, torch.uint8, torch.bool, torch.int64]
)
def test_hashes(dtype):
    x = (torch.randn(5, 7, 3, generator=torch.Generator().manual_seed(2)) * 9).to(dtype)
    for sizes in ((5, 7, 3), (1, 1, 1), (5, 0, 3), ()):
        part = x[tuple(slice(size) for size in sizes)] if sizes else x[0, 0, 0]
        for dim in (-1, 0, *([(0, 2)] if sizes else [])):
            if part.dim() == 0 or part.size(dim if isinstance(dim, int) else 0):
                check(lambda x, dim=dim: torch.hash_tensor(x, dim, keepdim=dim == 0), part)
        if part.numel():
            check(torch.hash_tensor, part)
            check(torch.hash_tensor, part.mT if sizes else part)
