"""Layers of both libraries, built and called alike."""

import warnings

import oracle
import torch

import weft

# Calls of constructors, and the shapes of the inputs that each layer is called with ("i5" are integers below 5).
# Grouped by the file that defines the layer.
LAYERS = {
    "linear": [
        ("Identity()", ["2,3"]),
        ("Linear(3, 4)", ["2,3"]),
        ("Linear(3, 4, bias=False)", ["2,5,3"]),
        ("Linear(3, 0)", ["2,3"]),
        ("Bilinear(2, 3, 4)", ["5,2", "5,3"]),
        ("Bilinear(2, 3, 4, bias=False)", ["5,2", "5,3"]),
        ("LazyLinear(4)", ["2,3"]),
        ("LazyLinear(4, bias=False)", ["2,3"]),
    ],
    "conv": [
        ("Conv1d(4, 6, 3)", ["2,4,9"]),
        ("Conv1d(4, 6, 3, padding='same', dilation=2)", ["4,9"]),
        ("Conv1d(4, 6, 4, padding='same', padding_mode='circular')", ["2,4,9"]),
        ("Conv1d(4, 6, 3, padding='valid', bias=False)", ["2,4,9"]),
        ("Conv2d(4, 6, 3)", ["2,4,6,7"]),
        ("Conv2d(4, 6, (3, 2), 2, (1, 0), (1, 2), 2, False, 'reflect')", ["2,4,6,7"]),
        ("Conv2d(4, 6, 3, padding=1, padding_mode='replicate')", ["4,6,7"]),
        ("Conv2d(4, 4, 3, groups=4, padding=[1, 1])", ["2,4,6,7"]),
        ("Conv3d(2, 3, 2, stride=2, padding=1)", ["2,2,5,4,3"]),
        ("ConvTranspose1d(4, 6, 3, 2, 1, 1)", ["2,4,5"]),
        ("ConvTranspose2d(4, 6, 3, 2, 1, 1, 2, False, 2)", ["2,4,5,4"]),
        ("ConvTranspose2d(4, 6, (2, 3))", ["4,5,4"]),
        ("ConvTranspose3d(2, 3, 2, 2)", ["2,2,3,2,3"]),
        ("LazyConv1d(6, 3)", ["2,4,9"]),
        ("LazyConv2d(6, 3, groups=2)", ["2,4,6,7"]),
        ("LazyConv3d(3, 2, bias=False)", ["2,2,5,4,3"]),
        ("LazyConvTranspose1d(6, 3)", ["2,4,5"]),
        ("LazyConvTranspose2d(6, 3, 2, groups=2)", ["4,5,4"]),
        ("LazyConvTranspose3d(3, 2)", ["2,2,3,2,3"]),
    ],
    "pooling": [
        ("MaxPool1d(2)", ["2,3,7"]),
        ("MaxPool2d(3, 2, 1)", ["2,3,7,6"]),
        ("MaxPool2d((2, 3), return_indices=True, ceil_mode=True)", ["2,3,7,6"]),
        ("MaxPool2d(2, 1, dilation=2)", ["3,7,6"]),
        ("MaxPool3d(2)", ["2,3,4,5,6"]),
        ("AvgPool1d(3, 2, 1)", ["2,3,7"]),
        ("AvgPool2d(2, ceil_mode=True, count_include_pad=False)", ["2,3,7,6"]),
        ("AvgPool2d((2, 3), divisor_override=5)", ["2,3,7,6"]),
        ("AvgPool3d(2, 1)", ["2,3,4,5,6"]),
        ("LPPool1d(2, 3)", ["2,3,7"]),
        ("LPPool2d(1.5, (2, 3), 1, True)", ["2,3,7,6"]),
        ("LPPool3d(3, 2)", ["2,3,4,5,6"]),
        ("AdaptiveMaxPool1d(3)", ["2,3,7"]),
        ("AdaptiveMaxPool2d((2, None), return_indices=True)", ["2,3,7,6"]),
        ("AdaptiveMaxPool3d(2)", ["2,3,4,5,6"]),
        ("AdaptiveAvgPool1d(3)", ["2,3,7"]),
        ("AdaptiveAvgPool2d((None, 4))", ["2,3,7,6"]),
        ("AdaptiveAvgPool3d((2, 3, 1))", ["2,3,4,5,6"]),
        ("FractionalMaxPool2d(2, 3)", ["2,3,7,6"]),
        ("FractionalMaxPool3d(2, output_ratio=(0.5, 0.6, 0.7))", ["2,3,6,5,6"]),
    ],
    "normalization": [
        ("BatchNorm1d(3)", ["4,3"]),
        ("BatchNorm1d(3, momentum=None)", ["4,3,2"]),
        ("BatchNorm1d(3, affine=False)", ["4,3,2"]),
        ("BatchNorm2d(3, bias=False)", ["4,3,2,2"]),
        ("BatchNorm2d(3, track_running_stats=False)", ["4,3,2,2"]),
        ("BatchNorm3d(3, 1e-3, 0.3)", ["4,3,2,2,2"]),
        ("SyncBatchNorm(3)", ["4,3,2"]),
        ("LazyBatchNorm1d()", ["4,3"]),
        ("LazyBatchNorm2d(1e-3, bias=False)", ["4,3,2,2"]),
        ("LazyBatchNorm3d(affine=False)", ["4,3,2,2,2"]),
        ("InstanceNorm1d(3)", ["4,3,5"]),
        ("InstanceNorm1d(3, affine=True, track_running_stats=True)", ["3,5"]),
        ("InstanceNorm2d(3, affine=True, bias=False)", ["4,3,2,2"]),
        ("InstanceNorm3d(3)", ["4,3,2,2,2"]),
        ("LazyInstanceNorm1d()", ["4,3,5"]),
        ("LazyInstanceNorm2d(track_running_stats=False)", ["4,3,2,2"]),
        ("LazyInstanceNorm3d()", ["4,3,2,2,2"]),
        ("LayerNorm(5)", ["2,3,5"]),
        ("LayerNorm((3, 5), bias=False)", ["2,3,5"]),
        ("LayerNorm([5], 1e-3, elementwise_affine=False)", ["2,3,5"]),
        ("GroupNorm(2, 4)", ["2,4,5"]),
        ("GroupNorm(2, 4, bias=False)", ["2,4,5"]),
        ("GroupNorm(4, 4, affine=False)", ["2,4,5,2"]),
        ("RMSNorm(5)", ["2,3,5"]),
        ("RMSNorm((3, 5), 1e-3, False)", ["2,3,5"]),
        ("LocalResponseNorm(2)", ["2,5,3,2"]),
        ("CrossMapLRN2d(2, 1.0)", ["2,7,3,2"]),
        ("CrossMapLRN2d(5, 1.0, 0.5, 2)", ["2,7,3,2"]),
    ],
    "padding": [
        (f"{kind}Pad{n}d({p})", [",".join("2345678"[: n + 2])])
        for kind in ("Circular", "Reflection", "Replication", "Zero")
        for n in (1, 2, 3)
        for p in (1, tuple(range(1, 3)) * n)
    ]
    + [
        ("ConstantPad1d(1, 2.5)", ["2,3"]),
        ("ConstantPad2d((1, 0, 2, -1), 2.5)", ["2,3,4"]),
        ("ConstantPad3d(1, 2.5)", ["2,3,4,5"]),
    ],
    "dropout": [
        ("Dropout()", ["4,5"]),
        ("Dropout(0.2, True)", ["4,5"]),
        ("Dropout1d()", ["4,5,2"]),
        ("Dropout2d(0.3)", ["4,5,2,2"]),
        ("Dropout3d()", ["4,5,2,2,2"]),
        ("AlphaDropout()", ["4,5"]),
        ("FeatureAlphaDropout()", ["4,5,2"]),
    ],
    "sparse": [
        ("Embedding(5, 3)", ["i5:2,4"]),
        ("Embedding(5, 3, -2)", ["i5:6"]),
        ("Embedding(5, 3, 1, 0.5, 1.0)", ["i5:6"]),
        ("Embedding(5, 3, scale_grad_by_freq=True)", ["i5:6"]),
        ("EmbeddingBag(5, 3)", ["i5:2,4"]),
        ("EmbeddingBag(5, 3, 0.5, 1.0, mode='sum', padding_idx=2)", ["i5:2,4"]),
        ("EmbeddingBag(5, 3, mode='max')", ["i5:2,4"]),
    ],
    "activation": [
        (call, ["4,6"])
        for call in (
            "Threshold(0.1, 2)", "Threshold(0.1, 2.5, True)", "ReLU()", "ReLU(True)", "RReLU()", "RReLU(0.1, 0.2, True)",
            "Hardtanh()", "Hardtanh(-2, 2, True)", "ReLU6()", "ReLU6(True)", "Sigmoid()", "Hardsigmoid()",
            "Hardsigmoid(True)", "Tanh()", "SiLU()", "SiLU(True)", "Mish()", "Mish(True)", "Hardswish()",
            "Hardswish(True)", "ELU()", "ELU(2, True)", "CELU()", "CELU(2, True)", "SELU()", "SELU(True)", "GLU()",
            "GLU(0)", "GELU()", "GELU('tanh')", "Hardshrink()", "LeakyReLU()", "LeakyReLU(0.2, True)", "LogSigmoid()",
            "Softplus()", "Softplus(2, 1)", "Softshrink()", "PReLU()", "PReLU(6, 0.1)", "Softsign()", "Tanhshrink()",
            "Softmin(1)", "Softmax(-1)", "Softmax()", "LogSoftmax(0)", "LogSoftmax()",
        )
    ]
    + [("Softmax2d()", ["2,3,4,5"])],
    "shape": [
        ("Flatten()", ["2,3,4"]),
        ("Flatten(0, 1)", ["2,3,4"]),
        ("Unflatten(1, (2, 3))", ["4,6"]),
        ("Unflatten(-1, (2, -1))", ["4,6"]),
        ("Fold((4, 5), (2, 3), padding=(1, 0))", ["2,12,15"]),
        ("Unfold((2, 3), 1, 1, 2)", ["2,3,5,6"]),
        ("PixelShuffle(2)", ["2,8,3,3"]),
        ("PixelUnshuffle(2)", ["2,3,4,6"]),
        ("ChannelShuffle(2)", ["2,6,3,3"]),
        ("Upsample(5)", ["2,3,4"]),
        ("Upsample(scale_factor=2, mode='bilinear', align_corners=True)", ["2,3,4,5"]),
        ("Upsample(scale_factor=(2, 1.5), mode='bicubic')", ["2,3,4,6"]),
        ("UpsamplingNearest2d(scale_factor=2)", ["2,3,4,5"]),
        ("UpsamplingBilinear2d((3, 7))", ["2,3,4,5"]),
        ("PairwiseDistance()", ["4,5", "4,5"]),
        ("PairwiseDistance(1, keepdim=True)", ["4,5", "4,5"]),
        ("CosineSimilarity()", ["4,5", "4,5"]),
        ("CosineSimilarity(dim=0, eps=1e-3)", ["4,5", "4,5"]),
    ],
    "loss": [
        ("L1Loss()", ["3,4", "3,4"]),
        ("MSELoss()", ["3,4", "3,4"]),
        ("MSELoss(reduction='sum')", ["3,4", "3,4"]),
        ("MSELoss(size_average=False)", ["3,4", "3,4"]),
        ("L1Loss(reduce=False)", ["3,4", "3,4"]),
        ("SmoothL1Loss(beta=0.5)", ["3,4", "3,4"]),
        ("HuberLoss('none', 0.7)", ["3,4", "3,4"]),
        ("NLLLoss()", ["3,5", "i5:3"]),
        ("NLLLoss(torch.arange(5.0), ignore_index=1)", ["3,5,2", "i5:3,2"]),
        ("NLLLoss2d()", ["3,5,2,2", "i5:3,2,2"]),
        ("CrossEntropyLoss()", ["3,5", "i5:3"]),
        ("CrossEntropyLoss(torch.arange(5.0), ignore_index=1, label_smoothing=0.1)", ["3,5", "i5:3"]),
        ("CrossEntropyLoss(reduction='none')", ["3,5", "3,5"]),
        ("LinearCrossEntropyLoss(4, 5)", ["3,4", "i5:3"]),
        ("LinearCrossEntropyLoss(4, 5, out_features=(2, 3), bias=True)", ["3,4", "i5:3,2,3"]),
        ("LinearCrossEntropyLoss(4, 5, options=torch.nn.LinearCrossEntropyOptions())", ["3,4", "i5:3"]),
        ("PoissonNLLLoss()", ["3,4", "3,4"]),
        ("PoissonNLLLoss(full=True, eps=1e-3)", ["3,4", "p:3,4"]),
        ("GaussianNLLLoss(full=True)", ["3,4", "3,4", "p:3,4"]),
        ("KLDivLoss(reduction='batchmean')", ["3,4", "p:3,4"]),
        ("KLDivLoss(log_target=True)", ["3,4", "3,4"]),
        ("BCELoss()", ["p:3,4", "p:3,4"]),
        ("BCELoss(torch.arange(4.0))", ["p:3,4", "p:3,4"]),
        ("BCEWithLogitsLoss(pos_weight=torch.arange(4.0))", ["3,4", "p:3,4"]),
        ("CTCLoss()", ["6,2,5", "i5:2,3", "i5:2", "i3:2"]),
        ("HingeEmbeddingLoss(0.5)", ["3,4", "3,4"]),
        ("SoftMarginLoss()", ["3,4", "3,4"]),
        ("MultiLabelMarginLoss()", ["3,5", "i5:3,5"]),
        ("MultiLabelSoftMarginLoss(torch.arange(4.0))", ["3,4", "p:3,4"]),
        ("MultiMarginLoss(2, 0.5, torch.arange(5.0))", ["3,5", "i5:3"]),
        ("CosineEmbeddingLoss(0.2)", ["3,4", "3,4", "s:3"]),
        ("MarginRankingLoss(0.2)", ["3,4", "3,4", "s:3,4"]),
        ("TripletMarginLoss(swap=True)", ["3,4", "3,4", "3,4"]),
        ("TripletMarginLoss(0.5, 1)", ["3,4", "3,4", "3,4"]),
        ("TripletMarginWithDistanceLoss(margin=2.0)", ["3,4", "3,4", "3,4"]),
        ("TripletMarginWithDistanceLoss(distance_function=torch.nn.CosineSimilarity())", ["3,4", "3,4", "3,4"]),
        ("AdaptiveLogSoftmaxWithLoss(8, 5, [1, 3], 2.0)", ["6,8", "i5:6"]),
        ("AdaptiveLogSoftmaxWithLoss(8, 5, [2], head_bias=True)", ["8", "i5:"]),
    ],
    "recurrent": [
        ("RNN(3, 4)", ["5,2,3"]),
        ("RNN(3, 4, 2, 'relu', False, True, 0.3, True)", ["2,5,3"]),
        ("RNN(3, 4, bidirectional=True)", ["5,3", "2,4"]),
        ("LSTM(3, 4)", ["5,2,3"]),
        ("LSTM(3, 4, 2, batch_first=True, dropout=0.5)", ["2,5,3"]),
        ("LSTM(3, 4, 2, bidirectional=True, proj_size=2)", ["5,2,3"]),
        ("LSTM(3, 4, bias=False, proj_size=1)", ["5,3"]),
        ("GRU(3, 4)", ["5,2,3", "1,2,4"]),
        ("GRU(3, 4, 3, False, True, 0.2, True)", ["2,5,3"]),
        ("RNNCell(3, 4)", ["2,3"]),
        ("RNNCell(3, 4, False, 'relu')", ["2,3", "2,4"]),
        ("LSTMCell(3, 4)", ["2,3"]),
        ("LSTMCell(3, 4, bias=False)", ["3"]),
        ("GRUCell(3, 4)", ["2,3", "2,4"]),
        ("GRUCell(3, 4, False)", ["3", "4"]),
    ],
    "transformer": [
        ("MultiheadAttention(8, 2)", ["5,2,8", "4,2,8", "4,2,8"]),
        ("MultiheadAttention(8, 2, 0.3, False, True, True, batch_first=True)", ["2,5,8", "2,4,8", "2,4,8"]),
        ("MultiheadAttention(8, 4, kdim=3, vdim=5)", ["5,2,8", "4,2,3", "4,2,5"]),
        ("MultiheadAttention(8, 1, add_bias_kv=True)", ["5,8", "4,8", "4,8"]),
        ("TransformerEncoderLayer(8, 2, 16)", ["5,2,8"]),
        ("TransformerEncoderLayer(8, 2, 16, 0.0, 'gelu', 1e-3, True, True, False)", ["2,5,8"]),
        ("TransformerEncoderLayer(8, 2, 16, activation=torch.tanh)", ["5,8"]),
        ("TransformerDecoderLayer(8, 2, 16)", ["5,2,8", "4,2,8"]),
        ("TransformerDecoderLayer(8, 2, 16, 0.0, 'gelu', 1e-3, True, True, False)", ["2,5,8", "2,4,8"]),
        ("TransformerEncoder(torch.nn.TransformerEncoderLayer(8, 2, 16), 2)", ["5,2,8"]),
        ("TransformerDecoder(torch.nn.TransformerDecoderLayer(8, 2, 16), 2, torch.nn.LayerNorm(8))", ["5,2,8", "4,2,8"]),
        ("Transformer(8, 2, 1, 2, 16)", ["5,2,8", "4,2,8"]),
        ("Transformer(8, 2, 1, 1, 16, batch_first=True, norm_first=True, bias=False)", ["2,5,8", "2,4,8"]),
    ],
}  # fmt: skip

