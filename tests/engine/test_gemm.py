"""Products of matrices as jobs: the right numbers from any strides, cut anyhow, and BLAS's threads as they were."""

import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft
from weft.engine import blas, gemm
from weft.engine.gemm import Places, products

pytestmark = pytest.mark.skipif(
    blas.gemm(weft.float32) is None, reason="NumPy has another BLAS than OpenBLAS here"
)

DTYPES = [weft.float32, weft.float64, weft.complex64, weft.complex128]


@pytest.fixture(params=[1, 2, 3], autouse=True)
def threads(request):
    before = weft.get_num_threads()
    weft.set_num_threads(request.param)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gemm, "SHARED_WORK", 1 << 12)
        patch.setattr(gemm, "ALWAYS_SHARED_WORK", 1 << 12)
        patch.setattr(gemm, "UNTHREADED_WORK", 1 << 10)
        yield request.param
    weft.set_num_threads(before)


def matrices(dtype, count, rows, columns, transposed, seed):
    """[count, rows, columns] small integers, so that sums are exact; columns next to each other if transposed."""
    name = str(dtype).removeprefix("weft.").removeprefix("torch.")
    values = np.random.default_rng(seed).integers(-4, 5, (count, rows, columns)).astype(name)
    if dtype.is_complex:
        values += 1j * np.random.default_rng(seed + 1).integers(-4, 5, values.shape).astype(name)
    return values.swapaxes(1, 2).copy().swapaxes(1, 2) if transposed else values


def strides(values):
    return [step // values.itemsize for step in values.strides[1:]]


class TestProducts:
    @given(
        st.sampled_from(DTYPES),
        st.integers(1, 5),
        st.tuples(*[st.integers(2, 40)] * 3),
        st.booleans(),
        st.booleans(),
    )
    def test_values(self, dtype, count, sizes, left, right):
        rows, terms, columns = sizes
        a, b = matrices(dtype, count, rows, terms, left, 1), matrices(dtype, count, terms, columns, right, 3)
        for step in (rows * terms, 0):  # a matrix for each product, or the first for all
            c = np.full((count, rows, columns), np.nan, a.dtype)
            places = Places((count,), (rows * columns,), (step,), (terms * columns,))
            job = products(dtype, sizes, strides(a), strides(b), places)
            job.entry(c.ctypes.data, a.ctypes.data, b.ctypes.data, job.meta, job.count)
            assert (c == (a if step else a[:1]) @ b).all()

    @given(
        st.sampled_from(DTYPES[:2]), st.integers(1, 3), st.integers(1, 70), st.integers(2, 70), st.booleans()
    )
    def test_products_with_a_vector(self, dtype, count, size, terms, transposed):
        a = matrices(dtype, count, size, terms, transposed, 1)
        v = matrices(dtype, count, terms, 1, False, 3)
        along = (1, size) if transposed else (terms, 1)
        places = Places((count,), (size,), (size * terms,), (terms,))
        column, row = np.full((count, size, 1), np.nan, a.dtype), np.full((count, 1, size), np.nan, a.dtype)
        job = products(dtype, (size, terms, 1), along, (1, 1), places)
        job.entry(column.ctypes.data, a.ctypes.data, v.ctypes.data, job.meta, job.count)
        assert (column == a @ v).all()
        job = products(dtype, (1, terms, size), (terms, 1), along[::-1], places.transposed())
        job.entry(row.ctypes.data, v.ctypes.data, a.ctypes.data, job.meta, job.count)
        assert (row == (a @ v).swapaxes(1, 2)).all()

    def test_every_element_is_in_one_task(self, threads):
        for rows, columns in [(1, 5), (5, 1), (7, 3), (3, 7)]:
            edges = gemm.block_edges(max(rows, columns), threads, 1)
            places = Places((), (), (), ())
            tasks = gemm.tasks_of((), (rows, columns), (10, 1), places, rows >= columns, edges, (1, 1, 1))
            assert tasks.count == min(threads, max(rows, columns))
            done = np.zeros(rows * columns, int)
            for height, width, start, _, _ in np.frombuffer(tasks.memory, np.int64).reshape(tasks.count, 5):
                for row in range(height):
                    done[start + row * columns : start + row * columns + width] += 1
            assert (done == 1).all()


def test_products_are_cut_where_they_are_too_few_for_the_threads(threads):
    assert gemm.blocks(1) == gemm.blocks(3 * threads + 1) == threads
    assert gemm.blocks(threads) == gemm.blocks(4 * threads + 1) == 1


class TestThreads:
    def test_the_setting_returns(self, threads):
        a = weft.ones(300, 300)
        for _ in range(3):
            a @ a
        get = blas._library("numpy", "64_").get_threads
        assert get() == threads
        with pytest.raises(KeyError), blas.ONE_THREAD:
            assert get() == 1
            with blas.ONE_THREAD:
                blas.set_threads(2)
                assert get() == 1
            raise KeyError
        assert get() == 2

    def test_many_at_once(self):
        a = weft.arange(200.0 * 200).view(200, 200) % 7
        expected = a.numpy() @ a.numpy()
        wrong = []

        def work():
            for _ in range(10):
                if not ((a @ a).numpy() == expected).all():
                    wrong.append(1)

        workers = [threading.Thread(target=work) for _ in range(4)]
        [each.start() for each in workers]
        [each.join() for each in workers]
        assert not wrong and blas.ONE_THREAD.inside == 0


@pytest.mark.parametrize(
    "shapes", [((3, 1, 70, 40), (2, 40, 70)), ((2, 300, 64), (64, 80)), ((64, 90), (5, 90, 64))]
)
def test_stacks_broadcast(shapes):
    a, b = (np.random.default_rng(7).integers(-4, 5, shape).astype("float32") for shape in shapes)
    expected = a @ b
    assert (weft.from_numpy(a) @ weft.from_numpy(b)).tolist() == expected.tolist()
    turned = weft.from_numpy(a.swapaxes(-1, -2).copy()).mT @ weft.from_numpy(b.swapaxes(-1, -2).copy()).mT
    assert turned.tolist() == expected.tolist()


@pytest.mark.parametrize("by_rows", [False, True])
@pytest.mark.parametrize("sizes", [(1,), (9,), (2, 3), (3, 1, 5)], ids=str)
def test_tasks_by_arrays_are_those_of_the_loop(sizes, by_rows, monkeypatch):
    """Transposed and repeated matrices of a stack, whole or cut into two blocks."""
    strides = [tuple(k * step for k in range(len(sizes), 0, -1)) for step in (20, 7, 0)]
    for edges in ((0, 20), (0, 12, 20)):
        written = []
        for least in (0, 1 << 30):
            monkeypatch.setattr(gemm, "MANY_PRODUCTS", least)
            places = Places(sizes, *strides)
            found = gemm.tasks_of((1, 2, 3), (20, 20), (5, 6), places, by_rows, edges, (4, 8, 2))
            written.append(
                (found.count, np.frombuffer(found.memory, np.int64)[: 3 + 5 * found.count].tolist())
            )
        assert written[0] == written[1]
