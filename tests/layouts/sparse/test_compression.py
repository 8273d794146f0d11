"""Numbers of compressed tensors, compared with PyTorch's sparse tensors."""

import pytest
import torch
from oracle import to_torch, to_weft

import weft
from weft.layouts.sparse import compression
from weft.layouts.sparse.compression import Compressed

LAYOUTS = ("csr", "csc", "bsr", "bsc")
# Sizes of the batch, rows and columns, sizes of the dense dims, and the blocksize.
CASES = (
    ((), (4, 6), (), (2, 3)), ((), (4, 6), (2,), (2, 3)), ((3,), (4, 6), (), (2, 2)), ((2, 2), (4, 6), (2,), (4, 1)),
    ((), (0, 6), (), (2, 2)), ((), (4, 0), (), (2, 2)), ((2,), (0, 6), (), (2, 2)), ((), (6, 4), (), (1, 4)),
)  # fmt: skip


def dense_tensor(batch, sizes, dense, dtype=torch.float32):
    """A tensor whose matrices have equally many elements and blocks that are not zero."""
    rows, columns = sizes
    places = torch.arange(rows * columns).reshape(sizes)
    kept = (places * 7 % 5 < 2) & (places % max(columns, 1) // 2 != 1)
    shape = (*batch, *sizes, *dense)
    values = torch.arange(1, 1 + torch.Size(shape).numel()).reshape(shape)
    return (values * kept.reshape(*sizes, *[1] * len(dense))).to(dtype)


def converted(tensor, layout, blocksize, dense_dim):
    options = {"dense_dim": dense_dim} if tensor.layout is torch.strided else {}
    if layout in ("bsr", "bsc"):
        return getattr(tensor, f"to_sparse_{layout}")(blocksize, **options)
    return getattr(tensor, f"to_sparse_{layout}")(**options)


def parts_of(tensor):
    if tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        return tensor.crow_indices(), tensor.col_indices(), tensor.values()
    return tensor.ccol_indices(), tensor.row_indices(), tensor.values()


def ours(tensor):
    return Compressed(*[to_weft(part.contiguous()) for part in parts_of(tensor)])


def same(got, expected):
    for one, other in zip(got, expected, strict=True):
        one = to_torch(one)
        assert one.dtype == other.dtype and one.shape == other.shape, (one, other)
        assert torch.equal(one, other), (one, other)


def by_rows(layout):
    return layout in ("csr", "bsr")


def blocks(layout, blocksize):
    return blocksize if layout in ("bsr", "bsc") else None


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("batch", "sizes", "dense", "blocksize"), CASES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bool, torch.complex64])
def test_to_and_from_dense(batch, sizes, dense, blocksize, layout, dtype):
    tensor = dense_tensor(batch, sizes, dense, dtype)
    expected = converted(tensor, layout, blocksize, len(dense))
    got = compression.from_dense(to_weft(tensor), len(batch), by_rows(layout), blocks(layout, blocksize))
    same(got, parts_of(expected))
    assert all(part.is_contiguous() for part in got)
    back = compression.to_dense(got, sizes, by_rows(layout), blocks(layout, blocksize))
    same([back], [tensor])


def test_numbers_of_entries_differ_in_a_batch():
    tensor = torch.tensor([[[1.0, 0.0]], [[1.0, 2.0]]])
    with pytest.raises(RuntimeError, match="Expect the same number of specified elements per batch"):
        tensor.to_sparse_csr()
    with pytest.raises(RuntimeError, match="Expect the same number of specified elements per batch"):
        compression.from_dense(to_weft(tensor), 1, True, None)


@pytest.mark.parametrize("index", [torch.int32, torch.int64])
@pytest.mark.parametrize(
    ("layout", "other"), [("csr", "csc"), ("csc", "csr"), ("bsr", "bsc"), ("bsc", "bsr")]
)
@pytest.mark.parametrize(("batch", "sizes", "dense", "blocksize"), CASES)
def test_swapped(batch, sizes, dense, blocksize, layout, other, index):
    tensor = dense_tensor(batch, sizes, dense)
    start = converted(tensor, layout, blocksize, len(dense))
    expected = converted(tensor, other, blocksize, len(dense))
    outer, inner, values = ours(start)
    rows, columns = (size // block for size, block in zip(sizes, blocks(layout, blocksize) or (1, 1)))
    dtype = to_weft(torch.zeros(0, dtype=index)).dtype
    minors = columns if by_rows(layout) else rows
    got = compression.swapped(Compressed(outer.to(dtype), inner.to(dtype), values), minors)
    wanted = parts_of(expected)
    same(got, (wanted[0].to(index), wanted[1].to(index), wanted[2]))


@pytest.mark.parametrize("layout", ["csr", "csc"])
@pytest.mark.parametrize(("batch", "sizes", "dense", "blocksize"), CASES)
def test_blocked(batch, sizes, dense, blocksize, layout):
    tensor = dense_tensor(batch, sizes, dense)
    start = ours(converted(tensor, layout, None, len(dense)))
    minors = sizes[1] if by_rows(layout) else sizes[0]
    expected = converted(tensor, layout.replace("cs", "bs"), blocksize, len(dense))
    got = compression.blocked(start, minors, blocksize, by_rows(layout))
    same(got, parts_of(expected))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("batch", "sizes", "dense", "blocksize"), CASES)
