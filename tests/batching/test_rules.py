"""Batching rules: vmap gives what a loop over the samples gives, and what PyTorch's vmap gives.

Each function is mapped once, twice (a batch of batches), and its gradient is mapped and taken of the mapped function. A
function that has a batching rule runs without a warning.
"""

import warnings

import numpy as np
import pytest
import torch

import weft

# name: function of (library, x, y); x and y are float64 of shape [3, 4].
FUNCTIONS = {
    "elementwise": lambda lib, x, y: x * y.exp() - 2 / (1 + y * y),
    "broadcasting": lambda lib, x, y: x[0] * y.unsqueeze(-1) + y.sum(),
    "numbers of samples": lambda lib, x, y: x.sum() * y,
    "where": lambda lib, x, y: lib.where(x > y, x, y * 2),
    "reductions": lambda lib, x, y: x.sum(0) * y.mean(0, keepdim=True) + x.std() + y.amax(1).sum(),
    "logsumexp": lambda lib, x, y: x.logsumexp(1) + y.softmax(0).sum(1) + y.log_softmax(1)[:, 0],
    "scans": lambda lib, x, y: x.cumsum(0) * y.cumprod(1),
    "scan of a number": lambda lib, x, y: x.sum().cumsum(0) + y,
    "views": lambda lib, x, y: x.t().reshape(2, 6)[:, 1:5].unflatten(1, (2, 2)).transpose(0, 2) * y[:2, :2],
    "strided": lambda lib, x, y: x.as_strided((2, 3), (1, 4)) + y.diagonal() + y.unfold(1, 2, 2).sum(),
    "indexing": lambda lib, x, y: x[lib.tensor([2, 0])] * y[0] + x[:, lib.tensor([1])].sum(),
    "gather": lambda lib, x, y: x.gather(1, y.argsort(1)) + y.take_along_dim(x.argmax(1, keepdim=True), 1),
    "scatter": lambda lib, x, y: x.scatter(1, y.argsort(1), y) + x.index_add(0, lib.tensor([1, 1]), y[:2]),
    "index_put": lambda lib, x, y: x.index_put((lib.tensor([0, 2]),), y[:2]) + x.masked_fill(y > 0, 0.5),
    "products": lambda lib, x, y: x @ y.t() @ x + (x @ y[0]).sum() + x[0].dot(y[0]),
    "stacks of products": lambda lib, x, y: (x.unsqueeze(0) @ y.t().expand(2, 4, 3)).sum(0),
    "einsum": lambda lib, x, y: lib.einsum("ij,kj->ik", x, y).trace() + lib.einsum("ij,ij->", x, y),
    "joining": lambda lib, x, y: (
        lib.cat([x, y], 1) * lib.stack([x, y]).sum() + lib.cat([x[:1], y.repeat(1, 2)[:, 4:]]).sum()
    ),
    "padding": lambda lib, x, y: lib.nn.functional.pad(x, (1, 0, 0, 2)).flip(0) * y.roll(1, 0).sum(),
    "sorting": lambda lib, x, y: x.sort(1).values + y.topk(2, 0).values.sum(),
    "medians": lambda lib, x, y: x.median(1).values * y[:, 0] + x.median() * y.sum(1).nanmedian(),
    "searching": lambda lib, x, y: (
        lib.searchsorted(x.sort(1).values, y) + lib.searchsorted(x[0], y) + lib.bucketize(x, y[:, 0]) + x * y
    ),
    "membership": lambda lib, x, y: (
        lib.isin(x, x[1]) * x + lib.isin(x.round(), y.round(), invert=True) * y + lib.isin(x, y[:0]) * x
    ),
    "solve": lambda lib, x, y: lib.linalg.solve(x @ x.t() + lib.eye(3, dtype=lib.float64), y),
    "decompositions": lambda lib, x, y: lib.linalg.cholesky(x @ x.t() + lib.eye(3, dtype=lib.float64)) @ y,
    "inverse": lambda lib, x, y: lib.linalg.inv(x[:, :3] + 3 * lib.eye(3, dtype=lib.float64)) @ y,
    "linear": lambda lib, x, y: lib.nn.functional.linear(x, y, y[:, 0]),
    "layer_norm": lambda lib, x, y: lib.nn.functional.layer_norm(x, (4,), y[0], y[1]),
    "cross_entropy": lambda lib, x, y: lib.nn.functional.cross_entropy(x, y.argmax(1)),
    "mse_loss": lambda lib, x, y: lib.nn.functional.mse_loss(x, y) + lib.nn.functional.huber_loss(x, y),
    "conv1d": lambda lib, x, y: lib.nn.functional.conv1d(x.unsqueeze(0), y[:, :3].unsqueeze(2)),
    "pooling": lambda lib, x, y: lib.nn.functional.max_pool1d(x, 2) + lib.nn.functional.avg_pool1d(y, 2),
    "attention": lambda lib, x, y: lib.nn.functional.scaled_dot_product_attention(x, y, y),
    "fft": lambda lib, x, y: lib.fft.fft(x, dim=0).abs() * lib.fft.rfft(y, n=6).real,
    "in place": lambda lib, x, y: (x * 1).mul_(y).add_(1).clamp_(min=0),
    "in place through a view": lambda lib, x, y: _write_row(x * 1, y),
    "new tensors": lambda lib, x, y: x.new_ones(4) * y + lib.arange(4) + lib.zeros_like(x),
    "resizing": lambda lib, x, y: (
        lib.nn.functional.interpolate(x.unsqueeze(0), size=2, mode="linear") * y[:, :2]
    ),
    "resizing of images": lambda lib, x, y: lib.nn.functional.interpolate(
        lib.stack([x, y]).unsqueeze(0), size=(2, 5), mode="bilinear", align_corners=True
    ),
    "complex": lambda lib, x, y: (lib.complex(x, y) * 1j).real + lib.complex(x, y).abs(),
}
# Their kernels have no batching rule. They run sample by sample.
LOOPED = {
    "rows added up": lambda lib, x, y: (
        lib.nn.functional.embedding_bag(lib.tensor([0, 2, 1]), x, lib.tensor([0, 2]), mode="sum") * y[:2]
    )
}
EVERY = FUNCTIONS | LOOPED


