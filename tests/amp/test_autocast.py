import warnings

import pytest
import torch
from alike import same

import weft
import weft.nn.functional

A = [[1.0, 2.0], [3.0, 4.5]]
CALLS = {
    "operator": lambda t, a: a @ a,
    "operator with a vector": lambda t, a: a @ a[0],
    "mm": lambda t, a: t.mm(a, a),
    "method": lambda t, a: a.matmul(a),
    "bmm": lambda t, a: t.bmm(a[None], a[None]),
    "addmm": lambda t, a: t.addmm(a, a, a),
    "einsum": lambda t, a: t.einsum("ij,jk->ik", a, a),
    "linear": lambda t, a: t.nn.functional.linear(a, a, a[0]),
    "conv2d": lambda t, a: t.conv2d(a[None, None], a[None, None]),
    "conv_transpose1d": lambda t, a: t.nn.functional.conv_transpose1d(a[None], a[:, :, None]),
    "attention": lambda t, a: t.nn.functional.scaled_dot_product_attention(a[None], a[None], a[None]),
    "mv": lambda t, a: t.mv(a, a[0]),
    "dot": lambda t, a: t.dot(a[0], a[0]),
    "add": lambda t, a: a + a.bfloat16(),
    "exp": lambda t, a: a.bfloat16().exp(),
    "softmax": lambda t, a: t.softmax(a.bfloat16(), -1),
    "layer_norm": lambda t, a: t.nn.functional.layer_norm(a.bfloat16(), (2,)),
    "sum": lambda t, a: a.bfloat16().sum(),
    "mse_loss": lambda t, a: t.nn.functional.mse_loss(a.bfloat16(), a),
    "cross_entropy": lambda t, a: t.nn.functional.cross_entropy(a.bfloat16(), t.tensor([0, 1])),
    "prod": lambda t, a: a.bfloat16().prod(),
    "svdvals": lambda t, a: t.linalg.svdvals(a.bfloat16()),
    "fft": lambda t, a: t.fft.fft(a.bfloat16()),
    "cat": lambda t, a: t.cat([a, a.bfloat16()]),
    "float64": lambda t, a: a.double() @ a.double(),
    "integers": lambda t, a: a.int() @ a.int(),
    "mixed": lambda t, a: a.half() @ a,
    "out": lambda t, a: t.mm(a, a, out=t.zeros(2, 2)),
    "prelu": lambda t, a: t.nn.functional.prelu(a, a[0]),
    "max_pool3d": lambda t, a: t.nn.functional.max_pool3d(a.bfloat16().expand(1, 2, 2, 2), 2),
    "adaptive_max_pool3d": lambda t, a: t.nn.functional.adaptive_max_pool3d(
        a.bfloat16().expand(1, 2, 2, 2), 2
    ),
    "max_pool2d": lambda t, a: t.nn.functional.max_pool2d(a.bfloat16()[None], 2),
    "fractional_max_pool2d": lambda t, a: t.nn.functional.fractional_max_pool2d(
        a.bfloat16()[None], 1, output_size=2
    ),
}
CALLS |= {
    f"pad, {mode}, {n}": lambda t, a, mode=mode, n=n: t.nn.functional.pad(
        a.bfloat16().expand(*[2] * (n + 1)), (1, 1) * n, mode=mode
    )
    for mode in ("constant", "reflect", "replicate", "circular")
    for n in (1, 2, 3)
}


@pytest.mark.parametrize("name", CALLS)
def test_functions_choose_the_dtypes_that_pytorch_chooses(name):
    dtypes = []
    for t in (torch, weft):
        with t.autocast("cpu"):
            dtypes.append(str(CALLS[name](t, t.tensor(A)).dtype))
    assert dtypes[0] == dtypes[1]


def test_the_values_are_those_of_arguments_in_bfloat16():
    torch.manual_seed(0)
    a = torch.randn(8, 8)
    with torch.autocast("cpu"):
        expected = (a @ a).float()
    with weft.autocast("cpu"):
        found = (weft.tensor(a.tolist()) @ weft.tensor(a.tolist())).float()
    torch.testing.assert_close(torch.tensor(found.tolist()), expected, rtol=8e-3, atol=1e-6)


