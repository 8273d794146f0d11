"""FakeTensorMode over what works without values: operations of libraries, layers and their gradients."""

import copy
import gc
import importlib
import subprocess
import sys
import weakref
from unittest import mock

import pytest
import torch

import weft
from weft._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
)

F = weft.nn.functional


def ones(*sizes, **options):
    return weft.ones(*sizes, device="cuda", **options)


@pytest.mark.parametrize(
    ("call", "sizes"),
    [
        (lambda: ones(5, 4).sort(0).values, (5, 4)),
        (lambda: ones(5, 4).topk(2)[1], (5, 2)),
        (lambda: weft.linalg.svd(ones(5, 4)).U, (5, 5)),
        (lambda: weft.linalg.solve(ones(4, 4), ones(4, 2)), (4, 2)),
        (lambda: weft.linalg.pinv(ones(5, 4)), (4, 5)),
        (lambda: weft.fft.rfft(ones(5, 4)), (5, 3)),
        (lambda: weft.stft(ones(100), 10, return_complex=True), (6, 51)),
        (lambda: weft.quantile(ones(5, 4), 0.5), ()),
        (lambda: weft.einsum("ij,jk->ik", [ones(5, 4), ones(4, 3)]), (5, 3)),
        (lambda: F.conv2d(ones(2, 3, 8, 8), ones(4, 3, 3, 3)), (2, 4, 6, 6)),
        (lambda: F.conv_transpose2d(ones(2, 3, 8, 8), ones(3, 4, 3, 3)), (2, 4, 10, 10)),
        (lambda: F.adaptive_avg_pool2d(ones(2, 3, 8, 8), 3), (2, 3, 3, 3)),
        (lambda: F.interpolate(ones(1, 3, 8, 8), scale_factor=2.0), (1, 3, 16, 16)),
        (lambda: F.scaled_dot_product_attention(*[ones(2, 2, 4, 8)] * 3), (2, 2, 4, 8)),
        (lambda: ones(3).new_tensor([1.0, 2.0]), (2,)),
        (lambda: weft.tensor([1.0, 2.0], device="cuda"), (2,)),
        (lambda: weft.as_tensor([1.0, 2.0], device="cuda"), (2,)),
    ],
)
def test_operations_on_a_device_that_does_not_exist(call, sizes):
    with FakeTensorMode():
        found = call()
        assert type(found) is FakeTensor and found.shape == sizes and found.device == weft.device("cuda:0")


def test_several_results_are_named_as_outside_of_the_mode():
    for mode in (FakeTensorMode(), None):
        with mode or weft.no_grad():
            x = weft.ones(5, 4)
            assert type(x.max(0)) is weft.return_types.max and type(x.sort()) is weft.return_types.sort
            assert type(weft.linalg.qr(x)) is weft.return_types.linalg_qr
            assert type(x.split(2)) is type(x.unbind()) is tuple


@pytest.mark.parametrize(
    ("make", "sizes"),
    [
        (
            lambda: weft.nn.Sequential(weft.nn.Conv2d(3, 4, 3), weft.nn.BatchNorm2d(4), weft.nn.MaxPool2d(2)),
            (2, 3, 8, 8),
        ),
        (lambda: weft.nn.TransformerEncoderLayer(8, 2, 16), (2, 4, 8)),
        (lambda: weft.nn.MultiheadAttention(8, 2), (2, 4, 8)),
        (lambda: weft.nn.LSTM(4, 3), (2, 5, 4)),
    ],
)
def test_gradients_of_layers(make, sizes):
    with FakeTensorMode():
        layer, x = make(), weft.ones(sizes, requires_grad=True)
        out = layer(*[x] * (3 if isinstance(layer, weft.nn.MultiheadAttention) else 1))
        (out[0] if isinstance(out, tuple) else out).sum().backward()
        for each in (x, *layer.parameters()):
            assert type(each.grad) is FakeTensor and each.grad.shape == each.shape


def test_gradients_of_embeddings():
    with FakeTensorMode():
        layer = weft.nn.Embedding(10, 3)
        layer(weft.ones(4, dtype=weft.int64)).sum().backward()
        assert layer.weight.grad.shape == (10, 3)


