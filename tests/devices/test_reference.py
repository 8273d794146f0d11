"""The reference device: its memory, its random numbers and its names. `test_calls.py` has the ops."""

import subprocess
import sys

import numpy as np
import pytest

import weft

HERE = "reference:0"
A = weft.tensor([[3.0, -1.0, 2.0], [0.5, 4.0, -2.5]])


def test_two_devices_have_memory_of_their_own():
    there = A.T.to(HERE)
    other = there.to("reference:1")
    assert other.device.index == 1 and weft.equal(other.cpu(), A.T)
    assert weft.ones(2, device="reference").device == weft.device(HERE)
    assert there.to("reference") is there


def test_dropout_in_training_is_that_of_the_cpu():
    layer = weft.nn.Dropout(0.5)
    weft.manual_seed(1)
    expected = layer(A)
    weft.manual_seed(1)
    assert weft.equal(layer(A.to(HERE)).cpu(), expected)


def test_random_numbers_are_those_of_the_cpu():
    def draw(where):
        weft.manual_seed(3)
        return weft.rand(5, device=where), weft.randn(20, device=where), weft.randint(9, (4,), device=where)

    for here, there in zip(draw("cpu"), draw(HERE), strict=True):
        assert weft.equal(here, there.cpu())


def test_the_host_cannot_read_the_memory():
    there = A.to(HERE)
    with pytest.raises(TypeError, match="can't convert reference:0 device type tensor to numpy"):
        there.numpy()
    with pytest.raises(RuntimeError, match="The host cannot read"):
        there.untyped_storage().bytes_()
    memory = there.device.backend.memory
    with pytest.raises(RuntimeError, match="is no address of device reference"):
        memory.read(A.data_ptr(), 4)
    with pytest.raises(RuntimeError, match="bytes 20 to 28 of a block of 24 bytes"):
        memory.read(there.data_ptr() + 20, 8)
    address = there.data_ptr()
    del there
    with pytest.raises(RuntimeError, match="is no address of device reference"):
        memory.read(address, 4)


def test_a_host_that_takes_an_address_for_a_pointer_faults():
    code = "import ctypes, weft; ctypes.string_at(weft.ones(3, device='reference').data_ptr(), 4)"
    assert subprocess.run([sys.executable, "-c", code], check=False, capture_output=True).returncode != 0


def test_uninitialised_memory_is_the_same_garbage():
    assert np.all(weft.empty(4, dtype=weft.uint8, device=HERE).cpu().numpy() == 0xCB)


def test_private_name():
    code = """
import weft as torch
assert torch.zeros(2, device="privateuseone").device.type == "privateuseone"
torch.utils.rename_privateuse1_backend("mine")
assert torch.zeros(2, device="mine:1").add(1).cpu().tolist() == [1, 1]
assert torch.device("privateuseone").type == "mine"
assert torch._C._get_privateuse1_backend_name() == "mine"
torch.utils.rename_privateuse1_backend("mine")
try:
    torch.utils.rename_privateuse1_backend("yours")
except RuntimeError as error:
    assert "already been set" in str(error)
else:
    raise AssertionError
"""
    subprocess.run([sys.executable, "-c", code], check=True)