def test_coordinates(batch, sizes, dense, blocksize, layout):
    start = converted(dense_tensor(batch, sizes, dense), layout, blocksize, len(dense))
    expected = start.to_sparse()
    got = compression.to_coordinates(ours(start), by_rows(layout), blocks(layout, blocksize))
    same(got, (expected._indices(), expected._values()))


@pytest.mark.parametrize("layout", ["csr", "csc"])
@pytest.mark.parametrize(("batch", "sizes", "dense", "blocksize"), [case for case in CASES if not case[0]])
def test_of_coordinates(batch, sizes, dense, blocksize, layout):
    start = dense_tensor(batch, sizes, dense).to_sparse(2)
    expected = parts_of(getattr(start, f"to_sparse_{layout}")())
    got = compression.of_coordinates(
        to_weft(start._indices()), to_weft(start._values()), sizes, by_rows(layout)
    )
    same(got, expected)


def test_pointers_in_a_batch():
    majors = weft.tensor([[0, 2, 2], [1, 1, 1]])
    outer = compression.pointers(majors, 3)
    assert outer.tolist() == [[0, 1, 1, 3], [0, 0, 3, 3]]
    assert compression.majors_of(outer, 3).tolist() == majors.tolist()


@pytest.mark.parametrize("outer", [[0, 3, 1, 3], [1, 1, 2, 3], [0, 1, 2, 2], [0, 1, 2, 9], [0, -1, 2, 3]])
def test_pointers_out_of_range(outer):
    with pytest.raises(RuntimeError, match="do not rise from 0 to the number of entries, 3"):
        compression.majors_of(weft.tensor(outer), 3)


@pytest.mark.parametrize("inner", [[0, 1, 4], [0, -1, 2]])
def test_indices_out_of_range(inner):
    parts = Compressed(weft.tensor([0, 1, 2, 3]), weft.tensor(inner), weft.ones(3))
    for function in (
        lambda: compression.swapped(parts, 4),
        lambda: compression.blocked(parts, 4, (1, 2), True),
        lambda: compression.to_dense(parts, (3, 4), True, None),
    ):
        with pytest.raises(RuntimeError, match="out of range for size 4"):
            function()


def test_sizes_that_blocks_do_not_divide():
    parts = compression.from_dense(weft.ones(3, 4), 0, True, None)
    with pytest.raises(
        RuntimeError, match=r"tensor sparse size \(3,4\) must be divisible by given blocksize \(2,2\)"
    ):
        compression.blocked(parts, 4, (2, 2), True)
    with pytest.raises(RuntimeError, match="must be divisible by given blocksize"):
        compression.from_dense(weft.ones(3, 4), 0, False, (2, 2))


def test_transposed_blocks():
    tensor = dense_tensor((), (4, 6), ()).to_sparse_bsr((2, 3))
    got = compression.transposed_blocks(to_weft(tensor.values()), 0)
    same([got], [tensor.transpose(0, 1).values()])


@pytest.mark.parametrize("index", [weft.int32, weft.int64])
def test_pointers_and_majors_are_inverse(index):
    weft.manual_seed(0)
    for size in (1, 2, 7, 100):
        for nnz in (0, 1, 7, 8, 9, 500):
            majors = weft.randint(0, size, (nnz,)).sort()[0].to(index)
            pointers = compression.pointers(majors, size)
            assert pointers.tolist() == [int((majors < k).sum()) for k in range(size + 1)]
            assert weft.equal(compression.majors_of(pointers, nnz), majors)
            assert pointers.dtype is majors.dtype


def test_one_number_is_the_size_of_a_block_in_both_directions():
    for library in (weft, torch):
        matrix = library.arange(16.0).reshape(4, 4)
        for name in ("to_sparse_bsr", "to_sparse_bsc"):
            assert getattr(matrix, name)(2).values().shape == getattr(matrix, name)((2, 2)).values().shape
        with pytest.raises(RuntimeError):
            matrix.to_sparse_bsr(0)
        with pytest.raises(TypeError):
            matrix.to_sparse_bsr(True)
