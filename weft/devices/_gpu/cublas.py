"""Matrix products by NVIDIA's cuBLAS, if it is installed (the package nvidia-cublas, or the toolkit). Without it `products.py` computes them."""

from __future__ import annotations

import ctypes
import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ...core import switches
from ...core.dtype import DType, bfloat16, complex64, complex128, float16, float32, float64
from ...core.kernel_names import planned_name
from ...core.spec import Spec
from ...engine.host import builtin, compile_ir, operands_ir
from ...engine.kernel import Launch
from ...engine.words import block
from .launching import BEFORE_WORK, TURN, call_ir, ending_ir, meta_ir
from .libraries import load

NAMES = ("libcublas.so.13", "libcublas.so.12", "cublas64_13.dll", "cublas64_12.dll")
_FOLDERS = (
    "nvidia/cu13/lib",
    "nvidia/cublas/lib",
    "nvidia/cu13/bin/x86_64",
    "nvidia/cublas/bin",
)  # of the packages

# dtype -> cudaDataType of the elements, cublasComputeType of the sums, and the ctypes of alpha and beta.
_TYPES: dict[DType, tuple[int, int, Any]] = {
    float32: (0, 68, ctypes.c_float * 1),
    float64: (1, 70, ctypes.c_double * 1),
    float16: (2, 68, ctypes.c_float * 1),
    bfloat16: (14, 68, ctypes.c_float * 1),
    complex64: (4, 68, ctypes.c_float * 2),
    complex128: (5, 70, ctypes.c_double * 2),
}
_TF32 = 9  # from the cublasComputeType of float32 to the one that may round operands to TF32
_NEVER = ctypes.c_int64(0)  # the switch of all other dtypes
_PLAIN, _TRANSPOSED = 0, 1  # cublasOperation_t
_DEFAULT = -1  # cublasGemmAlgo_t
_WORDS = (
    "gemm enter context busy before turn turning making first second rows columns terms alpha type leading.a stride.a leading.b stride.b beta type.c "
    "leading.c stride.c products sums algorithm tf32"
).split()


@functools.cache
def library() -> ctypes.CDLL | None:
    """cuBLAS, or None if it is not installed."""
    return load(NAMES, _FOLDERS)


class Matrix(NamedTuple):
    """Where the matrices of a stack lie: elements between rows or columns, whether it is the columns, and between matrices along each dim."""

    leading: int
    by_columns: bool
    steps: tuple[int, ...]


def takes(spec: Spec) -> bool:
    """Whether cuBLAS multiplies these elements."""
    return spec.dtype in _TYPES and not spec.conj and not spec.neg


def matrix(spec: Spec) -> Matrix | None:
    """How cuBLAS reads an operand with at least two dims where it lies, or None."""
    (rows, columns), (down, across) = spec.shape[-2:], spec.stride[-2:]
    steps = tuple(
        0 if size == 1 else step for size, step in zip(spec.shape[:-2], spec.stride[:-2], strict=True)
    )
    if (across == 1 or columns == 1) and (down >= columns or rows == 1):
        return Matrix(max(down if rows > 1 else columns, 1), False, steps)
    if (down == 1 or rows == 1) and (across >= rows or columns == 1):
        return Matrix(max(across if columns > 1 else rows, 1), True, steps)
    return None