def _write_row(x, y):
    x[0] = y[1]
    x[:, 1].add_(y[:, 0])
    return x


def batches(lib, *dims):
    numbers = np.random.default_rng(3).uniform(-1, 1, (2, *dims, 3, 4))
    return lib.tensor(numbers[0]), lib.tensor(numbers[1])


def values(result):
    return result.detach().resolve_conj().numpy()


def same(found, wanted):
    np.testing.assert_allclose(values(found), values(wanted), rtol=1e-9, atol=1e-11)


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize("name", EVERY)
def test_vmap_is_a_loop_over_the_samples(name):
    x, y = batches(weft, 5)
    found = weft.vmap(lambda x, y: EVERY[name](weft, x, y))(x, y)
    same(found, weft.stack([EVERY[name](weft, a, b) for a, b in zip(x, y, strict=True)]))
    same(found, torch.vmap(lambda x, y: EVERY[name](torch, x, y))(*batches(torch, 5)))


@pytest.mark.parametrize("name", [name for name in EVERY if "in place" not in name])
def test_one_argument_is_the_same_for_all_samples(name):
    for which in (0, 1):
        in_dims = (0, None) if which else (None, 0)
        x, y = batches(weft, 5)
        given = (x, y[0]) if which else (x[0], y)
        found = weft.vmap(lambda x, y: EVERY[name](weft, x, y), in_dims)(*given)
        pairs = [(a, y[0]) for a in x] if which else [(x[0], b) for b in y]
        same(found, weft.stack([EVERY[name](weft, a, b) for a, b in pairs]))


@pytest.mark.parametrize("name", EVERY)
def test_batches_of_batches(name):
    x, y = batches(weft, 2, 3)
    found = weft.vmap(weft.vmap(lambda x, y: EVERY[name](weft, x, y), (0, None)), (1, 0), out_dims=1)(
        x, y[:, 0].expand(3, 2, 3, 4)[:, 0]
    )
    rows = [[EVERY[name](weft, x[i, j], y[0, 0]) for j in range(3)] for i in range(2)]
    same(found, weft.stack([weft.stack(row) for row in rows]))


@pytest.mark.parametrize("name", EVERY)
def test_gradients_of_samples(name):
    def loss(lib):
        return lambda x, y: EVERY[name](lib, x, y).square().sum()

    def gradients(lib):
        return lib.vmap(lib.func.grad(loss(lib), argnums=(0, 1)))(*batches(lib, 3))

    for found, wanted in zip(gradients(weft), gradients(torch), strict=True):
        same(found, wanted)


@pytest.mark.parametrize("name", EVERY)
def test_gradients_around_vmap(name):
    def gradients(lib):
        x, y = (each.requires_grad_() for each in batches(lib, 3))
        result = lib.vmap(lambda x, y: EVERY[name](lib, x, y).square().sum())(x, y)
        weights = lib.tensor([1.0, -2.0, 0.5], dtype=lib.float64)
        return lib.autograd.grad((result * weights).sum(), (x, y), allow_unused=True)

    for found, wanted in zip(gradients(weft), gradients(torch), strict=True):
        assert (found is None) == (wanted is None)
        if wanted is not None:
            same(found, wanted)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_rules_need_no_loop(name, recwarn):
    weft.vmap(lambda x, y: FUNCTIONS[name](weft, x, y))(*batches(weft, 2))
    assert not [each for each in recwarn if "batching rule" in str(each.message)]


@pytest.mark.parametrize("name", ["products", "softmax", "in place", "indexing"])
def test_gradients_of_gradients(name):
    function = {**FUNCTIONS, "softmax": lambda lib, x, y: (x * y).softmax(1)}[name]

    def gradients(lib):
        inner = lib.func.grad(lambda x, y: function(lib, x, y).square().sum())
        outer = lib.func.grad(lambda x, y: lib.vmap(inner)(x, y).square().sum())
        return outer(*batches(lib, 3))

    same(gradients(weft), gradients(torch))
