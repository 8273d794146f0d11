"""Names of dims, by the documentation of PyTorch 1.x; PyTorch 2.13 has no named tensors."""

import copy
import pickle

import pytest

import weft


def named(*names, sizes=(2, 3, 4, 5)):
    return (
        weft.arange(float(weft.Size(sizes[: len(names)]).numel())).reshape(sizes[: len(names)]).rename(*names)
    )


X = ("N", "C")

RESULTS = {
    # keeping and elementwise
    "x.exp()": X, "x + 1": X, "2 - x": X, "x * weft.ones(3)": X, "x < x": X, "-x": X, "x.clamp(0, 1)": X, "x.clone()": X,
    "weft.where(x > 0, x, x)": X, "x.double()": X, "x.detach()": X, "x.contiguous()": X, "x.to(weft.int64)": X, "x.data": X,
    "x.softmax('C')": X, "x.cumsum('C')": X, "x.sort('C')[0]": X, "weft.nn.functional.relu(x)": X, "weft.zeros_like(x)": X,
    "weft.nn.functional.dropout(x)": X, "x.masked_fill(x > 0, 1.0)": X, "x.flip('C')": X, "weft.add(x, x, out=weft.zeros(0))": X,
    "x.mul_(2)": X, "x.zero_()": X, "x.add_(weft.ones(3, names=['C']))": X, "weft.ones(3).add(x)": X,
    "x.rename(None) + x": X, "x.rename(None).rename('N', None) + x": X,
    # reductions
    "x.sum('C')": ("N",), "x.sum(0)": ("C",), "x.mean(('N', 'C'))": (), "x.sum()": (), "x.max('C').values": ("N",),
    "x.argmax('N')": ("C",), "x.std('C', keepdim=True)": X, "x.logsumexp('C')": ("N",), "x.norm(2, 'C')": ("N",),
    "x.sum(dim=['N'])": ("C",), "x.median('C').indices": ("N",), "weft.amax(x, 'N')": ("C",),
    # views
    "x.t()": ("C", "N"), "x.T": ("C", "N"), "x.transpose('N', 'C')": ("C", "N"), "x.permute(1, 0)": ("C", "N"), "x[0]": ("C",),
    "x[:, 0]": ("N",), "x[..., 0]": ("N",), "x[:, None]": ("N", None, "C"), "x[1:, ::2]": X, "x.unsqueeze(-1)": ("N", "C", None),
    "x.select('C', 1)": ("N",), "x.narrow('C', 0, 1)": X, "x.split(1, 'C')[0]": X, "x.unbind('N')[1]": ("C",), "x.chunk(2, 'N')[0]": X,
    "x[:1].squeeze()": ("C",), "x.expand(4, 2, 3)": (None, "N", "C"), "x.diagonal()": (None,), "x.movedim('C', 0)": ("C", "N"),
    "x.swapaxes('C', 'N')": ("C", "N"), "next(iter(x))": ("C",), "x.view(6)": (None,), "x.t_()": ("C", "N"),
    # products
    "x @ weft.ones(3, 2)": ("N", None), "x @ named('C', 'D', sizes=(3, 2))": ("N", "D"), "weft.mv(x, weft.ones(3))": ("N",),
    "weft.addmm(weft.ones(2), x, weft.ones(3, 2))": ("N", None), "weft.nn.functional.linear(x, weft.ones(4, 3))": ("N", None),
    "weft.outer(x[0], x[:, 0])": ("C", "N"), "weft.ones(4, 2) @ x": (None, "C"),
    # joining
    "weft.cat([x, x])": X, "weft.cat([x, weft.ones(2, 3)], 1)": X, "weft.stack([x, x])": (None, "N", "C"),
    # merging and splitting
    "x.flatten(['N', 'C'], 'F')": ("F",), "x.flatten('N', 'C', 'F')": ("F",), "x.flatten()": (None,),
    "x.unflatten('C', (('A', 1), ('B', 3)))": ("N", "A", "B"), "x.unflatten('C', (1, 3))": ("N", None, None),
    # alignment
    "x.align_to('C', 'N')": ("C", "N"), "x.align_to('C', ...)": ("C", "N"), "x.align_to('...', 'H')": ("N", "C", "H"),
    "x[0].align_as(x)": X, "weft.align_tensors(x[0], x)[0]": X,
    # names
    "x.rename('A', ...)": ("A", "C"), "x.rename(C='D')": ("N", "D"), "x.rename(None)": (None, None), "x.rename_('A', 'B')": ("A", "B"),
    "weft.zeros(2, 3).refine_names('N', ...)": ("N", None), "x.refine_names('...', 'C')": X,
    # functions that drop them
    "x.reshape(3, 2)": (None, None), "x.nonzero()": (None, None), "x.diag()": (None,), "x.unique()": (None,),
    "copy.deepcopy(x)": X, "pickle.loads(pickle.dumps(x))": X,
}  # fmt: skip


@pytest.mark.parametrize("text", RESULTS)
def test_names_of_results(text):
    found = eval(text, {"weft": weft, "x": named(*X), "named": named, "copy": copy, "pickle": pickle})
    assert found.names == RESULTS[text]


@pytest.mark.parametrize(
    "text", [each for each in RESULTS if "'" not in each and "_(" not in each and "align" not in each]
)
def test_values_of_results(text):
    """The values are those of the tensor without names."""
    if "dropout" in text or "pickle" in text or "copy" in text:
        pytest.skip("random, or a copy")
    found = eval(text, {"weft": weft, "x": named(*X), "named": named})
    expected = eval(text, {"weft": weft, "x": named(*X).rename(None), "named": named})
    assert weft.equal(found.rename(None), expected)


