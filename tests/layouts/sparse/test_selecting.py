"""Elements, slices and other shapes of sparse tensors: against the same call of the dense tensor, and against PyTorch where it has it."""

import operator
import re

import pytest
import torch
from oracle import to_weft
from sparse_layouts import LAYOUTS, dense, in_layout, parts

import weft

# Each gives a tensor or several from a matrix of shape (4, 6).
CALLS = {
    "row": lambda t, x: x[1],
    "last row": lambda t, x: x[-1],
    "element": lambda t, x: x[1, 2],
    "rows": lambda t, x: x[1:3],
    "steps": lambda t, x: x[1::2, ::3],
    "no rows": lambda t, x: x[3:1],
    "column": lambda t, x: x[:, 2],
    "ellipsis": lambda t, x: x[..., 1],
    "new dim": lambda t, x: x[None],
    "everything": lambda t, x: x[...],
    "list": lambda t, x: x[[3, 0, 0]],
    "positions": lambda t, x: x[:, t.tensor([5, -1, 2])],
    "pairs": lambda t, x: x[t.tensor([1, 0, 3]), t.tensor([2, 0, 3])],
    "mask of rows": lambda t, x: x[t.tensor([True, False, True, True])],
    "select": lambda t, x: x.select(1, 3),
    "narrow": lambda t, x: x.narrow(1, 2, 2),
    "narrow_copy": lambda t, x: x.narrow_copy(0, 2, 2),
    "index_select": lambda t, x: x.index_select(1, t.tensor([5, 0, 5])),
    "unbind": lambda t, x: x.unbind(1),
    "iteration": lambda t, x: tuple(x),
    "diagonal": lambda t, x: x.diagonal(1),
    "tril": lambda t, x: x.tril(),
    "triu": lambda t, x: t.triu(x, -1),
    "t": lambda t, x: x.t(),
    "T": lambda t, x: x.T,
    "mT": lambda t, x: x.mT,
    "H": lambda t, x: x.H,
    "transpose": lambda t, x: t.transpose(x, 0, -1),
    "permute": lambda t, x: x.permute(1, 0),
    "movedim": lambda t, x: x.movedim(0, 1),
    "unsqueeze": lambda t, x: x.unsqueeze(0),
    "unsqueeze behind": lambda t, x: x.unsqueeze(-1),
    "squeeze": lambda t, x: x[1:2].squeeze(),
    "reshape": lambda t, x: x.reshape(2, -1),
    "flatten": lambda t, x: x.flatten(),
    "expand": lambda t, x: x.expand(2, 4, 6),
    "broadcast_to": lambda t, x: t.broadcast_to(x[0:1], (3, 6)),
    "flip": lambda t, x: x.flip(0, 1),
    "split": lambda t, x: x.split(4, 1),
    "split by sizes": lambda t, x: x.split([1, 3]),
    "chunk": lambda t, x: x.chunk(2),
    "tensor_split": lambda t, x: t.tensor_split(x, 4, dim=1),
    "cat": lambda t, x: t.cat([x, x, x[:1]]),
    "cat of columns": lambda t, x: t.cat((x, x), dim=1),
    "stack": lambda t, x: t.stack([x, x]),
    "stack behind": lambda t, x: t.stack([x, x], -1),
    "hstack": lambda t, x: t.hstack([x, x]),
    "vstack": lambda t, x: t.vstack([x, x]),
}


def several(found):
    return list(found) if isinstance(found, tuple) else [found]


def refusal(error):
    """Whether PyTorch merely lacks a function."""
    words = "not implemented|unsupported|not supported|no view exists|Could not run|do not have|not allowed|non-block"
    return isinstance(error, NotImplementedError) or re.search(words, str(error))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("call", CALLS)
def test_elements_and_parts(call, layout):
    elements = dense()
    try:
        found = several(CALLS[call](weft, in_layout(to_weft(elements), layout)))
    except RuntimeError as error:  # matrices of a batch must have the same number of entries
        assert "number of specified elements per batch" in str(error) and call in ("flatten", "reshape")
        return
    expected = several(CALLS[call](torch, elements))
    assert [each.to_dense().tolist() for each in found] == [each.tolist() for each in expected]
    for each in found:
        if each.layout is weft.sparse_coo and each.is_coalesced():
            indices = each._indices()
            again = weft.sparse_coo_tensor(indices, each._values(), each.shape).coalesce()
            assert again._indices().tolist() == indices.tolist()
    try:
        known = several(CALLS[call](torch, in_layout(elements, layout)))
    except Exception as error:
        assert refusal(error), error
        return
    assert [parts(each) for each in found] == [parts(each) for each in known]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("call", [call for call in CALLS if call not in ("flatten", "reshape")])
