"""MaskedTensors whose data and mask are COO or CSR: results are PyTorch's, and gradients those of strided MaskedTensors."""

import warnings

import pytest
import torch
import torch.masked

import weft
import weft.masked

pytestmark = pytest.mark.filterwarnings("ignore")
DATA = [[0.0, -2, 3, 0], [0, 0, 0, 4], [5, 0, 6, 7]]
OTHER = [[1.0, 2, 3, 4], [5, 6, 7, 8], [9, 1, 2, 3]]
MASK = [[True, True, False, False], [False, False, False, True], [True, False, True, False]]


def names(library):
    """x, x2: COO with the same entries; r, r2: the same as CSR; md: strided."""
    data, other, mask = library.tensor(DATA), library.tensor(OTHER), library.tensor(MASK)
    make = library.masked.masked_tensor
    found = {
        "torch": library,
        "masked": library.masked,
        "make": make,
        "d": data,
        "m": mask,
        "md": make(data, mask),
    }
    for suffix, values in (("", data), ("2", other)):
        for kind, sparse in (("x", mask.to_sparse()), ("r", mask.to_sparse_csr())):
            found[kind + suffix] = make(values.sparse_mask(sparse), sparse)
    return found | {"c": data.sparse_mask(mask.to_sparse()), "cm": mask.to_sparse()}


def shown(value):
    if not isinstance(value, torch.Tensor | weft.Tensor):
        return repr(value).replace("weft.", "torch.")
    parts = [type(value).__name__, repr(value), str(value.layout)]
    if hasattr(value, "get_mask"):
        data, mask = value.get_data(), value.get_mask()
        parts += [repr(data), repr(mask), value.is_sparse, value.is_sparse_coo(), value.is_sparse_csr()]
    return parts


def evaluated(library, text):
    try:
        return shown(eval(text, names(library)))
    except Exception as error:
        return type(error)


EXPRESSIONS = """
x r md.to_sparse() md.to_sparse_coo() md.to_sparse_csr() x.to_dense() r.to_dense() x.to_sparse_csr() x.get_data() r.get_mask()
x.shape,x.dtype,x.dim(),x.numel() x.sin() torch.sin(r) -x abs(r) torch.sqrt(r) x.square() torch.isnan(x) torch.positive(x) x.relu()
x+x2 x*x2 r+r2 r*r2 x-x2 x/x2 r/r2 x+1 x*2 r*2 r+1 2*x x>1 x==x2 r==r2 torch.maximum(x,x2) x**2 x+r x+md
x.sum() r.sum() x.mean() r.mean() x.prod() x.amax() r.amax() x.argmax() x.var() x.clone() r.clone() x.detach() x.contiguous() x._values()
x.t() x.transpose(0,1) x[0] x[0,1] r[0] torch.stack([x,x]) torch.cat([x,x]) x.double() x.float() r.double() len(x)
x.is_contiguous() md.is_contiguous() md.argmax().get_data().dtype make(c,(d==0).to_sparse()) make(c.to_sparse_csr(),torch.flip(m,[1]).to_sparse_csr()) make(c,m) make(d,cm) make(c,cm.to_sparse_csr()) make(c,(d>4).to_sparse()) make(d.to_sparse_csc(),m.to_sparse_csc())
make(d.to_sparse_bsr((1,2)),m.to_sparse_bsr((1,2))) make(r.get_data().int(),m.to_sparse_csr()) masked.as_masked_tensor(c,cm)
make(torch.sparse_coo_tensor([[0,0],[1,1]],[1.,1.],(3,4)),torch.sparse_coo_tensor([[0,0],[1,1]],[True,True],(3,4)))
x.tolist() x.numpy() x.values() x.to_sparse_csc() x.fill_(2.) x.sin_() x.add_(x2)
""".split()


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_results(text):
    assert evaluated(weft, text) == evaluated(torch, text)


def test_exponentials_of_the_entries_alone():
    assert weft.equal(names(weft)["x"].exp().to_dense().get_data() != 0, weft.tensor(MASK))


@pytest.mark.parametrize("layout", ["to_sparse", "to_sparse_csr"])
@pytest.mark.parametrize(
    "loss",
    [
        lambda y: y.sum(),
        lambda y: (y * y).sum(),
        lambda y: y.sin().sum(0).sum(),
        lambda y: y.mean(),
        lambda y: y.to_tensor(3.0).square().sum(),
        lambda y: y.to_dense().amax(),
    ],
)
def test_gradients_are_those_of_strided_data(layout, loss):
    strided = weft.masked.masked_tensor(weft.tensor(DATA), weft.tensor(MASK), requires_grad=True)
    loss(strided).backward()
    converted = weft.masked.masked_tensor(weft.tensor(DATA), weft.tensor(MASK), requires_grad=True)
    loss(getattr(converted, layout)()).backward()
    leaf = getattr(strided.detach(), layout)().requires_grad_()
    loss(leaf).backward()
    for grad in (converted.grad, leaf.grad.to_dense()):
        expected = strided.grad.to_tensor(0.0)
        assert grad.to_tensor(0.0).allclose(expected), (grad, expected)
    assert leaf.grad.layout is leaf.layout


@pytest.mark.parametrize(
    "text", ["x < x2", "x.sum(0)", "r.mean(1)", "x.softmax(1)", "r.to_tensor(9.0)", "torch.where(m, x, x2)"]
)
def test_what_pytorch_refuses_is_that_of_strided_data(text):
    given = names(weft)
    got = eval(text, given).to_dense()
    assert repr(got) == repr(eval(text, given | {name: given[name].to_dense() for name in ("x", "x2", "r")}))


def test_a_gradient_of_sparse_data():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        c = names(weft)["c"].requires_grad_()
        weft.masked.as_masked_tensor(c, names(weft)["cm"]).sum().backward()
    assert c.grad.to_tensor(0.0).equal(weft.tensor(MASK).float())
