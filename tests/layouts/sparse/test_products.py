"""Products of compressed sparse matrices, compared with PyTorch's dense ones."""

import pytest
import torch
from oracle import TOLERANCE, name_of, to_torch, to_weft

import weft
from weft.layouts.sparse import products
from weft.layouts.sparse.compression import Compressed

DTYPES = ("float32", "float64", "complex64", "complex128", "float16", "bfloat16", "int64", "int8")
WIDTHS = (None, 0, 1, 2, 16, 67)
# Rows, columns and how many of the elements are not zero.
SIZES = ((30, 20, 0.3), (1, 7, 1.0), (7, 1, 0.5), (50, 40, 0.02), (5, 6, 0.0), (0, 3, 0.0), (3, 0, 0.0))


def random(shape, dtype, seed=0):
    generator = torch.Generator().manual_seed(seed)
    dtype = getattr(torch, dtype)
    if dtype.is_complex:
        return torch.randn(shape, generator=generator, dtype=dtype)
    return (torch.randn(shape, generator=generator) * (3 if not dtype.is_floating_point else 1)).to(dtype)


def sparse(rows, columns, share, dtype, seed=0):
    generator = torch.Generator().manual_seed(seed)
    kept = torch.rand(rows, columns, generator=generator) < share
    return torch.where(
        kept, random((rows, columns), dtype, seed + 1), torch.zeros((), dtype=getattr(torch, dtype))
    )


def parts_of(tensor, index=torch.int64):
    csr = tensor.to_sparse_csr()
    return Compressed(
        *map(to_weft, (csr.crow_indices().to(index), csr.col_indices().to(index), csr.values()))
    )


def close(got, expected):
    got = to_torch(got)
    rtol, atol = TOLERANCE.get(name_of(expected.dtype), (0, 0))
    torch.testing.assert_close(got, expected, rtol=4 * rtol, atol=20 * atol)


@pytest.mark.parametrize("index", [torch.int32, torch.int64])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_with_dense(dtype, width, index):
    for rows, columns, share in SIZES:
        matrix = sparse(rows, columns, share, dtype)
        parts, behind = parts_of(matrix, index), () if width is None else (width,)
        dense = random((columns, *behind), dtype, 5)
        close(products.matmul(parts, columns, to_weft(dense)), matrix @ dense)
        dense = random((rows, *behind), dtype, 6)
        close(products.transposed_matmul(parts, columns, to_weft(dense)), matrix.t() @ dense)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "bfloat16"])
def test_without_kernels(dtype, monkeypatch):
    matrix, parts = sparse(9, 8, 0.3, dtype), parts_of(sparse(9, 8, 0.3, dtype))
    monkeypatch.setattr(products, "_kernel", lambda name, values: None)
    dense = random((8, 5), dtype)
    close(products.matmul(parts, 8, to_weft(dense)), matrix @ dense)
    dense = random((9, 5), dtype)
    close(products.transposed_matmul(parts, 8, to_weft(dense)), matrix.t() @ dense)


@pytest.mark.parametrize("width", [0, 1, 16, 67])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "float16"])
def test_sampled(dtype, width):
    for rows, columns, share in SIZES:
        matrix = sparse(rows, columns, share, dtype)
        left, right = random((rows, width), dtype), random((columns, width), dtype, 3)
        got = products.sampled_matmul(parts_of(matrix), to_weft(left), to_weft(right))
        expected = left @ right.t()
        close(got, expected[matrix != 0])


@pytest.mark.parametrize("dtype", ["float32", "complex64", "int64"])
def test_blocks(dtype):
    for rows, columns, share in SIZES:
        blocks = sparse(rows, columns, share, dtype)
        matrix = torch.kron(blocks, random((2, 3), dtype, 9))
        if not matrix.numel():
            continue
        bsr = matrix.to_sparse_bsr((2, 3))
        parts = Compressed(*map(to_weft, (bsr.crow_indices(), bsr.col_indices(), bsr.values())))
        dense = random((3 * columns, 4), dtype)
        close(products.block_matmul(parts, columns, to_weft(dense)), matrix @ dense)


