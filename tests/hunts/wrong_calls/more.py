"""Calls that PyTorch's operator database leaves out: indexing, layers with state, the rest of `nn.functional`."""

from __future__ import annotations

import numpy as np

from .calls import Array, Call, Named, array_of


def _floats(*shape: int, grad: bool = False, seed: int = 0, low: float = -1.0) -> Array:
    values = np.random.default_rng(seed).uniform(low, 1, shape).astype(np.float32)
    return array_of(values, "float32", grad)


def _grad(*shape: int) -> Array:
    return _floats(*shape, grad=True)


def _ints(*values: int, shape: tuple[int, ...] | None = None, dtype: str = "int64") -> Array:
    found = np.array(values, dtype)
    return array_of(found if shape is None else found.reshape(shape), dtype)


def _bools(*values: int, shape: tuple[int, ...] | None = None) -> Array:
    return _ints(*values, shape=shape, dtype="bool")


def _indexing() -> list[Call]:
    indices = (
        1, (0, 1), (slice(None), 2), slice(1, 3), (Ellipsis, 1), (None, slice(0, 4, 2)), _ints(0, 2, 1),
        (_ints(0, 2), _ints(1, 3)), (slice(None), _ints(0, 0, 3)), (_ints(0, 1, shape=(2, 1)), _ints(1, 2, 3)),
        _bools(1, 0, 1), (slice(None), _bools(1, 0, 1, 1)), _bools(*[1, 0] * 6, shape=(3, 4)), [0, 2],
        (1, _ints(0, 3)), (_ints(2), slice(None, None, 2)), (_ints(0, 1, 1, dtype="uint8"),), True, (_ints(-1, -3), -1),
    )  # fmt: skip
    reads = [Call("Tensor.__getitem__", (_grad(3, 4), index)) for index in indices]
    values = (2.0, _floats(1), _floats(), _floats(4))
    writes = [
        Call("Tensor.__setitem__", (_floats(3, 4), index, value)) for index in indices for value in values[:2]
    ]
    return reads + writes


def _recurrent() -> dict[str, list[Call]]:
    found: dict[str, list[Call]] = {}
    x, h = _grad(5, 2, 3), _floats(2, 2, 4)
    for name in ("LSTM", "GRU", "RNN"):
        state = (h, h) if name == "LSTM" else h
        both = _floats(4, 2, 4)
        found[f"nn.{name}"] = [
            Call(f"nn.{name}", (3, 4, 2), {}, (x, state)),
            Call(f"nn.{name}", (3, 4), {"num_layers": 2, "batch_first": True}, (_floats(2, 5, 3),)),
            Call(f"nn.{name}", (3, 4, 2), {"bidirectional": True, "dropout": 0.0},
                 (x, (both, both) if name == "LSTM" else both)),
            Call(f"nn.{name}", (3, 4), {"bias": False}, (_floats(5, 3),)),
        ]  # fmt: skip
        cell = (_floats(2, 4), _floats(2, 4)) if name == "LSTM" else _floats(2, 4)
        found[f"nn.{name}Cell"] = [Call(f"nn.{name}Cell", (3, 4), {}, (_grad(2, 3), cell))]
    return found


