"""Fourier transforms of a device give what the CPU's give: for lengths of every kind of factors, over any dims of any strides.

The device is the reference device, or the one that TESTED_DEVICE names.
"""

import pytest
from on_device import HERE

import weft as torch


def check(function, *tensors):
    expected, got = function(*tensors), function(*(each.to(HERE) for each in tensors))
    assert (got.dtype, got.shape, got.stride()) == (expected.dtype, expected.shape, expected.stride())
    assert got.device == torch.device(HERE)
    scale = expected.abs().square().mean().sqrt().item()
    eps = torch.finfo(expected.dtype).eps
    torch.testing.assert_close(got.cpu(), expected, rtol=0, atol=30 * eps * scale)


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)


# Powers, products, a prime factor that is computed term by term, prime numbers, several signals in a group, and long signals.
LENGTHS = (1, 2, 3, 8, 28, 60, 61, 67, 74, 405, 1000, 2048, 2187, 2500, 4099, 6561)


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_lengths(n, dtype):
    x = torch.randn(3, n, dtype=dtype)
    check(torch.fft.fft, x)
    check(torch.fft.ifft, x)
    check(torch.fft.rfft, x.real)
    check(lambda x: torch.fft.irfft(x, 2 * n - 1), x)


def test_signals_so_long_that_they_are_cut_twice():
    check(torch.fft.fft, torch.randn(61**3, dtype=torch.complex128))


@pytest.mark.parametrize("norm", ["forward", "backward", "ortho"])
def test_dims_and_norms(norm):
    x = torch.randn(4, 5, 6, 7)
    check(lambda x: torch.fft.fftn(x, norm=norm), x)
    check(lambda x: torch.fft.ifftn(x, dim=(0, 2), norm=norm), x + 1j * x.flip(0))
    check(lambda x: torch.fft.rfft2(x, s=(9, 6), norm=norm), x)
    check(lambda x: torch.fft.irfftn(x, dim=(1, 3), norm=norm), x + 1j * x.flip(0))
    check(lambda x: torch.fft.hfft(x, norm=norm), x + 1j * x.flip(0))
    check(lambda x: torch.fft.ihfft(x, dim=1, norm=norm), x)


def test_strides():
    x = torch.randn(6, 5, 4, 3, dtype=torch.complex64)
    check(lambda x: torch.fft.fft(x.permute(2, 0, 3, 1)[::2, :, 1:], dim=1), x)
    check(lambda x: torch.fft.fft(x.conj(), dim=0), x)
    check(lambda x: torch.fft.rfft(x[0, 0, 0, 0].real.expand(3, 8)), x)


def test_gradients_and_pieces():
    x = torch.randn(2, 400)
    window = torch.hann_window(64)

    def slope(x, window):
        x = x.detach().requires_grad_()
        spectrum = torch.stft(x, 64, window=window, return_complex=True)
        back = torch.istft(spectrum, 64, window=window, length=400)
        (spectrum.abs().square().sum() + back.square().sum()).backward()
        return x.grad

    check(slope, x, window)
