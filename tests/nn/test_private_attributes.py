"""Attributes of modules that libraries read although their names begin with an underscore."""

import pytest
import torch

import weft

BOTH = pytest.mark.parametrize("lib", [torch, weft])


@pytest.mark.parametrize("options", [{}, {"bidirectional": True, "num_layers": 2}, {"bias": False}])
def test_weights_of_recurrent_layers(options):
    def names(lib):
        layer = lib.nn.LSTM(2, 3, **options)
        assert all(
            weight is getattr(layer, name)
            for weight, name in zip(layer._flat_weights, layer._flat_weights_names, strict=True)
        )
        assert all(
            ref() is weight for ref, weight in zip(layer._flat_weight_refs, layer._flat_weights, strict=True)
        )
        return layer._flat_weights_names, layer._all_weights

    assert names(weft) == names(torch)


def test_weights_of_recurrent_layers_can_be_replaced():
    layer = weft.nn.GRU(2, 3)
    layer._flat_weights = [weight.detach() * 0 for weight in layer._flat_weights]
    assert layer(weft.ones(4, 2))[0].abs().sum().item() == 0


@BOTH
def test_positions_in_a_list(lib):
    modules = lib.nn.ModuleList([lib.nn.Identity(), lib.nn.Identity()])
    assert [modules._get_abs_string_index(i) for i in (-1, 0)] == ["1", "0"]
    with pytest.raises(IndexError):
        modules._get_abs_string_index(2)


@BOTH
def test_uninitialized_parameters_know_their_device(lib):
    for kind in (lib.nn.UninitializedParameter, lib.nn.UninitializedBuffer):
        assert kind().is_cuda is False


@BOTH
def test_calls_under_their_inner_names(lib):
    layer = lib.nn.Linear(2, 1)
    x = lib.ones(2)
    expected = layer(x).tolist()
    for call in (layer._call_impl, layer._wrapped_call_impl, layer._slow_forward):
        assert call(x).tolist() == expected
    assert layer._compiled_call_impl is None
    hook = lambda module, grad_input, grad_output: None  # noqa: E731
    layer.register_full_backward_hook(hook)
    layer.register_full_backward_pre_hook(hook)
    assert layer._get_backward_hooks() == ([hook], [])
    assert layer._get_backward_pre_hooks() == [hook]
    replica = layer._replicate_for_data_parallel()
    assert replica._parameters == {}
    assert replica._is_replica
    assert list(layer._parameters) == ["weight", "bias"]