CALLS = [(call, shapes) for calls in LAYERS.values() for call, shapes in calls]


def build(library, call: str, seed: int = 3):
    """The layer of `call`, its parameters drawn under `seed`."""
    library.manual_seed(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return eval(f"torch.nn.{call}", {"torch": library})


def inputs_of(shapes: list[str], dtype=torch.float32) -> list[torch.Tensor]:
    """An input for each shape: normal, or integers ("i5:"), in (0, 1) ("p:") or signs ("s:")."""
    generator = torch.Generator().manual_seed(5)
    found = []
    for text in shapes:
        kind, _, sizes = text.rpartition(":")
        shape = [int(size) for size in sizes.split(",") if size]
        if kind.startswith("i"):
            found.append(torch.randint(1, int(kind[1:]), shape, generator=generator))
        elif kind == "p":
            found.append(torch.rand(shape, generator=generator, dtype=dtype))
        elif kind == "s":
            found.append(torch.randint(0, 2, shape, generator=generator).to(dtype) * 2 - 1)
        else:
            found.append(torch.randn(shape, generator=generator, dtype=dtype))
    return found


def call(library, layer, inputs: list[torch.Tensor], seed: int = 9):
    own = [oracle.to_weft(each) if library is weft else each.clone() for each in inputs]
    library.manual_seed(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return layer(*own)


def gradients(library, call: str, shapes: list[str]) -> dict:
    """The gradients of inputs and parameters of the layer's outputs times random numbers."""
    layer = build(library, call)
    inputs = [oracle.to_weft(each) if library is weft else each for each in inputs_of(shapes)]
    # A loss has no derivative by its targets.
    leaves = inputs[:1] if call.startswith("SoftMarginLoss") else inputs
    leaves = [each.requires_grad_() for each in leaves if each.is_floating_point()]
    library.manual_seed(9)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Layers that work in place may not write into leaves.
        result = layer(*[each * 1 if each.is_floating_point() else each for each in inputs])
    generator = torch.Generator().manual_seed(1)
    for output in _tensors(result):
        if output.requires_grad:
            factors = torch.randn(tuple(output.shape), generator=generator)
            (output * (oracle.to_weft(factors) if library is weft else factors)).sum().backward(
                retain_graph=True
            )
    found = {f"input {place}": leaf.grad for place, leaf in enumerate(leaves)}
    return found | {name: parameter.grad for name, parameter in layer.named_parameters()}


def _tensors(result):
    if isinstance(result, (tuple, list)):
        return [tensor for each in result for tensor in _tensors(each)]
    return [] if result is None else [result]


def same_bits(got, expected) -> None:
    assert oracle.name_of(got.dtype) == oracle.name_of(expected.dtype)
    assert got.requires_grad == expected.requires_grad
    assert torch.equal(oracle.to_torch(got.detach()), expected.detach())


def same_state(got, expected) -> None:
    mine, theirs = got.state_dict(), expected.state_dict()
    assert list(mine) == list(theirs)
    for name, value in theirs.items():
        if isinstance(value, torch.nn.UninitializedParameter | torch.nn.UninitializedBuffer):
            assert type(mine[name]).__name__ == type(value).__name__
        else:
            same_bits(mine[name], value)


def close(got, expected, rtol=1e-5, atol=2e-6) -> None:
    if isinstance(expected, (tuple, list)):
        assert len(got) == len(expected)
        for one, other in zip(got, expected):
            close(one, other, rtol, atol)
    elif expected is None:
        assert got is None
    else:
        assert oracle.name_of(got.dtype) == oracle.name_of(expected.dtype)
        torch.testing.assert_close(
            oracle.to_torch(got.detach()), expected.detach(), rtol=rtol, atol=atol, equal_nan=True
        )
