"""Linear layers with weights of bytes and nibbles: PyTorch's numbers, by the kernels and by converting the weight."""

import numpy as np
import pytest
import torch

import weft
from weft.devices.cpu.extras import EXTRAS
from weft.engine import kernel, weight_gemm
from weft.ops.nn import weight_only

DTYPES = {"float32": 2**-23, "bfloat16": 2**-8, "float16": 2**-11}


@pytest.fixture(params=["kernel", "one row at a time", "shared", "floats"], autouse=True)
def way(request, monkeypatch):
    threads = weft.get_num_threads()
    if request.param == "one row at a time":
        monkeypatch.setattr(weight_gemm, "_heights", lambda: (1,))
        for code in (weight_gemm._bytes_code, weight_gemm._nibbles_code):
            code.cache_clear()
    elif request.param == "shared":
        weft.set_num_threads(3)
        monkeypatch.setattr(kernel, "SHARED_BYTES", 1)
        monkeypatch.setattr(kernel, "PARALLEL_BYTES", 1)
    elif request.param == "floats":
        monkeypatch.setattr(weight_only, "_suits", lambda *given: False)
    for name in ("times_bytes", "times_nibbles"):
        monkeypatch.setitem(EXTRAS, name, fresh(name))
    yield request.param
    weft.set_num_threads(threads)
    if request.param == "one row at a time":
        for code in (weight_gemm._bytes_code, weight_gemm._nibbles_code):
            code.cache_clear()


def fresh(name):
    """The kernel without the launches of other tests."""

    def run(sizes, *addresses):
        launch = getattr(weight_gemm, name)(*sizes)
        launch.entry(*addresses, launch.meta, launch.count)

    return run


def close(found, rows, weight, name):
    """Sums of terms in any order, rounded to the dtype at the end."""
    wanted = rows.double() @ weight.T
    room = rows.double().abs() @ weight.abs().T * 1e-6 + wanted.abs() * DTYPES[name]
    assert str(found.dtype) == f"torch.{name}"
    assert ((torch.from_numpy(found.float().numpy()).double() - wanted).abs() <= room + 1e-30).all()


@pytest.mark.parametrize("name", DTYPES)
def test_bytes(name):
    random = np.random.default_rng(0)
    for rows, terms, columns in ((1, 1, 1), (1, 16, 8), (5, 33, 13), (4, 100, 17), (9, 31, 4), (2, 64, 40)):
        a = torch.from_numpy(random.standard_normal((rows, terms))).to(getattr(torch, name))
        b = torch.from_numpy(random.integers(-128, 128, (columns, terms)).astype(np.int8))
        scales = torch.from_numpy(random.uniform(0.01, 1, columns)).to(getattr(torch, name))
        own = [weft.from_numpy(each.float().numpy()).to(getattr(weft, name)) for each in (a, scales)]
        found = weft._weight_int8pack_mm(own[0], weft.from_numpy(b.numpy()), own[1])
        close(found, a, b.double() * scales.double()[:, None], name)
    if name == "float32":  # other dtypes end PyTorch with a segmentation fault for some sizes
        wanted = torch._weight_int8pack_mm(a, b, scales)
        np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-5, atol=1e-4)


