"""Classes with `__torch_dispatch__`, and questions about modes. tests/library/registry/test_dispatching.py compares what modes are told."""

import copy
import gc
import importlib
import math

import pytest
import torch
import torch.utils._mode_utils

import weft
import weft.utils._mode_utils
from weft._subclasses.fake_tensor import FakeTensor, FakeTensorMode, is_fake, unset_fake_temporarily
from weft.utils import _python_dispatch as dispatch

LIBRARIES = pytest.mark.parametrize("lib", [weft, torch], ids=["weft", "torch"])


def wrapper(lib):
    class Wrapper(lib.Tensor):
        told: list = []

        @staticmethod
        def __new__(cls, elem):
            return lib.Tensor._make_wrapper_subclass(
                cls, elem.size(), strides=elem.stride(), dtype=elem.dtype, device=elem.device
            )

        def __init__(self, elem):
            self.elem = elem

        __torch_function__ = lib._C._disabled_torch_function_impl

        def __repr__(self):
            return f"Wrapper({self.elem})"

        def __tensor_flatten__(self):
            return ["elem"], None

        @staticmethod
        def __tensor_unflatten__(inner, context, size, stride):
            return Wrapper(inner["elem"])

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            def inner(x):
                return (
                    x.elem if isinstance(x, Wrapper) else [inner(y) for y in x] if isinstance(x, list) else x
                )

            result = func(*map(inner, args), **{key: inner(value) for key, value in (kwargs or {}).items()})
            cls.told.append(str(func))
            return Wrapper(result) if isinstance(result, lib.Tensor) else result

    return Wrapper


@LIBRARIES
def test_wrappers_compute_with_what_they_wrap(lib):
    cls = wrapper(lib)
    x, w, b = (cls(lib.full(shape, 0.5)).requires_grad_() for shape in ((3, 4), (2, 4), (2,)))
    y = lib.nn.functional.linear(x, w, b).relu()
    assert (type(y), y.shape, y.device, y.dtype) == (cls, (3, 2), lib.device("cpu"), lib.float32)
    assert y.requires_grad and type(y.grad_fn).__name__ == "ReluBackward0"
    (y * 2 + 1).softmax(-1).sum(1)[0].backward()
    assert type(x.grad) is type(w.grad) is cls and w.grad.shape == (2, 4)
    assert repr(x.grad) == repr(cls(lib.zeros(3, 4)))
    assert cls.told[:3] == ["aten.t.default", "aten.addmm.default", "aten.relu.default"]


def test_wrappers_are_told_the_same_as_in_pytorch():
    def told(lib):
        cls = wrapper(lib)
        x = cls(lib.ones(3, 4)).requires_grad_()
        y = (x @ cls(lib.ones(4, 3)) / 2).exp().mean()
        y.backward()
        (x.detach() + lib.ones(4)).add_(1)
        lib.cat([x, x])
        return cls.told

    assert told(weft) == told(torch)


@LIBRARIES
def test_wrappers_that_decline(lib):
    class Declines(wrapper(lib)):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    x = lib.Tensor._make_wrapper_subclass(Declines, (2,))
    with pytest.raises(TypeError, match="unsupported operand"):
        x + 1
    with pytest.raises(TypeError, match="__torch_dispatch__"):
        lib.add(x, 1)


def test_ops_are_watched_only_while_there_are_wrappers():
    from weft.core.dispatch import watchers
    from weft.library.registry.dispatching import wrapper_watched

    gc.collect()  # those of other tests
    first, second = (wrapper(weft)(weft.ones(2)) for _ in range(2))
    weft.ones(3).exp()
    assert watchers.count(wrapper_watched) == 1
    del first
    gc.collect()  # a class whose `told` is filled is part of a cycle
    weft.ones(3).exp()
    assert watchers.count(wrapper_watched) == 1
    del second
    gc.collect()
    weft.ones(3).exp()
    assert wrapper_watched not in watchers
    assert (wrapper(weft)(weft.ones(2)) * 3).elem.tolist() == [3, 3]


def test_a_step_without_an_operator_raises():
    x = wrapper(weft)(weft.ones(2, 4, 3))
    with pytest.raises(NotImplementedError, match="Wrapper"):
        weft.fft.fft(x)


@LIBRARIES
def test_traceable_wrappers(lib):
    module = importlib.import_module(f"{lib.__name__}.utils._python_dispatch")
    x = wrapper(lib)(lib.ones(1))
    assert module.is_traceable_wrapper_subclass(x)
    assert not module.is_traceable_wrapper_subclass(lib.ones(1))
    assert type(lib.nn.Parameter(x)) is type(x) and isinstance(lib.nn.Parameter(x), lib.nn.Parameter)