ERRORS = {
    "x + weft.ones(2, 3, names=('A', 'C'))": "dim 'N' and dim 'A' are at the same position from the right but do not match.\n  N  C\n  A  C\n  ^",
    "x + x.t()": "at the same position",
    "x + weft.ones(3, 1, 1, names=('C', None, None))": "dim 'C' appears in a different position from the right across both lists",
    "x.sum('Q')": "sum: Name 'Q' not found in Tensor['N', 'C']",
    "x.rename('a', 'a')": "duplicate names. Got names: ['a', 'a']",
    "x.rename('a')": "Number of names (1) and number of dimensions in tensor (2) do not match",
    "x.rename(Q='a')": "Name 'Q' not found",
    "x.rename('a b', 'c')": "Invalid name",
    "x.refine_names('N', 'D')": "cannot coerce Tensor['N', 'C'] to Tensor['N', 'D'] because 'C' is different from 'D'",
    "x.refine_names(..., ...)": "More than one Ellipsis",
    "x.align_to('C')": "Cannot find dim 'N'",
    "weft.zeros(2).align_to('C')": "All input dims must be named",
    "x @ named('C', 'N', sizes=(3, 2))": "duplicate names ['N', 'N']",
    "weft.cat([x, x.rename('N', 'D')])": "names of the tensors do not match",
    "x.flatten(['C', 'N'], 'F')": "must be consecutive",
    "weft.zeros(2, 3, names=('N',))": "Number of names (1)",
}  # fmt: skip


@pytest.mark.parametrize("text", ERRORS)
def test_errors(text):
    with pytest.raises(RuntimeError) as caught:
        eval(text, {"weft": weft, "x": named(*X), "named": named})
    assert ERRORS[text] in str(caught.value)


@pytest.mark.parametrize("make", ["zeros", "ones", "empty", "rand", "randn"])
def test_factories(make):
    assert getattr(weft, make)(2, 3, names=("N", None)).names == ("N", None)
    assert weft.full((2,), 3.0, names=["a"]).names == ("a",) and weft.tensor([1.0], names=["a"]).names == (
        "a",
    )


def test_a_gradient_has_no_names_and_the_right_values():
    x = named(*X).requires_grad_()
    (x * 2).sum("C").pow(2).sum().backward()
    assert x.grad.names == (None, None) and x.grad.tolist() == [[24.0] * 3, [96.0] * 3]
    y = named(*X).requires_grad_() * 1
    y.mul_(3)
    assert y.names == X and y.grad_fn.name() == "MulBackward0"


def test_a_write_into_a_view_reaches_the_tensor():
    x = named(*X)
    x.select("C", 1).zero_()
    x[0] = 7
    assert x.rename(None).tolist() == [[7, 7, 7], [3, 0, 5]]


def test_printing():
    x = weft.zeros(2, names=["a"], requires_grad=True)
    assert repr(x) == "tensor([0., 0.], requires_grad=True, names=('a',))"
    assert repr(x.rename(None)) == "tensor([0., 0.], grad_fn=<AliasBackward0>)" or "names" not in repr(
        x.rename(None)
    )


def test_sizes_by_name():
    x = named(*X)
    assert (x.size("C"), x.stride("N"), x.has_names(), weft.ones(2).has_names()) == (3, 3, True, False)
    x.names = ["a", None]
    assert x.names == ("a", None)


def test_layers():
    x = weft.randn(4, 3, 8, 8, names=("N", "C", "H", "W"))
    assert weft.nn.ReLU()(x).names == x.names
    assert weft.nn.MaxPool2d(2)(x).names == x.names
    assert weft.nn.Linear(8, 2)(x).names == ("N", "C", "H", None)


def test_the_cells_of_an_image():
    image, batch = weft.randn(3, 5, 5), weft.randn(2, 3, 5, 5)
    weights = weft.tensor([0.2126, 0.7152, 0.0722], names=["channels"])
    image = image.refine_names(..., "channels", "rows", "columns")
    assert batch.refine_names(..., "channels", "rows", "columns").names == (
        None,
        "channels",
        "rows",
        "columns",
    )
    gray = (image * weights.align_as(image)).sum("channels")
    assert gray.names == ("rows", "columns") and gray.rename(None).names == (None, None)


@pytest.mark.parametrize("written", ["base", "named"])
@pytest.mark.parametrize("read", ["base", "named"])
@pytest.mark.parametrize("view", [lambda y: y.rename("A", "B"), lambda y: y.refine_names("A", "B").T.T])
def test_writes_into_a_tensor_and_its_named_view_have_gradients(written, read, view):
    leaf = weft.ones(2, 3, requires_grad=True)
    base = leaf * 1
    both = {"base": base, "named": view(base)}
    both[written].mul_(3)
    both[written].mul_(2)
    both[read].sum().backward()
    assert leaf.grad.tolist() == [[6.0] * 3] * 2 and both["named"].names == ("A", "B")


def test_a_named_view_of_a_leaf_is_no_leaf():
    leaf = weft.ones(2, 3, requires_grad=True)
    view = leaf.rename("A", "B")
    assert not view.is_leaf and view._is_view()
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
        view.mul_(2)
