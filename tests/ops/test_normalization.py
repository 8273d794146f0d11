import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import assert_same, check, to_weft

import weft

pytestmark = pytest.mark.filterwarnings("ignore")
F = "nn.functional."


def parameters(channels, dtype=torch.float32):
    torch.manual_seed(1)
    return torch.randn(channels).to(dtype), torch.rand(channels).to(dtype) + 0.5


@settings(max_examples=60, deadline=None)
@given(
    st.integers(2, 5), st.booleans(), st.booleans(), st.booleans(), st.sampled_from(["float32", "float64"])
)
def test_batch_and_instance_norm_and_their_running_statistics(ndim, training, affine, running, dtype):
    dtype = getattr(torch, dtype)
    x = torch.randn(3, 4, 3, 2, 2)[(..., *[0] * (5 - ndim))].to(dtype)
    for name, key in (("batch_norm", "training"), ("instance_norm", "use_input_stats")):
        if name == "instance_norm" and ndim == 2:
            continue
        means, variances = parameters(4, dtype)
        options = dict(zip(("weight", "bias"), parameters(4, dtype))) if affine else {}
        arguments = (x, means, variances) if running else (x, None, None)
        mine = [None if each is None else to_weft(each) for each in arguments]
        options[key] = training
        own = {k: to_weft(v) if isinstance(v, torch.Tensor) else v for k, v in options.items()}
        if not running and not training:
            with pytest.raises(RuntimeError):
                getattr(weft.nn.functional, name)(*mine, **own)
            continue
        expected = getattr(torch.nn.functional, name)(*arguments, **options)
        assert_same(getattr(weft.nn.functional, name)(*mine, **own), expected, name)
        if running:
            assert_same(mine[1:], list(arguments[1:]), "running statistics")


@settings(max_examples=40, deadline=None)
@given(st.sampled_from([(5,), (4, 5), (4,), ()]), st.sampled_from(["float32", "float64"]), st.booleans())
def test_layer_and_rms_norm(shape, dtype, affine):
    x = torch.randn(2, 3, 4, 5).to(getattr(torch, dtype))
    weight = torch.rand(shape).to(x.dtype) if affine else None
    check(F + "layer_norm", x, shape, weight, weight)
    check(F + "layer_norm", x.transpose(0, 1), shape, weight)
    check(F + "rms_norm", x, shape, weight)


@pytest.mark.parametrize("groups", [1, 2, 3, 4])
def test_group_norm(groups):
    weight, bias = parameters(4)
    x = torch.randn(2, 4, 3, 3)
    check(F + "group_norm", x, groups, weight, bias)
    check(F + "group_norm", x.to(memory_format=torch.channels_last), groups)


def test_native_forms_give_the_statistics():
    x = torch.randn(2, 4, 3, 3)
    weight, bias = parameters(4)
    check("native_layer_norm", x, (3, 3), None, None, 1e-5)
    check("native_group_norm", x, weight, bias, 2, 4, 9, 2, 1e-5)
    check("native_batch_norm", x, weight, bias, None, None, True, 0.1, 1e-5)


@pytest.mark.parametrize("size", [1, 2, 5])
@pytest.mark.parametrize("shape", [(2, 4, 3), (2, 4, 3, 3), (1, 3, 2, 2, 2)])
def test_local_response_norm(size, shape):
    check(F + "local_response_norm", torch.randn(shape), size)


@pytest.mark.parametrize("p", [1, 2, 3.5, torch.inf])
def test_normalize(p):
    check(F + "normalize", torch.randn(3, 4), p, 1)
    check(F + "normalize", torch.zeros(3, 4), p, 0)


def test_one_value_per_channel_is_an_error():
    check(F + "batch_norm", torch.ones(1, 2, 1), None, None, training=True)
    check(F + "instance_norm", torch.ones(2, 2, 1))
    check(F + "group_norm", torch.ones(1, 2, 1), 2)


def test_layer_norm_has_two_signatures():
    x = weft.zeros(2, 3)
    assert weft.layer_norm(x, (3,), None, None, 1e-5, False).equal(x)
    with pytest.raises(TypeError, match="from 2 to 5 positional arguments but 6 were given"):
        weft.nn.functional.layer_norm(x, (3,), None, None, 1e-5, False)
