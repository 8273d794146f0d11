"""cond, while_loop, map, scan and associative_scan beside PyTorch's."""

import pytest
import torch
from torch._higher_order_ops.associative_scan import associative_scan as their_associative_scan
from torch._higher_order_ops.map import map as their_map
from torch._higher_order_ops.scan import scan as their_scan
from torch._higher_order_ops.while_loop import while_loop as their_while_loop
from torch.utils._pytree import tree_map

import weft
from weft._dynamo.exc import UncapturedHigherOrderOpError
from weft._higher_order_ops import associative_scan, map, scan
from weft.utils._pytree import tree_map as our_tree_map

FUNCTIONS = {
    torch: {
        "associative_scan": their_associative_scan,
        "map": their_map,
        "scan": their_scan,
        "while_loop": their_while_loop,
    },
    weft: {"associative_scan": associative_scan, "map": map, "scan": scan, "while_loop": weft.while_loop},
}


def add(a, b):
    return a + b


def affine(a, b):
    return a[0] * b[0], a[1] * b[0] + b[1]


def running(carry, x):
    return carry + x, carry * x


# Each takes the module, the functions and x = arange(6.).reshape(3, 2) that requires grad.
CASES = {
    "scan of sums": lambda lib, f, x: f["associative_scan"](add, x, 0, combine_mode="generic"),
    "from the end": lambda lib, f, x: f["associative_scan"](add, x, 1, reverse=True, combine_mode="generic"),
    "last dim": lambda lib, f, x: f["associative_scan"](lambda a, b: a * b, x, -1, combine_mode="generic"),
    "pairs": lambda lib, f, x: f["associative_scan"](affine, (x, x * 2), 0, combine_mode="generic"),
    "pointwise": lambda lib, f, x: f["associative_scan"](add, x, 0),
    "no function": lambda lib, f, x: f["associative_scan"](3, x, 0, combine_mode="generic"),
    "dim out of range": lambda lib, f, x: f["associative_scan"](add, x, 3, combine_mode="generic"),
    "dim of text": lambda lib, f, x: f["associative_scan"](add, x, "0", combine_mode="generic"),
    "unknown mode": lambda lib, f, x: f["associative_scan"](add, x, 0, combine_mode="foo"),
    "no tensors": lambda lib, f, x: f["associative_scan"](add, [], 0, combine_mode="generic"),
    "carried": lambda lib, f, x: f["scan"](running, lib.zeros(2), x),
    "carried from the end": lambda lib, f, x: f["scan"](running, lib.ones(2), x, reverse=True),
    "carried along dim 1": lambda lib, f, x: f["scan"](running, lib.ones(3), x, dim=1),
    "scan of a number": lambda lib, f, x: f["scan"](running, 3, x),
    "scan out of range": lambda lib, f, x: f["scan"](running, lib.ones(2), x, dim=5),
    "mapped": lambda lib, f, x: f["map"](lambda a, b: a * b, x, lib.ones(2)),
    "mapped to sums": lambda lib, f, x: f["map"](lambda a: a.sum(), x),
    "mapped numbers": lambda lib, f, x: f["map"](lambda a: a, 3),
    "mapped nothing": lambda lib, f, x: f["map"](lambda a: a, lib.zeros(0, 2)),
    "mapped unequal": lambda lib, f, x: f["map"](add, (x, x[:2])),
    "chosen": lambda lib, f, x: lib.cond(x.sum() > 1, lambda x: x + 1, lambda x: x - 1, (x,)),
    "the other": lambda lib, f, x: lib.cond(False, lambda x: x + 1, lambda x: x - 1, (x,)),
    "one element": lambda lib, f, x: lib.cond(lib.tensor([0]), lambda x: x + 1, lambda x: x - 1, (x,)),
    "several elements": lambda lib, f, x: lib.cond(lib.ones(2), lambda x: x + 1, lambda x: x - 1, (x,)),
    "predicate of text": lambda lib, f, x: lib.cond("a", lambda x: x + 1, lambda x: x - 1, (x,)),
    "no branch": lambda lib, f, x: lib.cond(lib.tensor(True), 3, lambda x: x - 1, (x,)),
    "bare operand": lambda lib, f, x: lib.cond(lib.tensor(True), lambda x: x + 1, lambda x: x - 1, x),
    "operand of ints": lambda lib, f, x: lib.cond(lib.tensor(True), lambda x: x + 1, lambda x: x - 1, (3,)),
    "no condition": lambda lib, f, x: f["while_loop"](3, lambda i: (i + 1,), (x,)),
}


def outcome(lib, case, back):
    x = lib.arange(6.0).reshape(3, 2).requires_grad_()
    try:
        found = case(lib, FUNCTIONS[lib], x)
    except Exception as error:
        return type(error).__name__
    leaves = [each for each in (found if isinstance(found, tuple) else (found,))]
    sum(each.sum() for each in leaves).backward()
    return back(lambda each: each.tolist(), found), x.grad.tolist()


@pytest.mark.parametrize("name", CASES)
def test_as_pytorch(name):
    assert outcome(weft, CASES[name], our_tree_map) == outcome(torch, CASES[name], tree_map)


def test_loops():
    found = weft.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (weft.tensor(0), weft.ones(2)))
    assert found[0].item() == 3 and found[1].tolist() == [8.0, 8.0]
    assert weft.while_loop(lambda i: i < 3, lambda i: (i + 1,), (0,)) == (3,)
    assert weft.ops.higher_order.while_loop(lambda i: i < 3, lambda i: (i + 1,), (0,), ()) == (3,)
    assert str(weft.ops.higher_order.cond) == "cond"


@pytest.mark.parametrize(
    "call",
    [
        lambda x: weft.cond(weft.tensor(True), lambda x: x.add_(1), lambda x: x, (x,)),
        lambda x: weft.cond(weft.tensor(True), lambda x: x.add_(1) * 2, lambda x: x, (x,)),
        lambda x: weft.cond(weft.tensor(True), lambda x: x, lambda x: x, (x,)),
        lambda x: map(lambda x: x, x),
        lambda x: map(lambda x: 3, x),
        lambda x: scan(lambda c, x: c, weft.zeros(2), x),
        lambda x: scan(lambda c, x: (c.long(), c * x), weft.zeros(2), x),
        lambda x: associative_scan(lambda a, b: (a + b).sum(), x, 0, combine_mode="generic"),
        lambda x: weft.while_loop(lambda x: 3, lambda x: (x + 1,), (x,)),
        lambda x: weft.while_loop(lambda x: x.sum() < 3, lambda x: (x.double(),), (x,)),
        lambda x: weft.while_loop(lambda x: x.sum() < 3, lambda x: (weft.cat([x, x]),), (x,)),
    ],
)
def test_functions_that_break_the_rules(call):
    with pytest.raises(UncapturedHigherOrderOpError):
        call(weft.ones(3, 2) * 0.1)


def test_wrappers():
    x = weft.ones(2, requires_grad=True)
    ops = weft.ops.higher_order
    assert not ops.wrap_with_set_grad_enabled(False, lambda x: x * 2, x).requires_grad
    assert ops.wrap_with_autocast("cpu", weft.bfloat16, True, None, lambda x: x @ x, x).dtype is weft.bfloat16
    large = weft.full((2, 2), 100, dtype=weft.int8)  # products are beyond int8
    found = ops.out_dtype(weft.mm, weft.int32, large, large)
    assert found.dtype is weft.int32 and found.tolist() == [[20000, 20000]] * 2