def test_no_mode_is_on_outside():
    assert dispatch._get_current_dispatch_mode() is None and dispatch._get_current_dispatch_mode_stack() == []
    assert not dispatch.is_in_torch_dispatch_mode()
    with dispatch._disable_current_modes(), unset_fake_temporarily():
        pass
    with pytest.raises(NotImplementedError), dispatch.TorchDispatchMode():
        weft.ones(1)


# ---- FakeTensors -----------------------------------------------------------------------------------------------------------


FAKES = """
torch.ones(3, 4); torch.ones(2, dtype=torch.float64); torch.ones((), requires_grad=True); torch.tensor([1.0, 2.0])
torch.empty(2, 3, device="cuda"); torch.empty(2, device="cuda") + 1; (torch.empty(2, device="cuda") * 2).sum()
x @ torch.randn(4, 5); x.t().contiguous().stride(); x[0]; x.reshape(2, 6); x.double(); x.max(1)[1]; x.softmax(-1); x.add_(1)
torch.cat([x, x]); torch.nn.functional.conv2d(torch.ones(1, 2, 8, 8), torch.ones(4, 2, 3, 3)); x.device; x.fake_device
torch.nn.Linear(4, 2)(x); torch.nn.functional.layer_norm(x, (4,)); torch.arange(3); x.mean(0); torch.where(x > 0, x, x)
torch.nn.functional.cross_entropy(x, torch.zeros(3, dtype=torch.int64)); x.is_cuda; x.var(1); x.clone().is_contiguous()
""".replace("\n", ";")


@pytest.mark.parametrize("text", [each.strip() for each in FAKES.split(";") if each.strip()])
def test_fake_tensors_have_the_metadata_of_pytorchs(text):
    def run(lib):
        module = importlib.import_module(f"{lib.__name__}._subclasses.fake_tensor")
        with module.FakeTensorMode():
            return repr(eval(text, {"torch": lib, "x": lib.ones(3, 4)}))

    assert run(weft) == run(torch)


@LIBRARIES
def test_fake_tensors_have_no_values(lib):
    module = importlib.import_module(f"{lib.__name__}._subclasses.fake_tensor")
    real = lib.ones(2, 3, requires_grad=True)
    with module.FakeTensorMode() as mode:
        x = lib.ones(3, 4)
        for read, error in (
            (lambda: x.sum().item(), "DataDependent"),
            (lambda: x.nonzero(), "DynamicOutput"),
        ):
            with pytest.raises(RuntimeError) as caught:
                read()
            assert type(caught.value).__name__.startswith(error)
        with pytest.raises(module.FakeTensorDeviceMismatchError if lib is weft else RuntimeError):
            x + lib.ones(3, 4, device="cuda")
        with pytest.raises(AssertionError):
            real + x[0, :3]
    fake = mode.from_tensor(real)
    assert module.is_fake(fake) and fake.requires_grad and fake.is_leaf and fake.fake_mode is mode
    assert mode.from_tensor(real) is fake and (fake * 2).requires_grad
    with module.FakeTensorMode(allow_non_fake_inputs=True):
        assert module.is_fake(real + lib.ones(3))


def test_a_model_is_made_and_trained_without_memory():
    with FakeTensorMode():
        net = weft.nn.Sequential(weft.nn.Linear(10**6, 10**6), weft.nn.ReLU(), weft.nn.Linear(10**6, 2))
        net(weft.ones(8, 10**6)).sum().backward()
        assert net[0].weight.grad.shape == (10**6, 10**6)
        assert is_fake(net[0].weight) and isinstance(net[0].weight, FakeTensor)


def _noting(lib):
    """A class of tensors around others, and the names of the operators that it was told of."""
    told = []

    class Noting(lib.Tensor):
        @staticmethod
        def __new__(cls, value):
            made = lib.Tensor._make_wrapper_subclass(
                cls, value.shape, strides=value.stride(), dtype=value.dtype
            )
            made.value = value
            return made

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            told.append(str(func))
            tree = lib.utils._pytree
            args, kwargs = tree.tree_map_only(cls, lambda each: each.value, (args, kwargs or {}))
            out = tree.tree_map_only(lib.Tensor, cls, func(*args, **kwargs))
            return out

    return Noting, told