class Cublas:
    """Calls cuBLAS on one device.

    Each queue has a handle of its own, because a handle has memory for the work of one product at a time. So does recorded work, which is given to
    a queue later.
    """

    def __init__(self, runtime: Any, library: ctypes.CDLL):
        self._runtime, self._library = runtime, library
        self._handles: dict[int | None, ctypes.c_void_p] = {}  # by the queue; None: of recorded work
        self._run_make = self._make
        self._gemm = ctypes.cast(library.cublasGemmStridedBatchedEx, ctypes.c_void_p).value or 0

    def handle(self, queue: int, is_recording: bool) -> int:
        """The handle for products of a queue of the driver; 0 if it is not made yet."""
        key = None if is_recording else queue
        found = self._handles.get(key)
        if found is None:
            return 0
        if is_recording:  # each recording has a queue of its own
            self._use(found, queue)
        return found.value or 0

    def _make(self) -> None:
        """Make the handle that a product of this thread needs. The words of the turn then have it."""
        runtime = self._runtime
        runtime.enter()
        handle = ctypes.c_void_p()
        if code := self._library.cublasCreate_v2(ctypes.byref(handle)):
            raise RuntimeError(f"cuBLAS cannot be used: error {code}")
        if runtime.is_recording:
            self._handles[None] = handle
        else:
            queue = runtime.launch_queue().value or 0
            self._use(handle, queue)
            self._handles[queue] = handle
        runtime.turn()

    def _use(self, handle: ctypes.c_void_p, queue: int) -> None:
        """Let products of a handle be work of this queue."""
        if code := self._library.cublasSetStream_v2(handle, ctypes.c_void_p(queue)):
            raise RuntimeError(f"cuBLAS cannot use the stream: error {code}")

    def prepare(self, a: Spec, b: Spec, result: Spec) -> Launch:
        """The product of stacks of matrices that `matrix` takes."""
        left, right = matrix(a), matrix(b)
        assert left is not None and right is not None
        batch = tuple(result.shape[:-2])
        sizes = result.shape[-2], result.shape[-1], a.shape[-1]
        steps = [_filled(each, len(batch)) for each in (result.stride[:-2], left.steps, right.steps)]
        outer, products, strides = _divided(batch, steps)
        one = self._launch(a.dtype, result.dtype, sizes, (left, right), products, strides)
        itemsizes = result.dtype.itemsize, a.dtype.itemsize, b.dtype.itemsize
        offsets = [
            [
                size * sum(k * step for k, step in zip(position, row, strict=False))
                for row, size in zip(steps, itemsizes, strict=True)
            ]
            for position in itertools.product(*map(range, outer))
        ]
        return one if len(offsets) == 1 else Launch(_Stacked(one, offsets), 0, 0, one)

    def _launch(
        self,
        dtype: DType,
        result: DType,
        sizes: tuple[int, int, int],
        operands: tuple[Matrix, Matrix],
        products: int,
        strides: Sequence[int],
    ) -> Launch:
        rows, columns, terms = sizes
        kind, sums, scalar = _TYPES[dtype]
        alpha, beta = scalar(1.0), scalar(0.0)
        # cuBLAS counts along columns first: in its view our rows are columns, so it multiplies the transposed operands in the other order.
        second, first = operands
        runtime = self._runtime
        meta = block(
            (
                self._gemm,
                runtime.enter_address,
                runtime.context,
                *runtime.before_words,
                *runtime.turn_words,
                id(self._run_make),
                _TRANSPOSED if first.by_columns else _PLAIN,
                _TRANSPOSED if second.by_columns else _PLAIN,
                columns,
                rows,
                terms,
                ctypes.addressof(alpha),
                kind,
                first.leading,
                strides[2],
                second.leading,
                strides[1],
                ctypes.addressof(beta),
                _TYPES[result][0],
                columns,
                strides[0],
                products,
                sums,
                _DEFAULT,
                ctypes.addressof(switches.rounds_to_tf32 if dtype is float32 else _NEVER),
            )
        )
        return Launch(_entry(planned_name()), meta.address, 1, (self, meta, alpha, beta))


class _Stacked:
    """The entry of products whose matrices lie so that cuBLAS takes several calls."""

    def __init__(self, one: Launch, offsets: list[list[int]]):
        self._one, self._offsets = one, offsets

    def __call__(self, result: int, a: int, b: int, meta: int, count: int) -> int:
        one = self._one
        assert one.entry is not None
        for to, left, right in self._offsets:
            one.entry(result + to, a + left, b + right, one.meta, one.count)
        return result


def _filled(steps: Sequence[int], dims: int) -> tuple[int, ...]:
    return (*[0] * (dims - len(steps)), *steps)


def _divided(batch: Sequence[int], steps: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], int, list[int]]:
    """The dims that one call does not cover, the products of one call, and the steps between its matrices.

    One call covers the last dims, as long as stepping through them always moves each operand by the same step.
    """
    products, strides, covered = 1, [0, 0, 0], 0
    for dim in reversed(range(len(batch))):
        moves = [row[dim] for row in steps]
        if batch[dim] != 1:
            if products == 1:
                strides = moves
            elif any(move != step * products for move, step in zip(moves, strides, strict=True)):
                break
            products *= batch[dim]
        covered += 1
    return tuple(batch[: len(batch) - covered]), products, strides


@functools.cache
def _entry(name: str) -> Callable:
    (address,) = compile_ir(_ir(), "call", vectorize=False)
    return builtin(address, name)


def _ir() -> str:
    def pointer(name: str) -> str:
        return f"%{name} = inttoptr i64 %m.{name} to ptr"

    def narrow(name: str) -> str:
        return f"%{name} = trunc i64 %m.{name} to i32"

    pointers = "\n".join(map(pointer, ("gemm", "enter", "context", "alpha", "beta", "tf32")))
    whole = (
        "first second rows columns terms type type.c leading.a leading.b leading.c products algorithm".split()
    )
    return f"""
define ptr @call(ptr %self, ptr %args, i64 %nargs) #0 {{
{operands_ir(3, "")}
{meta_ir(_WORDS)}
{BEFORE_WORK}
{TURN}
%handle.word = getelementptr i64, ptr %turn.words, i64 2
%handle = load ptr, ptr %handle.word
%is.made = icmp ne ptr %handle, null
br i1 %is.made, label %made, label %making.call
{call_ir("making", "turn")}
made:
{pointers}
{chr(10).join(map(narrow, whole))}
%rounds = load i64, ptr %tf32
%more = mul i64 %rounds, {_TF32}
%sums.wide = add i64 %m.sums, %more
%sums = trunc i64 %sums.wide to i32
%entered = call i32 %enter(ptr %context)
%code = call i32 %gemm(ptr %handle, i32 %first, i32 %second, i32 %rows, i32 %columns, i32 %terms, ptr %alpha, ptr %x2, i32 %type,
    i32 %leading.a, i64 %m.stride.a, ptr %x1, i32 %type, i32 %leading.b, i64 %m.stride.b, ptr %beta, ptr %x0, i32 %type.c, i32 %leading.c,
    i64 %m.stride.c, i32 %products, i32 %sums, i32 %algorithm)
{ending_ir("cuBLAS error %d in a matrix product")}
"""
