"""Parameters that are named, nested or sparse: updated as their plain tensors are, or refused with a reason."""

import pytest

import weft
from weft import nn, optim

ELEMENTWISE = ["SGD", "Adam", "AdamW", "Adagrad", "RMSprop", "Rprop", "NAdam", "Adadelta"]
COMPONENTS = [[[1.0, 2.0]], [[3.0, 4.0], [5.0, 6.0]]]


def _after_steps(name, param, loss):
    optimizer = getattr(optim, name)([param], lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        loss(param).backward()
        optimizer.step()
    return param.detach()


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_named(name):
    x = weft.tensor([[1.0, -2.0], [3.0, 0.5]])
    expected = _after_steps(name, nn.Parameter(x.clone()), lambda p: (p * p).sum())
    got = _after_steps(name, nn.Parameter(x.refine_names("row", "column")), lambda p: (p * p).sum())
    assert got.names == ("row", "column")
    assert got.rename(None).equal(expected)


@pytest.mark.parametrize("layout", [weft.strided, weft.jagged], ids=str)
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_nested(name, layout):
    components = [weft.tensor(each) for each in COMPONENTS]
    expected = _after_steps(name, nn.Parameter(weft.cat(components)), lambda p: (p * p).sum())
    nested = weft.nested.nested_tensor(components, layout=layout)
    got = _after_steps(name, nn.Parameter(nested), lambda p: (p * p).values().sum())
    assert got.values().reshape(3, 2).equal(expected)


def test_nested_that_is_not_contiguous():
    components = [weft.tensor(each) for each in COMPONENTS]
    param = nn.Parameter(weft.nested.nested_tensor(components).transpose(1, 2))
    (param * 2).values().sum().backward()
    with pytest.raises(NotImplementedError, match="nested"):
        optim.SGD([param], lr=0.1).step()


@pytest.mark.parametrize("name", ["SGD", "Adam"])
def test_sparse_parameters_are_refused(name):
    param = nn.Parameter(weft.eye(3).to_sparse())
    (param * 2).to_dense().sum().backward()
    with pytest.raises(NotImplementedError, match="make a Parameter of its values"):
        getattr(optim, name)([param], lr=0.1).step()