def test_gradients_have_the_dtype_of_the_parameters():
    layer = weft.nn.Linear(3, 2)
    with weft.autocast("cpu"):
        layer(weft.ones(1, 3)).sum().backward()
    assert layer.weight.grad.dtype is weft.float32


def test_it_nests_and_is_restored():
    a = weft.ones(2, 2)
    with weft.autocast("cpu", dtype=weft.float16):
        assert (a @ a).dtype is weft.float16
        with weft.autocast("cpu", enabled=False):
            assert (a @ a).dtype is weft.float32
        assert weft.is_autocast_enabled("cpu") and not weft.is_autocast_enabled()
    assert (a @ a).dtype is weft.float32
    assert weft.get_autocast_dtype("cpu") is weft.bfloat16


def test_decorated_functions():
    @weft.autocast("cpu")
    def product(a):
        return a @ a

    assert product(weft.ones(2, 2)).dtype is weft.bfloat16


def test_what_is_not_there_is_refused_with_a_warning():
    for t in (torch, weft):
        with pytest.warns(UserWarning, match="Disabling"), t.autocast("cuda"):
            assert (t.ones(2, 2) @ t.ones(2, 2)).dtype is t.float32
        with pytest.warns(UserWarning, match="not supported"), t.autocast("cpu", dtype=t.float64):
            pass
        with pytest.raises(RuntimeError, match="device type at start of device string: gpu"):
            t.autocast("gpu")
        with pytest.raises(RuntimeError, match="unsupported"):
            t.autocast("meta")


def test_the_old_names_of_cuda():
    import weft.cuda.amp

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scaler = weft.cuda.amp.GradScaler()
        with weft.cuda.amp.autocast():
            assert (weft.ones(1, 1) @ weft.ones(1, 1)).dtype is weft.float32
    assert not scaler.is_enabled()


def test_the_old_names_of_the_processor():
    def program(lib):
        found = []
        for name in ("autocast", "GradScaler"):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                made = getattr(lib.cpu.amp, name)()
            found += [str(each.message) for each in caught]
            found += [type(made).__name__, isinstance(made, getattr(lib.amp, name))]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with lib.cpu.amp.autocast():
                found.append(str((lib.ones(1, 1) @ lib.ones(1, 1)).dtype))
        return found

    same(program)


def autocast_inside(lib, cast_inputs):
    """Whether autocast is on in forward and backward of a function that is called within autocast."""
    seen = []

    class Same(lib.autograd.Function):
        @staticmethod
        @lib.amp.custom_fwd(device_type="cpu", cast_inputs=cast_inputs)
        def forward(ctx, a):
            seen.append(lib.is_autocast_enabled("cpu"))
            return a * 1

        @staticmethod
        @lib.amp.custom_bwd(device_type="cpu")
        def backward(ctx, grad):
            seen.append(lib.is_autocast_enabled("cpu"))
            return grad

    with lib.autocast("cpu"):
        result = Same.apply(lib.ones(2, requires_grad=True))
    result.sum().backward()
    return seen


def test_functions_with_their_own_dtype_run_without_autocast():
    for lib in (torch, weft):
        assert autocast_inside(lib, None) == [True, True]
        assert autocast_inside(lib, lib.float32) == [False, False]


def test_functions_with_their_own_dtype():
    class Square(weft.autograd.Function):
        @staticmethod
        @weft.amp.custom_fwd(device_type="cpu", cast_inputs=weft.float32)
        def forward(ctx, a):
            ctx.save_for_backward(a)
            return a @ a

        @staticmethod
        @weft.amp.custom_bwd(device_type="cpu")
        def backward(ctx, grad):
            (a,) = ctx.saved_tensors
            return grad @ a.T + a.T @ grad

    a = weft.ones(2, 2, requires_grad=True)
    with weft.autocast("cpu"):
        found = Square.apply(a.bfloat16())
    assert found.dtype is weft.float32
    found.sum().backward()
    assert a.grad.tolist() == [[4.0, 4.0], [4.0, 4.0]]