def leaf(*sizes):
    return weft.ones(sizes, requires_grad=True)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.sort(0)[0],
        lambda x: x.topk(2, 0)[0],
        lambda x: x.max(),
        lambda x: x.amax(),
        lambda x: x.nan_to_num().erf().lgamma(),
        lambda x: x.prod(0),
        lambda x: x.logcumsumexp(0),
        lambda x: x.index_add(0, weft.tensor([0, 1]), weft.ones(2, 3)),
        lambda x: x.scatter_reduce(0, weft.zeros(2, 3).long(), weft.ones(2, 3), "amax"),
        lambda x: weft.linalg.lu(x)[2],
        lambda x: weft.linalg.eig(x[:3])[0].abs(),
        lambda x: weft.float_power(x, 2),
        lambda x: x.where(x > 0, x * 2),
        lambda x: F.prelu(x, weft.ones(1)),
        lambda x: F.softsign(x) + F.logsigmoid(x),
        lambda x: F.linear(x[0], weft.ones(4, 3)),
        lambda x: F.linear(x[0], weft.ones(4, 3), weft.ones(4)),
        lambda x: F.nll_loss(x, weft.tensor([1, 0, 2, 1]), weight=weft.ones(3)),
        lambda x: F.nll_loss(x[0], weft.tensor(1), weight=weft.ones(3)),
        lambda x: F.linear_cross_entropy(x, weft.ones(5, 3), weft.tensor([1, 0, 2, 1])),
        lambda x: F.grid_sample(
            x.view(1, 1, 4, 3), weft.ones(1, 2, 2, 2), padding_mode="reflection", align_corners=False
        ),
        lambda x: F.max_pool2d(x.view(1, 1, 4, 3), 2, stride=1, padding=1),
        lambda x: weft.native_batch_norm(x, None, None, weft.zeros(3), weft.ones(3), True, 0.1, 1e-5)[0],
    ],
)
def test_gradients_of_functions(call):
    """Derivatives without formulas in operators are computed by weft's own rules."""
    with FakeTensorMode():
        x = leaf(4, 3)
        result = call(x)
        assert type(result) is FakeTensor
        result.sum().backward()
        assert type(x.grad) is FakeTensor and x.grad.shape == (4, 3)


OPTIMIZERS = "SGD Adam AdamW Adagrad Adadelta Adamax NAdam RAdam RMSprop Rprop ASGD".split()


@pytest.mark.parametrize("options", [{}, {"foreach": True}], ids=str)
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_steps_of_optimizers(name, options):
    with FakeTensorMode():
        model = weft.nn.Linear(3, 2)
        optimizer = getattr(weft.optim, name)(model.parameters(), lr=0.1, **options)
        for _ in range(2):
            optimizer.zero_grad()
            model(weft.ones(4, 3)).sum().backward()
            optimizer.step()
        states = [each for state in optimizer.state.values() for each in state.values()]
        assert all(type(each) is FakeTensor for each in states if isinstance(each, weft.Tensor))
        weft.nn.utils.clip_grad_norm_(model.parameters(), 1.0)


def test_tensors_of_data_keep_one_value():
    """As in PyTorch: a tensor of one element that is made of data has a value, and so have results of such tensors."""
    with FakeTensorMode():
        x = weft.tensor(3.0)
        assert (x + 1).item() == 4 and bool(x > 1) and x.view(1).item() == x.double().item() == 3
        assert x.add_(5).item() == x.clone().item() == 8
        assert weft.tensor(2.0, device="cuda").item() == 2
        x.add_(weft.ones(()))
        for unknown in (x, weft.ones(()), weft.tensor([1.0, 2.0])[0]):
            with pytest.raises(DataDependentOutputException):
                unknown.item()


def test_old_constructors():
    with FakeTensorMode():
        for made in (weft.Tensor([1.0, 2.0]), weft.FloatTensor([1.0, 2.0]), weft.Tensor(2)):
            assert type(made) is FakeTensor and made.shape == (2,)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda x: x.nonzero(), DynamicOutputShapeException),
        (lambda x: x[x > 0], DynamicOutputShapeException),
        (lambda x: weft.equal(x, x), DataDependentOutputException),
        (lambda x: x.sum().item(), DataDependentOutputException),
        (lambda x: x.unique(), NotImplementedError),
        (lambda x: F.one_hot(x.long()), NotImplementedError),
    ],
)
def test_results_that_depend_on_values(call, error):
    with FakeTensorMode(), pytest.raises(error):
        call(weft.ones(3))