def packed_nibbles(q):
    """PyTorch's format for AVX-512, which weft has on every processor. On others PyTorch packs blocks of 32 columns instead of 64."""
    columns, terms = q.shape
    parts = []
    for start in range(0, columns, 64):
        block = q[start : start + 64].T
        if block.shape[1] == 64:
            quarters = block.reshape(terms, 4, 16)
            low, high = quarters[:, :2], quarters[:, 2:]
        else:
            low, high = block[:, ::2], block[:, 1::2]
        parts.append((low + 16 * high).reshape(-1))
    return np.concatenate(parts).reshape(columns, terms // 2).astype(np.uint8)


@pytest.mark.parametrize("name", DTYPES)
def test_nibbles(name):
    random = np.random.default_rng(0)
    for rows, terms, columns, group in (
        (1, 32, 64, 32),
        (5, 64, 80, 32),
        (4, 128, 128, 64),
        (9, 256, 16, 128),
        (3, 256, 192, 256),
    ):
        a = torch.from_numpy(random.standard_normal((rows, terms))).to(getattr(torch, name))
        q = torch.from_numpy(random.integers(0, 16, (columns, terms)).astype(np.int32))
        both = torch.from_numpy(random.uniform(-1, 1, (terms // group, columns, 2))).to(getattr(torch, name))
        theirs = torch._convert_weight_to_int4pack_for_cpu(q, 1)
        packed = weft._convert_weight_to_int4pack_for_cpu(weft.from_numpy(q.numpy()), 1)
        np.testing.assert_array_equal(packed.numpy(), packed_nibbles(q.numpy()))
        if torch.backends.cpu.get_cpu_capability() == "AVX512":
            np.testing.assert_array_equal(packed.numpy(), theirs.numpy())
        np.testing.assert_array_equal(weight_only._unpacked(packed).numpy(), q.numpy())
        own = [weft.from_numpy(each.float().numpy()).to(getattr(weft, name)) for each in (a, both)]
        found = weft._weight_int4pack_mm_for_cpu(own[0], packed, group, own[1])
        scale, zero = both.double().repeat_interleave(group, 0).unbind(2)
        # The integers are subtracted from 0 to 15, so that the terms of the sums are up to twice as large.
        close(found, a, (q.double() - 8) * scale.T + zero.T, name)
        if name == "float32":
            wanted = torch._weight_int4pack_mm_for_cpu(a, theirs, group, both)
            np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-4, atol=1e-4)


def test_the_bits_do_not_depend_on_tiles_and_threads(way, request):
    if way == "floats":
        pytest.skip("converted weights are multiplied in another order")
    random = np.random.default_rng(1)
    a = weft.from_numpy(random.standard_normal((7, 96)).astype(np.float32))
    b = weft.from_numpy(random.integers(-128, 128, (70, 96)).astype(np.int8))
    q = weft.from_numpy(random.integers(0, 16, (128, 96)).astype(np.int32))
    both = weft.from_numpy(random.standard_normal((3, 128, 2)).astype(np.float32))
    packed = weft._convert_weight_to_int4pack_for_cpu(q, 1)
    found = (
        weft._weight_int8pack_mm(a, b, weft.ones(70)).numpy().tobytes(),
        weft._weight_int4pack_mm_for_cpu(a, packed, 32, both).numpy().tobytes(),
    )
    assert SEEN.setdefault("bits", found) == found


SEEN: dict[str, tuple] = {}


def test_nothing_and_odd_strides():
    b, scales = weft.randint(-128, 128, (6, 8), dtype=weft.int8), weft.rand(12)[::2]
    assert weft._weight_int8pack_mm(weft.zeros(0, 8), b, scales).shape == (0, 6)
    assert weft._weight_int8pack_mm(weft.zeros(3, 8), b[:0], scales[:0]).shape == (3, 0)
    assert (
        weft._weight_int8pack_mm(weft.zeros(3, 0), b[:, :0].contiguous(), scales).tolist() == [[0.0] * 6] * 3
    )
    wide = weft.randint(-9, 10, (3, 20)).float()  # sums of integers are exact in any order
    for a in (wide[:, 4:12], weft._neg_view(wide[:, :8])):
        found = weft._weight_int8pack_mm(a, b, scales)
        weft.testing.assert_close(found, (a @ b.float().t()) * scales, rtol=0, atol=0)


def test_backward_raises_as_in_pytorch():
    for lib in (torch, weft):
        a = lib.zeros(3, 64, requires_grad=True)
        given = lib.zeros(16, 64, dtype=lib.int8), lib.ones(16)
        packed = lib.zeros(16, 32, dtype=lib.uint8), 32, lib.zeros(2, 16, 2)
        for result in (lib._weight_int8pack_mm(a, *given), lib._weight_int4pack_mm_for_cpu(a, *packed)):
            assert result.requires_grad
            with pytest.raises((RuntimeError, NotImplementedError), match="pack_mm"):
                result.sum().backward()


def test_errors():
    a, b, scales = weft.zeros(3, 64), weft.zeros(16, 64, dtype=weft.int8), weft.ones(16)
    packed, both = weft.zeros(16, 32, dtype=weft.uint8), weft.zeros(2, 16, 2)
    for call, text in (
        (lambda: weft._weight_int8pack_mm(a.double(), b, scales), "expect A to be"),
        (lambda: weft._weight_int8pack_mm(a[0], b, scales), "matrix"),
        (lambda: weft._weight_int8pack_mm(weft.zeros(64, 3).t(), b, scales), "contiguous"),
        (lambda: weft._weight_int8pack_mm(a, b.float(), scales), "int8"),
        (lambda: weft._weight_int8pack_mm(a, b[:, :63].contiguous(), scales), r"expect B \[N, 64\]"),
        (lambda: weft._weight_int8pack_mm(a, b, scales[:3]), "16 scales"),
        (lambda: weft._convert_weight_to_int4pack_for_cpu(b, 1), "int32"),
        (lambda: weft._convert_weight_to_int4pack_for_cpu(b[:9].int(), 1), "16"),
        (lambda: weft._convert_weight_to_int4pack_for_cpu(b[:, :9].int(), 1), "2"),
        (lambda: weft._weight_int4pack_mm_for_cpu(a, packed, 16, both), "qGroupSize"),
        (lambda: weft._weight_int4pack_mm_for_cpu(a, packed[:, :9].contiguous(), 32, both), "expect B"),
        (lambda: weft._weight_int4pack_mm_for_cpu(a, packed, 64, both), "qScaleAndZeros"),
    ):
        with pytest.raises(RuntimeError, match=text):
            call()