@pytest.mark.parametrize("index", [torch.int32, torch.int64])
@pytest.mark.parametrize("dtype", ["float32", "complex128", "int64", "bfloat16"])
def test_with_sparse(dtype, index):
    for rows, columns, share in SIZES:
        left, right = sparse(rows, columns, share, dtype), sparse(columns, 11, 0.3, dtype, 7)
        got = products.matmul_sparse(parts_of(left, index), parts_of(right, index), 11)
        expected = left @ right
        if len(got.inner):
            assert (got.outer.dtype, got.inner.dtype) == (
                got.inner.dtype,
                to_weft(torch.zeros(0, dtype=index)).dtype,
            )
        csr = torch.sparse_csr_tensor(*map(to_torch, got), (rows, 11), check_invariants=True)
        close(to_weft(csr.to_dense()), expected)


@pytest.mark.parametrize("dtype", [weft.float32, weft.int64])
@pytest.mark.parametrize(
    ("outer", "inner"),
    [
        ([0, 1, 2, 3], [0, 4, 1]), ([0, 1, 2, 3], [0, -1, 1]), ([0, 1, 2, 3], [0, 2**40, 1]), ([0, 9, 2, 3], [0, 1, 1]),
        ([0, 1, 2, 9], [0, 1, 1]), ([-5, 1, 2, 3], [0, 1, 1]), ([3, 2, 1, 0], [0, 1, 1]), ([0, 2**62, -(2**62), 3], [0, 1, 1]),
    ],
)  # fmt: skip
def test_indices_out_of_range(outer, inner, dtype):
    parts = Compressed(weft.tensor(outer), weft.tensor(inner), weft.ones(3, dtype=dtype))
    for function, size in ((products.matmul, 4), (products.transposed_matmul, 3)):
        for width in ((), (1,), (5,), (64,)):
            with pytest.raises(RuntimeError, match="out of range|do not rise"):
                function(parts, 4, weft.ones(size, *width, dtype=dtype))
    with pytest.raises(RuntimeError, match="out of range|do not rise"):
        products.sampled_matmul(parts, weft.ones(3, 5, dtype=dtype), weft.ones(4, 5, dtype=dtype))


def test_entries_of_a_matrix_without_minors():
    parts = Compressed(weft.tensor([0, 1]), weft.tensor([0]), weft.ones(1))
    with pytest.raises(RuntimeError, match="out of range"):
        products.matmul(parts, 0, weft.ones(0, 3))


def test_large_products_are_those_of_one_thread():
    rows, columns, each = 5000, 4000, 60
    outer = weft.arange(rows + 1) * each
    inner = weft.randint(0, columns, (rows * each,))
    parts = Compressed(outer, inner, weft.randn(rows * each))
    threads = weft.get_num_threads()
    for width in ((), (1,), (100,)):
        results = []
        for count in (1, 3):
            weft.set_num_threads(count)
            dense, other = weft.ones(columns, *width).cumsum(0), weft.ones(rows, *width).cumsum(0)
            results.append(
                (products.matmul(parts, columns, dense), products.transposed_matmul(parts, columns, other))
            )
        weft.set_num_threads(threads)
        assert all(weft.equal(one, other) for one, other in zip(*results))


@pytest.mark.parametrize("kind", ["sum", "mean", "amax", "amin"])
def test_reduced(kind):
    for rows, columns, share in SIZES[:4]:
        matrix, dense = sparse(rows, columns, share, "float32"), random((columns, 5), "float32")
        expected = torch.sparse.mm(matrix.to_sparse_csr(), dense, kind)
        close(products.reduced_matmul(parts_of(matrix), columns, to_weft(dense), kind), expected)


# ---- Sparse and sparse, by kernels ---------------------------------------------------------------------------------------


def with_repeated_minors(majors, minors, each, index=weft.int64, dtype=weft.float32):
    outer = weft.arange(majors + 1, dtype=index) * each
    return Compressed(
        outer, weft.randint(0, minors, (majors * each,)).to(index), weft.randn(majors * each, dtype=dtype)
    )


def same(got, expected):
    return all(weft.equal(x, y) and x.dtype is y.dtype for x, y in zip(got, expected, strict=True))


@pytest.mark.parametrize("index", [weft.int32, weft.int64])
@pytest.mark.parametrize("dtype", [weft.float32, weft.float64, weft.complex64, weft.complex128])
def test_kernels_give_the_numbers_of_array_code(dtype, index):
    for majors, middle, minors in ((1, 1, 1), (5, 6, 7), (40, 30, 300_000), (300, 200, 5000)):
        left = with_repeated_minors(majors, middle, 6, index, dtype)
        right = with_repeated_minors(middle, minors, 9, weft.int64, dtype)
        assert products.multiplies_pairs(left, right, minors)
        assert same(products.matmul_pairs(left, right, minors), products.matmul_sparse(left, right, minors))


