"""PyTorch's names for the parts of sharing."""

import multiprocessing

import weft
import weft.multiprocessing.pool
import weft.multiprocessing.queue
from weft.multiprocessing import reductions


def test_weak_references_to_storages():
    storage = weft.ones(3).untyped_storage()
    reference = reductions.StorageWeakRef(storage)
    cache = reductions.SharedCache()
    cache["key"] = reference
    assert not reference.expired() and hash(reference) == storage._cdata
    del storage
    assert reference.expired()
    cache.free_dead_references()
    assert not cache


def test_parts_of_tensors():
    tensor = weft.arange(6.0).view(2, 3)[:, 1:]
    typed = reductions.rebuild_typed_storage(tensor.untyped_storage(), weft.float32)
    metadata = (tensor.storage_offset(), tensor.size(), tensor.stride(), True)
    again = reductions.rebuild_tensor(weft.Tensor, typed, metadata)
    assert again.tolist() == tensor.tolist() and again.requires_grad
    parameter = reductions.rebuild_tensor(weft.nn.Parameter, typed, metadata)
    assert type(parameter) is weft.nn.Parameter and parameter.tolist() == tensor.tolist()
    meta = reductions.rebuild_meta_tensor(weft.Tensor, (2, 3), (3, 1), 0, weft.float64, 48, False)
    assert meta.is_meta and meta.shape == (2, 3)


def test_queues_and_pools():
    context = multiprocessing.get_context("spawn")
    queue = weft.multiprocessing.queue.SimpleQueue(ctx=context)
    queue.put(weft.ones(2))
    assert queue.get().tolist() == [1.0, 1.0]
    reading, writing = (weft.multiprocessing.queue.ConnectionWrapper(each) for each in context.Pipe(False))
    writing.send(weft.ones(2))
    assert reading.recv().tolist() == [1.0, 1.0]
    with weft.multiprocessing.pool.Pool(1, context=context) as pool:
        assert [each.tolist() for each in pool.map(weft.exp, [weft.zeros(2)])] == [[1.0, 1.0]]
