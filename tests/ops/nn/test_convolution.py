import pytest
import torch
from alike import same
from expressions import check as check_expression
from expressions import lines
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import assert_same, check, to_weft

import weft
from weft.ops.nn import conv_products as sliding

pytestmark = pytest.mark.filterwarnings("ignore")
F = "nn.functional."


@st.composite
def layers(draw, transposed=False):
    """An input, a weight and the options of a convolution that may or may not fit each other."""
    n = draw(st.integers(1, 3))
    groups = draw(st.integers(1, 2))
    channels, made = groups * draw(st.integers(1, 2)), groups * draw(st.integers(1, 2))
    # PyTorch is of two minds about results without elements, so the transposed ones have some.
    sizes = [draw(st.integers(3 if transposed else 1, 5)) for _ in range(n)]
    kernel = [draw(st.integers(1, 3)) for _ in range(n)]
    batch = draw(st.sampled_from([(), (1,), (2,)]))
    weight = (channels, made // groups) if transposed else (made, channels // groups)
    dtype = draw(st.sampled_from([torch.float64, torch.float32, torch.int64, torch.complex128]))
    torch.manual_seed(draw(st.integers(0, 99)))
    tensors = [
        torch.randn(s).mul(4).to(dtype) for s in ((*batch, channels, *sizes), (*weight, *kernel), (made,))
    ]
    options = {
        "stride": draw(st.integers(1, 3)),
        "padding": draw(st.integers(0, 1 if transposed else 2)),
        "dilation": draw(st.integers(1, 2)),
        "groups": groups,
    }
    if transposed:
        options["output_padding"] = draw(st.integers(0, 2))
    return n, tensors[: draw(st.integers(2, 3))], options


@pytest.mark.may_raise(least=0.65)
@settings(max_examples=60, deadline=None)
@given(layers())
def test_convolutions_agree(layer):
    n, tensors, options = layer
    check(f"{F}conv{n}d", *tensors, **options)


@pytest.mark.may_raise(least=0.7)
@settings(max_examples=60, deadline=None)
@given(layers(transposed=True))
def test_transposed_convolutions_agree(layer):
    n, tensors, options = layer
    check(f"{F}conv_transpose{n}d", *tensors, **options)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_transposed_convolutions_of_stride_2_and_lines_around_a_vector(dtype):
    for width in (1, 7, 8, 9, 15, 16, 17, 33):
        x, weight = torch.randn(2, 3, 3, width, dtype=dtype), torch.randn(3, 4, 4, 4, dtype=dtype)
        check(f"{F}conv_transpose2d", x, weight, torch.randn(4, dtype=dtype), stride=2, padding=1)


@pytest.mark.parametrize("batch", [0, 2])
@pytest.mark.parametrize("sizes", [(2,), (2, 3), (3, 2), (2, 2, 3)])
def test_transposed_convolutions_without_elements(batch, sizes):
    n = len(sizes)
    x, weight = torch.randn(batch, 3, *sizes), torch.randn(3, 4, *[3] * n)
    check(f"{F}conv_transpose{n}d", x, weight, torch.randn(4), padding=2)


@pytest.mark.refuses("all")
def test_transposed_convolutions_of_negative_size():
    check(f"{F}conv_transpose1d", torch.randn(2, 3, 1), torch.randn(3, 4, 3), padding=2)


@pytest.mark.refuses(["kernel0-other", "kernel0--1", "kernel1-other", "kernel1--1"])
@pytest.mark.parametrize("padding", ["same", "valid", "other", (1, 0), -1])
@pytest.mark.parametrize("kernel", [(2, 3), (3, 3)])
def test_paddings(padding, kernel):
    check(F + "conv2d", torch.randn(1, 2, 5, 5), torch.randn(3, 2, *kernel), padding=padding)


@pytest.mark.parametrize("channels_last", ["input", "weight"])
def test_channels_last_stays(channels_last):
    x, w = torch.randn(2, 3, 4, 4), torch.randn(4, 3, 2, 2)
    if channels_last == "input":
        x = x.to(memory_format=torch.channels_last)
    else:
        w = w.to(memory_format=torch.channels_last)
    check(F + "conv2d", x, w)


@pytest.mark.refuses("all")
@pytest.mark.parametrize(
    "shapes",
    [
        ((4, 4), (1, 1, 1, 1)),
        ((1, 2, 4, 4), (1, 3, 2, 2)),
        ((1, 1, 1, 4), (1, 1, 2, 2)),
        ((1, 1, 4, 4), (1, 1, 2)),
    ],
)
def test_shapes_that_do_not_fit_are_errors(shapes):
    check(F + "conv2d", *map(torch.zeros, shapes))


def test_a_large_batch_goes_in_pieces(monkeypatch):
    x, w = torch.randn(5, 2, 6, 6, dtype=torch.float64), torch.randn(3, 2, 3, 3, dtype=torch.float64)
    monkeypatch.setattr(sliding, "PATCH_ELEMENTS", 600)
    assert_same(weft.nn.functional.conv2d(to_weft(x), to_weft(w)), torch.nn.functional.conv2d(x, w))


def test_bfloat16_rounds_once():
    x, w = torch.randn(1, 8, 6, 6).bfloat16(), torch.randn(4, 8, 3, 3).bfloat16()
    exact = torch.nn.functional.conv2d(x.double(), w.double()).bfloat16()
    assert (
        weft.nn.functional.conv2d(to_weft(x), to_weft(w)).double() - to_weft(exact).double()
    ).abs().max() <= 0.07


@pytest.mark.may_raise(least=0.6)
@settings(max_examples=40, deadline=None)
@given(st.integers(1, 2), st.integers(1, 3), st.integers(1, 3), st.integers(0, 2), st.integers(1, 2))
def test_unfold_and_fold(kernel, stride, dilation, padding, batch):
    x = torch.randn(batch, 2, 5, 6)
    options = {"kernel_size": (kernel, 2), "stride": stride, "dilation": dilation, "padding": padding}
    check(F + "unfold", x, **options)
    columns = torch.nn.functional.unfold(x, **options)
    check(F + "fold", columns, output_size=(5, 6), **options)
    check(F + "fold", columns[0], output_size=(5, 7), **options)


@pytest.mark.refuses("all")
@pytest.mark.parametrize(
    "input, weight, bias",
    [
        ("uint8", "float32", "float32"), ("uint8", "float32", None), ("float64", "float32", "float32"),
        ("float64", "float32", None), ("float32", "float32", "float16"), ("int64", "float32", "int64"),
    ],
)  # fmt: skip
def test_dtypes_that_differ_are_errors(input, weight, bias):
    def program(lib):
        offsets = bias and lib.zeros(1, dtype=getattr(lib, bias))
        image, kernel = (lib.zeros(1, 1, 3, 3, dtype=getattr(lib, each)) for each in (input, weight))
        return lib.nn.functional.conv2d(image, kernel, offsets)

    same(program)


@pytest.mark.refuses("all")
@pytest.mark.parametrize("shape", [(3,), (3, 3), (1, 1, 1, 3, 3)])
def test_unfold_of_a_wrong_number_of_dims(shape):
    same(lambda lib: lib.nn.functional.unfold(lib.zeros(shape), 2))


UNFIT = """
torch.nn.functional.fold(torch.ones(1, 8, 9), (4, 4), (2,))  # raises
torch.nn.functional.fold(torch.ones(1, 8, 9), (4,), (2, 2))  # raises
torch.nn.functional.fold(torch.ones(1, 8, 9), 4, 2, (1,))  # raises
torch.nn.functional.unfold(torch.ones(1, 1, 4, 4), (2,))  # raises
torch.nn.functional.unfold(torch.ones(1, 1, 4, 4), 2, 1, (1,))  # raises
torch.nn.functional.unfold(torch.ones(1, 1, 4, 4), 2, padding=(1, 1))
"""


@pytest.mark.parametrize("expression", lines(UNFIT))
def test_arguments_that_do_not_fit(expression):
    check_expression(expression)
