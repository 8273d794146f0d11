import numpy as np
import pytest
import torch
from expressions import check as check_expression
from expressions import lines
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


@pytest.mark.may_raise(least=0.4)
@settings(max_examples=40, deadline=None)
@given(st.sampled_from([(5,), (4, 5), (4,), ()]), st.sampled_from(["float32", "float64"]), st.booleans())
def test_layer_and_rms_norm(shape, dtype, affine):
    x = torch.randn(2, 3, 4, 5).to(getattr(torch, dtype))
    weight = torch.rand(shape).to(x.dtype) if affine else None
    check(F + "layer_norm", x, shape, weight, weight)
    check(F + "layer_norm", x.transpose(0, 1), shape, weight)
    check(F + "rms_norm", x, shape, weight)


@pytest.mark.refuses(["3"])
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


@pytest.mark.refuses("all")
def test_one_value_per_channel_is_an_error():
    check(F + "batch_norm", torch.ones(1, 2, 1), None, None, training=True)
    check(F + "instance_norm", torch.ones(2, 2, 1))
    check(F + "group_norm", torch.ones(1, 2, 1), 2)


def test_layer_norm_has_two_signatures():
    x = weft.zeros(2, 3)
    assert weft.layer_norm(x, (3,), None, None, 1e-5, False).equal(x)
    with pytest.raises(TypeError, match="from 2 to 5 positional arguments but 6 were given"):
        weft.nn.functional.layer_norm(x, (3,), None, None, 1e-5, False)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gradients_of_batch_norm_with_running_statistics(training, dtype):
    """Means far from 0, so that a weight's gradient shows whether the mean was taken off."""
    found = []
    for lib in (torch, weft):
        as_dtype = {"dtype": getattr(lib, dtype)}
        x = (lib.arange(24.0, **as_dtype).reshape(2, 3, 4) ** 2 / 10).requires_grad_()
        weight = lib.tensor([1.0, -2.0, 3.0], requires_grad=True, **as_dtype)
        bias = lib.tensor([0.5, 0.0, -1.0], requires_grad=True, **as_dtype)
        mean, var = lib.tensor([10.0, -20.0, 30.0], **as_dtype), lib.tensor([1.0, 4.0, 9.0], **as_dtype)
        y = lib.nn.functional.batch_norm(x, mean, var, weight, bias, training)
        found.append(
            [each.tolist() for each in (*lib.autograd.grad((y * y * x).sum(), (x, weight, bias)), mean, var)]
        )
    for ours, theirs in zip(found[1], found[0], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4 if dtype == "float32" else 1e-10)


# Normalisations of x, [1, 2, 3], whose second row of three has no deviation.
WITHOUT_EPS = """
F.layer_norm(x, (3,), eps=0.0)
F.group_norm(x, 2, eps=0.0)
F.rms_norm(x - x.detach(), (3,), eps=0.0)
F.instance_norm(x, eps=0.0)
torch.batch_norm(x, None, None, None, None, True, 0.1, 0.0, False)
torch.native_batch_norm(x, None, None, None, None, True, 0.1, 0.0)[0]
F.batch_norm(x, torch.zeros(2), torch.tensor([1.0, 4.0]), eps=0.0)
F.normalize(x * torch.tensor([[1.0], [0.0]]), dim=2, eps=0.0)
F.cosine_similarity(x, x * 0, dim=2, eps=0.0)
F.pairwise_distance(x, x.detach(), eps=0.0)
""".strip().splitlines()


@pytest.mark.parametrize("expression", WITHOUT_EPS)
def test_without_eps(expression):
    found = []
    for lib in (torch, weft):
        x = lib.tensor([[[1.0, 2.0, 4.0], [3.0, 3.0, 3.0]]], requires_grad=True)
        y = eval(expression, {"torch": lib, "F": lib.nn.functional, "x": x})
        gradient = lib.autograd.grad(y.float().square().sum(), x)[0] if y.requires_grad else x
        found.append((y.detach().numpy(), gradient.detach().numpy()))
    for ours, theirs in zip(found[1], found[0], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=2e-6)


REFUSED_EPS = """
F.batch_norm(x, None, None, training=True, eps=0.0)
F.batch_norm(x, None, None, training=True, eps=-1.0)
F.batch_norm(x, torch.zeros(2), torch.ones(2), eps=-1.0)
""".strip().splitlines()


@pytest.mark.parametrize("expression", REFUSED_EPS)
def test_eps_that_is_refused(expression):
    for lib in (torch, weft):
        with pytest.raises(ValueError, match="eps must be"):
            eval(expression, {"torch": lib, "F": lib.nn.functional, "x": lib.ones(1, 2, 3)})


@pytest.mark.parametrize("eps", [0.5, 2.0, 100.0])
def test_normalize_divides_by_eps_where_it_is_larger(eps):
    check(F + "normalize", torch.tensor([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0]]), 2.0, 1, eps)


UNFIT = """
torch.nn.functional.normalize(torch.tensor([[3.0, 4.0]]), None)
torch.nn.functional.normalize(torch.tensor([[3.0, 4.0]]), "fro")
torch.nn.functional.normalize(torch.ones(2, 2), "a")  # raises
torch.nn.functional.rms_norm(torch.tensor(1.0), (1,))  # raises
torch.nn.functional.rms_norm(torch.ones(2), (1, 2))  # raises
torch.nn.functional.rms_norm(torch.ones(2), (3,))  # raises
"""


@pytest.mark.parametrize("expression", lines(UNFIT))
def test_arguments_that_do_not_fit(expression):
    check_expression(expression)


@pytest.mark.parametrize("shape", [(40, 96), (64, 33), (3, 2)])
def test_an_expanded_gradient_gives_the_bits_of_a_contiguous_one(shape):
    torch.manual_seed(3)
    values = [to_weft(torch.randn(*size)) for size in (shape, shape[1:], shape[1:])]
    found = []
    for gradient in (weft.ones(()).expand(shape), weft.ones(shape)):
        x, weight, bias = (each.clone().requires_grad_() for each in values)
        weft.nn.functional.layer_norm(x, shape[1:], weight, bias).backward(gradient)
        found.append([each.grad.tolist() for each in (x, weight, bias)])
    assert found[0] == found[1]
