"""What the other ranks say when one dies, hangs, or calls something else."""

import os
import signal
import time

import pytest
from weft_ranks import said, start


def test_a_rank_that_is_killed_is_named(tmp_path):
    program = """
dist.barrier()
if rank == 1:
    os.kill(os.getpid(), signal.SIGKILL)
begin = time.monotonic()
for call in (lambda: dist.all_reduce(torch.ones(3)), dist.barrier):
    try:
        call()
    except RuntimeError as error:
        print(error)
print(time.monotonic() - begin < 5)
"""
    for text in said(start(program, 3, tmp_path))[::2]:
        first, second, quick = text.splitlines()
        assert first.startswith("all_reduce(SUM, torch.float32, size (3,)): rank 1 (process ")
        assert "has ended, while rank" in first and "cannot be used any more" in second and quick == "True"


def test_a_rank_that_dies_while_others_have_not_joined(tmp_path):
    program = """
import threading
if rank == 1:
    threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGKILL)).start()
if rank == 2:
    time.sleep(2)
else:
    try:
        dist.init_process_group("gloo", init_method=f"file://{store}2", rank=rank, world_size=3)
    except RuntimeError as error:
        print(error)
"""
    text = said(start("dist.destroy_process_group()" + program, 3, tmp_path))[0]
    assert "rank 1 (process" in text and "has ended before all ranks had joined the group" in text


def test_a_rank_that_dies_in_the_middle_of_training(tmp_path):
    """Killed at a random moment, also while it writes into the segment."""
    program = "print('there', flush=True)\nwhile True: dist.all_reduce(torch.ones(300_000))"
    processes = start(program, 2, tmp_path)
    assert all(process.stdout.readline() == "there\n" for process in processes)
    time.sleep(0.3)
    processes[0].kill()
    assert "has ended, while rank 1 waited for it" in said(processes)[1]


def test_ranks_that_call_different_collectives(tmp_path):
    program = """
for call in (
    lambda: dist.all_reduce(torch.ones(2, 3)) if rank else dist.broadcast(torch.ones(6), 0),
    lambda: dist.all_reduce(torch.ones(3 + rank)),
    lambda: dist.all_reduce(torch.ones(3, dtype=torch.float64 if rank else torch.float32)),
    lambda: dist.all_reduce(torch.ones(3), op=dist.ReduceOp.MAX if rank else dist.ReduceOp.SUM),
    lambda: dist.broadcast(torch.ones(3), rank),
    lambda: dist.barrier() if rank else dist.all_gather([torch.ones(1), torch.ones(1)], torch.ones(1)),
    lambda: dist.all_to_all_single(torch.ones(4), torch.ones(4), [1, 3], [2, 2]),
):
    try:
        call()
    except RuntimeError as error:
        print(str(error).replace(chr(10), ";"))
x = torch.ones(2)
dist.all_reduce(x)
print(x.tolist())
"""
    ours, others = (text.splitlines() for text in said(start(program, 2, tmp_path)))
    assert ours == others and len(ours) == 8
    assert ours[0] == (
        "the ranks of a group have called different collectives:;  rank 0: broadcast(torch.float32, size (6,), root 0), <string>:10;"
        "  rank 1: all_reduce(SUM, torch.float32, size (2, 3)), <string>:10"
    )
    for line, word in zip(
        ours[1:], ["(4,)", "float64", "MAX", "root 1", "barrier()", "sends 8 bytes to rank", "[2.0, 2.0]"]
    ):
        assert word in line


def test_a_rank_that_does_not_come(tmp_path):
    program = """
try:
    time.sleep(1.5) if rank else dist.barrier()
    print("left")
except RuntimeError as error:
    print(error)
"""
    first, second = said(start(program, 2, tmp_path, timeout=0.5))
    assert "barrier(): timed out after 0.5 s: rank 0 waited for rank 1" in first and second == "left\n"


def test_monitored_barrier_has_its_own_timeout(tmp_path):
    program = """
from datetime import timedelta
try:
    time.sleep(1) if rank == 2 else dist.monitored_barrier(timeout=timedelta(seconds=0.3))
except RuntimeError as error:
    print(error)
"""
    texts = said(start(program, 3, tmp_path))
    assert all("0.3 s" in text and "rank 2" in text for text in texts[:2])


