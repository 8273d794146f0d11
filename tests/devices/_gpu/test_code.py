"""The code of kernels for NVIDIA's GPUs is made, and assembled by NVIDIA's assembler. No driver takes part. `test_linking.py` is about AMD's."""

import functools
import importlib.util
import re
import subprocess
import warnings
from pathlib import Path

import pytest

from weft.core.dtype import bfloat16, bool_, float8_e4m3fn, float8_e5m2, float16, float32, int8, int32
from weft.devices._gpu.attention import BY_KEYS, BY_QUERIES, FORWARD, AttentionKernel, attention_ir
from weft.devices._gpu.code import compiled
from weft.devices._gpu.convolutions import (
    CHANNELS,
    PLACES,
    ProductsKernel,
    SumsKernel,
    products_ir,
    sums_ir,
)
from weft.devices._gpu.cuda import architecture
from weft.devices._gpu.narrow_products import Epilogue, NarrowProductKernel, narrow_product_ir
from weft.devices._gpu.squares import LARGE, SMALL, Warps
from weft.devices._gpu.target import NVPTX


def assembler():
    """The path of ptxas of the package nvidia-cuda-nvcc-cu12, or None."""
    try:
        package = importlib.util.find_spec("nvidia.cuda_nvcc")
    except ModuleNotFoundError:
        return None
    found = (
        [Path(folder) / "bin" / "ptxas" for folder in package.submodule_search_locations or ()]
        if package
        else []
    )
    return next((path for path in found if path.exists()), None)


def assembled(code, processor, folder):
    """What ptxas says of the code: registers and spills."""
    source = folder / "kernel.ptx"
    source.write_bytes(code)
    command = [str(assembler()), "-arch", processor, "-v", str(source), "-o", str(folder / "kernel.cubin")]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr + code.decode()
    return done.stderr


@functools.cache
def kernels_with_tensor_cores():
    """(name, LLVM IR) of kernels for capability 8.0 and above."""
    named = [
        (f"attention, {step}", attention_ir(NVPTX, AttentionKernel(step, bfloat16, n, n, True, None, True)))
        for step, n in ((FORWARD, 64), (BY_QUERIES, 128), (BY_KEYS, 64), (BY_KEYS, 128))
    ]
    wide = AttentionKernel(FORWARD, float16, 128, 128, False, bool_, True)
    named += [
        (
            f"product, {side}",
            narrow_product_ir(
                NVPTX, NarrowProductKernel(bfloat16, bfloat16, result, 1, turned, Warps(side, True))
            ),
        )
        for result, turned, side in ((bfloat16, (False, True), LARGE), (float32, (True, False), SMALL))
    ]
    for form, adjoint, side in ((PLACES, False, LARGE), (CHANNELS, False, SMALL), (PLACES, True, LARGE)):
        sums = SumsKernel(bfloat16, 2, adjoint, True, form, False, Warps(side, True))
        named.append((f"convolution, {form}, {adjoint}", sums_ir(NVPTX, sums)))
    products = ProductsKernel(float16, 2, True, False, Warps(SMALL, True))
    named.append(("gradient of the weight of a convolution", products_ir(NVPTX, products)))
    return [*named, ("attention of 128 features", attention_ir(NVPTX, wide)), of_bytes("int8", int8, int8)]


def of_bytes(name, left, right):
    """A product of bytes, large enough that groups compute large squares."""
    epilogue = Epilogue() if left is int8 else Epilogue(scaled=True, bias=bfloat16)
    result = int32 if left is int8 else bfloat16
    kernel = NarrowProductKernel(left, right, result, 0, (False, True), Warps(LARGE, True), epilogue)
    return name, narrow_product_ir(NVPTX, kernel)


@functools.cache
def kernels_of_float8():
    """(name, LLVM IR) of kernels for capability 8.9 and above."""
    pairs = (float8_e4m3fn, float8_e4m3fn), (float8_e5m2, float8_e4m3fn)
    return [of_bytes(f"{left} {right}", left, right) for left, right in pairs]


@pytest.mark.parametrize("processor", ["sm_80", "sm_90", "sm_100"])
def test_kernels_with_tensor_cores_are_assembled(processor, tmp_path):
    codes = [(name, compiled(NVPTX, ir, processor).rstrip(b"\0")) for name, ir in kernels_with_tensor_cores()]
    for _, code in codes:
        assert b"mma.sync.aligned.m16n8k" in code
    assemble(codes, processor, tmp_path)


@pytest.mark.parametrize("processor", ["sm_89", "sm_90", "sm_100"])
def test_products_of_float8_are_assembled(processor, tmp_path):
    codes = [(name, compiled(NVPTX, ir, processor).rstrip(b"\0")) for name, ir in kernels_of_float8()]
    for _, code in codes:
        assert b"mma.sync.aligned.m16n8k32.row.col.f32.e" in code
    assemble(codes, processor, tmp_path)


@pytest.mark.parametrize("processor", ["sm_70", "sm_80", "sm_90", "sm_100"])
def test_kernels_of_all_kinds_are_assembled(processor, kernels, tmp_path):
    codes = [(name, compiled(NVPTX, each["nvptx"], processor).rstrip(b"\0")) for name, each in kernels]
    for _, code in codes:
        assert f".target {processor}".encode() in code and b".entry kernel(" in code
    assemble(codes, processor, tmp_path)


def assemble(codes, processor, tmp_path):
    """Assemble all kernels, and warn of those that spill registers."""
    if assembler() is None:
        pytest.skip("no ptxas: on Linux x86-64 nvidia-cuda-nvcc-cu12 brings one")
    for name, code in codes:
        report = assembled(code, processor, tmp_path)
        spilled = sum(int(nbytes) for nbytes in re.findall(r"(\d+) bytes spill", report))
        if spilled:
            warnings.warn(f"{processor}: a kernel of {name} spills registers: {report}", stacklevel=1)


def test_a_processor_runs_the_code_of_the_newest_that_it_knows():
    assert architecture((8, 0)) == "sm_80"
    assert architecture((8, 8)) == "sm_87"
    assert architecture((6, 1)) == "sm_70"
