"""Functions of many kinds, exported to ONNX and compared with onnxruntime."""

import pytest
from onnx_checking import Function, check

import weft
from weft import nn
from weft.nn import functional as F

X = weft.linspace(-3, 3, 24).reshape(2, 3, 4)
IMAGES = weft.sin(weft.arange(2 * 3 * 7 * 5.0)).reshape(2, 3, 7, 5)
INDEX = weft.tensor([[1, 0, 2], [2, 2, 1]])


def mutated(x):
    y = x.clone()
    y[y > 1] = 0.0
    y[0, 1:, ::2] = 7
    y[weft.tensor([1, 0]), weft.tensor([0, 2])] = weft.arange(4.0)
    y += 1
    y[..., -1].add_(0)
    z = F.relu(x.clone(), inplace=True)
    z.mul_(2).clamp_(max=3)
    return z


def assigned(x):
    y = x.clone()
    y[y > 1] = 0.0
    y[0, 1:, ::2] = 7
    y[:, 0] = x[:, 1]
    y[weft.tensor([1, 0]), weft.tensor([0, 2])] = weft.arange(4.0)
    y[x < -2] = x[x < -2] * 2
    y += 1
    return y


FUNCTIONS = {
    "unequal windows": (lambda x: (F.adaptive_avg_pool2d(x, (3, 2)), F.adaptive_max_pool2d(x, 3)), IMAGES),
    "patches": (lambda x: (F.unfold(x, (3, 2), padding=1, stride=2, dilation=(1, 2)), x.unfold(2, 3, 2)), IMAGES),
    "fold": (lambda x: F.fold(F.unfold(x, 3, padding=1), (7, 5), 3, padding=1), IMAGES),
    "meshgrid": (lambda x: (*weft.meshgrid(x[0, 0], x[0, :, 0], indexing="ij"),
                            *weft.meshgrid(x[0, 0], x[0, :, 0], indexing="xy")), X),
    "nonzero": (lambda x: (x.nonzero(), *weft.nonzero(x > 1, as_tuple=True), x[x > 0], x.masked_select(x < 0)), X),
    "indices": (lambda x: (x[:, INDEX], x[:, INDEX, INDEX], x[INDEX - 1, INDEX], x[0:1, x[0, :, 0] < 0]), X),
    "assignment": (assigned, X),
    "in place": (mutated, X),
    "index_put": (lambda x: (x.index_put((INDEX[:, :2] % 2,), x[0], accumulate=True),
                             x.index_add(1, INDEX[0], x), x.index_fill(2, INDEX[1], 9.0)), X),
    "scatter": (lambda x: (x[:, :, 0].scatter(1, INDEX, x[:, :, 1]), x[:, :, 0].scatter(1, INDEX, 5.0),
                           x[:, :, 0].scatter_reduce(1, INDEX[:, :1], x[:, :1, 2], "amax")), X),
    "distances": (lambda x: (weft.cdist(x, x + 1), weft.cdist(x, x * 2, p=1.0), F.cosine_similarity(x, x + 1),
                             F.pairwise_distance(x, x + 1)), X),
    "elements": (lambda x: (x.sigmoid().logit(), x.clamp(0, 1).logit(eps=0.1), (x / 0).nan_to_num(nan=1.0, posinf=2.0),
                            x.round(decimals=1), weft.atan2(x, x.flip(2)), weft.hypot(x, x + 1), weft.isfinite(x / 0)), X),
    "trilinear": (lambda x: F.interpolate(x[None], size=(3, 9, 4), mode="trilinear", align_corners=False), IMAGES),
    "affine_grid": (lambda x: F.grid_sample(x, F.affine_grid(x[:, :2, 0, :3], [2, 3, 4, 6], align_corners=False),
                                            align_corners=False), IMAGES),
    "shuffles": (lambda x: (F.pixel_unshuffle(x[:, :, :6, :4], 2), F.channel_shuffle(x, 3)), IMAGES),
    "shrinking": (lambda x: (F.softshrink(x), F.hardshrink(x), F.softmin(x, 1), F.rrelu(x), F.logsigmoid(x)), X),
    "stacking": (lambda x: (weft.hstack([x, x]), weft.vstack([x[0, 0], x[0, 1]]), x.repeat_interleave(2, 1),
                            x.diagonal(0, 1, 2), weft.outer(x[0, 0], x[0, :, 1])), X),
    "counting": (lambda x: (weft.count_nonzero(x > 0), *weft.var_mean(x, 1), *weft.aminmax(x, dim=2),
                            weft.isin(INDEX, weft.tensor([1, 5]))), X),
    "made of sizes": (lambda x: weft.eye(3, 4) + x + weft.linspace(0, 1, 4) + weft.tril(weft.ones(3, 4)), X),
    "normed": (lambda x: (F.local_response_norm(x, 3), F.lp_pool2d(x, 2, 2), F.rms_norm(x, (5,))), IMAGES),
    "numbers": (lambda x: x * x.shape[1] ** 0.5 / (x.shape[0] / 2), X),
}  # fmt: skip


@pytest.mark.parametrize("opset", [18, 23])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name, opset):
    function, x = FUNCTIONS[name]
    check(Function(function), x, opset_version=opset)


@pytest.mark.parametrize("name", ["assignment", "nonzero", "elements", "numbers", "meshgrid"])
def test_functions_of_a_dynamic_batch(name):
    function, x = FUNCTIONS[name]
    batch = weft.export.Dim("batch", min=2)
    check(Function(function), x, shapes=({0: batch},), more=[(weft.cat([x, x * 0.5]),)])


@pytest.mark.parametrize("kind", [nn.LSTMCell, nn.GRUCell, nn.RNNCell])
def test_cells(kind):
    cell = kind(4, 5)
    if kind is nn.LSTMCell:
        check(cell, weft.randn(3, 4), (weft.randn(3, 5), weft.randn(3, 5)))
    else:
        check(cell, weft.randn(3, 4), weft.randn(3, 5))


def test_bilinear_layers():
    check(nn.Bilinear(3, 4, 5), weft.randn(2, 3), weft.randn(2, 4))


def test_views_that_went_stale_are_refused():
    def stale(x):
        y = x.clone()
        y.view(-1).add_(1)
        return y

    with pytest.raises(weft.onnx.OnnxExporterError, match="shares memory"):
        weft.onnx.export(Function(stale), (X,))
