"""Tensors in memory that several processes see, through queues, pools and executors."""

import copy
import gc
import os
import pickle
import resource
import signal
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import resource_sharer

import numpy as np
import pytest
import sharing_workers as workers

import weft
import weft.multiprocessing as mp

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="memory is shared on POSIX systems only")


def descriptors():
    gc.collect()
    return len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0


@pytest.fixture(params=["fork", "spawn"])
def context(request):
    return mp.get_context(request.param)


def run(context, function, *args):
    process = context.Process(target=function, args=args)
    process.start()
    process.join(60)
    assert process.exitcode == 0


class TestMoving:
    def test_views_follow_and_values_stay(self):
        whole = weft.arange(6.0)
        row = whole[2:4]
        storage = whole.untyped_storage()
        assert not whole.is_shared()
        assert whole.share_memory_() is whole
        assert whole.is_shared() and row.is_shared() and storage.is_shared()
        assert storage.share_memory_() is storage
        row[0] = 9
        assert whole.tolist() == [0, 1, 9, 3, 4, 5]

    def test_arrays_that_were_given_out_stay_valid(self):
        tensor = weft.ones(5)
        array = tensor.numpy()
        tensor.share_memory_()
        del tensor
        [weft.zeros(5) for _ in range(50)]
        assert array.tolist() == [1] * 5

    def test_memory_of_others(self):
        array = np.ones(3)
        tensor = weft.from_numpy(array).share_memory_()
        tensor[0] = 7
        assert tensor.tolist() == [7, 1, 1] and array[0] == 1

    def test_it_cannot_grow(self):
        with pytest.raises(RuntimeError, match="not resizable"):
            weft.ones(2).share_memory_().resize_(100)

    def test_empty_modules_and_gradients(self):
        assert weft.ones(0).share_memory_().is_shared()
        module = weft.nn.Linear(2, 2).share_memory()
        assert all(parameter.is_shared() for parameter in module.parameters())
        module(weft.ones(2)).sum().backward()
        assert module.bias.grad.tolist() == [1, 1]

    def test_copies_and_pickles_are_private(self):
        tensor = weft.ones(2).share_memory_()
        for other in (copy.deepcopy(tensor), pickle.loads(pickle.dumps(tensor)), tensor.clone()):
            assert not other.is_shared() and other.tolist() == [1, 1]

    def test_descriptors_are_closed(self):
        before = descriptors()
        tensors = [weft.ones(10).share_memory_() for _ in range(20)]
        assert descriptors() > before
        del tensors
        assert descriptors() == before


def test_arguments_of_processes(context):
    tensor = weft.zeros(3).share_memory_()
    run(context, workers.fill, tensor[1:], 5)
    assert tensor.tolist() == [0, 5, 5]


def test_queues(context):
    before = descriptors()
    queue, results = context.Queue(), context.Queue()
    process = context.Process(target=workers.answer, args=(queue, results))
    process.start()
    tensor = weft.ones(1000)
    for number in range(2, 5):
        queue.put(tensor)
        result = results.get(timeout=60)
        assert result.is_shared() and (result == 2 * number).all()
    assert tensor[0] == 4  # what was sent is shared
    queue.put(None)
    process.join(60)
    assert process.exitcode == 0
    for each in (queue, results):
        each.close()
        each.join_thread()
    process.close()
    del queue, results, process, tensor, result, each
    resource_sharer.stop()
    assert descriptors() <= before + 1  # Python's own resource tracker, when spawning


def test_a_sender_waits_until_all_is_taken(context):
    queue = context.SimpleQueue()
    process = context.Process(target=workers.send_and_end, args=(queue, 3.0))
    process.start()
    process.join(0.5)  # without waiting, it would be gone with its tensor now
    assert queue.get()[0] == 3
    process.join(60)
    assert process.exitcode == 0


def test_pools_and_what_is_shared_within_one_message(context):
    tensor = weft.nn.Parameter(weft.ones(3, 2))
    with context.Pool(2) as pool:
        shared, one_storage, requires_grad, kind = pool.apply(workers.facts, ((tensor, tensor.detach()[0]),))
        assert shared and one_storage and requires_grad and kind == "Parameter"
        results = pool.map(workers.double, [weft.full((4,), float(n)) for n in range(20)])
    assert [result[0].item() for result in results] == [2.0 * n for n in range(20)]


def test_executors(context):
    with ProcessPoolExecutor(1, mp_context=context) as executor:
        assert executor.submit(workers.double, weft.ones(2)).result(60).tolist() == [2, 2]


def test_one_storage_stays_one():
    receiving, sending = mp.Pipe(duplex=False)
    tensor = weft.ones(2)
    sending.send(tensor)
    assert receiving.recv().untyped_storage() is tensor.untyped_storage()
    before = descriptors()
    for _ in range(20):
        sending.send(tensor)
        receiving.recv()
    # Python's thread that sends descriptors may close the last ones a little later.
    assert descriptors() < before + 10


def test_nothing_and_meta():
    receiving, sending = mp.Pipe(duplex=False)
    sending.send([weft.ones(0, 3), weft.ones(2, device="meta")])
    empty, meta = receiving.recv()
    assert empty.shape == (0, 3) and meta.is_meta


def test_results_of_recorded_operations_are_refused():
    _, sending = mp.Pipe()
    with pytest.raises(RuntimeError, match="Cowardly refusing"):
        sending.send(weft.ones(2, requires_grad=True) * 2)