def test_methods_without_an_operation_are_told_as_well():
    """A class that keeps the default `__torch_function__` learns of `detach` and indexing, which only look at metadata."""
    found = []
    for lib in (weft, torch):
        kind, told = _noting(lib)
        x = kind(lib.arange(6.0).reshape(2, 3))
        results = (x.detach(), x[0], x.detach().requires_grad_())
        assert all(type(each) is kind and type(each.value) is lib.Tensor for each in results)
        found.append(told)
    assert found[0] == found[1]


@LIBRARIES
def test_results_keep_the_class_that_torch_dispatch_gave_them(lib):
    class Unwrapping(lib.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return lib.full((2,), 5.0)

    x = lib.Tensor._make_wrapper_subclass(Unwrapping, (2,))
    assert Unwrapping.__torch_function__ is lib._C._disabled_torch_function_impl
    assert type(x + 1) is type(lib.exp(x)) is lib.Tensor
    with pytest.raises(RuntimeError, match=r"requires that detach\(\) returns an instance of the same type"):
        lib.nn.Parameter(x)
    with pytest.raises(RuntimeError, match="clone"):
        copy.deepcopy(x)


@LIBRARIES
def test_copies_of_wrappers(lib):
    kind, told = _noting(lib)
    x = kind(lib.ones(2))
    copied = copy.deepcopy(x)
    assert told == ["aten.clone.default"]
    assert type(copied) is kind and copied.value is not x.value and copied.value.tolist() == [1, 1]


@pytest.mark.parametrize("name", ["SGD", "Adam", "RMSprop", "Adagrad"])
def test_optimizers_of_wrappers(name):
    found = []
    for lib in (torch, weft):
        kind, _ = _noting(lib)
        parameters = lib.nn.ParameterList([kind(lib.ones(2))])
        assert len(parameters.state_dict()) == 1
        optimizer = getattr(lib.optim, name)(parameters, lr=0.01, weight_decay=0.1, foreach=False)
        for _ in range(2):
            optimizer.zero_grad()
            (parameters[0] ** 2).sum().backward()
            optimizer.step()
        found.append(parameters[0].value.tolist())
    assert found[0] == pytest.approx(found[1])


def _computing_below(lib, call):
    """A class with memory, whose handler computes by `call(super, func, types, args, kwargs)`."""

    class Below(lib.Tensor):
        told: list = []

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            cls.told.append(str(func))
            return call(super().__torch_dispatch__, func, types, args, kwargs)

    return Below


@LIBRARIES
def test_handlers_compute_as_for_plain_tensors(lib):
    def without(above, func, types, args, kwargs):
        with lib.utils._mode_utils.no_dispatch():
            return func(*args, **kwargs or {})

    def above(handler, func, types, args, kwargs):
        result = handler(func, types, args, kwargs)
        assert args[0].requires_grad and not result.requires_grad
        return result

    for call in (without, above):
        cls = _computing_below(lib, call)
        x = lib.Tensor._make_subclass(cls, lib.ones(2), True)
        result = x * 3
        assert type(result) is lib.Tensor and result.tolist() == [3, 3] and result.requires_grad
        assert cls.told == ["aten.mul.Tensor"]


@LIBRARIES
def test_versions_of_wrappers(lib):
    kind, _ = _noting(lib)
    x = kind(lib.ones(2))
    before = x._version
    for write in (lambda: x.add_(1), lambda: x.detach().add_(1), lambda: x.view(1, 2).mul_(2)):
        write()
        before += 1
        assert x._version == before
    x.data.add_(1)
    assert x._version == before and x.value.tolist() == [7, 7]


@LIBRARIES
def test_what_a_wrapper_cannot_do(lib):
    kind, _ = _noting(lib)

    class Other(lib.Tensor):
        pass

    x = kind(lib.ones(2))
    for call in (x.tolist, x.numpy):
        with pytest.raises(RuntimeError, match="is not supported for tensor subclasses"):
            call()
    for call in (lambda: Other(x), lambda: x.as_subclass(Other), lambda: lib.Tensor._make_subclass(Other, x)):
        with pytest.raises(RuntimeError, match="subclass Other but.*python object of type Noting"):
            call()
    with pytest.raises(TypeError, match="Other must define __torch_dispatch__"):
        lib.Tensor._make_wrapper_subclass(Other, (2,))


@LIBRARIES
def test_operators_are_recorded_again_in_a_reentrant_handler(lib):
    class Reentrant(_noting(lib)[0]):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            with lib.overrides.enable_reentrant_dispatch():
                return super().__torch_dispatch__(func, types, args, kwargs)

    inner = lib.ones(2, requires_grad=True)
    result = Reentrant(inner) * 3
    assert not result.requires_grad and result.value.requires_grad
    result.value.sum().backward()
    assert inner.grad.tolist() == [3, 3]


@LIBRARIES
def test_a_mode_with_a_classmethod(lib):
    class Mode(lib.utils._python_dispatch.TorchDispatchMode):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return func(*args, **kwargs or {})

    x = lib.ones(1)
    with (
        pytest.raises(RuntimeError, match="classmethod is not supported, please make it a plain method"),
        Mode(),
    ):
        x + x


@LIBRARIES
def test_the_text_of_a_wrapper(lib):
    kind, _ = _noting(lib)
    x = lib.nn.Parameter(kind(lib.ones(2)))
    assert x.__repr__(tensor_contents="two") == "Parameter(Noting(two, requires_grad=True))"


@LIBRARIES
def test_batches_of_wrappers(lib):
    kind, _ = _noting(lib)
    x, y = kind(lib.arange(6.0).reshape(3, 2)), lib.arange(6.0).reshape(2, 3)
    result = lib.func.vmap(lambda a, b: (a * b, a.sum()), in_dims=(0, 1), out_dims=(1, 0))(x, y)
    assert all(type(each) is kind for each in result)
    assert result[0].value.tolist() == [[0, 2, 8], [3, 12, 25]] and result[1].value.tolist() == [1, 5, 9]
    w = kind(lib.ones(2)).requires_grad_()
    cotangents = kind(lib.eye(2))
    (gradients,) = lib.autograd.grad(w * 3, w, cotangents, is_grads_batched=True)
    assert type(gradients) is kind and gradients.value.tolist() == [[3, 0], [0, 3]]


TWICE = {
    "exp": lambda lib, x: x.exp(),
    "tanh": lambda lib, x: x.tanh(),
    "sigmoid": lambda lib, x: x.sigmoid(),
    "relu": lambda lib, x: (x * x).relu(),
    "repeat": lambda lib, x: x.repeat(2, 3) ** 3,
    "sqrt": lambda lib, x: x.sqrt(),
    "rsqrt": lambda lib, x: x.rsqrt(),
}


@pytest.mark.parametrize("name", TWICE)
def test_second_derivatives_of_wrappers(name):
    """Saved results are parts of the graph, too."""
    found = []
    for lib in (torch, weft):
        cls = wrapper(lib)
        x = cls(lib.full((2, 3), 0.3, dtype=lib.float64)).requires_grad_()
        y = TWICE[name](lib, x)
        (first,) = lib.autograd.grad((y * 2).sum(), x, create_graph=True)
        assert type(first) is cls and first.requires_grad
        (second,) = lib.autograd.grad((first * 3).sum(), x)
        assert type(second) is cls
        found.append([torch.tensor(each.elem.tolist()) for each in (first, second)])
    torch.testing.assert_close(*found)


def test_slices_of_wrappers_can_be_differentiated_twice():
    kind, _ = _noting(weft)
    x = kind(weft.arange(1.0, 5.0)).requires_grad_()
    (first,) = weft.autograd.grad((x[1:3] ** 3).sum() + x[0] ** 3, x, create_graph=True)
    (second,) = weft.autograd.grad(first.sum(), x)
    assert second.value.tolist() == [6.0, 12.0, 18.0, 0.0]


def test_isclose_of_wrappers_is_composed():
    kind, told = _noting(weft)
    a, b = weft.tensor([1.0, math.nan, 2.0]), weft.tensor([1.0 + 1e-7, math.nan, 3.0])
    assert weft.isclose(kind(a), kind(b), equal_nan=True).value.tolist() == [True, True, False]
    assert weft.isclose(kind(a), kind(b), rtol=0, atol=0).value.tolist() == [False, False, False]
    assert "aten.eq.Tensor" in told


def test_what_a_wrapper_returns_of_operators_that_write():
    for lib in (weft, torch):
        aliasing = lib.utils._python_dispatch.return_and_correct_aliasing
        x, other = lib.ones(2), lib.zeros(2)
        assert aliasing(lib.ops.aten.add_.Tensor, (x, other), {}, other) is x
        assert aliasing(lib.ops.aten.add.Tensor, (x, other), {}, other) is other
        assert aliasing(lib.ops.aten.add.out, (x, x), {"out": other}, x) is other