def _modules() -> dict[str, list[Call]]:
    image = _grad(2, 4, 6, 6)
    rows = {
        "Linear": [((3, 4), {}, (_grad(2, 3),))],
        "Bilinear": [((3, 4, 5), {}, (_grad(2, 3), _floats(2, 4)))],
        "Conv1d": [((4, 6, 3), {"padding": 1, "groups": 2}, (_grad(2, 4, 7),))],
        "Conv2d": [((4, 6, 3), {"stride": 2, "dilation": 1, "padding": (1, 1)}, (image,)),
                   ((4, 4, 3), {"groups": 4, "padding": 1}, (image,)),
                   ((4, 4, 3), {"padding": 2, "padding_mode": "circular"}, (image,))],
        "ConvTranspose2d": [((4, 6, 3), {"stride": 2, "output_padding": 1}, (image,))],
        "BatchNorm2d": [((4,), {"eps": 1e-5, "momentum": 0.1}, (image,))],
        "InstanceNorm2d": [((4,), {"affine": True, "track_running_stats": True}, (image,))],
        "GroupNorm": [((2, 4), {"eps": 1e-5}, (image,))],
        "LayerNorm": [(((6, 6),), {"eps": 1e-5}, (image,))],
        "RMSNorm": [((6,), {}, (image,))],
        "LocalResponseNorm": [((2,), {"alpha": 1e-4, "beta": 0.75, "k": 1.0}, (image,))],
        "CrossMapLRN2d": [((2,), {}, (image,))],
        "Embedding": [((5, 3), {"padding_idx": 1}, (_ints(0, 4, 1),)), ((5, 3), {"max_norm": 0.5}, (_ints(0, 4),))],
        "EmbeddingBag": [((5, 3), {"mode": "sum"}, (_ints(0, 4, 1, 2), _ints(0, 2)))],
        "MultiheadAttention": [((4, 2), {"batch_first": True}, (_grad(2, 3, 4), _floats(2, 5, 4), _floats(2, 5, 4)))],
        "TransformerEncoderLayer": [((4, 2, 8), {"dropout": 0.0}, (_grad(3, 2, 4),))],
        "Upsample": [((), {"scale_factor": 2, "mode": "bilinear"}, (image,)), (((5, 5),), {}, (image,))],
        "PixelShuffle": [((2,), {}, (image,))],
        "ChannelShuffle": [((2,), {}, (image,))],
        "Fold": [(((4, 4), (2, 2)), {}, (_grad(1, 8, 9),))],
        "Unfold": [(((2, 2),), {"padding": 1}, (image,))],
        "MaxPool2d": [((2,), {"return_indices": True}, (image,))],
        "AdaptiveAvgPool2d": [(((2, 3),), {}, (image,))],
        "FractionalMaxPool2d": [((2,), {"output_size": (3, 3)}, (image,))],
        "LPPool2d": [((2, 2), {}, (_floats(2, 4, 6, 6, low=0.1),))],
        "ReflectionPad2d": [((1,), {}, (image,))],
        "ZeroPad2d": [(((1, 0, 2, 1),), {}, (image,))],
        "AdaptiveLogSoftmaxWithLoss": [((4, 10, (3, 6)), {}, (_grad(3, 4), _ints(0, 5, 9)))],
        "Softmax": [((1,), {}, (image,))],
        "Threshold": [((0.1, 2.0), {}, (image,))],
        "PReLU": [((4,), {"init": 0.3}, (image,))],
        "Flatten": [((1, 2), {}, (image,))],
        "Unflatten": [((1, (2, 2)), {}, (image,))],
        "CosineSimilarity": [((1,), {"eps": 1e-6}, (_grad(2, 3), _floats(2, 3)))],
        "PairwiseDistance": [((2.0,), {"eps": 1e-6}, (_grad(2, 3), _floats(2, 3)))],
    }  # fmt: skip
    return {
        f"nn.{name}": [Call(f"nn.{name}", args, kwargs, inputs) for args, kwargs, inputs in cases]
        for name, cases in rows.items()
    }


