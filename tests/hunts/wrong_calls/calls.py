"""Calls as plain data, which travel between processes: neither PyTorch nor weft is imported here."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

NARROW = {
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
    "float8_e4m3fn": np.dtype(ml_dtypes.float8_e4m3fn),
    "float8_e5m2": np.dtype(ml_dtypes.float8_e5m2),
    "float8_e4m3fnuz": np.dtype(ml_dtypes.float8_e4m3fnuz),
    "float8_e5m2fnuz": np.dtype(ml_dtypes.float8_e5m2fnuz),
}


def numpy_dtype(name: str) -> np.dtype:
    """The dtype of NumPy for a dtype's name; complex32 has none and counts as pairs of float16."""
    if name == "complex32":
        return np.dtype([("real", np.float16), ("imag", np.float16)])
    return NARROW.get(name) or np.dtype(name)


@dataclass
class Array:
    """A tensor: a window (shape, stride and offset in elements) onto the bytes of its storage."""

    dtype: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int
    data: bytes
    requires_grad: bool = False

    def values(self) -> np.ndarray:
        """The elements as NumPy's array."""
        flat = np.frombuffer(self.data, numpy_dtype(self.dtype))[self.offset :]
        steps = [step * flat.itemsize for step in self.stride]
        return np.lib.stride_tricks.as_strided(flat, self.shape, steps)

    def __repr__(self) -> str:
        grad = ", requires_grad" if self.requires_grad else ""
        try:
            text = np.array2string(self.values(), threshold=12, separator=",").replace("\n", "")[:120]
        except (ValueError, TypeError):
            text = "..."
        dense = contiguous(self.shape) == self.stride and not self.offset
        layout = "" if dense else f" strides {self.stride} offset {self.offset}"
        return f"<{self.dtype}{list(self.shape)}{layout}{grad} {text}>"


@dataclass(frozen=True)
class Named:
    """Something that both libraries have under the same name: a dtype, a layout, a function."""

    path: str

    def __repr__(self) -> str:
        return f"torch.{self.path}"


@dataclass
class Call:
    """`path(*args, **kwargs)`; for a module, `path(*args, **kwargs)(*inputs)` with the same seed.

    `Tensor.name` calls the method of the first argument.
    """

    path: str
    args: tuple
    kwargs: dict[str, Any] = field(default_factory=dict)
    inputs: tuple | None = None
    change: str = ""

    def __repr__(self) -> str:
        given = [repr(each) for each in self.args]
        given += [f"{name}={value!r}" for name, value in self.kwargs.items()]
        then = "" if self.inputs is None else f"({', '.join(map(repr, self.inputs))})"
        return f"{self.path}({', '.join(given)}){then}"


@dataclass
class Outcome:
    """What a call did: `kind` is "value", "raised", "crashed", "hung" or "backward" (raised there)."""

    kind: str
    value: Any = None  # the results as plain data
    after: Any = None  # the arguments after the call: it may write to them
    grads: Any = None  # of the tensors that require grad
    error: str = ""  # the name of the exception's built-in type
    message: str = ""
    internal: bool = False  # whether the exception comes from a defect rather than a check


def contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Row-major strides, in elements."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def array_of(values: np.ndarray, dtype: str, requires_grad: bool = False) -> Array:
    """A contiguous Array with these values."""
    values = np.ascontiguousarray(values).reshape(values.shape)
    return Array(dtype, values.shape, contiguous(values.shape), 0, values.tobytes(), requires_grad)