class TestStrategies:
    @pytest.fixture(autouse=True)
    def limit(self):
        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        yield
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
        mp.set_sharing_strategy("file_descriptor")

    def test_names(self):
        assert mp.get_sharing_strategy() == "file_descriptor"
        for name in mp.get_all_sharing_strategies():
            mp.set_sharing_strategy(name)
            assert mp.get_sharing_strategy() == name
        with pytest.raises(AssertionError, match="invalid sharing strategy 'pigeon'"):
            mp.set_sharing_strategy("pigeon")

    def test_many_storages(self):
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (200, most))
        with pytest.raises(OSError, match="Too many open files"):
            [weft.ones(1).share_memory_() for _ in range(200)]
        mp.set_sharing_strategy("file_system")
        assert len([weft.ones(1).share_memory_() for _ in range(200)]) == 200

    def test_macos_refuses_more_descriptors_than_it_has(self, monkeypatch):
        limits = []
        monkeypatch.setattr(sys, "platform", "darwin")
        monkeypatch.setattr(resource, "getrlimit", lambda kind: (256, resource.RLIM_INFINITY))
        monkeypatch.setattr(resource, "setrlimit", lambda kind, limit: limits.append(limit))
        mp.set_sharing_strategy("file_system")
        assert limits == [(10240, resource.RLIM_INFINITY)]
        monkeypatch.undo()


PROGRAM = """
import sys, time
import weft as torch, weft.multiprocessing as mp
def work(queue, results):
    mp.sharing.PATIENCE = 0.3  # here only: the parent has to wait until its last tensor is taken
    for tensor in iter(queue.get, None):
        results.put(tensor + 1)
        time.sleep(0.1)  # the parent is at its end before the last is taken
if __name__ == "__main__":
    context = mp.get_context(sys.argv[1])
    queue, results = context.Queue(), context.Queue()
    process = context.Process(target=work, args=(queue, results))
    process.start()
    for n in range(5):
        queue.put(torch.ones(100_000))
        last = results.get()
    queue.put(torch.ones(3))  # its answer is never taken
    queue.put(None)
    print(last.sum().item())
"""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_nothing_is_left_at_exit(run, tmp_path, method):
    (tmp_path / "program.py").write_text(PROGRAM)
    done = run("-W", "error", "program.py", method)
    assert (done.stdout, done.stderr, done.returncode) == ("200000.0\n", "", 0)


LEAVING = """
import sys
import weft as torch, weft.multiprocessing as mp
def take(queue, ready, start):
    ready.put(None)
    start.get()  # the parent is about to end: nobody will be there to answer but its threads
    while (tensor := queue.get()) is not None:
        print(tensor.sum().item(), flush=True)
def through(method, *arguments):
    mp.get_context(method).Process(target=take, args=arguments).start()
if __name__ == "__main__":
    kind, method = sys.argv[1:]
    context = mp.get_context(method)
    queue, ready, start = context.Queue(), context.SimpleQueue(), context.SimpleQueue()
    if kind == "manager":
        manager = context.Manager()  # a process that ends only when it is told
    elif kind == "child":
        context.Process(target=take, args=(queue, ready, start)).start()
    elif kind == "grandchild":
        context.Process(target=through, args=(method, queue, ready, start)).start()
    for value in (torch.ones(3), torch.ones(4)):
        queue.put(value)
    queue.put(None)
    if kind in ("child", "grandchild"):
        ready.get()
        start.put(None)
"""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.parametrize(
    ("kind", "output"),
    [("child", "3.0\n4.0\n"), ("grandchild", "3.0\n4.0\n"), ("manager", ""), ("nobody", "")],
)
def test_the_first_process_leaves_with_tensors_on_their_way(run, tmp_path, kind, output, method):
    (tmp_path / "program.py").write_text(LEAVING)
    done = run("-W", "error", "program.py", kind, method)
    assert (done.stdout, done.stderr, done.returncode) == (output, "", 0)


class TestSpawn:
    def test_every_process_writes_its_part(self, context):
        tensor = weft.zeros(3).share_memory_()
        assert mp.spawn(workers.add_one, (tensor,), nprocs=3) is None
        mp.start_processes(workers.add_one, (tensor,), nprocs=2, start_method=context.get_start_method())
        assert tensor.tolist() == [2, 2, 1]

    def test_the_first_error_ends_all(self):
        with pytest.raises(mp.ProcessRaisedException, match="(?s)-- Process 1 terminated.*no luck") as caught:
            mp.start_processes(workers.fail, nprocs=2, start_method="fork")
        started = mp.start_processes(workers.fail, nprocs=2, start_method="fork", join=False)
        with pytest.raises(mp.ProcessRaisedException):
            started.join()
        assert not any(process.is_alive() for process in started.processes)
        assert caught.value.error_index == 1 and caught.value.error_pid > 0
        assert "no luck" in str(pickle.loads(pickle.dumps(caught.value)))

    def test_errors_of_any_length(self):
        started = mp.start_processes(workers.fail_at_length, nprocs=2, start_method="fork", join=False)
        with pytest.raises(mp.ProcessRaisedException, match="(no luck ){100000}"):
            started.join(20)

    @pytest.mark.parametrize(
        ("code", "message"),
        [(3, "process 0 terminated with exit code 3"), (-signal.SIGKILL, "signal SIGKILL")],
    )
    def test_processes_that_leave(self, code, message):
        with pytest.raises(mp.ProcessExitedException, match=message) as caught:
            mp.start_processes(workers.leave, (code,), start_method="fork")
        assert caught.value.exit_code == code
        assert pickle.loads(pickle.dumps(caught.value)).exit_code == code

    def test_without_waiting(self):
        started = mp.start_processes(workers.leave, (0,), nprocs=2, join=False, start_method="fork")
        assert len(started.pids()) == 2
        while not started.join(10):
            pass
        assert started.join()
