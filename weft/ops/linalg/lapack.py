"""Ops on stacks of matrices that LAPACK computes: through NumPy where it works on stacks, else through SciPy."""

from __future__ import annotations

import cmath
import contextlib
import functools
import inspect
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ...core import checking
from ...core.batched import beneath
from ...core.device import CPU
from ...core.dtype import (
    LEGACY_NAMES,
    bfloat16,
    complex64,
    complex128,
    float16,
    float32,
    float64,
    from_numpy_dtype,
    int32,
)
from ...core.iteration import broadcast_shapes
from ...core.names import ROOT
from ...core.op import Op
from ...core.plans import PlanCache
from ...core.recording import needs_recording, record
from ...core.spec import Spec, contiguous_spec, contiguous_stride, make_spec
from ...core.tensor import Tensor, empty, make
from ...engine import workers
from ...engine.blas import ONE_THREAD, scipy, set_threads
from ...families.array_op import (
    SpecRule,
    array,
    device_without_memory,
    host_array,
    inside,
    on_device,
    tensor_in,
)
from ...families.map import FILL

# Elements; a matrix of up to this size (128x128) is finished before a second thread of BLAS has started.
SMALL = 1 << 14


class LinAlgError(RuntimeError):
    """A matrix for which the computation has no result, `torch.linalg.LinAlgError`."""


LinAlgError.__name__ = LinAlgError.__qualname__ = "_LinAlgError"
LinAlgError.__module__ = f"{ROOT}._C"


class MatrixOp(SpecRule, Op):
    """An op on stacks of matrices, which `function(*arrays, **static)` computes. It is one step for autograd.

    Its rules get the static arguments by position, in the order of the signature.
    """

    def __init__(self, function: Callable, node_name: Any = None):
        super().__init__(function.__name__.strip("_"), None, node_name)
        functools.update_wrapper(self, function)
        self.function = function
        self._static = tuple(inspect.signature(function).parameters)
        self.plans: PlanCache | None = None
        self._on_memory: Callable | None = None
        self._on_device: Callable | None = None

    def on_memory(self, plan: Callable) -> None:
        """Compute on the CPU by plans that call LAPACK on the memory of tensors, where there are such plans; see `native.py`."""
        self._on_memory, self.plans = plan, PlanCache(self._plan)

    def on_device(self, plan: Callable) -> None:
        """Compute on other devices by plans of kernels, where there are such plans; see `device_plans.py`."""
        self._on_device, self.plans = plan, PlanCache(self._plan)

    def _plan(self, *key: Any) -> Callable | None:
        where = key[0].device
        if any(isinstance(each, Spec) and each.device is not where for each in key):
            return None  # what computes on arrays says that they are on several devices
        plan = self._on_memory if where is CPU else self._on_device
        return None if plan is None else plan(*key)

    def run(self, *tensors: Tensor, **static: Any) -> Any:
        arguments = tuple([static[name] for name in self._static[len(tensors) :]])
        plan = None
        if self.plans is not None:
            plan = self.plans[(*[tensor.spec for tensor in tensors], *arguments)]
        result = None if plan is None else plan(*tensors)
        if result is None:
            result = self._on_arrays(tensors, static)
        return record(self, result, tensors, arguments) if needs_recording(tensors) else result

    def _on_arrays(self, tensors: Sequence[Tensor], static: dict[str, Any]) -> Any:
        if (where := device_without_memory(self.name, tensors)) is not None:
            return self.results_without_values(where, tensors, static)
        small = all(math.prod(tensor.spec.shape[-2:]) <= SMALL for tensor in tensors)
        one_thread = ONE_THREAD if small else contextlib.nullcontext()
        with inside(self.name, tensors), np.errstate(all="ignore"), one_thread:
            return self.function(
                *(array(make(t._storage, t._byte_offset, t.spec)) for t in tensors), **static
            )


def matrix_op(function: Callable | None = None, **options: Any) -> Any:
    """Make a MatrixOp of a function; a decorator, with or without options."""
    return functools.partial(MatrixOp, **options) if function is None else MatrixOp(function, **options)


# ---- Results ---------------------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=1024)
def columns_spec(shape: tuple[int, ...], dtype: np.dtype) -> Spec:
    """Dense matrices stored column by column, as LAPACK wants and PyTorch returns them."""
    *batch, height, width = shape
    *outer, _, _ = contiguous_stride((*batch, width, height))
    return make_spec(shape, (*outer, 1, max(height, 1)), from_numpy_dtype(dtype))


def columns_like(shape: Sequence[int], like: Spec) -> Spec:
    return columns_spec(tuple(shape), like.dtype.numpy)


def real_like(shape: Sequence[int], like: Spec) -> Spec:
    return contiguous_spec(tuple(shape), like.dtype.to_real())


def infos_spec(batch: Sequence[int]) -> Spec:
    """Return the spec of LAPACK's infos of a stack of matrices, and of its pivots."""
    return contiguous_spec(tuple(batch), int32)


def broadcast_columns(a: Spec, b: Spec) -> Spec:
    """Matrices as large as those of `b`, for each matrix of the stacks `a` and `b` broadcast."""
    batch = broadcast_shapes("linalg", a.shape[:-2], b.shape[:-2])
    return columns_like((*batch, *b.shape[-2:]), b)


@functools.lru_cache(maxsize=1024)
def rows_spec(shape: tuple[int, ...], dtype: np.dtype) -> Spec:
    return contiguous_spec(shape, from_numpy_dtype(dtype))


