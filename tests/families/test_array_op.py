"""Arrays on tensors' memory, and tensors on arrays'."""

import gc
import signal
import weakref

import numpy as np
import pytest
import torch
from oracle import to_weft

import weft
from weft.families.array_op import array, wide_array

SIDES = ("after", "before")

MADE = {
    "float32": lambda: weft.rand(5),
    "bfloat16": lambda: weft.rand(5).bfloat16(),
    "view": lambda: weft.rand(5, 3).t()[1:, ::2],
    "conjugated": lambda: weft.rand(5, dtype=weft.complex64).conj(),
    "complex32": lambda: weft.rand(5, dtype=weft.complex32),
    "0-dim": lambda: weft.rand(()),
}
READ = {
    "array": array,
    "part": lambda t: np.atleast_1d(array(t))[:1],
    "numpy": lambda t: t.resolve_conj().numpy(),
    "memory": lambda t: memoryview(array(t.float() if t.dtype is weft.bfloat16 else t)),
    "bytes": lambda t: t.untyped_storage().bytes_(),
    "bytes as a buffer": lambda t: t.untyped_storage().bytes_().data,
}


@pytest.mark.parametrize("read", READ)
@pytest.mark.parametrize("made", MADE)
def test_what_is_on_the_memory_of_a_temporary_tensor_keeps_it(made, read):
    tensor = MADE[made]()
    expected = np.array(READ[read](tensor), copy=True)
    seen = READ[read](tensor)
    storage = weakref.ref(tensor._storage)
    is_copy = not np.shares_memory(np.asarray(seen), tensor.untyped_storage().bytes_())
    del tensor
    gc.collect()
    assert is_copy or storage() is not None
    [weft.full((n,), 7) for n in (1, 5, 15)]
    np.testing.assert_array_equal(np.array(seen), expected)
    del seen
    assert storage() is None


def test_wide_arrays_keep_the_memory():
    tensor = weft.rand(5)
    storage = weakref.ref(tensor._storage)
    seen = wide_array(tensor)
    del tensor
    assert storage() is not None and seen.shape == (5,)


@pytest.mark.parametrize("side", SIDES)
def test_temporaries_may_be_read_as_arrays(run, side):
    code = """
import weft as torch
from weft.families.array_op import array, wide_array
a, b = torch.zeros(3000, dtype=torch.int8), torch.zeros(3000, dtype=torch.int8)
assert torch.equal(a, b) and a.equal(b) and torch.allclose(a.float(), b.float())
assert not array(a + b).any() and array(a.half() + 1).sum() == 3000 and wide_array(a.half() + 1).sum() == 3000
assert array((a + 1j).conj()).imag.sum() == -3000
assert (a + 1).untyped_storage().bytes_().sum() == 3000 and (a + 1).numpy().sum() == 3000
assert bytes((a + 1).untyped_storage().bytes_().data) == b"\\1" * 3000
assert (a + 1).sum().item() == 3000 and (a + 1)[:3].tolist() == [1, 1, 1]
"""
    child = run("-X", "faulthandler", "-c", code, WEFT_FENCE=side)
    assert child.returncode == 0, child.stderr


def test_a_stale_address_would_be_noticed(run):
    code = (
        "import weft; t = weft.zeros(3); seen = t.numpy(); t._storage.bin.append(t._storage.ptr); seen.sum()"
    )
    assert run("-c", code, WEFT_FENCE="after").returncode == -signal.SIGSEGV


def test_equal_beside_a_thread_that_allocates(run):
    code = """
import threading, weft as torch
a, b = torch.zeros(200_000, dtype=torch.int8), torch.zeros(200_000, dtype=torch.int8)
stop = False
def allocate():
    while not stop:
        kept = [torch.zeros(200_000, dtype=torch.bool) for _ in range(3)]
thread = threading.Thread(target=allocate)
thread.start()
try:
    answers = {(torch.equal(a, b), torch.allclose(a, b)) for _ in range(200)}
finally:
    stop = True
    thread.join()
assert answers == {(True, True)}, answers
"""
    child = run("-X", "faulthandler", "-c", code, WEFT_FENCE="after")
    assert child.returncode == 0, child.stderr


def test_out_of_a_wider_dtype_gets_what_the_op_alone_gives():
    a, b = torch.tensor([3.0, 1.0]).bfloat16(), torch.tensor([0.3, 5.0]).bfloat16()
    expected = torch.igamma(a, b, out=torch.empty(0))
    found = weft.igamma(to_weft(a), to_weft(b), out=weft.empty(0))
    assert found.tolist() == expected.tolist()
