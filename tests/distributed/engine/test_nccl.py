"""The engine for CUDA tensors beside a double of the library, with tensors of the host. No test here has seen a device."""

import threading
from datetime import timedelta

import pytest
from nccl_double import Double

import weft
from weft.distributed import HashStore, ReduceOp, is_backend_available
from weft.distributed.engine import nccl

SIZE = 3


@pytest.fixture
def on_every_rank(monkeypatch):
    """A function that runs a program(engine, rank) on each rank: what the ranks return, and the calls of the library."""
    double = Double(SIZE)
    monkeypatch.setattr(nccl, "library", lambda: double)
    monkeypatch.setattr(nccl, "enter", lambda where: 0)

    def run(program):
        store, found = HashStore(), [None] * SIZE

        def work(rank):
            engine = nccl.Nccl(store, rank, SIZE, timedelta(seconds=20))
            found[rank] = program(engine, rank)
            engine.close()

        threads = [threading.Thread(target=work, args=(rank,)) for rank in range(SIZE)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        calls = [[call for call in each if call != ("ncclCommDestroy",)] for each in double.calls]
        assert [len(each) + 1 for each in calls] == [len(each) for each in double.calls]
        return found, calls

    return run


@pytest.mark.parametrize(
    ("dtype", "op", "expected", "call"),
    [
        (weft.float32, ReduceOp.SUM, [6.0, 9.0], (2, 7, 0)),
        (weft.float16, ReduceOp.PRODUCT, [6.0, 24.0], (2, 6, 1)),
        (weft.int64, ReduceOp.MAX, [3, 4], (2, 4, 2)),
        (weft.int32, ReduceOp.MIN, [1, 2], (2, 2, 3)),
        (weft.complex64, ReduceOp.SUM, [6.0, 9.0], (4, 7, 0)),
        (weft.bool, ReduceOp.SUM, [True, True], (2, 1, 2)),
        (weft.bool, ReduceOp.PRODUCT, [True, True], (2, 1, 3)),
    ],
)
def test_reductions(on_every_rank, dtype, op, expected, call):
    def program(engine, rank):
        every, one = (weft.tensor([rank + 1, rank + 2]).to(dtype) for _ in range(2))
        engine.reduce(every, op, None)
        engine.reduce(one, op, 1)
        return every.tolist(), one.tolist()

    found, calls = on_every_rank(program)
    assert [every for every, _ in found] == [expected] * SIZE and found[1][1] == expected
    assert calls == [[("ncclAllReduce", *call), ("ncclReduce", *call, 1)]] * SIZE


def test_parts_in_one_piece_and_apart(on_every_rank):
    def program(engine, rank):
        own = weft.tensor([rank * 10.0, rank * 10 + 1.0])
        whole, apart = weft.zeros(SIZE, 2), [weft.zeros(2) for _ in range(SIZE)]
        engine.gather(list(whole.unbind()), own, None)
        engine.gather(apart, own, None)
        sums = weft.zeros(2), weft.zeros(2)
        engine.reduce_scatter(sums[0], list(whole.unbind()), ReduceOp.SUM)
        engine.reduce_scatter(sums[1], apart, ReduceOp.SUM)
        return [each.tolist() for each in (whole, weft.stack(apart), *sums)]

    found, calls = on_every_rank(program)
    whole = [[0, 1], [10, 11], [20, 21]]
    assert found == [[whole, whole, *[[3 * each for each in whole[rank]]] * 2] for rank in range(SIZE)]
    grouped = [("ncclBroadcast", 8, 0, rank) for rank in range(SIZE)]
    reduced = [("ncclReduce", 2, 7, 0, rank) for rank in range(SIZE)]
    expected = [("ncclAllGather", 8, 0), *grouped, ("ncclReduceScatter", 2, 7, 0), *reduced]
    assert calls == [expected] * SIZE


def test_what_one_rank_sends_another(on_every_rank):
    def program(engine, rank):
        sent = [weft.full((rank + other,), 10 * rank + other) for other in range(SIZE)]
        received = [weft.zeros(rank + other, dtype=weft.int64) for other in range(SIZE)]
        engine.all_to_all(received, sent)
        root = 2
        part, gathered = weft.zeros(1), [weft.zeros(1) for _ in range(SIZE)] if rank == root else []
        engine.scatter(
            part, [weft.tensor([7.0 * other]) for other in range(SIZE)] if rank == root else [], root
        )
        engine.gather(gathered, part, root)
        engine.broadcast(part, 1)
        if rank == 0:
            assert engine.send(part, 2, 5).is_done()
        if rank == 2:
            request = engine.recv(part.zero_(), 0, 5)
            assert request.is_done() and request.source == 0
        return [each.tolist() for each in received], part.tolist(), [each.tolist() for each in gathered]

    found, calls = on_every_rank(program)
    for rank, (received, part, gathered) in enumerate(found):
        assert received == [[10 * other + rank] * (rank + other) for other in range(SIZE)]
        assert part == [7] and gathered == ([[0], [7], [14]] if rank == 2 else [])
    # Rank 0 has nothing to send to itself, and calls nothing for it.
    assert calls[0][:4] == [
        ("ncclSend", 8, 0, 1),
        ("ncclSend", 16, 0, 2),
        ("ncclRecv", 8, 0, 1),
        ("ncclRecv", 16, 0, 2),
    ]
    assert calls[0][-2:] == [("ncclBroadcast", 4, 0, 1), ("ncclSend", 4, 0, 2)]


def test_what_nccl_cannot_do(on_every_rank):
    def program(engine, rank):
        for call in (
            lambda: engine.reduce(weft.ones(2, dtype=weft.int32), ReduceOp.BAND, None),
            lambda: engine.reduce(weft.ones(2, dtype=weft.int16), ReduceOp.SUM, None),
            lambda: engine.recv(weft.ones(2), None, 0),
        ):
            with pytest.raises(RuntimeError, match="NCCL"):
                call()
        engine.broadcast(weft.ones(1), 0)

    on_every_rank(program)


def test_an_error_of_the_library_is_named(monkeypatch):
    double = Double(1)
    double.ncclCommInitRank = lambda *arguments: 4
    monkeypatch.setattr(nccl, "library", lambda: double)
    monkeypatch.setattr(nccl, "enter", lambda where: 0)
    engine = nccl.Nccl(HashStore(), 0, 1, timedelta(seconds=5))
    with pytest.raises(
        RuntimeError, match=r"NCCL error in ncclCommInitRank on rank 0: invalid argument \(4\)"
    ):
        engine.broadcast(weft.ones(1), 0)


def test_the_backend(monkeypatch):
    """A group of one rank: tensors of the host are refused, as PyTorch refuses them."""
    dist = weft.distributed
    monkeypatch.setattr(nccl, "library", lambda: None)
    assert not is_backend_available("nccl")
    with pytest.raises(RuntimeError, match="pip install nvidia-nccl"):
        dist.init_process_group("nccl", store=HashStore(), rank=0, world_size=1)
    monkeypatch.setattr(nccl, "library", lambda: Double(1))
    assert is_backend_available("nccl")
    dist.init_process_group("nccl", store=HashStore(), rank=0, world_size=1)
    try:
        assert dist.get_backend_config() == "cuda:nccl"
        with pytest.raises(RuntimeError, match="No backend type associated with device type cpu"):
            dist.all_reduce(weft.ones(2))
    finally:
        dist.destroy_process_group()
