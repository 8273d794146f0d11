"""Models exported to ONNX give weft's numbers when onnxruntime runs them."""

import pytest
from onnx_checking import Function, check

import weft
from weft import nn
from weft.export import Dim
from weft.nn import functional as F

X = weft.linspace(-3, 3, 24).reshape(2, 3, 4)
I = weft.tensor([[1, 0, 2], [2, 2, 1]])  # noqa: E741

FUNCTIONS = {
    "arithmetic": lambda x: (x + 1) * 2 - x / 3 + x**2 - (3 - x) % 2,
    "reversed": lambda x: weft.rsub(x, 3, alpha=2) + 3 - x,
    "rounded quotients": lambda x: (
        weft.div(x, 0.7, rounding_mode="trunc"),
        weft.div(x, 0.7, rounding_mode="floor"),
        weft.div((x * 9).long(), 4, rounding_mode="trunc"),
    ),
    "zeros of two dtypes": lambda x: (x.long() + 0, x.double() * 0.0 + x),
    "sizes": lambda x: x.view(x.shape[0], -1) * x.size(1),
    "unary": lambda x: (
        x.exp() + x.abs().sqrt() + x.sigmoid() + x.tanh() + x.erf() + x.sin().cos() + x.floor() + x.sign()
    ),
    "logs": lambda x: (
        (x.abs() + 1).log() + (x.abs() + 1).log2() + x.abs().log1p() + x.expm1() + (x.abs() + 1).rsqrt()
    ),
    "activations": lambda x: (
        F.relu(x) + F.gelu(x) + F.silu(x) + F.leaky_relu(x, 0.1) + F.elu(x) + F.softplus(x) + F.mish(x)
    ),
    "more activations": lambda x: (
        F.hardswish(x) + F.hardsigmoid(x) + F.relu6(x) + F.selu(x) + F.celu(x) + F.hardtanh(x)
    ),
    "gelu tanh": lambda x: F.gelu(x, approximate="tanh"),
    "comparison": lambda x: weft.where((x > 0) & (x < 2) | (x == -3), x, -x).masked_fill(x != x, 0.0),
    "integers": lambda x: (x * 10).long() // 3 + (x * 10).int() % 4,
    "reductions": lambda x: (
        x.sum(),
        x.mean(1),
        x.amax((0, 2)),
        x.max(1),
        x.argmin(-1),
        x.var(1),
        x.std(),
        x.norm(),
        x.prod(2),
    ),
    "softmax": lambda x: (x.softmax(1), F.log_softmax(x, -1), x.logsumexp(0)),
    "shapes": lambda x: (
        x.transpose(0, 2),
        x.permute(2, 0, 1),
        x.flatten(1),
        x.unsqueeze(1).squeeze(1),
        x.expand(2, 3, 4),
    ),
    "joining": lambda x: (weft.cat([x, x * 2], 1), weft.stack([x, x + 1], -1), x.repeat(2, 1, 1)),
    "splitting": lambda x: [
        a * (i + 1) for i, a in enumerate((*x.chunk(2, -1), *x.split(1, 0), *x.unbind(1)))
    ],
    "indexing": lambda x: (
        x[0],
        x[:, 1:],
        x[..., ::2],
        x[:, None, -1],
        x[weft.tensor([1, 0, 1])],
        x[:, :, 1:3],
    ),
    "gather": lambda x: x[:, :, 0].gather(1, I),
    "products": lambda x: (x @ x.transpose(1, 2), weft.einsum("bij,bkj->ik", x, x), F.linear(x, x[0])),
    "clamp": lambda x: x.clamp(-1, 1) + x.clamp(min=0.5) + weft.maximum(x, -x) + x.clamp_max(1),
    "tril": lambda x: x.tril() + x.triu(1) + weft.ones_like(x) + weft.zeros(2, 3, 4) + weft.arange(4),
    "ordering": lambda x: (
        x.topk(2).values,
        x.sort(descending=True).values,
        x.argsort(1),
        x.cumsum(1),
        x.flip(0, 2),
        x.roll(1, 2),
    ),
    "padding": lambda x: (
        F.pad(x, (1, 2)),
        F.pad(x, (1, 1), mode="reflect"),
        F.pad(x, (0, 0, 1, 0), value=3.0),
    ),
    "embedding": lambda x: F.embedding(I, x[0]) + F.one_hot(I, 4).float(),
    "causal attention": lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True),
    "logic": lambda x: (
        (x > 0).any(1),
        (x > 0).all(),
        ~(x > 0),
        weft.isnan(x),
        weft.logical_and(x > 0, x < 1),
    ),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name):
    check(Function(FUNCTIONS[name]), X)


