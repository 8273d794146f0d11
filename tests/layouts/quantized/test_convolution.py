"""Convolutions of quantized tensors: PyTorch's integers in all dims, with groups, strides, gaps and padding.

PyTorch's sums depend on the processor, so tests/exact_quantized.py says what they must be. With small weights they are exact everywhere.
"""

import numpy as np
import pytest
import torch
from exact_quantized import SMALL_WEIGHT, exact

import weft
from weft.devices.cpu import extras
from weft.engine import byte_gemm, depthwise, host
from weft.engine.byte_tiles import Shape
from weft.layouts.quantized import convolution, products
from weft.layouts.quantized.convolution import Window, convolved, pack_kernel
from weft.layouts.quantized.linear import linear
from weft.layouts.quantized.products import sums
from weft.ops.elementwise.qparams import QParams

pytestmark = pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor:UserWarning")

# images, channels, sizes, made channels, window
CASES = [
    (2, 3, (9,), 5, Window((3,), (1,), (1,), (1,))),
    (2, 4, (9,), 6, Window((2,), (2,), (0,), (3,), 2)),
    (2, 3, (9, 8), 5, Window((3, 3), (1, 1), (1, 1), (1, 1))),
    (1, 4, (9, 8), 4, Window((1, 1), (1, 1), (0, 0), (1, 1))),
    (3, 4, (9, 8), 8, Window((1, 1), (2, 2), (0, 0), (1, 1), 4)),
    (2, 6, (11, 10), 6, Window((3, 2), (2, 1), (2, 0), (1, 2), 2)),
    (2, 6, (7, 7), 12, Window((3, 3), (1, 1), (1, 1), (1, 1), 6)),
    (2, 2, (5, 6, 7), 3, Window((2, 3, 3), (1, 2, 1), (1, 1, 0), (1, 1, 2))),
    (1, 4, (5, 5, 5), 4, Window((3, 3, 3), (1, 1, 1), (1, 1, 1), (1, 1, 1), 2)),
]


def integers_of_weight(random, shape, greatest):
    return random.integers(-greatest, min(greatest + 1, 128), shape).astype(np.int8)


def layer(random, count):
    scales = random.uniform(1e-3, 1e-1, count)
    bias = (random.standard_normal(count) * 3).astype(np.float32)
    return scales, random.integers(-3, 4, count), bias


def both(images, sizes, random):
    integers = random.integers(0, 256, (images, *sizes)).astype(np.uint8)
    return weft.from_numpy(integers), torch._make_per_tensor_quantized_tensor(
        torch.from_numpy(integers), 0.03, 77
    )


def run(name, input, weight, scales, points, bias, window, result, relu, *output_padding):
    if len(scales) == 1:
        made = torch._make_per_tensor_quantized_tensor(torch.from_numpy(weight), scales.item(), points.item())
    else:
        given = map(torch.from_numpy, (weight, scales, points))
        made = torch._make_per_channel_quantized_tensor(*given, 0)
    spread = (window.stride, window.padding, *output_padding, window.dilation)
    prepack = getattr(torch.ops.quantized, f"{name}_prepack")
    packed = prepack(made, torch.from_numpy(bias), *map(list, spread), window.groups)
    return exact[name + ("_relu" if relu else "")](input, packed, *result)


@pytest.fixture(autouse=True)
def fbgemm():
    before = torch.backends.quantized.engine
    torch.backends.quantized.engine = "fbgemm"
    yield
    torch.backends.quantized.engine = before