def _functions() -> dict[str, list[Call]]:
    x, image, index = _grad(3, 4), _grad(2, 4, 6, 6), _ints(0, 2, 1)
    weight, heads = _floats(12, 4), (_grad(3, 2, 4), _floats(5, 2, 4), _floats(5, 2, 4))
    attention = {
        "embed_dim_to_check": 4, "num_heads": 2, "in_proj_weight": weight, "in_proj_bias": _floats(12),
        "bias_k": None, "bias_v": None, "add_zero_attn": False, "dropout_p": 0.0, "out_proj_weight": _floats(4, 4),
        "out_proj_bias": _floats(4), "attn_mask": _bools(*[0] * 15, shape=(3, 5)),
        "key_padding_mask": _bools(*[0] * 10, shape=(2, 5)),
    }  # fmt: skip
    q, mask = _grad(2, 2, 4, 3), _floats(4, 5)
    k = _floats(2, 2, 5, 3)
    rows: dict[str, list[tuple]] = {
        "nn.functional.scaled_dot_product_attention": [
            ((q, k, k), {"attn_mask": mask}), ((q, k, k), {"is_causal": True, "scale": 0.5}),
            ((_floats(2, 2, 4, 3), k, k), {"attn_mask": _bools(*[1] * 20, shape=(4, 5))}),
            ((_floats(4, 3), _floats(5, 3), _floats(5, 3)), {"attn_mask": mask}),
            ((_floats(2, 4, 4, 3), k, k), {"enable_gqa": True}),
            ((_floats(2, 2, 4, 3), k, k), {"attn_mask": _floats(2, 1, 4, 5), "dropout_p": 0.0}),
        ],
        "nn.functional.multi_head_attention_forward": [(heads, attention)],
        "nn.functional.fold": [((_grad(1, 8, 9), (4, 4), (2, 2)), {"padding": 0, "stride": 1})],
        "nn.functional.lp_pool1d": [((_floats(2, 3, 8, low=0.1), 2.0, 2), {"stride": 2})],
        "nn.functional.lp_pool2d": [((_floats(2, 3, 8, 8, low=0.1), 2.0, 2), {})],
        "nn.functional.max_unpool2d": [((_floats(1, 1, 2, 2), _ints(0, 3, 8, 15, shape=(1, 1, 2, 2)), 2), {})],
        "nn.functional.gumbel_softmax": [((x, 1.0), {"hard": True, "dim": -1})],
        "nn.functional.fractional_max_pool2d": [((image, 2), {"output_size": (3, 3)})],
        "nn.functional.adaptive_max_pool2d": [((image, (2, 3)), {"return_indices": True})],
        "nn.functional.embedding_bag": [
            ((_ints(0, 2, 1, 1), _grad(3, 4), _ints(0, 2)), {"mode": "sum", "padding_idx": 1}),
            ((_ints(0, 2, 1, 1, shape=(2, 2)), _grad(3, 4)), {"mode": "max"}),
            ((_ints(0, 2, 1, 1), _grad(3, 4), _ints(0, 2, 4)), {"include_last_offset": True}),
        ],
        "nn.functional.one_hot": [((index, 3), {})],
        "nn.functional.ctc_loss": [
            ((_floats(6, 2, 4), _ints(1, 2, 3, 1, shape=(2, 2)), _ints(6, 5), _ints(2, 1)), {"blank": 0}),
        ],
        "nn.functional.affine_grid": [((_grad(2, 2, 3), (2, 1, 3, 3)), {"align_corners": False})],
        "nn.functional.grid_sample": [((image, _floats(2, 3, 3, 2)), {"mode": "bilinear", "align_corners": True})],
        "nn.functional.batch_norm": [
            ((image, _floats(4), _floats(4, low=0.1)), {"training": True, "momentum": 0.1, "eps": 1e-5}),
            ((image, _floats(4), _floats(4, low=0.1), _floats(4), _floats(4)), {}),
        ],
        "nn.functional.instance_norm": [((image, _floats(4), _floats(4, low=0.1)), {"momentum": 0.1, "eps": 1e-5})],
        "nn.functional.group_norm": [((image, 2), {"weight": _floats(4), "eps": 1e-5})],
        "nn.functional.layer_norm": [((image, (6, 6)), {"weight": _floats(6, 6), "eps": 1e-5})],
        "nn.functional.rms_norm": [((image, (6,)), {"weight": _floats(6), "eps": 1e-5})],
        "nn.functional.unfold": [((image, (2, 2)), {"dilation": 1, "padding": 1, "stride": 2})],
        "nn.functional.conv_tbc": [((_grad(5, 2, 3), _floats(2, 3, 4), _floats(4)), {"pad": 1})],
        "nn.functional.normalize": [((x, 2.0), {"dim": 1, "eps": 1e-12})],
        "nn.functional.pdist": [((x, 2.0), {})],
        "nn.functional.bilinear": [((x, _floats(3, 2), _floats(5, 4, 2), _floats(5)), {})],
        "nn.functional.interpolate": [((image, (3, 4)), {"mode": "bicubic"}), ((image,), {"scale_factor": (2.0, 1.5)})],
        "native_batch_norm": [
            ((image, _floats(4), _floats(4), _floats(4), _floats(4, low=0.1), True, 0.1, 1e-5), {}),
        ],
        "native_group_norm": [((_floats(2, 4, 6), _floats(4), _floats(4), 2, 4, 6, 2, 1e-5), {})],
        "native_layer_norm": [((x, (4,), _floats(4), _floats(4), 1e-5), {})],
        "scatter_reduce": [((x, 1, _ints(*[0] * 12, shape=(3, 4)), _floats(3, 4), "amax"), {"include_self": False})],
        "index_put": [((x, (_ints(0, 2),), _floats(2, 4)), {"accumulate": True})],
        "take_along_dim": [((x, _ints(0, 1, 2, 0, shape=(1, 4)), 0), {})],
        "bincount": [((index,), {"minlength": 2, "weights": _floats(3)})],
        "bucketize": [((x, _floats(3)), {"right": True})],
        "histogramdd": [((x, [2, 2, 2, 2]), {})],
        "tensordot": [((x, _floats(4, 3), 1), {}), ((x, _floats(4, 3), ([0, 1], [1, 0])), {})],
        "cumulative_trapezoid": [((x,), {"dx": 0.5, "dim": 1})],
        "cartesian_prod": [((_floats(2), _floats(3)), {})],
        "block_diag": [((x, _floats(2, 2)), {})],
        "combinations": [((_floats(4), 2), {"with_replacement": True})],
        "vander": [((_floats(4), 3), {})],
        "chain_matmul": [((x, _floats(4, 2)), {})],
        "lu_solve": [((_floats(3, 2), _floats(3, 3), _ints(1, 3, 3, dtype="int32")), {})],
        "ormqr": [((_floats(3, 2), _floats(2), _floats(3, 2)), {})],
        "lstm_cell": [((_floats(2, 3), (_floats(2, 4), _floats(2, 4)), _floats(16, 3), _floats(16, 4)), {})],
        "gru_cell": [((_floats(2, 3), _floats(2, 4), _floats(12, 3), _floats(12, 4)), {})],
        "rnn_tanh_cell": [((_floats(2, 3), _floats(2, 4), _floats(4, 3), _floats(4, 4)), {})],
        "as_strided_scatter": [((_floats(3, 4), _floats(2), (2,), (2,), 1), {})],
        "Tensor.as_strided": [((_floats(3, 4), (2, 2), (4, 1), 1), {})],
        "Tensor.set_": [((_floats(3),), {})],
        "Tensor.unfold": [((x, 1, 2, 1), {})],
        "Tensor.index_fill_": [((_floats(3, 4), 1, index, 2.0), {})],
        "Tensor.index_copy_": [((_floats(3, 4), 0, index, _floats(3, 4)), {})],
        "Tensor.put_": [((_floats(3, 4), index, _floats(3)), {"accumulate": True})],
        "Tensor.masked_scatter_": [((_floats(3, 4), _bools(*[1, 0] * 6, shape=(3, 4)), _floats(6)), {})],
        "Tensor.fill_diagonal_": [((_floats(3, 4), 1.5), {"wrap": True})],
        "Tensor.resize_": [((_floats(3, 4), (2, 3)), {})],
        "Tensor.random_": [((_floats(3, 4), 0, 5), {})],
        "Tensor.copy_": [((_floats(3, 4), _floats(4)), {})],
        "Tensor.view": [((x, Named("int32")), {}), ((x, (2, -1)), {})],
        "frombuffer": [],
        "stft": [((_grad(20), 8), {"hop_length": 4, "return_complex": True, "window": _floats(8)})],
        "nn.utils.rnn.pack_padded_sequence": [],
        "nn.utils.rnn.pad_sequence": [(([_floats(3), _floats(2)],), {"padding_value": 1.0})],
        "nn.utils.clip_grad_norm_": [(([x], 1.0), {"norm_type": 2.0})],
    }  # fmt: skip
    return {name: [Call(name, *row) for row in cases] for name, cases in rows.items() if cases}


CALLS: dict[str, list[Call]] = {"indexing": _indexing(), **_recurrent(), **_modules(), **_functions()}