def convolutions(x):
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 8, 3, padding="same"),
        nn.GroupNorm(2, 8), nn.ConvTranspose2d(8, 4, 2, stride=2), nn.InstanceNorm2d(4), nn.AvgPool2d(2), nn.AdaptiveAvgPool2d(1),
        nn.Flatten(), nn.Linear(4, 5), nn.Dropout(), nn.LayerNorm(5), nn.PReLU(), nn.Softmax(-1),
    )  # fmt: skip


def test_a_convolutional_net_with_a_dynamic_batch():
    model = convolutions(None)
    batch = {"input": {0: Dim("batch")}}
    program = check(model, weft.randn(2, 3, 16, 16), shapes=batch, more=[(weft.randn(5, 3, 16, 16),)])
    graph = program.model_proto.graph
    assert graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"
    first, second = graph.output[0].type.tensor_type.shape.dim
    assert first.dim_param and second.dim_value == 5
    assert {"0.weight", "11.bias"} <= {each.name for each in graph.initializer}


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize(
    "options", [{}, {"num_layers": 2, "bidirectional": True, "batch_first": True}, {"bias": False}]
)
def test_recurrent_layers(kind, options):
    check(getattr(nn, kind)(4, 6, **options), weft.randn(5, 3, 4))


def test_a_transformer_with_dynamic_batch_and_length():
    model = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, activation="gelu"), 2
    )
    shapes = ({0: Dim("batch"), 1: Dim("time")},)
    check(model, weft.randn(2, 5, 16), shapes=shapes, more=[(weft.randn(3, 7, 16),)])


def test_a_language_model():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.places = nn.Embedding(20, 16), nn.Embedding(32, 16)
            self.attend, self.norm, self.head = nn.Linear(16, 48), nn.LayerNorm(16), nn.Linear(16, 20)

        def forward(self, ids):
            batch, length = ids.shape
            x = self.tokens(ids) + self.places(weft.arange(length))
            q, k, v = self.attend(self.norm(x)).view(batch, length, 3, 4, 4).permute(2, 0, 3, 1, 4)
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.head(x + y.transpose(1, 2).reshape(batch, length, 16))

    shapes = {"ids": {0: Dim("batch"), 1: Dim("time", max=32)}}
    ids = weft.randint(0, 20, (2, 5))
    check(Model(), ids, shapes=shapes, more=[(weft.randint(0, 20, (3, 9)),)])


def test_images_are_resized():
    for mode, aligned in (("nearest", None), ("bilinear", False), ("bilinear", True), ("bicubic", False)):
        check(
            Function(lambda x, m=mode, a=aligned: F.interpolate(x, size=(9, 5), mode=m, align_corners=a)),
            weft.rand(1, 2, 6, 7),
        )
    check(Function(lambda x: F.interpolate(x, scale_factor=2)), weft.rand(1, 2, 6, 7))
    check(Function(lambda x: F.pixel_shuffle(x, 2)), weft.rand(1, 8, 3, 3))


def test_names_files_and_axes(tmp_path):
    import onnx

    path = tmp_path / "model.onnx"
    weft.onnx.export(nn.Linear(3, 2), (weft.ones(4, 3),), path, input_names=["x"], output_names=["y"],
                     dynamic_axes={"x": {0: "n"}, "y": {0: "n"}}, opset_version=18)  # fmt: skip
    model = onnx.load(path)
    assert (model.graph.input[0].name, model.graph.output[0].name) == ("x", "y")
    assert model.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "n"
    assert [path.name for path in tmp_path.iterdir()] == ["model.onnx"]


def test_what_has_no_translation_is_named():
    with pytest.raises(weft.onnx.errors.UnsupportedOperatorError, match="digamma"):
        weft.onnx.export(Function(lambda x: weft.digamma(x)), (X,))
    with pytest.raises(weft.onnx.OnnxExporterError, match="adaptive"):
        shapes = ({2: Dim("height")},)
        weft.onnx.export(nn.AdaptiveAvgPool2d(3), (weft.ones(1, 1, 7, 7),), dynamic_shapes=shapes)


def test_a_model_that_trains_goes_on_training():
    model = nn.Sequential(nn.Linear(3, 3), nn.Dropout(), nn.BatchNorm1d(3).eval())
    weft.onnx.export(model, (weft.ones(2, 3),))
    assert [module.training for module in model.modules()] == [True, True, True, False]
