"""Properties that machine code reads: the same values, warnings and handlers as those of Python's functions."""

import gc
import sys

import pytest

import weft as torch
from weft.autograd.native_getters import NAMES
from weft.engine.memory import FENCE
from weft.engine.objects import layout_is_known
from weft.families import native_calls


@pytest.fixture(scope="module", autouse=True)
def installed():
    if layout_is_known() and not FENCE:
        native_calls.install()


def tensors(library):
    leaf = library.ones(2, 3, requires_grad=True)
    result = (leaf * 2.0).sum()
    result.backward()
    frozen = library.nn.Parameter(library.ones(3), requires_grad=False)
    whole = library.arange(4)
    return (
        leaf,
        leaf.t(),
        result.detach(),
        frozen,
        library.nn.Parameter(library.ones(())),
        whole,
        whole.bool(),
    )


@pytest.mark.parametrize("name", NAMES)
def test_the_values_are_pytorchs(name):
    pytorch = pytest.importorskip("torch", reason="compares with PyTorch")
    for own, reference in zip(tensors(torch), tensors(pytorch), strict=True):
        if name == "grad" and not own.is_leaf:
            continue
        found, expected = getattr(own, name), getattr(reference, name)
        if isinstance(expected, pytorch.Tensor):
            found, expected = found.tolist(), expected.tolist()
        assert str(found) == str(expected)


def test_the_gradient_of_a_result_warns_unless_it_is_retained():
    x = torch.ones(2, requires_grad=True)
    y = x * 2.0
    with pytest.warns(UserWarning, match="not a leaf"):
        assert y.grad is None
    y.retain_grad()
    y.sum().backward()
    assert y.grad.tolist() == [1.0, 1.0]
    del x.grad
    assert x.grad is None
    x.grad = torch.ones(2)
    x.grad = None
    assert x.grad is None and "_grad" not in vars(x)


@pytest.mark.parametrize("name", NAMES)
def test_modes_and_classes_are_told_of_the_getter(name):
    told = []

    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            told.append(func)
            return func(*args, **kwargs or {})

    class Asking(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            told.append(func)
            return super().__torch_function__(func, types, args, kwargs)

    getter = vars(torch.Tensor)[name].__get__
    x = torch.ones(2)
    with Mode():
        getattr(x, name)
    assert told == [getter]
    getattr(x.as_subclass(Asking), name)
    assert told == [getter, getter]
    assert getter(x) == getattr(x, name)
    assert isinstance(getattr(torch.Tensor, name), property)


def test_a_class_may_have_its_own():
    class Own(torch.Tensor):
        shape = "mine"

        @property
        def requires_grad(self):
            return "mine as well"

    own = torch.ones(2).as_subclass(Own)
    assert (own.shape, own.requires_grad, own.ndim) == ("mine", "mine as well", 1)


def test_a_tensor_that_is_being_built_has_no_metadata_yet():
    """`gc.get_objects()` shows such tensors to other threads and to finalizers."""
    for name in NAMES:
        if name == "layout":  # the same for all tensors
            continue
        with pytest.raises(AttributeError):
            getattr(object.__new__(torch.Tensor), name)
    half = object.__new__(torch.Tensor)
    half.spec = torch.ones(2).spec
    assert half.shape == (2,)
    for read in (lambda: half[0], half.detach, half.t, lambda: torch.cat([half])):
        with pytest.raises(AttributeError):
            read()


def test_a_copy_of_a_property_with_another_function():
    class Holder:
        spec = torch.ones(2).spec
        shape = torch.Tensor.shape.getter(lambda self: "another")

    assert Holder().shape == "another"
    before = torch.Tensor.ndim
    try:
        torch.Tensor.ndim = before.getter(lambda self: "another")
        assert torch.ones(2).ndim == "another"
    finally:
        torch.Tensor.ndim = before
    assert torch.ones(2).ndim == 1


def test_counts_of_references_stay_exact():
    x = torch.ones(2, requires_grad=True)
    (x * 2.0).sum().backward()
    held = [x, x.grad, x.shape, x.dtype, x.device, x.layout, None, True, False, 1]

    def read():
        for _ in range(10_000):
            for name in NAMES:
                getattr(x, name)

    read()
    gc.collect()
    before = [sys.getrefcount(each) for each in held]
    read()
    gc.collect()
    after = [sys.getrefcount(each) for each in held]
    assert all(abs(one - other) < 100 for one, other in zip(before, after, strict=True)), (before, after)
