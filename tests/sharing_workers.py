"""What the processes of tests/compat/torch/multiprocessing do: functions that a new interpreter finds by name."""

import os
import sys
import time

import weft
import weft.multiprocessing as mp


def fill(tensor, value):
    tensor.fill_(value)


def answer(queue, results):
    """Send twice what comes; what came stays this process's own business."""
    for tensor in iter(queue.get, None):
        tensor += 1
        results.put(tensor * 2)


def send_and_end(queue, value):
    mp.sharing.PATIENCE = 60.0
    queue.put(weft.full((1000,), value))


def facts(value):
    tensor, row = value
    return (
        tensor.is_shared(),
        tensor.untyped_storage() is row.untyped_storage(),
        tensor.requires_grad,
        type(tensor).__name__,
    )


def double(tensor):
    return tensor * 2


def add_one(index, tensor):
    tensor[index] += 1


def fail(index):
    if index == 1:
        raise ValueError("no luck")
    time.sleep(30)


def fail_at_length(index):
    raise ValueError("no luck " * 100_000)  # more than a pipe holds


def leave(index, code):
    if code < 0:
        os.kill(os.getpid(), -code)
    sys.exit(code)
