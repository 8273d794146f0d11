"""Checks of the parts of sparse tensors, with PyTorch's errors."""

import pytest
import torch
from oracle import to_weft

from weft.layouts.sparse import invariants

INDICES, VALUES = torch.tensor([[0, 1, 1], [2, 0, 2]]), torch.tensor([3.0, 4.0, 5.0])
COO = (
    (INDICES, VALUES, (2, 3)),
    (INDICES.int(), VALUES, (2, 3)),
    (INDICES, VALUES[:2], (2, 3)),
    (INDICES, VALUES[0], (2, 3)),
    (INDICES, VALUES, (2, 2)),
    (-INDICES, VALUES, (2, 3)),
    (INDICES[0], VALUES, (2, 3)),
    (INDICES[0, 0], VALUES, (2, 3)),
    (INDICES[None], VALUES, (2, 3)),
    (INDICES, VALUES, (3,)),
    (INDICES, VALUES, (2, 3, 4)),
    (INDICES, torch.ones(3, 5), (2, 3, 4)),
    (INDICES[:, :0], VALUES[:0], (0, 3)),
    (INDICES.flip(1), VALUES, (2, 3)),
    (torch.zeros_like(INDICES), VALUES, (2, 3)),
)


def raised(function):
    try:
        function()
    except Exception as error:
        return type(error), str(error).splitlines()[0]
    return None


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("coalesced", [None, True, False])
@pytest.mark.parametrize("case", COO)
def test_coordinates(case, coalesced):
    indices, values, size = case
    ours = [to_weft(part) for part in case[:2]]
    expected = raised(lambda: torch.sparse_coo_tensor(*case, is_coalesced=coalesced, check_invariants=True))
    if indices.dim():
        assert raised(lambda: invariants.check_coo(*ours, size, coalesced)) == expected
    expected = raised(lambda: torch.sparse_coo_tensor(*case, check_invariants=False))
    assert raised(lambda: invariants.check_coo_sizes(*ours, size)) == expected


OUTER, INNER = torch.tensor([0, 1, 3, 3, 5]), torch.tensor([1, 2, 3, 0, 3])


def changed(place, value):
    outer = OUTER.clone()
    outer[place] = value
    return outer


# What differs from valid parts: the pointers, the indices, the number of values, the size.
COMPRESSED = {
    "valid": {},
    "int32": {"outer": OUTER.int(), "inner": INNER.int()},
    "two dtypes": {"outer": OUTER.int()},
    "int16": {"outer": OUTER.short(), "inner": INNER.short()},
    "floats": {"outer": OUTER.float(), "inner": INNER.float()},
    "few indices": {"inner": INNER[:4]},
    "few values": {"nnz": 4},
    "few pointers": {"outer": OUTER[:4]},
    "no pointers": {"outer": OUTER[:0]},
    "0-dim pointers": {"outer": OUTER[0]},
    "0-dim indices": {"inner": INNER[0]},
    "first": {"outer": changed(0, 1)},
    "last": {"outer": changed(4, 4)},
    "decreasing": {"outer": changed(1, 3)},
    "decreasing later": {"outer": changed(3, 1)},
    "steep": {"outer": torch.tensor([0, 5, 5, 5, 5])},
    "beyond": {"outer": torch.tensor([0, 9, 9, 9, 5])},
    "below": {"outer": torch.tensor([0, -2, 1, 3, 5])},
    "twice": {"inner": torch.tensor([1, 2, 2, 0, 3])},
    "unsorted": {"inner": torch.tensor([1, 3, 2, 0, 3])},
    "out of range": {"inner": torch.tensor([1, 2, 4, 0, 3])},
    "negative": {"inner": torch.tensor([-1, 2, 3, 0, 3])},
    "1-dim": {"size": (4,)},
    "3-dim": {"size": (2, 4, 4)},
    "dense dim": {"size": (4, 4, 2)},
    "rows": {"size": (6, 4)},
    "columns": {"size": (4, 2)},
    "no columns": {"size": (4, 0)},
    "odd": {"size": (5, 5)},
    "batch": {"outer": OUTER.expand(2, -1)},
    "batches": {"outer": OUTER.expand(2, -1), "inner": INNER.expand(2, -1), "batch": (2,), "size": (2, 4, 4)},
    "other batch": {"outer": OUTER.expand(2, -1), "inner": INNER.expand(2, -1), "batch": (2,), "size": (3, 4, 4)},
    "one bad matrix": {
        "outer": torch.stack([OUTER, changed(1, 3)]), "inner": INNER.expand(2, -1), "batch": (2,), "size": (2, 4, 4)
    },
    "strided indices": {"inner": torch.stack([INNER, INNER], 1)[:, 0]},
    "strided pointers": {"outer": torch.stack([OUTER, OUTER], 1)[:, 0]},
    "nothing": {"outer": OUTER[:1], "inner": INNER[:0], "nnz": 0, "size": (0, 4)},
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("layout", ["sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc"])
@pytest.mark.parametrize("name", COMPRESSED)
def test_compressed(name, layout):
    case = {"outer": OUTER, "inner": INNER, "nnz": 5, "size": (4, 4), "batch": ()} | COMPRESSED[name]
    is_blocked, by_rows = layout.startswith("sparse_bs"), layout.endswith("r")
    size, batch = case["size"], len(case["batch"])
    if is_blocked and name != "odd":
        size = tuple(2 * n if batch <= dim < batch + 2 else n for dim, n in enumerate(size))
    values = torch.ones(*case["batch"], case["nnz"], *((2, 2) if is_blocked else ()))
    expected = raised(
        lambda: torch.sparse_compressed_tensor(
            case["outer"], case["inner"], values, size, layout=getattr(torch, layout), check_invariants=True
        )
    )
    ours = [to_weft(part) for part in (case["outer"], case["inner"], values)]
    assert raised(lambda: invariants.check_compressed(*ours, size, by_rows, is_blocked)) == expected
