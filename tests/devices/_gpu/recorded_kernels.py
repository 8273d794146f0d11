"""Write the kernels of programs on `cuda` to the standard output, as a list of JSON: (program, {target: LLVM IR}), without a driver.

The device of this process is a `Gpu` over a runtime that compiles nothing and launches nothing. So every value is 0, and programs must not
depend on values.
"""

import ctypes
import json
import sys

import weft
import weft.nn.functional as F
from weft.devices import cuda
from weft.devices._gpu.backend import Gpu
from weft.devices._gpu.target import AMDGPU, NVPTX
from weft.engine.kernel import Launch


class Recorder:
    """A runtime whose memory is the host's and whose kernels do nothing."""

    target = NVPTX
    name = "a recorder"
    multiprocessors = 100
    threads_per_multiprocessor = 2048
    total_memory = 1 << 34
    before_work = blas = small_products = None

    def __init__(self):
        self.kernels = []
        self._blocks = {}

    def allocate(self, nbytes):
        block = ctypes.create_string_buffer(nbytes)
        self._blocks[ctypes.addressof(block)] = block
        return ctypes.addressof(block)

    def read(self, address, nbytes):
        return ctypes.string_at(address, nbytes)

    def write(self, address, content):
        ctypes.memmove(address, bytes(content), len(bytes(content)))

    def copy(self, target, source, nbytes):
        ctypes.memmove(target, source, nbytes)

    def host_word(self):
        return ctypes.c_int64()

    def synchronize(self):
        pass

    def call_before_work(self, function):
        self.before_work = function

    def load(self, write, kernel):
        self.kernels.append({target.name: write(target, kernel) for target in (NVPTX, AMDGPU)})

    def launch(self, kernel, groups, letters, words):
        return Launch(lambda *arguments: arguments[0], 0, 0, None)

    def chain(self, kernel, groups, letters, words, last):
        return self.launch(kernel, groups, letters, words)


def new(*shape, dtype=weft.float32):
    return weft.empty(*shape, dtype=dtype, device="cuda")


def half(*shape):
    return new(*shape, dtype=weft.bfloat16)


def whole(*shape):
    return new(*shape, dtype=weft.int64)


def gradient(function, *shapes):
    leaves = [new(*shape).requires_grad_() for shape in shapes]
    return weft.autograd.grad(function(*leaves).sum(), leaves)


