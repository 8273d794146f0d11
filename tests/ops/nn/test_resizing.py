import numpy as np
import pytest
import torch
from expressions import check as check_expression
from expressions import lines
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import check

import weft

pytestmark = pytest.mark.filterwarnings("ignore")
F = "nn.functional."
MODES = ("nearest", "nearest-exact", "linear", "bilinear", "trilinear", "bicubic", "area")


DIMS = {
    "linear": 1,
    "bilinear": 2,
    "bicubic": 2,
    "trilinear": 3,
}  # of the modes that are for one number of dims


@pytest.mark.may_raise(least=0.5)
@settings(max_examples=150, deadline=None)
@given(
    st.integers(1, 3),
    st.sampled_from(MODES),
    st.one_of(st.integers(1, 9), st.lists(st.integers(1, 9), min_size=1, max_size=3), st.floats(0.5, 3.0)),
    st.sampled_from([None, True, False]),
    st.sampled_from([None, True, False]),
    st.booleans(),
    st.sampled_from([True, True, True, False]),
)
def test_interpolate(n, mode, target, align_corners, recompute, antialias, fitting):
    if fitting:  # arguments that go together
        n = DIMS.get(mode, n)
        align_corners = align_corners if mode in DIMS else None
        antialias = antialias and mode in ("bilinear", "bicubic")
        recompute = recompute if isinstance(target, float) else None
        target = (target * 3)[:n] if isinstance(target, list) else target
    x = torch.randn(2, 2, *(5, 6, 4)[:n], dtype=torch.float64)
    options = {"scale_factor" if isinstance(target, float) else "size": target, "antialias": antialias}
    if recompute is not None:
        options["recompute_scale_factor"] = recompute
    check(F + "interpolate", x, mode=mode, align_corners=align_corners, **options)


def test_interpolate_rounds_bytes_and_keeps_channels_last():
    pictures = torch.randint(0, 256, (2, 3, 6, 6), dtype=torch.uint8)
    check(F + "interpolate", pictures, scale_factor=1.5, mode="nearest")
    check(
        F + "interpolate",
        pictures.float().to(memory_format=torch.channels_last),
        size=(4, 9),
        mode="bilinear",
    )


@pytest.mark.refuses("all")
@pytest.mark.parametrize(
    "arguments", [{}, {"size": 3, "scale_factor": 2.0}, {"size": (2, 2, 2)}, {"size": 0}, {"size": 1.5}]
)
def test_interpolate_rejects(arguments):
    check(F + "interpolate", torch.ones(1, 1, 4, 4), **arguments)


def test_older_names():
    x = torch.randn(1, 2, 3, 3)
    for name in ("upsample", "upsample_nearest", "upsample_bilinear"):
        check(F + name, x, scale_factor=2)


BYTE_MODES = ("nearest", "nearest-exact", "bilinear", "bicubic")


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(BYTE_MODES),
    st.booleans(),
    st.booleans(),
    st.sampled_from(["contiguous", "channels_last", "transposed"]),
    st.sampled_from([1, 2, 3, 4, 5, 16, 33]),
    st.tuples(st.integers(1, 24), st.integers(2, 24)),
    st.one_of(
        st.tuples(st.integers(1, 40), st.integers(2, 40)),
        st.tuples(st.floats(0.3, 3), st.floats(0.3, 3)),
        st.tuples(st.just(1.02), st.floats(0.3, 3)),
    ),
    st.integers(0, 2**32 - 1),
)
def test_bytes_are_resized_in_pytorchs_integers(
    mode, align_corners, antialias, layout, channels, own, target, seed
):
    random = np.random.default_rng(seed)
    extreme = np.array([0, 1, 128, 254, 255], np.uint8)
    pixels = random.integers(0, 256, (2, channels, *own), np.uint8)
    if seed % 2:
        pixels = extreme[pixels % 5]
    if layout == "transposed":
        if own[0] == 1:
            return  # PyTorch reads other pixels
        pixels = pixels.transpose(0, 1, 3, 2)
    sizes = [t if isinstance(t, int) else int(n * t) for n, t in zip(pixels.shape[2:], target, strict=True)]
    if 0 in sizes or sizes[1] == 1:
        return  # PyTorch does not resize the rows of an image one pixel wide
    options = {"size" if isinstance(target[0], int) else "scale_factor": target, "mode": mode}
    if mode.startswith("b"):
        options |= {"align_corners": align_corners, "antialias": antialias}

    def resized(module):
        image = module.from_numpy(pixels)
        if layout == "channels_last":
            image = image.contiguous(memory_format=module.channels_last)
        found = module.nn.functional.interpolate(image, **options)
        return found.numpy(), found.stride()

    (got, stride), (expected, expected_stride) = resized(weft), resized(torch)
    np.testing.assert_array_equal(got, expected)
    assert stride == expected_stride


