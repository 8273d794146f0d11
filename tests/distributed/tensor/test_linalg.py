"""Factorizations of matrices whose rows lie on several processes give what one process gives, with gradients."""

import gc

import pytest
from several_ranks import outcomes

import weft
from weft.distributed.tensor import DTensor, Shard, _panels
from weft.engine import memory

WHOLE = "(Replicate(),)"
# A number, or as many as columns, which all processes have.
SMALL = {"r", "svdvals", "lstsq", "residuals", "det", "slogdet", "logdet"}
SMALL |= {"lstsq of many columns", "residuals of many columns"}


@pytest.mark.parametrize("size", [2, 3])
def test_like_one_process(size):
    for rank in outcomes("weft", size, "linalg_programs"):
        for name, (error, placements) in rank["differences"].items():
            assert error < 1e-10, name
            assert (placements == WHOLE) == (name in SMALL), name
        for error in rank["kinds"].values():
            assert error < 1e-10, rank["kinds"]


def test_errors_are_those_of_one_process():
    for rank in outcomes("weft", 3, "linalg_programs"):
        assert len(rank["failures"]) == 5
        for plain, cut in rank["failures"]:
            assert plain == cut


CALLS = {
    "matmul": lambda s: s @ s,
    "cholesky": weft.linalg.cholesky,
    "triangle": lambda s: weft.linalg.solve_triangular(s.tril(), s, upper=False),
    "lu": lambda s: weft.linalg.lu_factor(s)[0],
    "inv": weft.linalg.inv,
    "slogdet": lambda s: weft.linalg.slogdet(s)[1],
    "qr": lambda s: weft.linalg.qr(s)[0],
    "eigenvalues": lambda s: weft.linalg.eigh(s)[0],
    "eigenvectors": lambda s: weft.linalg.eigh(s)[1],
    "singular vectors": lambda s: weft.linalg.svd(s)[0],
}


@pytest.fixture
def one_of_many():
    """This process is one of 64 that do not exist."""
    weft.distributed.init_process_group("fake", rank=0, world_size=64)
    yield weft.distributed.init_device_mesh("cpu", (64,))
    weft.distributed.destroy_process_group()


@pytest.mark.parametrize("name", CALLS)
def test_no_process_has_a_whole_matrix(name, one_of_many, monkeypatch):
    """Neither of the result nor of the gradient."""
    monkeypatch.setattr(_panels, "LARGE", 1 << 18)
    n, whole = 512, 512 * 512 * 8
    part = weft.eye(n, dtype=weft.float64)[: n // 64] * n + weft.rand(n // 64, n, dtype=weft.float64)
    matrix = DTensor.from_local(part, one_of_many, [Shard(0)]).requires_grad_()
    gc.collect()
    memory.release_cached(0)  # a peak is noted when memory grows
    before = weft.cpu.memory_stats()["allocated_bytes.all.current"]
    weft.cpu.reset_peak_memory_stats()
    result = CALLS[name](matrix)
    result.backward(weft.ones_like(result))
    assert weft.cpu.memory_stats()["allocated_bytes.all.peak"] - before < 0.75 * whole
    assert matrix.grad.shape == matrix.shape
