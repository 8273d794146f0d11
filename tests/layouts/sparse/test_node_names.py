"""The names of nodes in autograd's graph, which `repr` shows, are PyTorch's."""

import pytest
import torch

import weft

CALLS = """x * y; x * 2; 2 * x; x * d; d * x; x + y; x - y; d + x; d - x; x / 2; -x; x.abs(); x.sin(); x.sqrt(); x.tanh(); x.relu()
x.to_dense(); x.coalesce(); x.sum(); x.sum(0); t.sparse.sum(x); t.sparse.sum(x, 0); t.sparse.mm(x, d); t.mm(x, d); x @ d; x @ v; x.mv(v)
t.sparse.mm(x, y); x @ y; x.t(); x.transpose(0, 1); x.to_sparse_csr(); x.values(); x.clone(); x.detach(); x.double(); x[0]; x.select(0, 1)
x.index_select(0, t.tensor([0, 1])); t.cat([x, x]); t.stack([x, x]); t.sparse.softmax(x, 1); t.sparse.log_softmax(x, 1); x.pow(2); x**2
x.square(); x.unsqueeze(0); d.to_sparse(); d.to_sparse(1); d.to_sparse_csr(); d.to_sparse_bsr((1, 1)); d.sparse_mask(y); x.sparse_mask(y)
t.sparse.addmm(d, x, d); t.addmm(d, x, d); t.bmm(t.stack([x, x]), t.ones(2, 3, 3)); x.norm(); x.floor(); x.log1p(); t.nn.functional.relu(x)
(x * 2).mul_(3); (x * 2).add_(y); (x * 2).zero_(); t.sparse_coo_tensor(t.tensor([[0, 1], [1, 0]]), v[:2]); x.coalesce().values()
c * y; c * 2; c * d; c + c; -c; c.sin(); c.to_dense(); c.sum(); t.sparse.mm(c, d); t.mm(c, d); c @ v; c.t(); c.values(); c.clone(); c[0]
c.to_sparse(); c.to_sparse_csc(); t.sparse.sampled_addmm(c, d, d); t.sparse.addmm(d, c, d); c.sum(0, keepdim=True)"""


def name_in(lib, call):
    dense = [[0, 1.0, 0], [2, 0, 3], [4, 0, 0]]
    scope = {
        "t": lib,
        "x": lib.tensor(dense).to_sparse().requires_grad_(),
        "y": lib.tensor(dense).to_sparse(),
        "c": lib.tensor(dense).to_sparse_csr().requires_grad_(),
        "d": lib.ones(3, 3, requires_grad=True),
        "v": lib.ones(3, requires_grad=True),
    }
    if call.startswith("c"):
        scope["y"] = scope["y"].to_sparse_csr()
    node = eval(call, scope).grad_fn
    return None if node is None else node.name()


@pytest.mark.parametrize("call", [call.strip() for line in CALLS.splitlines() for call in line.split(";")])
def test_name(call):
    assert name_in(weft, call) == name_in(torch, call)


def test_a_rule_that_returns_its_input_leaves_the_name():
    x = (weft.eye(2).to_sparse().requires_grad_() * 2).coalesce()
    name = x.grad_fn.name()
    assert x.coalesce() is x and x.to(weft.float32) is x and x.grad_fn.name() == name
