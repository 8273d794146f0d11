"""Sparse tensors in files of both libraries, in pickles, copies and shared memory."""

import copy
import io
import multiprocessing
import pickle

import pytest
import torch
from oracle import to_weft
from sparse_layouts import LAYOUTS, dense, in_layout, parts

import weft

TENSORS = {layout: lambda t, layout=layout: in_layout(dense() if t is torch else to_weft(dense()), layout) for layout in LAYOUTS} | {
    "batch": lambda t: in_layout(dense((2, 4, 6)) if t is torch else to_weft(dense((2, 4, 6))), "sparse_csr"),
    "uncoalesced": lambda t: t.sparse_coo_tensor([[0, 1, 0], [2, 0, 2]], [3.0, 4.0, 5.0], (2, 3)),
    "hybrid": lambda t: t.sparse_coo_tensor([[0, 1], [2, 0]], [[3.0, 1.0], [4.0, 5.0]], (2, 3, 2)),
    "empty": lambda t: t.sparse_coo_tensor(size=(2, 3)),
    "int32": lambda t: t.sparse_csr_tensor(t.tensor([0, 1, 2], dtype=t.int32), t.tensor([1, 0], dtype=t.int32), [1, 2], (2, 2)),
}  # fmt: skip


def reread(value, writer, reader, **options):
    file = io.BytesIO()
    writer.save(value, file)
    file.seek(0)
    return reader.load(file, **options)


@pytest.mark.parametrize("kind", TENSORS)
def test_files_of_both_libraries(kind):
    known = parts(TENSORS[kind](torch))
    assert parts(reread(TENSORS[kind](weft), weft, torch)) == known
    assert parts(reread(TENSORS[kind](torch), torch, weft)) == known
    assert parts(reread(TENSORS[kind](weft), weft, weft)) == known
    assert parts(reread(TENSORS[kind](weft), weft, weft, weights_only=False)) == known


@pytest.mark.parametrize("kind", TENSORS)
def test_pickles_and_copies(kind):
    x = TENSORS[kind](weft)
    for again in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x), copy.copy(x)):
        assert type(again) is weft.Tensor and parts(again) == parts(x)
    if x.is_floating_point():
        x.requires_grad_()
        x.sum().backward()
        x.note = ["a"]
        again = copy.deepcopy(x)
        assert again.requires_grad and parts(again.grad) == parts(x.grad) and again.note == ["a"]
        again = pickle.loads(pickle.dumps(x))
        assert again.requires_grad and again.note == ["a"]
        with pytest.raises(RuntimeError, match="graph leaves"):
            copy.deepcopy(x.t() if x.dim() == 2 else x.unsqueeze(0))


def test_a_copy_has_memory_of_its_own():
    x = TENSORS["sparse_csr"](weft)
    again = copy.deepcopy(x)
    again.values().zero_()
    assert x.to_dense().tolist() == dense().tolist()
    one, two = copy.deepcopy([x, x])
    assert one is two


def test_parameters():
    x = weft.nn.Parameter(TENSORS["sparse_coo"](weft))
    assert x.layout is weft.sparse_coo and x.requires_grad and isinstance(x, weft.nn.Parameter)
    for again in (copy.deepcopy(x), pickle.loads(pickle.dumps(x)), reread(x, weft, weft, weights_only=False)):
        assert isinstance(again, weft.nn.Parameter) and again.requires_grad and parts(again) == parts(x)
    again = reread(torch.nn.Parameter(TENSORS["sparse_coo"](torch)), torch, weft)
    assert isinstance(again, weft.nn.Parameter) and parts(again) == parts(x)


def test_shared_memory():
    x = TENSORS["sparse_csr"](weft)
    assert not x.is_shared()
    assert x.share_memory_() is x and x.is_shared()
    again = pickle.loads(multiprocessing.reduction.ForkingPickler.dumps(x))
    x.values().mul_(2)
    assert again.to_dense().tolist() == (2 * dense()).tolist()


def altered(layout, change):
    """A file of PyTorch's with other parts."""
    from weft.layouts.sparse import files

    found, state = files.state_of(TENSORS[layout](weft))
    return lambda: files.rebuilt_tensor(found, change(list(state)))


BAD = {
    "column": ("sparse_csr", lambda s: (s[0], s[1] + 100, *s[2:])),
    "pointers": ("sparse_csr", lambda s: (s[0] * 100, *s[1:])),
    "row": ("sparse_coo", lambda s: (s[0] + 100, *s[1:])),
    "negative": ("sparse_coo", lambda s: (s[0] - 100, *s[1:])),
    "size": ("sparse_bsr", lambda s: (*s[:3], (3, 6))),
    "values": ("sparse_csc", lambda s: (*s[:2], s[2][:1], s[3])),
    "floats": ("sparse_csr", lambda s: (s[0].double(), s[1].double(), *s[2:])),
    "few": ("sparse_coo", lambda s: tuple(s[:2])),
    "no tensor": ("sparse_csr", lambda s: ([0], *s[1:])),
    "sparse parts": ("sparse_csr", lambda s: (s[0].to_sparse(), *s[1:])),
}


@pytest.mark.parametrize("case", BAD)
def test_malicious_files(case):
    with pytest.raises((RuntimeError, TypeError)):
        altered(*BAD[case])()


@pytest.mark.parametrize("kind", ["sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc"])
def test_checks_of_invariants_concern_files_as_well(kind):
    """Rows whose entries are not sorted can be read; whoever asks for checks gets PyTorch's error."""
    x = TENSORS[kind](weft)
    plain = x.col_indices() if kind in ("sparse_csr", "sparse_bsr") else x.row_indices()
    plain.copy_(plain.flip(-1))
    assert parts(reread(x, weft, weft)) == parts(x)
    with (
        weft.sparse.check_sparse_tensor_invariants(),
        pytest.raises(RuntimeError, match="are sorted and distinct"),
    ):
        reread(x, weft, weft)