def columns(values: np.ndarray) -> Tensor:
    """Return a new tensor of these matrices, stored column by column."""
    return tensor_in(values, columns_spec(values.shape, values.dtype))


def rows(values: Any) -> Tensor:
    """Return a new contiguous tensor."""
    return tensor_in(values, rows_spec(values.shape, values.dtype))


def identities(spec: Spec) -> Tensor:
    """Return a new stack of identities, of any number of rows and columns."""
    result = FILL.write(empty(spec), 0)
    FILL.write(result.diagonal(0, -2, -1), 1)
    return result


def eye_like(matrices: Tensor) -> Tensor:
    """Return the identity, of the size, dtype and device of the last two dims."""
    spec = matrices.spec
    if spec.device is CPU:  # NumPy's takes less time than two launches
        return on_device(np.eye(*spec.shape[-2:], dtype=spec.dtype.numpy), CPU)
    return identities(contiguous_spec(spec.shape[-2:], spec.dtype, spec.device))


# ---- One matrix at a time --------------------------------------------------------------------------------------------


@functools.cache
def _scipy() -> tuple[Any, Any]:
    linalg = scipy("linalg")
    set_threads(workers.get_num_threads())  # SciPy has a BLAS of its own
    return linalg.blas, linalg.lapack


def routine(name: str, dtype: np.dtype, complex_name: str | None = None) -> Callable:
    """SciPy's wrapper of a LAPACK or BLAS routine: `getrf` for float32 is `sgetrf`."""
    blas, lapack = _scipy()
    if complex_name is not None and dtype.kind == "c":
        name = complex_name
    full = {"f": "s", "d": "d", "F": "c", "D": "z"}[dtype.char] + name
    return getattr(lapack, full, None) or getattr(blas, full)


def each(batch: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    return np.ndindex(*batch)


def work_size(answer: tuple) -> int:
    """The workspace that a `..._lwork` routine asks for."""
    return max(int(np.real(answer[0])), 1)


# ---- Checks ----------------------------------------------------------------------------------------------------------
# LAPACK's iterations may never end, or may return finite numbers, if an element is inf or NaN. So check before the call.

# Elements; up to here one dot product costs less than np.isfinite and its reduction (0.5 us instead of 3).
_FEW = 256


def all_finite(a: np.ndarray) -> bool:
    """Whether no element is inf or NaN."""
    # The squares of finite elements may overflow, so an infinite product does not decide.
    if a.size <= _FEW and cmath.isfinite(np.vdot(a, a)):
        return True
    return bool(np.isfinite(a).all())


def first_matrix(stack: np.ndarray) -> str:
    """How PyTorch's messages name the first matrix whose element of `stack` is not 0: nothing for a single matrix."""
    return f"(Batch element {int(np.flatnonzero(stack)[0])}): " if stack.ndim else ""


def not_finite(a: np.ndarray) -> np.ndarray:
    """Which matrices of a stack have an element that is inf or NaN."""
    return ~np.isfinite(a).all((-2, -1))


def check_tensor(value: Any, name: str, argument: str = "A", position: int = 1) -> None:
    """Raises: TypeError if `value` is not a tensor; `linalg.inv` is called `linalg_inv` there."""
    checking.check_tensor(value, name.replace(".", "_"), argument, position)


def check_matrix(input: Tensor, name: str, argument: str = "A") -> None:
    check_tensor(input, name, argument)
    if input.dim() < 2:
        raise RuntimeError(
            f"{name}: The input tensor {argument} must have at least 2 dimensions.\n{name}: shape {list(input.shape)}"
        )


def check_square(input: Tensor, name: str, argument: str = "A") -> None:
    check_matrix(input, name, argument)
    if input.shape[-1] != input.shape[-2]:
        raise RuntimeError(
            f"{name}: {argument} must be batches of square matrices, but they are {input.shape[-2]} by "
            f"{input.shape[-1]} matrices"
        )


def check_floating(input: Tensor, name: str, low_precision: bool = True) -> None:
    dtype = input.spec.dtype
    if dtype.category < 2:
        raise RuntimeError(
            f"{name}: Expected a floating point or complex tensor as input. Got {LEGACY_NAMES[dtype]}"
        )
    if not low_precision and dtype in (float16, bfloat16):
        raise RuntimeError(f"{name}: Low precision dtypes not supported. Got {LEGACY_NAMES[dtype]}")


def check_supported(input: Tensor, kernel: str) -> None:
    """LAPACK has single and double precision; `kernel` is how PyTorch's message calls the computation."""
    if input.spec.dtype not in (float32, float64, complex64, complex128):
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{LEGACY_NAMES[input.spec.dtype]}'")


def check_same_dtype(a: Tensor, b: Tensor, name: str, first: str = "A", second: str = "B") -> None:
    if a.spec.dtype is not b.spec.dtype:
        raise RuntimeError(
            f"{name}: Expected {first} and {second} to have the same dtype, but found {first} of type "
            f"{LEGACY_NAMES[a.spec.dtype]} and {second} of type {LEGACY_NAMES[b.spec.dtype]} instead"
        )


def first_failure(info: Tensor) -> tuple[str, int] | None:
    """Where LAPACK's `info` of a stack is not 0: how a message says which matrix, and its info."""
    if not info.spec.device.backend.has_memory:
        return None
    infos = host_array(beneath(info))
    if not (infos.any() if infos.ndim else infos):  # a reduction of one element would take 0.8 us
        return None
    return first_matrix(infos), int(infos.reshape(-1)[np.flatnonzero(infos)[0]])