PROGRAMS = {
    "add": lambda: new(1000) + new(1000),
    "add broadcast": lambda: new(30, 40) + new(40),
    "mul transposed": lambda: new(30, 40).t() * new(40, 30),
    "divide integers": lambda: whole(100) // 7,
    "exp": lambda: new(100).exp(),
    "sin of float64": lambda: new(100, dtype=weft.float64).sin(),
    "pow": lambda: new(100) ** new(100),
    "lgamma": lambda: new(100).lgamma(),
    "igamma": lambda: new(100).igamma(new(100)),
    "numbers by rejection": lambda: (weft._standard_gamma(new(100)), weft.binomial(new(100), new(100))),
    "bfloat16": lambda: half(100) * 2 + 1,
    "float16": lambda: new(100, dtype=weft.float16) / 3,
    "float8": lambda: new(100).to(weft.float8_e4m3fn).to(weft.float32),
    "int8": lambda: new(100).to(weft.int8) + 1,
    "uint8": lambda: new(100, dtype=weft.uint8) >> 1,
    "complex": lambda: new(100, dtype=weft.complex64) * new(100, dtype=weft.complex64),
    "where": lambda: weft.where(new(100) > 0, new(100), 1.0),
    "sum": lambda: new(1 << 20).sum(),
    "sum of columns": lambda: new(500, 300).sum(0),
    "sum of rows": lambda: new(300, 500).sum(1),
    "mean of bfloat16": lambda: half(300, 500).mean(1),
    "sum of complex": lambda: new(300, 500, dtype=weft.complex64).sum(1),
    "argmax": lambda: new(300, 500).argmax(1),
    "var": lambda: new(300, 500).var(0),
    "any": lambda: new(300, 500).bool().any(1),
    "logsumexp": lambda: new(300, 500).logsumexp(1),
    "cumsum": lambda: new(30, 500).cumsum(1),
    "cummax": lambda: new(30, 500).cummax(0),
    "logcumsumexp": lambda: new(30, 500).logcumsumexp(1),
    "gather": lambda: new(30, 40).gather(1, whole(30, 5)),
    "scatter_add": lambda: new(30, 40).scatter_add(1, whole(30, 5), new(30, 5)),
    "index_put": lambda: new(30, 40).index_put((whole(5),), new(5, 40), accumulate=True),
    "index_add of many": lambda: new(300, 40).index_add(0, whole(5000), new(5000, 40)),
    "index_put of many": lambda: new(300, 40).index_put((whole(5000),), new(5000, 40)),
    "scatter_add of many": lambda: half(30, 40).scatter_add(0, whole(5000, 40), half(5000, 40)),
    "embedding": lambda: F.embedding(whole(10), new(30, 40)),
    "masked_select": lambda: new(30, 40)[new(30, 40).bool()],
    "masked_scatter": lambda: half(30, 40).masked_scatter(weft.ones(30, 40).bool().cuda(), half(1200)),
    "sort": lambda: new(30, 500).sort(),
    "sort of short rows": lambda: new(30, 50).sort(),
    "sort of float64": lambda: new(10_000, dtype=weft.float64).sort(),
    "searchsorted": lambda: weft.searchsorted(new(30), new(100), out_int32=True),
    "searchsorted of int64": lambda: weft.searchsorted(whole(30), whole(100), right=True),
    "counts": lambda: (new(1000).histc(10, 0, 1), new(1000).histc(5000, 0, 1)),
    "topk": lambda: new(10_000).topk(5),
    "matmul": lambda: new(3, 100, 70) @ new(3, 70, 90),
    "matmul of float64": lambda: new(100, 70, dtype=weft.float64) @ new(70, 90, dtype=weft.float64),
    "matmul of bfloat16": lambda: half(100, 70) @ half(70, 90),
    "matmul of int64": lambda: whole(100, 70) @ whole(70, 90),
    "matmul of complex": lambda: new(100, 70, dtype=weft.complex64) @ new(70, 90, dtype=weft.complex64),
    "softmax": lambda: new(300, 500).softmax(1),
    "softmax of bfloat16": lambda: half(300, 500).softmax(1),
    "layer_norm": lambda: gradient(lambda a, w: F.layer_norm(a, (50,), w), (30, 50), (50,)),
    "conv2d": lambda: gradient(F.conv2d, (2, 3, 8, 8), (4, 3, 3, 3)),
    "conv2d of many channels": lambda: gradient(F.conv2d, (2, 20, 8, 8), (20, 20, 3, 3)),
    "conv3d of bfloat16": lambda: F.conv3d(half(2, 20, 8, 8, 8), half(20, 20, 3, 3, 3), half(20), padding=1),
    "cholesky": lambda: weft.linalg.cholesky_ex(new(3, 100, 100)),
    "cholesky of complex": lambda: weft.linalg.cholesky_ex(new(100, 100, dtype=weft.complex128)),
    "qr": lambda: weft.linalg.qr(new(3, 100, 70)),
    "qr of complex": lambda: weft.linalg.qr(new(100, 70, dtype=weft.complex128)),
    "eigh": lambda: weft.linalg.eigh(new(8, 100, 100)),
    "svd": lambda: weft.linalg.svd(new(8, 100, 100)),
    "eigh of complex": lambda: weft.linalg.eigh(new(8, 50, 50, dtype=weft.complex128)),
    "svd of complex": lambda: weft.linalg.svd(new(8, 50, 50, dtype=weft.complex128)),
    "solve": lambda: weft.linalg.solve_ex(new(3, 100, 100), new(3, 100, 2)),
    "solve of complex": lambda: weft.linalg.solve_ex(*2 * [new(100, 100, dtype=weft.complex128)]),
    "fft of long signals": lambda: weft.fft.ifft(new(3, 10_000, dtype=weft.complex128)),
    "uniform": lambda: new(100).uniform_(),
    "uniform of float64": lambda: new(100, dtype=weft.float64).uniform_(),
    "normal": lambda: half(100).normal_(),
    "normal of float64": lambda: new(100, dtype=weft.float64).normal_(),
    "exponential": lambda: new(100).exponential_(),
    "bernoulli": lambda: new(100).bernoulli_(0.3),
    "permutation": lambda: weft.randperm(100, device="cuda"),
    # By itself, because the loss looks at the values of its targets.
    "alignments": lambda: new(1).spec.device.backend.extras["alignments"](
        0, 0, 0, 0, (5, 2, 9), weft.float32
    ),
    "random integers": lambda: whole(100).random_(0, 10),
    "random large integers": lambda: whole(100).random_(),
    "attention": lambda: F.scaled_dot_product_attention(
        *(new(2, 3, 10, 8) for _ in range(3)), is_causal=True
    ),
}


def recorded():
    """(program, kernel) for each different kernel."""
    runtime = Recorder()
    backend = Gpu(weft.device("cuda", 0), runtime)
    cuda.device_count, cuda.backend = lambda: 1, lambda where: backend
    found = {}
    for name, program in PROGRAMS.items():
        before = len(runtime.kernels)
        result = program()  # what nothing refers to is not computed
        weft.synchronize()
        del result
        if len(runtime.kernels) == before:
            raise RuntimeError(f"{name} has no kernel")
        found |= {kernel[NVPTX.name]: (name, kernel) for kernel in runtime.kernels[before:]}
    return list(found.values())


if __name__ == "__main__":
    json.dump(recorded(), sys.stdout)