def test_a_rank_that_leaves(tmp_path):
    program = """
if rank:
    dist.destroy_process_group()
    time.sleep(1)
else:
    try:
        dist.recv(torch.ones(2), 1)
    except RuntimeError as error:
        print(error)
    try:
        dist.all_reduce(torch.ones(2))
    except RuntimeError as error:
        print(error)
"""
    message, collective = said(start(program, 2, tmp_path))[0].splitlines()
    assert message.startswith("recv from rank 1 (torch.float32, size (2,), tag 0): rank 1 (process ")
    assert "has left the group" in message and "has left the group" in collective


def test_messages_that_do_not_fit(tmp_path):
    program = """
if rank:
    dist.send(torch.ones(3), 0)
    dist.send(torch.ones(2), 0, tag=1)
else:
    for tensor, tag in ((torch.ones(4), 0), (torch.ones(1, dtype=torch.int64), 1)):
        try:
            dist.recv(tensor, 1, tag=tag)
        except RuntimeError as error:
            print(error)
dist.barrier()
"""
    first, second = said(start(program, 2, tmp_path))[0].splitlines()
    assert "rank 1 has sent 12 bytes of torch.float32" in first and "8 bytes of torch.float32" in second


def test_ctrl_c_ends_a_rank_that_waits(tmp_path):
    program = """
signal.signal(signal.SIGINT, signal.default_int_handler)
print("waits", flush=True)
if rank == 0:
    dist.all_reduce(torch.ones(2))
elif rank == 1:
    dist.recv(torch.ones(2), 0)
else:
    dist.all_reduce(torch.ones(2), async_op=True).wait()
"""
    processes = start(program, 3, tmp_path)
    for process in processes:
        assert process.stdout.readline() == "waits\n"
    time.sleep(0.3)
    for process in processes:
        process.send_signal(signal.SIGINT)
    assert all("KeyboardInterrupt" in text or "has ended" in text for text in said(processes))
    assert all(process.returncode for process in processes)


def shared_files():
    """What lies in /dev/shm, without what other tests that run at the same time make: semaphores of multiprocessing, segments of MPICH."""
    return {name for name in os.listdir("/dev/shm") if not name.startswith(("sem.mp-", "mpich"))}


def assert_nothing_is_added(before):
    """Others may share tensors at the same time, whose files are gone a moment later."""
    end = time.monotonic() + 10
    while not shared_files() <= before and time.monotonic() < end:
        time.sleep(0.1)
    assert shared_files() <= before


@pytest.mark.skipif(not os.path.isdir("/dev/shm"), reason="no /dev/shm")
def test_nothing_is_left_behind(tmp_path):
    before = shared_files()
    processes = start("print('there', flush=True); time.sleep(30)", 2, tmp_path)
    assert all(process.stdout.readline() == "there\n" for process in processes)
    assert_nothing_is_added(before)
    for process in processes:
        process.kill()
    said(processes)
    assert_nothing_is_added(before)


def test_memory_that_is_not_contiguous_and_uneven_lists(tmp_path):
    """PyTorch's Gloo writes beside such memory, and refuses such lists."""
    program = """
a = torch.zeros(4, 6)
dist.broadcast(a[:, ::2] if rank else torch.ones(4, 3), 0)
received = [torch.zeros(source + rank) for source in range(2)]
dist.all_to_all(received, [torch.full((target + rank,), float(rank)) for target in range(2)])
print(a.sum().item(), [each.tolist() for each in received])
"""
    assert said(start(program, 2, tmp_path)) == ["0.0 [[], [1.0]]\n", "12.0 [[0.0], [1.0, 1.0]]\n"]


def test_a_refused_reduction_writes_nothing(tmp_path):
    program = """
numbers = torch.tensor([rank + 1])
try:
    dist.all_reduce(numbers, dist.ReduceOp.AVG)
except RuntimeError as error:
    print(error)
print(numbers.tolist())
"""
    for rank, text in enumerate(said(start(program, 2, tmp_path))):
        assert "AVG of torch.int64" in text and text.endswith(f"[{rank + 1}]\n")