def test_calls_ask_no_class_before_there_is_a_mode():
    program = """
import weft
from weft._subclasses.fake_tensor import FakeTensorMode
from weft.core.overrides import override_types
assert not override_types
with FakeTensorMode() as mode:
    fake = mode.from_tensor(weft.ones(2, 3))
assert type(fake @ fake.t()) is type(fake) and (fake @ fake.t()).shape == (2, 2)
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_which_mode_fake_tensors_belong_to():
    def found(lib):
        guards = importlib.import_module(f"{lib.__name__}._guards")
        outer, inner = (lib._subclasses.FakeTensorMode() for _ in range(2))
        tensor = outer.from_tensor(lib.ones(2))
        with outer, inner:
            active = guards.active_fake_mode()
        with pytest.raises(AssertionError, match="doesn't match mode"):
            guards.detect_fake_mode([tensor, inner.from_tensor(lib.ones(2))])
        given = guards.detect_fake_mode({"a": [lib.ones(2), tensor]}), guards.detect_fake_mode(lib.ones(2))
        return active is inner, given[0] is outer, given[1], guards.active_fake_mode()

    assert found(weft) == found(torch)


# ---- Side by side with PyTorch's -----------------------------------------------------------------------------------------

LIBRARIES = pytest.mark.parametrize("lib", [weft, torch], ids=["weft", "torch"])


def module_of(lib, name="_subclasses.fake_tensor"):
    return importlib.import_module(f"{lib.__name__}.{name}")


@LIBRARIES
def test_values_of_views_and_writes(lib):
    with module_of(lib).FakeTensorMode():
        x = lib.tensor([4.0])
        y = x[:]
        assert x.add_(1).item() == y.item() == 5
        assert x.untyped_storage()._cdata == y.untyped_storage()._cdata
        wide = x.expand(4)
        assert wide.constant is None
        y.add_(lib.rand(1))
        assert x.constant is y.constant is None
        z = lib.tensor([1])
        z.resize_([2])
        assert z.shape == (2,) and z.constant is None
        assert lib.tensor([1.0]).normal_().constant is None
        with pytest.raises(module_of(lib).DataDependentOutputException):
            x.new_full([3, *lib.tensor([2, 3])], 0.0)


@LIBRARIES
def test_a_tensor_has_one_fake_tensor(lib):
    mode = module_of(lib).FakeTensorMode()
    x = lib.ones(2, requires_grad=True)
    x.grad = lib.ones(2)
    fake = mode.from_tensor(x)
    assert mode.from_tensor(x) is fake and fake.grad.shape == (2,) and module_of(lib).is_fake(fake.grad)
    meta = lib.ones(2, device="meta")
    converter = mode.fake_tensor_converter
    on_cpu = converter.from_meta_and_device(mode, meta, lib.device("cpu"))
    assert (
        on_cpu.device.type == "cpu"
        and converter.from_meta_and_device(mode, meta, lib.device("cpu")) is on_cpu
    )
    gone = weakref.ref(mode)
    del mode, fake, on_cpu, converter
    gc.collect()
    assert gone() is None


@LIBRARIES
def test_copies_of_modules_without_values(lib):
    fakes = module_of(lib)
    layer = lib.nn.BatchNorm2d(3)
    with fakes.FakeCopyMode(fakes.FakeTensorMode()):
        copied = copy.deepcopy(layer)
    for name, tensor in [*copied.named_parameters(), *copied.named_buffers()]:
        assert fakes.is_fake(tensor) and tensor.shape == getattr(layer, name).shape
        assert isinstance(tensor, lib.nn.Parameter) == isinstance(getattr(layer, name), lib.nn.Parameter)


@LIBRARIES
def test_whether_meta_is_allowed(lib):
    config = importlib.import_module(f"{lib.__name__}._functorch.config")
    with module_of(lib).FakeTensorMode():
        assert (lib.ones(2, device="meta") + 1).device.type == "meta"
    with mock.patch.object(config, "fake_tensor_allow_meta", False):
        with pytest.raises(AssertionError), module_of(lib).FakeTensorMode():
            lib.ones(2, device="meta")


@LIBRARIES
def test_operators_are_compared_with_fake_tensors(lib):
    module = module_of(lib, "_subclasses.fake_utils")
    with module.CrossRefFakeMode():
        layer = lib.nn.Sequential(lib.nn.Conv2d(3, 4, 3), lib.nn.BatchNorm2d(4), lib.nn.ReLU())
        assert layer(lib.ones(2, 3, 8, 8)).shape == (2, 4, 6, 6)
        assert lib.ones(3).nonzero().shape == (3, 1)
    compare = module_of(lib, "_prims_common").compare_tensor_meta
    x = lib.ones(2, 3)
    compare(x, x + 1, check_strides=True)
    for other in (lib.ones(3), x.double(), x.to("meta"), x.t().contiguous().t()):
        with pytest.raises(module_of(lib).MetadataMismatchError):
            compare(x, other, check_strides=True)


@LIBRARIES
def test_graphs_run_without_values(lib):
    prop = module_of(lib, "fx.passes.fake_tensor_prop").FakeTensorProp
    traced = lib.fx.symbolic_trace(lambda x, w: (x @ w).relu().max(1))
    result = prop(traced).propagate(lib.ones(2, 3), lib.ones(3, 4))
    assert [tuple(each.shape) for each in result] == [(2,), (2,)]
    shapes = [tuple(node.meta["val"].shape) for node in traced.graph.nodes if "matmul" in node.name]
    assert shapes == [(2, 4)]


@LIBRARIES
def test_random_tensors_with_strides(lib):
    x = module_of(lib, "_dynamo.testing").rand_strided((2, 3), (1, 4), dtype=lib.float64, extra_size=2)
    assert (x.shape, x.stride(), x.dtype) == ((2, 3), (1, 4), lib.float64)
    assert x.untyped_storage().nbytes() == 12 * 8