def test_kernels_without_common_entries():
    left = Compressed(weft.tensor([0, 1, 1]), weft.tensor([1]), weft.ones(1))
    right = Compressed(weft.tensor([0, 1, 1]), weft.tensor([2]), weft.ones(1))
    outer, inner, values = products.matmul_pairs(left, right, 3)
    assert (outer.tolist(), inner.tolist(), values.tolist()) == ([0, 0, 0], [], [])


def test_infinite_products_of_pairs_stay_where_they_are():
    left = Compressed(weft.tensor([0, 1, 2]), weft.tensor([0, 1]), weft.tensor([weft.inf, 2.0]))
    outer, inner, values = products.matmul_pairs(left, left._replace(values=weft.tensor([-0.0, weft.nan])), 2)
    assert values.isnan().all() and inner.tolist() == [0, 1]
    found = products.sampled_pairs(left, left, left._replace(values=weft.tensor([3.0, weft.inf])), 2)
    assert found.tolist() == [weft.inf, weft.inf]


def test_products_of_pairs_are_those_of_one_thread():
    left, right = with_repeated_minors(3000, 2000, 20), with_repeated_minors(2000, 2500, 15)
    pattern = with_repeated_minors(3000, 2000, 10)
    results, threads = [], weft.get_num_threads()
    for count in (1, 3):
        weft.set_num_threads(count)
        product = products.matmul_pairs(left, right, 2500)
        results.append((*product, products.sampled_pairs(pattern, product, right, 2500)))
    weft.set_num_threads(threads)
    assert same(*results)


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_sampled_pairs(dtype):
    matrix, left, right = (sparse(*sizes, 0.4, dtype, k) for k, sizes in enumerate(((9, 7), (9, 8), (7, 8))))
    got = products.sampled_pairs(*map(parts_of, (matrix, left, right)), 8)
    close(got, (left @ right.t())[matrix != 0])


@pytest.mark.parametrize(
    ("outer", "inner"),
    [
        ([0, 1, 2, 3], [0, 3, 1]), ([0, 1, 2, 3], [0, -1, 1]), ([0, 1, 2, 3], [0, 2**40, 1]), ([0, 9, 2, 3], [0, 1, 1]),
        ([0, 1, 2, 9], [0, 1, 1]), ([-5, 1, 2, 3], [0, 1, 1]), ([3, 2, 1, 0], [0, 1, 1]), ([0, 2**62, -(2**62), 3], [0, 1, 1]),
    ],
)  # fmt: skip
def test_indices_of_pairs_out_of_range(outer, inner):
    wrong = Compressed(weft.tensor(outer), weft.tensor(inner), weft.ones(3))
    right = Compressed(weft.arange(4), weft.arange(3), weft.ones(3))
    for left, other in ((wrong, right), (right, wrong)):
        with pytest.raises(RuntimeError, match="out of range"):
            products.matmul_pairs(left, other, 3)
    for matrices in ((wrong, right, right), (right, wrong, right), (right, right, wrong)):
        with pytest.raises(RuntimeError, match="out of range"):
            products.sampled_pairs(*matrices, 3)


@pytest.mark.parametrize("index", [weft.int32, weft.int64])
@pytest.mark.parametrize("dtype", [weft.float32, weft.float64, weft.complex64, weft.complex128])
def test_rows_of_any_length_with_a_vector(dtype, index):
    lengths = [0, 1, 7, 8, 31, 32, 33, 39, 40, 41, 200, 0]
    outer = weft.tensor([0, *lengths]).cumsum(0).to(index)
    inner = weft.randint(0, 50, (sum(lengths),)).to(index)
    parts = Compressed(outer, inner, weft.randn(sum(lengths), dtype=dtype))
    vector = weft.randn(50, dtype=dtype)
    terms = (parts.values * vector[inner.long()]).split(lengths)
    expected = weft.stack([each.sum() for each in terms])
    weft.testing.assert_close(products.matmul(parts, 50, vector), expected, rtol=1e-4, atol=1e-4)
    for place in range(sum(lengths)):
        wrong = inner.clone()
        wrong[place] = 50 if place % 2 else -1
        with pytest.raises(RuntimeError, match="out of range"):
            products.matmul(parts._replace(inner=wrong), 50, vector)
