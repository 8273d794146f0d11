"""FakeTensorMode over what works without values: operations of libraries, layers and their gradients."""

import pytest

import weft
from weft._subclasses.fake_tensor import FakeTensor, FakeTensorMode

F = weft.nn.functional


def ones(*sizes, **options):
    return weft.ones(*sizes, device="cuda", **options)


@pytest.mark.parametrize(
    ("call", "sizes"),
    [
        (lambda: ones(5, 4).sort(0).values, (5, 4)),
        (lambda: ones(5, 4).topk(2)[1], (5, 2)),
        (lambda: weft.linalg.svd(ones(5, 4)).U, (5, 5)),
        (lambda: weft.linalg.solve(ones(4, 4), ones(4, 2)), (4, 2)),
        (lambda: weft.linalg.pinv(ones(5, 4)), (4, 5)),
        (lambda: weft.fft.rfft(ones(5, 4)), (5, 3)),
        (lambda: weft.stft(ones(100), 10, return_complex=True), (6, 51)),
        (lambda: weft.quantile(ones(5, 4), 0.5), ()),
        (lambda: weft.einsum("ij,jk->ik", [ones(5, 4), ones(4, 3)]), (5, 3)),
        (lambda: F.conv2d(ones(2, 3, 8, 8), ones(4, 3, 3, 3)), (2, 4, 6, 6)),
        (lambda: F.conv_transpose2d(ones(2, 3, 8, 8), ones(3, 4, 3, 3)), (2, 4, 10, 10)),
        (lambda: F.adaptive_avg_pool2d(ones(2, 3, 8, 8), 3), (2, 3, 3, 3)),
        (lambda: F.interpolate(ones(1, 3, 8, 8), scale_factor=2.0), (1, 3, 16, 16)),
        (lambda: F.scaled_dot_product_attention(*[ones(2, 2, 4, 8)] * 3), (2, 2, 4, 8)),
        (lambda: ones(3).new_tensor([1.0, 2.0]), (2,)),
        (lambda: weft.tensor([1.0, 2.0], device="cuda"), (2,)),
        (lambda: weft.as_tensor([1.0, 2.0], device="cuda"), (2,)),
    ],
)
def test_operations_on_a_device_that_does_not_exist(call, sizes):
    with FakeTensorMode():
        found = call()
        assert type(found) is FakeTensor and found.shape == sizes and found.device == weft.device("cuda:0")


def test_several_results_are_named_as_outside_of_the_mode():
    for mode in (FakeTensorMode(), None):
        with mode or weft.no_grad():
            x = weft.ones(5, 4)
            assert type(x.max(0)) is weft.return_types.max and type(x.sort()) is weft.return_types.sort
            assert type(weft.linalg.qr(x)) is weft.return_types.linalg_qr
            assert type(x.split(2)) is type(x.unbind()) is tuple


@pytest.mark.parametrize(
    ("make", "sizes"),
    [
        (
            lambda: weft.nn.Sequential(weft.nn.Conv2d(3, 4, 3), weft.nn.BatchNorm2d(4), weft.nn.MaxPool2d(2)),
            (2, 3, 8, 8),
        ),
        (lambda: weft.nn.TransformerEncoderLayer(8, 2, 16), (2, 4, 8)),
        (lambda: weft.nn.MultiheadAttention(8, 2), (2, 4, 8)),
        (lambda: weft.nn.LSTM(4, 3), (2, 5, 4)),
    ],
)
def test_gradients_of_layers(make, sizes):
    with FakeTensorMode():
        layer, x = make(), weft.ones(sizes, requires_grad=True)
        out = layer(*[x] * (3 if isinstance(layer, weft.nn.MultiheadAttention) else 1))
        (out[0] if isinstance(out, tuple) else out).sum().backward()
        for each in (x, *layer.parameters()):
            assert type(each.grad) is FakeTensor and each.grad.shape == each.shape


def test_gradients_of_embeddings():
    with FakeTensorMode():
        layer = weft.nn.Embedding(10, 3)
        layer(weft.ones(4, dtype=weft.int64)).sum().backward()
        assert layer.weight.grad.shape == (10, 3)
