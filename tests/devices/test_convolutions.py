"""Convolutions of a device, with their gradients, give what the CPU's give: squares of the result, or elements one by one for few channels.

The device is the reference device, or the one that TESTED_DEVICE names.
"""

import pytest
from on_device import HERE

import weft as torch
import weft.nn.functional as F


def results(function, where, tensors):
    """The result, and the gradients of all tensors."""
    leaves = [each.to(where).detach().requires_grad_() for each in tensors]
    result = function(*leaves)
    (result.float() ** 2).sum().backward()
    return [result.detach(), *(leaf.grad for leaf in leaves)]


def check(function, *tensors, rtol=1e-4):
    expected, got = results(function, "cpu", tensors), results(function, HERE, tensors)
    for mine, theirs in zip(got, expected, strict=True):
        assert (mine.dtype, mine.shape, mine.stride()) == (theirs.dtype, theirs.shape, theirs.stride())
        scale = theirs.abs().max().item()
        torch.testing.assert_close(mine.cpu(), theirs, rtol=rtol, atol=rtol * scale)


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)


@pytest.mark.parametrize(("channels", "made", "groups"), [(20, 70, 1), (40, 34, 2), (3, 17, 1), (12, 24, 12)])
@pytest.mark.parametrize(
    "options", [{"padding": 1}, {"stride": (2, 3), "padding": (0, 2), "dilation": (1, 2)}]
)
def test_images(channels, made, groups, options):
    tensors = torch.randn(3, channels, 9, 8), torch.randn(made, channels // groups, 3, 3), torch.randn(made)
    check(lambda x, w, b: F.conv2d(x, w, b, groups=groups, **options), *tensors)


def test_images_with_channels_last():
    x = torch.randn(2, 20, 7, 8).contiguous(memory_format=torch.channels_last)
    check(lambda x, w: F.conv2d(x, w, padding="same"), x, torch.randn(17, 20, 2, 4))


def test_transposed():
    options = {"stride": 2, "padding": 1, "output_padding": 1}
    check(
        lambda x, w, b: F.conv_transpose2d(x, w, b, **options),
        *map(torch.randn, [(3, 20, 5, 6), (20, 30, 3, 3), (30,)]),
    )


def test_sequences_of_half_precision():
    x, w, b = (torch.randn(size).bfloat16() for size in ((3, 20, 50), (20, 20, 5), (20,)))
    check(lambda x, w, b: F.conv1d(x, w, b, padding=2), x, w, b, rtol=1e-2)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize(
    ("channels", "made", "groups"), [(20, 70, 1), (40, 34, 2), (3, 17, 1), (66, 130, 1), (12, 24, 12)]
)
@pytest.mark.parametrize(
    "options", [{"padding": 1}, {"stride": (2, 3), "padding": (0, 2), "dilation": (1, 2)}]
)
def test_images_of_half_precision(dtype, channels, made, groups, options):
    sizes = (3, channels, 9, 8), (made, channels // groups, 3, 3), (made,)
    tensors = [torch.randn(size).to(dtype) for size in sizes]
    rtol = 1e-2 if dtype is torch.bfloat16 else 2e-3
    check(lambda x, w, b: F.conv2d(x, w, b, groups=groups, **options), *tensors, rtol=rtol)


def test_half_precision_with_channels_last_and_transposed():
    x = torch.randn(2, 20, 7, 8).half().contiguous(memory_format=torch.channels_last)
    w = torch.randn(20, 30, 3, 3).half()
    check(lambda x, w: F.conv_transpose2d(x, w, stride=2, padding=1), x, w, rtol=2e-3)


def test_special_values_of_half_precision():
    x, w = torch.randn(2, 20, 9, 8).half(), torch.randn(18, 20, 3, 3).half()
    x[0, 3, 4, 5], x[1, 3, 0, 0], w[2, 3, 1, 1] = float("inf"), float("nan"), -float("inf")
    expected = F.conv2d(x, w, padding=1)
    found = F.conv2d(x.to(HERE), w.to(HERE), padding=1).cpu()
    assert found.isnan().equal(expected.isnan()) and found.isinf().equal(expected.isinf())


def test_volumes():
    tensors = torch.randn(2, 16, 5, 6, 7), torch.randn(20, 16, 3, 2, 3)
    check(lambda x, w: F.conv3d(x, w, padding=1, stride=(1, 2, 1)), *tensors)


def test_gradients_of_gradients_and_samples_of_vmap():
    x, w = torch.randn(2, 20, 6, 6), torch.randn(18, 20, 3, 3)

    def penalty(x, w):
        (slope,) = torch.autograd.grad((F.conv2d(x, w) ** 2).sum(), x, create_graph=True)
        return slope.square().mean()

    check(penalty, x, w)
    each = torch.func.vmap(lambda x, w: F.conv2d(x[None], w), (0, None))
    torch.testing.assert_close(each(x.to(HERE), w.to(HERE)).cpu(), each(x, w), rtol=1e-4, atol=1e-3)
