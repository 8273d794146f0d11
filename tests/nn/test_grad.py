"""Gradients of convolutions as functions, and other names of `torch.nn` beside layers."""

import warnings

import numpy as np
import pytest
import torch
from expressions import check, lines

import weft


@pytest.mark.parametrize("n", [1, 2, 3])
def test_convolutions(n):
    results = []
    for lib in (weft, torch):
        x = lib.arange(2.0 * 4 * 6**n).view(2, 4, *[6] * n).cos()
        w = lib.arange(6.0 * 2 * 3**n).view(6, 2, *[3] * n).sin()
        geometry = {"stride": 2, "padding": 1, "dilation": 1, "groups": 2}
        out = getattr(lib.nn.functional, f"conv{n}d")(x, w, **geometry)
        grads = lib.nn.grad
        results.append(
            [
                getattr(grads, f"conv{n}d_input")(x.shape, w, out, **geometry).numpy(),
                getattr(grads, f"conv{n}d_weight")(x, w.shape, out, **geometry).numpy(),
            ]
        )
    for found, expected in zip(*results, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


EXPRESSIONS = """
sorted(torch.nn.factory_kwargs({'device': 'cpu', 'dtype': torch.float32, 'factory_kwargs': {'memory_format': 1}}).items())
torch.nn.factory_kwargs(None)
torch.nn.factory_kwargs({'foo': 1})  # raises
torch.nn.factory_kwargs({'device': 'cpu', 'factory_kwargs': {'device': 'cpu'}})  # raises
list(torch.nn.Container(a=torch.nn.ReLU()).named_children())
torch.nn.functional.GRID_SAMPLE_INTERPOLATION_MODES, torch.nn.functional.GRID_SAMPLE_PADDING_MODES
torch.nn.LSTM(2, 3, proj_size=2).get_expected_hidden_size(torch.ones(4, 5, 2), None)
torch.nn.LSTM(2, 3, 2, bidirectional=True).get_expected_cell_size(torch.ones(4, 5, 2), None)
torch.nn.GRU(2, 3, batch_first=True).get_expected_hidden_size(torch.ones(4, 5, 2), None)
torch.nn.GRU(2, 3).get_expected_hidden_size(torch.ones(4, 2), torch.tensor([3, 1]))
torch.nn.GRU(2, 3).check_forward_args(torch.ones(4, 5, 2), torch.ones(1, 5, 3), None)
torch.nn.GRU(2, 3).check_forward_args(torch.ones(4, 5, 2), torch.ones(1, 4, 3), None)  # raises
torch.nn.LSTM(2, 3).check_forward_args(torch.ones(4, 5, 2), (torch.ones(1, 5, 3), torch.ones(1, 4, 3)), None)  # raises
torch.nn.LSTM(2, 3).permute_hidden((torch.ones(1, 2, 3), torch.arange(6.).view(1, 2, 3)), torch.tensor([1, 0]))
torch.nn.Linear(2, 2).xpu()  # raises
torch.nn.ReLU().ipu()
torch.nn.MultiheadAttention(4, 2).merge_masks(None, None, torch.ones(1, 3, 4))
torch.nn.MultiheadAttention(4, 2).merge_masks(torch.eye(3).bool(), None, torch.ones(1, 3, 4))
torch.nn.MultiheadAttention(4, 2).merge_masks(torch.eye(3).bool(), torch.tensor([[True, False, False]]), torch.ones(1, 3, 4))
torch.nn.MultiheadAttention(4, 2).merge_masks(None, torch.tensor([[True, False, False]]), torch.ones(1, 3, 4))
torch.no_grad().clone().__class__.__name__
torch.inference_mode(True).clone().__class__.__name__
"""


@pytest.mark.parametrize("expression", lines(EXPRESSIONS))
def test_like_pytorch(expression):
    check(expression)


def test_a_state_of_spectral_norm_from_before_it_kept_two_vectors():
    loaded = []
    for lib in (weft, torch):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            layer = lib.nn.utils.spectral_norm(lib.nn.Linear(2, 3))
        weight = lib.tensor([[1.0, 2.0], [0.0, 1.0], [3.0, 1.0]])
        state = {
            "bias": lib.zeros(3),
            "weight_orig": weight,
            "weight_u": lib.tensor([0.6, 0.0, 0.8]),
            "weight": weight / 2.0,
        }
        layer.load_state_dict(state)
        loaded.append(layer.weight_v.tolist())
    np.testing.assert_allclose(*loaded, rtol=1e-3)
