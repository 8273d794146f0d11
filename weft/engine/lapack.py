"""LAPACK on stacks of matrices: machine code calls the routines of NumPy's OpenBLAS on the memory of tensors.

The functions of NumPy and SciPy copy each matrix into memory of their own and back, and NumPy computes QR and eigenvalues of
float32 in float64. Here nothing is copied, the interpreter's lock is free meanwhile, and the workers share a stack.
Measured for inv of one matrix, float32, AMD Zen 5: 64x64 103 -> 55 us, 256x256 2200 -> 1000 us.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from types import EllipsisType
from typing import Any, NamedTuple

import numpy as np

from ..core.dtype import DType
from . import blas
from .blas import ONE_THREAD
from .gemm import ALWAYS_SHARED_WORK, SHARED_WORK, UNTHREADED_WORK
from .kernel import Code, loop_code, shared
from .storages import allocator
from .structured import Body

# The words that a routine gets, the hidden lengths of its strings included. A routine ignores the words after its own.
_ARGUMENTS = 16
# The addresses that a call passes: five of tensors, the workspace, and 0 for arguments whose offset is their address.
_OPERANDS = 7
_WORKSPACE, _ABSOLUTE = 5, 6
# The words of meta: matrices, tasks, steps; for each step its routine, and for each argument its operand, its offset, and its
# strides from matrix to matrix and from task to task (bytes).
_HEADER, _ARGUMENT = 3, 4
_STEP = 1 + _ARGUMENTS * _ARGUMENT
# A stack is cut into at most so many tasks, each with a workspace of its own.
_MOST_TASKS = 16
# Elements; OpenBLAS factorizes matrices of up to this size (256x256) on one thread. With two, float32 takes 298 us for LU instead of
# 297, but 426 instead of 195 for Cholesky and 1265 instead of 900 for the inverse, and tens of milliseconds while other programs run,
# because OpenBLAS's threads wait for each other at every step (AMD Zen 4, 2 cores).
SMALL = 1 << 16
# The same for LU alone (512x512): solve takes 1.8 ms on one thread and 3.5 on two, Cholesky 0.92 ms on either.
SMALL_LU = 1 << 18


class Place(NamedTuple):
    """Where an argument lies: the operand, the offset in it, and the stride from one matrix to the next (bytes)."""

    operand: int
    stride: int = 0
    offset: int = 0


class Scratch(NamedTuple):
    """Describes an argument in the workspace of a task: its offset (bytes)."""

    offset: int


# A letter, an integer, a number of the dtype of the matrices, or memory.
Argument = str | int | float | Place | Scratch


class Step(NamedTuple):
    """A call of a routine for each matrix."""

    name: str
    arguments: tuple[Argument, ...]


def _routine(name: str, dtype: DType) -> Any:
    library = blas.numpy_library()
    return getattr(library.functions, f"scipy_{blas.LETTERS[dtype]}{name}_64_", None) if library else None


def available(dtype: DType, *names: str) -> bool:
    """Whether NumPy comes with an OpenBLAS that has these routines."""
    return dtype in blas.LETTERS and all(_routine(name, dtype) is not None for name in names)


@functools.lru_cache(maxsize=1024)
def work_sizes(name: str, dtype: DType, *arguments: str | int | EllipsisType | None) -> list[int]:
    """The lengths of workspaces that a routine asks for if their lengths are given as -1.

    Arguments: letters and integers; an Ellipsis for an array of numbers, None for one of integers. The answers are in the first
    elements of all arrays, of which most stay 0.
    """
    arrays: list[np.ndarray] = []
    words: list[Any] = []
    letters = 0
    for argument in arguments:
        if isinstance(argument, str):
            words.append(ctypes.c_char_p(argument.encode()))
            letters += 1
            continue
        whole = argument is None or isinstance(argument, int)
        array = np.array([argument or 0, 0] if whole else [0, 0], np.int64 if whole else dtype.numpy)
        arrays.append(array)
        words.append(ctypes.c_void_p(array.ctypes.data))
    info = ctypes.c_int64(0)
    _routine(name, dtype)(*words, ctypes.byref(info), *[ctypes.c_size_t(1)] * letters)
    return [int(array[0].real) for array in arrays]


def _write_loop(body: Body) -> None:
    """`loop(operands, meta, begin, end)`: tasks begin to end, each with its matrices, each with all steps."""
    matrices, tasks, steps = body.meta(_HEADER)
    steps_end = body.integer("mul", steps, 8 * _STEP)
    with body.loop("%begin", "%end") as task:
        first = body.integer("sdiv", body.integer("mul", matrices, task), tasks)
        after = body.integer("sdiv", body.integer("mul", matrices, body.integer("add", task, 1)), tasks)
        with body.loop(first, after) as matrix:
            with body.loop(0, steps_end, 8 * _STEP) as offset:
                step = body.at("%meta", body.integer("add", offset, 8 * _HEADER))
                addresses = []
                for k in range(_ARGUMENTS):
                    first_word = 1 + _ARGUMENT * k
                    operand, start, stride, task_stride = body.words(step, first_word, first_word + _ARGUMENT)
                    place = body.place("%operands", (operand, 8))
                    address = body.integer("add", body.load("i64", place), start)
                    address = body.integer("add", address, body.integer("mul", matrix, stride))
                    addresses.append(body.integer("add", address, body.integer("mul", task, task_stride)))
                routine = body.load("ptr", step)
                body.do(f"call void {routine}({', '.join(f'i64 {address}' for address in addresses)})")


@functools.cache
def _code() -> Code:
    return loop_code(_write_loop, _OPERANDS)


class Routines:
    """Steps on a stack of matrices: call it with the addresses of the operands, at most five."""

    __slots__ = ("allocate", "entry", "limited", "meta", "padding", "tasks", "keepalive")

    def __init__(
        self,
        dtype: DType,
        steps: Sequence[Step],
        count: int,
        operands: int,
        size: int,
        work: int,
        scratch: int = 0,
        small: int = SMALL,
    ):
        """count: matrices. size: elements of the largest. work: multiplications for each, about. scratch: bytes of a task.

        small: elements of the largest single matrix that OpenBLAS gets one thread for.
        """
        self.tasks = min(count, _MOST_TASKS)
        scratch = -(-scratch // 64) * 64
        self.allocate = allocator(scratch * self.tasks) if scratch else None
        constants: list[np.ndarray] = []
        words = [count, self.tasks, len(steps)]
        for step in steps:
            words += _step_words(step, dtype, constants, scratch)
        meta = np.array(words, np.int64)
        self.meta, self.keepalive = meta.ctypes.data, (meta, constants)
        self.padding = (0,) * (_WORKSPACE - operands)
        self.entry = shared(_code(), count * work >= ALWAYS_SHARED_WORK)
        if count * work < SHARED_WORK:
            self.entry = _code().entry
        # OpenBLAS's own threads would wait for each other, and for the workers, at each step of a small factorization.
        self.limited = size**1.5 > UNTHREADED_WORK and (count > 1 or size <= small)

    def __call__(self, *addresses: int) -> None:
        storage = self.allocate() if self.allocate else None
        workspace = storage.ptr if storage is not None else 0
        if self.limited:
            with ONE_THREAD:
                self.entry(*addresses, *self.padding, workspace, 0, self.meta, self.tasks)
        else:
            self.entry(*addresses, *self.padding, workspace, 0, self.meta, self.tasks)


def _step_words(step: Step, dtype: DType, constants: list[np.ndarray], scratch: int) -> list[int]:
    """The words of a step. Its numbers and letters become `constants`, because LAPACK takes all arguments by address."""
    words = [ctypes.cast(_routine(step.name, dtype), ctypes.c_void_p).value or 0]
    letters = 0
    for argument in step.arguments:
        if isinstance(argument, Place):
            words += [argument.operand, argument.offset, argument.stride, 0]
        elif isinstance(argument, Scratch):
            words += [_WORKSPACE, argument.offset, 0, scratch]
        else:
            letters += isinstance(argument, str)
            constants.append(_constant(argument, dtype))
            words += [_ABSOLUTE, constants[-1].ctypes.data, 0, 0]
    words += [_ABSOLUTE, 1, 0, 0] * letters  # the lengths of the strings
    return words + [_ABSOLUTE, 0, 0, 0] * ((1 + _ARGUMENT * _ARGUMENTS - len(words)) // _ARGUMENT)


def _constant(value: str | int | float, dtype: DType) -> np.ndarray:
    if isinstance(value, str):
        return np.frombuffer(value.encode().ljust(8), np.uint8).copy()
    return np.array([value], np.int64 if isinstance(value, int) else dtype.numpy)
