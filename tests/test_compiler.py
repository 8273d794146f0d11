import pytest

import weft
import weft.nn as nn


def test_functions_are_wrapped():
    def double(a):
        return a * 2

    for compiled in (weft.compile(double), weft.compile(mode="max-autotune")(double)):
        assert compiled.__wrapped__ is compiled._torchdynamo_orig_callable is double
        assert compiled.__name__ == "double" and compiled(3) == 6
        assert compiled(weft.ones(2)).tolist() == [2, 2]
    assert weft.compile(double, disable=True) is double
    assert weft.compiler.disable(double) is double
    assert weft.compiler.disable()(double) is double
    with pytest.raises(RuntimeError, match="Either mode or options"):
        weft.compile(double, mode="default", options={})


def test_modules_are_wrapped():
    model = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5))
    compiled = weft.compile(model, fullgraph=True)
    assert isinstance(compiled, nn.Module) and compiled._orig_mod is model
    assert weft.compile(model, disable=True) is model
    compiled.eval()
    assert not model.training and not compiled.training
    assert compiled(weft.ones(1, 2)).tolist() == model(weft.ones(1, 2)).tolist()
    compiled.note = "kept by the model"
    assert model.note == "kept by the model" and len(compiled) == 2
    del compiled.note
    assert not hasattr(model, "note")
    with pytest.raises(AttributeError, match="absent"):
        compiled.absent()


def test_wrapped_modules_have_the_names_of_pytorchs():
    torch = pytest.importorskip("torch", reason="compares with PyTorch")
    ours, theirs = (
        library.compile(library.nn.Sequential(library.nn.Linear(2, 2), library.nn.Dropout(0.5)))
        for library in (weft, torch)
    )
    assert repr(ours) == repr(theirs)
    assert list(ours.state_dict()) == list(theirs.state_dict())


def test_wrapped_modules_train():
    compiled = weft.compile(nn.Linear(3, 1))
    optimizer = weft.optim.SGD(compiled.parameters(), lr=0.1)
    before = compiled.weight.detach().clone()
    compiled(weft.ones(1, 3)).sum().backward()
    optimizer.step()
    assert not before.equal(compiled.weight)


def test_only_functions_and_modules_are_compiled():
    with pytest.raises(
        AssertionError, match="A callable function is expected, but <class 'int'> is provided"
    ):
        weft.compile(3)