def test_gradients(call, layout):
    elements = to_weft(dense())
    x = in_layout(elements, layout).requires_grad_()
    whole = elements.clone().requires_grad_()
    for each in (x, whole):
        sum((part.to_dense() ** 2).sum() for part in several(CALLS[call](weft, each))).backward()
    assert x.grad.layout is x.layout
    assert x.grad.to_dense().tolist() == (whole.grad * (x.detach().to_dense() != 0)).tolist()


HYBRID = {
    "row": lambda t, x: x[1],
    "element": lambda t, x: x[1, 2],
    "number": lambda t, x: x[1, 2, 1],
    "layer": lambda t, x: x[..., 1],
    "window": lambda t, x: x[:, 1:, :1],
    "rows": lambda t, x: x[t.tensor([1, 0])],
    "of values": lambda t, x: x.index_select(2, t.tensor([1, 1])),
    "permute": lambda t, x: x.permute(1, 0, 2),
    "unsqueeze": lambda t, x: x.unsqueeze(1),
    "unsqueeze between": lambda t, x: x.unsqueeze(2),
    "unsqueeze behind": lambda t, x: x.unsqueeze(-1),
    "reshape": lambda t, x: x.reshape(6, 2),
    "flip": lambda t, x: x.flip(0, 2),
    "narrow_copy": lambda t, x: x.narrow_copy(2, 1, 1),
    "cat": lambda t, x: t.cat([x, x], 2),
    "stack": lambda t, x: t.stack([x, x], 3),
}


@pytest.mark.parametrize("call", HYBRID)
def test_dense_dims(call):
    indices, values = [[0, 1, 1, 0], [2, 0, 2, 2]], [[3.0, 4], [5, 6], [7, 8], [1, 2]]
    found = HYBRID[call](weft, weft.sparse_coo_tensor(indices, values, (2, 3, 2)))
    known = torch.sparse_coo_tensor(indices, values, (2, 3, 2))
    assert found.to_dense().tolist() == HYBRID[call](torch, known.to_dense()).tolist()
    if call not in ("window", "rows", "reshape", "flip"):  # which PyTorch lacks
        assert parts(found) == parts(HYBRID[call](torch, known))


def test_entries_of_the_same_element_count_as_their_sum():
    x = weft.sparse_coo_tensor([[1, 3, 1]], [1.0, 2.0, 5.0], (5,))
    assert x[1].item() == 6 and x[2].item() == 0
    assert weft.sparse_coo_tensor([[1, 1]], [True, True], (3,))[1].dtype is weft.bool


ERRORS = {
    "row": lambda x: x[4],
    "dim": lambda x: x.select(2, 0),
    "position": lambda x: x.select(0, 7),
    "float": lambda x: x[1.5],
    "too many": lambda x: x[1, 2, 3],
    "length": lambda x: x.narrow_copy(0, 3, 2),
    "index": lambda x: x.index_select(0, x.detach().to_dense()[0].long() + 5),
    "item": lambda x: x.item(),
    "write": lambda x: operator.setitem(x, 0, 1),
    "write of an element": lambda x: operator.setitem(x, (0, 0), 1),
    "three dims": lambda x: x.unsqueeze(0).t(),
    "repeated": lambda x: x.permute(0, 0),
}


@pytest.mark.parametrize("error", ERRORS)
def test_exceptions(error):
    for x in (dense(), to_weft(dense())):
        with pytest.raises(Exception) as found:
            ERRORS[error](x.to_sparse())
        if isinstance(x, torch.Tensor):
            expected = found.type
        else:
            assert found.type is expected


def test_in_place():
    x = in_layout(to_weft(dense()), "sparse_coo")
    same = x.t_()
    assert same is x and x.shape == (6, 4) and x.to_dense().tolist() == dense().t().tolist()


def test_values_of_a_compressed_tensor_are_a_view():
    x = in_layout(to_weft(dense()), "sparse_csr")
    x.values().mul_(2)
    assert x.to_dense().tolist() == (2 * dense()).tolist()


def test_batches_of_matrices():
    batch = dense((3, 4, 6))
    x, known = in_layout(to_weft(batch), "sparse_csr"), in_layout(batch, "sparse_csr")
    for call in (
        lambda x: x[1],
        lambda x: x[1, 2],
        lambda x: x[0, 1, 2],
        lambda x: x.transpose(1, 2),
        lambda x: x.mT,
    ):
        assert parts(call(x)) == parts(call(known))
    assert x[:, 1].to_dense().tolist() == batch[:, 1].tolist()
    assert x[1:].to_dense().tolist() == batch[1:].tolist()
