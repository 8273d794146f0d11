"""Running one expression on sparse tensors in weft and in PyTorch, and comparing the results."""

import re

import torch
from oracle import TOLERANCE, name_of, to_torch

import weft

LAYOUTS = ("sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc")
# What the expressions may name: dense tensors, of which `made` makes sparse ones.
D = [[0.0, 2.0, 0.0, 0.0], [0.0, 0.0, -3.5, 4.0], [0.0, 0.0, 0.0, 0.0], [5.0, 0.0, 0.0, 6.25]]
E = [[1.0, 0.0, 0.0, 7.0], [0.0, 0.0, 2.0, 0.0], [0.0, 3.0, 0.0, 0.0], [-5.0, 0.0, 0.0, 0.0]]


def made(library, layout, values, dtype="float64"):
    dense = library.tensor(values, dtype=getattr(library, dtype))
    blocks = {"blocksize": (2, 2)} if layout in ("sparse_bsr", "sparse_bsc") else {}
    return dense.to_sparse(layout=getattr(library, layout), **blocks)


def names(library, layout):
    """The names that an expression may use."""
    found = {
        "torch": library,
        "x": made(library, layout, D),
        "y": made(library, layout, E),
        "g": made(library, layout, D).requires_grad_(),
        "h": made(library, layout, E).requires_grad_(),
        "ints": made(library, layout, E, "int64"),
        "flags": made(library, layout, E, "bool"),
        "z": made(library, layout, D, "complex128") * (1 - 2j),
        "d": library.tensor(D, dtype=library.float64),
        "e": library.tensor(E, dtype=library.float64),
        "row": library.tensor([1.0, -2.0, 0.0, 4.0], dtype=library.float64),
        "two": library.tensor(2.0, dtype=library.float64),
    }
    if layout == "sparse_coo":
        found["u"] = library.sparse_coo_tensor([[1, 0, 1], [2, 0, 2]], [3.0, -4.0, 5.0], (4, 4))
        found["v"] = library.sparse_coo_tensor([[1, 0, 1, 0], [2, 0, 2, 1]], [3.0, -4.0, 5.0, 7.0], (4, 4))
        found["hybrid"] = library.sparse_coo_tensor(
            [[1, 0, 1], [2, 0, 2]], [[3.0, 4.0], [5.0, 6.0], [7.0, 8.0]], (2, 3, 2)
        )
    return found


def parts(x):
    """Layout, shape, dtype, the parts and what else there is to see of a tensor, with tensors of PyTorch."""
    layout = str(x.layout).rpartition(".")[2]
    seen = [layout, tuple(x.shape), name_of(x.dtype)]
    x = x.detach()
    if layout == "strided":
        return seen, [x]
    if layout == "sparse_coo":
        return [*seen, x.is_coalesced(), x.sparse_dim()], [x._indices(), x._values()]
    rows = layout in ("sparse_csr", "sparse_bsr")
    indices = (x.crow_indices(), x.col_indices()) if rows else (x.ccol_indices(), x.row_indices())
    return seen, [*indices, x.values()]


def same_tensors(got, expected):
    got_seen, got_parts = parts(got)
    seen, wanted = parts(expected)
    assert got_seen == seen
    for a, b in zip(got_parts, wanted, strict=True):
        a = a if isinstance(a, torch.Tensor) else to_torch(a)
        tolerance = TOLERANCE[name_of(b.dtype)][0] if b.is_floating_point() or b.is_complex() else 0
        torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance, equal_nan=True)


def evaluated(library, layout, text):
    """The value of the last expression of `text`, in which `;` separates statements, or the exception."""
    *statements, last = text.split(";")
    known = names(library, layout)
    try:
        exec(";".join(statements), known)
        return eval(last.strip(), known)
    except Exception as error:
        return error


def compare(layout, text):
    """Both libraries must give the same: tensors with the same parts, equal plain values, or exceptions of the same type."""
    expected, got = evaluated(torch, layout, text), evaluated(weft, layout, text)
    if isinstance(expected, Exception):
        assert type(got) is type(expected), got
        return
    if isinstance(got, Exception):
        raise got
    if isinstance(expected, torch.Tensor):
        same_tensors(got, expected)
    else:
        assert got == expected


def compare_gradients(layout, text, *leaves):
    """The gradients that `backward` of the value of an expression leaves.

    They are compared coalesced, because in PyTorch the count of references decides whether a gradient says that it is coalesced.
    """
    for leaf in leaves:
        read = f"{leaf}.grad.coalesce() if {leaf}.grad.layout is torch.sparse_coo else {leaf}.grad"
        compare(layout, f"({text}).backward(); {read}")


def like_dense(layout, text):
    """Where PyTorch lacks a function, weft's result must be what PyTorch has for the dense tensors."""
    got = evaluated(weft, layout, text)
    if isinstance(got, Exception):
        raise got
    known = {
        name: value.to_dense() if isinstance(value, torch.Tensor) else value
        for name, value in names(torch, layout).items()
    }
    expected = eval(re.sub(r"\.to_sparse\w*(\(\(.*?\)\)|\(\))", "", text), known)
    if isinstance(expected, torch.Tensor):
        dense = to_torch(got.to_dense())
        assert dense.dtype == expected.dtype
        torch.testing.assert_close(dense, expected, equal_nan=True)
    else:
        assert got == expected