@pytest.mark.parametrize("antialias", [False, True])
def test_rows_of_a_narrow_image_are_resized_although_pytorch_does_not(antialias):
    image = weft.randint(0, 256, (1, 5, 4, 1), dtype=weft.uint8)
    beside = weft.cat([image, image], 3)
    options = {"mode": "bilinear", "antialias": antialias}
    alone = weft.nn.functional.interpolate(image, size=(7, 1), **options)
    assert alone.equal(weft.nn.functional.interpolate(beside, size=(7, 2), **options)[..., :1])


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(["nearest", "nearest-exact", "bilinear"]),
    st.booleans(),
    st.sampled_from(["contiguous_format", "channels_last"]),
    st.sampled_from([1, 3, 4, 8, 17, 40]),
    st.tuples(st.integers(1, 24), st.integers(1, 24)),
    st.one_of(
        st.tuples(st.integers(1, 40), st.integers(1, 40)), st.tuples(st.floats(0.3, 3), st.floats(0.3, 3))
    ),
    st.integers(0, 2**32 - 1),
)
def test_floats_are_interpolated_with_pytorchs_bits(mode, align_corners, layout, channels, own, target, seed):
    values = np.random.default_rng(seed).normal(size=(2, channels, *own)).astype(np.float32)
    options = {"size" if isinstance(target[0], int) else "scale_factor": target, "mode": mode}
    if mode == "bilinear":
        options["align_corners"] = align_corners
    if any(int(n * t) == 0 for n, t in zip(own, target, strict=True)):
        return

    def resized(module):
        image = module.from_numpy(values).contiguous(memory_format=getattr(module, layout))
        return module.nn.functional.interpolate(image, **options).numpy()

    np.testing.assert_array_equal(resized(weft), resized(torch))


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(["linear", "bilinear", "bicubic"]),
    st.sampled_from([np.float32, np.float64]),
    # PyTorch does not resize rows if the image or the result has one column.
    st.tuples(st.integers(2, 70), st.integers(2, 70)),
    st.tuples(st.integers(2, 70), st.integers(2, 70)),
    st.integers(0, 2**32 - 1),
)
def test_sums_side_by_side_with_a_rest_of_any_size(mode, dtype, own, target, seed):
    values = np.random.default_rng(seed).normal(size=(1, 2, *own)).astype(dtype)
    arguments = {"size": target, "mode": mode, "antialias": True}
    if mode == "linear":
        values, arguments = values[0], {"size": target[1], "mode": mode}

    def resized(module):
        return module.nn.functional.interpolate(module.from_numpy(values), **arguments).numpy()

    np.testing.assert_allclose(resized(weft), resized(torch), rtol=1e-5, atol=1e-5)


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(["bilinear", "bicubic"]),
    st.sampled_from(["float32", "float64", "uint8"]),
    st.sampled_from([1, 7, 8, 15, 16, 17, 40]),
    # 8 positions of the last length need more than the buffer has room for.
    st.sampled_from([3, 4, 8, 9, 17, 33, 70, 700, 3000]),
    st.sampled_from([2, 4, 8, 9, 17, 31, 32, 33, 63, 65]),
    st.integers(0, 2**32 - 1),
)
def test_columns_are_summed_as_rows_are(mode, dtype, rows, own, size, seed):
    values = np.random.default_rng(seed).integers(0, 256, (1, 1, rows, own)).astype(dtype)
    image = weft.from_numpy(values)
    if dtype != "uint8":
        image = image / 7
    options = {"mode": mode, "antialias": True}
    resize = weft.nn.functional.interpolate
    columns = resize(image, size=(rows, size), **options)
    turned = resize(image.mT.contiguous(), size=(size, rows), **options).mT
    assert columns.equal(turned)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("layout", ["contiguous_format", "channels_last"])
def test_floats_and_their_gradients(mode, antialias, layout):
    values = np.random.default_rng(0).normal(size=(2, 3, 40, 70)).astype(np.float32)

    def results(module):
        image = module.from_numpy(values).contiguous(memory_format=getattr(module, layout)).requires_grad_()
        found = module.nn.functional.interpolate(image, size=(51, 33), mode=mode, antialias=antialias)
        (found * found).sum().backward()
        return found.detach().numpy(), image.grad.numpy()

    for got, expected in zip(results(weft), results(torch), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)


def test_a_resized_meta_tensor_has_a_shape_only():
    image = weft.empty(2, 3, 8, 8, device="meta")
    assert weft.nn.functional.interpolate(image, size=(4, 5), mode="bilinear").shape == (2, 3, 4, 5)
    none = weft.empty(0, 3, 8, 8)
    assert weft.nn.functional.interpolate(none, size=(4, 5), mode="bilinear").shape == (0, 3, 4, 5)


UNFIT = """
torch.nn.functional.interpolate(torch.ones(1, 1, 2, 2), scale_factor="a")  # raises
torch.nn.functional.interpolate(torch.ones(1, 1, 2, 2), scale_factor=(None, 1.0))  # raises
torch.nn.functional.upsample_bilinear(torch.ones(1, 1, 2, 2), scale_factor="a")  # raises
torch.nn.functional.interpolate(torch.ones(2, 3, 4, 4), size=(5, 2**62), mode="bilinear")  # raises
torch.nn.functional.interpolate(torch.ones(2, 3, 4, 4), size=(5, 2**62), mode="bicubic")  # raises
"""


@pytest.mark.parametrize("expression", lines(UNFIT))
def test_arguments_that_do_not_fit(expression):
    check_expression(expression)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_weights_have_the_dtype_of_the_image(mode):
    """Distances such as 0.5 are equal in both dtypes, but tables of weights are not."""
    for size in ((8, 12), (8, 8), (4, 4)):
        for dtype in ("float32", "float64", "float32"):
            image = torch.arange(32, dtype=getattr(torch, dtype)).reshape(1, 1, 4, 8)
            expected = torch.nn.functional.interpolate(image, size=size, mode=mode)
            result = weft.nn.functional.interpolate(weft.from_numpy(image.numpy()), size=size, mode=mode)
            np.testing.assert_allclose(result.numpy(), expected.numpy(), rtol=1e-5)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_pending_negation(mode):
    image = weft.randn(1, 2, 4, 5)
    results = [
        weft.nn.functional.interpolate(x, size=(7, 8), mode=mode) for x in (image, (-image)._neg_view())
    ]
    assert results[0].equal(results[1])
