"""Stores past the caches write what ordinary stores write, and nothing else."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weft as torch
from weft.core.dtype import when_plans_expire
from weft.engine import kernel
from weft.engine.streaming import HAS_STREAMS

pytestmark = pytest.mark.skipif(not HAS_STREAMS, reason="this processor has no such stores here")


def forget_plans():
    for forget in when_plans_expire:
        forget()


@pytest.fixture(autouse=True, params=["alone", "shared"])
def streaming(monkeypatch, request):
    """Results of all sizes are streamed."""
    monkeypatch.setattr(kernel, "STREAMED_BYTES", 1)
    monkeypatch.setattr(kernel, "SHARED_BYTES", 1 if request.param == "shared" else 1 << 60)
    monkeypatch.setattr(kernel, "PARALLEL_BYTES", 1 if request.param == "shared" else 1 << 60)
    forget_plans()
    yield
    forget_plans()


OPS = {
    "neg": lambda a, b, out: torch.neg(a, out=out),
    "add": lambda a, b, out: torch.add(a, b, out=out),
    "number": lambda a, b, out: torch.mul(a, 3, out=out),
    "broadcast": lambda a, b, out: torch.add(a, b[:1], out=out),
}


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "float64", "complex128"])
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_results_at_all_alignments(dtype, data):
    size = data.draw(st.sampled_from([0, 1, 63, 255, 256, 257, 1024, 4095, 4096, 4160, 5000, 20001]))
    start, skip, step = (data.draw(st.integers(0, most)) for most in (70, 16, 1))
    random = np.random.default_rng(0)
    whole = random.integers(0, 50, 2 * size + 200).astype(dtype)
    # The memory may begin within an element.
    memory = np.zeros((size + 100) * whole.itemsize + 16, np.uint8)[skip:]
    result = memory[: (size + 100) * whole.itemsize].view(dtype)
    out = torch.from_numpy(result)[start : start + size]
    a = torch.from_numpy(whole)[: size * (1 + step) : 1 + step]
    b = torch.from_numpy(whole)[100 : 100 + size]
    for name, op in OPS.items():
        if name == "broadcast" and not size:
            continue
        result[:] = 7
        op(a, b, out)
        x, y = a.numpy(), b.numpy()
        expected = {"neg": -x, "add": x + y, "number": (x * 3).astype(dtype), "broadcast": x + y[:1]}[name]
        np.testing.assert_array_equal(out.numpy(), expected)
        assert (result[:start] == 7).all() and (result[start + size :] == 7).all()


def test_writes_in_place_and_results_of_other_dtypes():
    a = torch.arange(10007, dtype=torch.float32)
    before = a.numpy().copy()
    a.neg_()
    np.testing.assert_array_equal(a.numpy(), -before)
    np.testing.assert_array_equal((a < -5000).numpy(), before > 5000)
    np.testing.assert_array_equal(a.double().numpy(), -before.astype(np.float64))
    np.testing.assert_array_equal(a.clone().numpy(), -before)


def test_a_fused_result():
    a = torch.randn(300_001)
    for _ in range(4):
        result = torch.relu(a * 2 + 1)
        torch.synchronize()
    np.testing.assert_array_equal(result.numpy(), np.maximum(a.numpy() * np.float32(2) + np.float32(1), 0))
