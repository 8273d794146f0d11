"""The backend "nccl" with tensors of a device, beside a double of the library that reads and writes the device's memory from the host."""

import os

import pytest
from nccl_double import Double

import weft
from weft.distributed.engine import nccl


@pytest.fixture
def double(monkeypatch):
    if os.environ.get("WEFT_CUDA") != "opencl":
        pytest.skip("the double reads the device's memory from the host, which OpenCL's allows")
    found = Double(1)
    monkeypatch.setattr(nccl, "library", lambda: found)
    monkeypatch.setattr(nccl, "enter", lambda where: weft.cuda.synchronize(where) or 0)
    weft.distributed.init_process_group("nccl", store=weft.distributed.HashStore(), rank=0, world_size=1)
    yield found
    weft.distributed.destroy_process_group()


def test_tensors_of_the_device_are_what_the_library_gets(double):
    dist = weft.distributed
    x = weft.arange(4.0, device="cuda") * 2
    dist.all_reduce(x, async_op=True).wait()
    outputs = [weft.zeros(4, device="cuda")]
    dist.all_gather(outputs, x)
    whole = weft.zeros(4, device="cuda")
    dist.reduce_scatter_tensor(whole, x, op=dist.ReduceOp.AVG)
    dist.barrier()
    assert outputs[0].tolist() == whole.tolist() == [0, 2, 4, 6]
    assert double.calls[0] == [
        ("ncclAllReduce", 4, 7, 0),
        ("ncclAllGather", 16, 0),
        ("ncclReduceScatter", 4, 7, 0),
        ("ncclAllReduce", 1, 7, 0),
    ]
    with pytest.raises(ValueError, match="Tensors must be contiguous"):
        dist.all_reduce(weft.ones(2, 3, device="cuda").t())