@pytest.fixture(params=[128, SMALL_WEIGHT], ids=["weights of all sizes", "small weights"])
def greatest(request):
    """The greatest size of an integer of a weight."""
    return request.param


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_like_pytorch(case, relu, greatest, monkeypatch):
    images, channels, sizes, made, window = case
    random = np.random.default_rng(0)
    own, other = both(images, (channels, *sizes), random)
    weight = integers_of_weight(random, (made, channels // window.groups, *window.kernel), greatest)
    scales, points, bias = layer(random, made)
    result = QParams(float(0.03 * scales.max() * weight[0].size * 40), 20)
    name = f"conv{len(sizes)}d"
    wanted = run(name, other, weight, scales, points, bias, window, result, relu)
    packed = pack_kernel(weft.from_numpy(weight), weft.from_numpy(points), window.groups)
    more = weft.from_numpy(scales.astype(np.float32)), weft.from_numpy(bias), result, relu
    for nbytes, few in ((convolution.PATCH_BYTES, 0), (1, 0), (1, convolution.FEW_COLUMNS)):
        monkeypatch.setattr(convolution, "PATCH_BYTES", nbytes)
        monkeypatch.setattr(convolution, "FEW_COLUMNS", few)
        for given in (own, own.movedim(1, -1).contiguous().movedim(-1, 1)):
            found = convolved(
                given, 77, window, packed, lambda rows: linear(rows, QParams(0.03, 77), packed, *more)
            )
            assert found.stride() == wanted.stride()
            np.testing.assert_array_equal(found.numpy(), wanted.int_repr().numpy())


OWN = [
    (2, 5, (9,), Window((3,), (1,), (1,), (1,))),
    (1, 70, (9, 8), Window((3, 3), (1, 1), (1, 1), (1, 1))),
    (2, 64, (9, 8), Window((5, 2), (2, 1), (2, 0), (1, 3))),
    (3, 1, (4, 4), Window((1, 1), (1, 2), (0, 0), (1, 1))),
    (2, 3, (5, 6, 7), Window((2, 3, 3), (1, 2, 1), (1, 1, 0), (1, 1, 2))),
]
SHAPES = [None, Shape("", 8, (4, 2, 1), 2)]
if "+avx2" in host.cpu()[1].split(","):
    SHAPES.append(Shape("pmaddwd", 8, (4, 2, 1), 2))


def compare(images, channels, sizes, made, window, greatest, shape, monkeypatch):
    """Convolutions with a weight whose zero points are 0 have PyTorch's integers, and those of signed bytes the same sums."""
    random = np.random.default_rng(0)
    own, other = both(images, (channels, *sizes), random)
    weight = integers_of_weight(random, (made, channels // window.groups, *window.kernel), greatest)
    scales, points, bias = layer(random, made)
    result = QParams(float(0.03 * scales.max() * weight[0].size * 40), 20)
    wanted = run(f"conv{len(sizes)}d", other, weight, scales, points * 0, bias, window, result, True)
    caches = extras._depthwise, extras._byte_convolution
    if shape is not None:
        for module in (byte_gemm, depthwise, products):
            monkeypatch.setattr(module, "shape", lambda: shape)
        for cache in caches:
            cache.cache_clear()
    packed = pack_kernel(weft.from_numpy(weight), None, window.groups)
    more = weft.from_numpy(scales.astype(np.float32)), weft.from_numpy(bias), result, True
    found = convolved(own, 77, window, packed, lambda a: linear(a, QParams(0.03, 77), packed, *more))
    assert found.stride() == wanted.stride()
    np.testing.assert_array_equal(found.numpy(), wanted.int_repr().numpy())
    signed = (own.int() - 128).to(weft.int8)
    exact = convolved(own, 77, window, packed, lambda a: sums(a, 77, packed))
    assert convolved(signed, 77 - 128, window, packed, lambda a: sums(a, 77 - 128, packed)).equal(exact)
    assert convolved(own[:0], 77, window, packed, lambda a: sums(a, 77, packed)).shape == exact[:0].shape
    for cache in caches:
        cache.cache_clear()
    return packed


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("case", OWN, ids=str)
def test_a_group_for_each_channel(case, shape, greatest, monkeypatch):
    images, channels, sizes, window = case
    window = window._replace(groups=channels)
    packed = compare(images, channels, sizes, channels, window, greatest, shape, monkeypatch)
    assert packed.taps is not None


WITHOUT_PATCHES = [
    (2, 8, (9,), 5, Window((3,), (2,), (1,), (1,))),
    (2, 6, (9, 8), 40, Window((3, 3), (1, 1), (1, 1), (1, 1))),
    (1, 4, (9, 8), 7, Window((2, 3), (2, 1), (2, 0), (1, 2))),
    (3, 1, (5, 4), 3, Window((2, 2), (1, 2), (0, 0), (1, 1))),
    (2, 12, (7, 6), 6, Window((3, 2), (1, 2), (1, 1), (2, 1), 3)),
    (2, 3, (5, 6, 7), 17, Window((2, 3, 3), (1, 2, 1), (1, 1, 0), (1, 1, 1))),
]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("case", WITHOUT_PATCHES, ids=str)
def test_rows_of_the_input_in_place(case, shape, greatest, monkeypatch):
    monkeypatch.setattr(convolution, "_patches", None)
    assert compare(*case, greatest, shape, monkeypatch).taps is None


@pytest.mark.parametrize(
    ("channels", "sizes", "made", "window", "output_padding"),
    [
        (4, (5,), 3, Window((3,), (2,), (1,), (1,)), (1,)),
        (4, (5, 6), 3, Window((3, 3), (1, 1), (0, 0), (1, 1)), (0, 0)),
        (4, (5, 6), 3, Window((3, 2), (2, 3), (1, 0), (1, 2)), (1, 0)),
        (4, (5, 6), 2, Window((1, 2), (2, 1), (2, 1), (1, 1)), (0, 0)),
        (4, (3, 4, 5), 2, Window((2, 3, 3), (2, 1, 2), (0, 1, 1), (1, 1, 1)), (0, 0, 1)),
    ],
    ids=str,
)
def test_transposed(channels, sizes, made, window, output_padding, greatest):
    random = np.random.default_rng(0)
    own, other = both(2, (channels, *sizes), random)
    weight = integers_of_weight(random, (channels, made, *window.kernel), greatest)
    scales, points, bias = layer(random, made)
    scales, points = scales[:1], points[:1]  # PyTorch takes one
    result = QParams(float(0.03 * scales.max() * weight[:, 0].size * 40), 20)
    wanted = run(
        f"conv_transpose{len(sizes)}d",
        other,
        weight,
        scales,
        points,
        bias,
        window,
        result,
        False,
        output_padding,
    )
    points = weft.from_numpy(points).expand(made)
    packed = pack_kernel(convolution.transposed_kernel(weft.from_numpy(weight), 1), points)
    more = weft.from_numpy(scales.astype(np.float32)), weft.from_numpy(bias), result
    moved, ordinary = convolution.spread(own, 77, window, output_padding)
    found = convolved(
        moved, 77, ordinary, packed, lambda rows: linear(rows, QParams(0.03, 77), packed, *more)
    )
    np.testing.assert_array_equal(found.numpy(), wanted.int_repr().numpy())


def test_transposed_in_groups():
    random = np.random.default_rng(0)
    integers, weight = random.integers(0, 9, (2, 4, 5, 6)), random.integers(-9, 9, (4, 3, 3, 2))
    wanted = torch.conv_transpose2d(
        torch.from_numpy(integers).double(), torch.from_numpy(weight).double(), None, 2, 1, 1, 2
    )
    window = Window((3, 2), (2, 2), (1, 1), (1, 1), 2)
    moved, ordinary = convolution.spread(weft.from_numpy(integers.astype(np.uint8)), 0, window, (1, 1))
    kernel = convolution.transposed_kernel(weft.from_numpy(weight.astype(np.int8)), 2)
    packed = pack_kernel(kernel, None, 2)
    found = convolved(moved, 0, ordinary, packed, lambda rows: sums(rows, 0, packed))
    np.testing.assert_array_equal(found.numpy(), wanted.numpy())


def test_nothing_to_do_and_kernels_that_do_not_fit():
    packed = pack_kernel(weft.ones(5, 3, 2, 2, dtype=weft.int8))
    window = Window((2, 2), (1, 1), (0, 0), (1, 1))
    call = lambda input: convolved(input, 0, window, packed, lambda rows: sums(rows, 0, packed))  # noqa: E731
    assert call(weft.zeros(0, 3, 4, 4, dtype=weft.uint8)).shape == (0, 5, 3, 3)
    with pytest.raises(RuntimeError, match="does not fit"):
        call(weft.zeros(1, 3, 4, 1, dtype=weft.uint8))


@pytest.mark.parametrize("groups", [1, 4])
@pytest.mark.parametrize("point", [0, 2])
def test_a_layer_is_called_again_with_other_inputs(groups, point):
    """What a layer keeps of its last call counts only for inputs of the same sizes and strides."""
    random = np.random.default_rng(0)
    weight = integers_of_weight(random, (4, 4 // groups, 3, 3), SMALL_WEIGHT)
    bias = random.standard_normal(4).astype(np.float32)
    own, other = (
        lib.ops.quantized.conv2d_prepack(
            lib._make_per_tensor_quantized_tensor(lib.from_numpy(weight), 0.02, point),
            lib.from_numpy(bias),
            *([1, 1], [1, 1], [1, 1]),
            groups,
        )
        for lib in (weft, torch)
    )
    calls = [
        # sizes, zero point of the input, channels last, scale of the result, relu
        ((2, 4, 9, 8), 7, True, 0.5, False),
        ((2, 4, 9, 8), 7, True, 0.5, True),
        ((2, 4, 9, 8), 200, True, 0.1, True),
        ((1, 4, 5, 6), 200, True, 0.1, False),
        ((1, 4, 5, 6), 200, False, 0.1, False),
        ((2, 4, 9, 8), 7, True, 0.5, False),
    ]
    for sizes, zero_point, last, scale, relu in calls:
        integers = random.integers(0, 256, sizes).astype(np.uint8)
        inputs = [
            lib._make_per_tensor_quantized_tensor(lib.from_numpy(integers), 0.03, zero_point).contiguous(
                memory_format=lib.channels_last if last else lib.contiguous_format
            )
            for lib in (weft, torch)
        ]
        name = "conv2d_relu" if relu else "conv2d"
        found = getattr(weft.ops.quantized, name)(inputs[0], own, scale, 20)
        wanted = exact[name](inputs[1], other, scale, 20)
        assert found.stride() == wanted.stride()
        np.testing.assert_array_equal(found.int_repr().numpy(), wanted.int_repr().numpy())
