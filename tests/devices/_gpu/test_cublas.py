"""What cuBLAS is asked for, by a library that only notes its arguments."""

import ctypes
import threading

import numpy as np
import pytest

import weft
from weft.core.spec import contiguous_spec, make_spec
from weft.devices._gpu import cublas

CPU = weft.device("cpu")
_NUMBER, _WIDE, _POINTER = ctypes.c_int, ctypes.c_longlong, ctypes.c_void_p
_OPERAND = [_POINTER, _NUMBER, _NUMBER, _WIDE]
_GEMM = ctypes.CFUNCTYPE(
    _NUMBER, _POINTER, *[_NUMBER] * 5, _POINTER, *_OPERAND, *_OPERAND, _POINTER, *_OPERAND, *[_NUMBER] * 3
)


class Noting:
    """Notes the calls of cublasGemmStridedBatchedEx, and answers `code`."""

    def __init__(self):
        self.calls, self.code = [], 0
        self.cublasGemmStridedBatchedEx = _GEMM(self._note)

    def _note(self, *arguments):
        self.calls.append(arguments)
        return self.code

    @staticmethod
    def cublasCreate_v2(handle):  # noqa: N802 (cuBLAS's name)
        handle._obj.value = 3
        return 0

    @staticmethod
    def cublasSetStream_v2(handle, stream):  # noqa: N802 (cuBLAS's name)
        return 0


class Runtime:
    """What Cublas needs of the driver's runtime."""

    def __init__(self):
        self._entered = ctypes.CFUNCTYPE(_NUMBER, _POINTER)(lambda context: 0)
        self._busy, self._before = ctypes.c_int64(), lambda: None
        self.enter_address = ctypes.cast(self._entered, _POINTER).value
        self.context, self.before_words = 5, (ctypes.addressof(self._busy), id(self._before))
        self._words, self._turning = (ctypes.c_uint64 * 3)(), self._turn
        self.turn_words, self.is_recording = (ctypes.addressof(self._words), id(self._turning)), False

    def _turn(self):
        self._words[:] = threading.get_ident(), 0, self.blas.handle(0, False)

    def turn(self):
        self._words[0] = 0

    def launch_queue(self):
        return ctypes.c_void_p()

    def enter(self):
        pass


def new(library):
    runtime = Runtime()
    runtime.blas = cublas.Cublas(runtime, library)
    return runtime.blas


def called(a, b, result):
    """The calls for a product of tensors with these specs at the addresses 2000 and 3000, written to 1000."""
    library = Noting()
    launch = new(library).prepare(a, b, result)
    assert launch.entry(1000, 2000, 3000, launch.meta, launch.count) == 1000
    return library.calls


def computed(call, memory):
    """What cuBLAS would compute: matrices by columns, at addresses that count elements of 4 bytes."""
    _, ta, tb, m, n, k, _, a, _, lda, sa, b, _, ldb, sb, _, c, _, ldc, sc, batch, _, _ = call

    def matrix(start, leading, rows, columns, transposed):
        if transposed:
            rows, columns = columns, rows
        at = start // 4 + np.arange(rows)[:, None] + leading * np.arange(columns)
        return memory[at].T if transposed else memory[at]

    for p in range(batch or 1):
        left = matrix(a + 4 * sa * p, lda, m, k, ta)
        right = matrix(b + 4 * sb * p, ldb, k, n, tb)
        at = (c + 4 * sc * p) // 4 + np.arange(m)[:, None] + ldc * np.arange(n)
        memory[at] = left @ right


def float32(sizes, strides=None):
    if strides is None:
        return contiguous_spec(sizes, weft.float32, CPU)
    return make_spec(sizes, strides, weft.float32, CPU)


@pytest.mark.parametrize(
    ("a", "b", "result"),
    [
        (float32((3, 5)), float32((5, 4)), float32((3, 4))),
        (float32((3, 5), (1, 3)), float32((5, 4), (1, 5)), float32((3, 4))),
        (float32((2, 3, 5)), float32((5, 4)), float32((2, 3, 4))),
        (float32((2, 3, 5)), float32((2, 5, 4), (20, 1, 5)), float32((2, 3, 4))),
        (float32((2, 1, 3, 5)), float32((7, 5, 4)), float32((2, 7, 3, 4))),
        (float32((1, 5), (5, 1)), float32((5, 1), (1, 1)), float32((1, 1))),
    ],
    ids=["rows", "columns", "one right operand", "stacks", "stacks that take several calls", "dot"],
)
def test_products(a, b, result):
    memory = np.random.default_rng(0).integers(-9, 9, 2000).astype(np.float32)

    def array(spec, start):
        steps = [4 * step for step in spec.stride]
        return np.lib.stride_tricks.as_strided(memory[start // 4 :], spec.shape, steps)

    wanted = np.matmul(array(a, 2000), array(b, 3000))
    for call in called(a, b, result):
        computed(call, memory)
    np.testing.assert_array_equal(array(result, 1000), wanted)


def test_products_of_float32_are_rounded_to_tf32_if_the_program_allows_it():
    library, compute_types = Noting(), []
    blas = new(library)
    specs = float32((3, 3)), contiguous_spec((3, 3), weft.float64, CPU)
    launches = [blas.prepare(spec, spec, spec) for spec in specs]
    for precision in ("highest", "high", "medium", "highest"):
        weft.set_float32_matmul_precision(precision)
        for launch in launches:
            launch.entry(1000, 2000, 3000, launch.meta, launch.count)
            compute_types.append(library.calls[-1][-2])
    # CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_64F, CUBLAS_COMPUTE_32F_FAST_TF32
    assert compute_types == [68, 70, 77, 70, 77, 70, 68, 70]


def test_operands_that_cannot_be_read_where_they_lie():
    assert cublas.matrix(float32((3, 5), (10, 2))) is None
    assert cublas.matrix(float32((3, 5), (0, 1))) is None
    assert not cublas.takes(contiguous_spec((3, 5), weft.int32, CPU))


def test_errors_are_raised():
    library = Noting()
    library.code = 13
    spec = float32((3, 3))
    launch = new(library).prepare(spec, spec, spec)
    with pytest.raises(RuntimeError, match="cuBLAS error 13"):
        launch.entry(1000, 2000, 3000, launch.meta, launch.count)
