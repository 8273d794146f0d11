"""Writing results into given tensors: the argument `out=` and the targets of in-place operations."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from .dtype import LEGACY_NAMES, DType, bool_, int64, uint8
from .grad_mode import mode
from .recording import needs_recording
from .spec import Spec, contiguous_spec, make_spec
from .storage import Storage
from .tensor import Tensor
from .warn import user_level

# Set by `ops/assembly/copying.py`: copy_values(target, source) with conversion and broadcasting.
copy_values: Callable[[Tensor, Tensor], None]


def set_copy(function: Callable[[Tensor, Tensor], None]) -> None:
    global copy_values
    copy_values = function


def with_out(function: Callable, name: str, how: bool | str | Callable = True) -> Callable:
    """A wrapper of `function` with an argument `out=`: a tensor, or a tuple with one tensor per result.

    how: see `public`; a function `how(out, *args)` writes the result into `out` and returns True, or returns False where it cannot.
    """
    exact = how in ("exact", "apart")
    write: Any = how if callable(how) else None

    @functools.wraps(function)
    def complete(*args, out=None, **kwargs):
        if out is None:
            return function(*args, **kwargs)
        check_unrecorded(name, args)
        if isinstance(out, Tensor):
            if write is not None and not kwargs and write(out, *args):
                return out
            if how == "apart":
                check_apart(out, (*args, *kwargs.values()), name)
            if how == "decides":
                dtype = kwargs["dtype"] = kwargs.get("dtype") or out.spec.dtype
                check_result_dtype(out, dtype, name)
            elif how == "flags" and out.spec.dtype not in (bool_, uint8):
                raise RuntimeError(
                    f"{name} only supports bool tensor for result, got: {LEGACY_NAMES[out.spec.dtype]}"
                )
            result = function(*args, **kwargs)
            return write_out(out, result.to(out.spec.dtype) if how == "flags" else result, name, exact)
        if not isinstance(out, (tuple, list)):
            raise TypeError(f"{name}(): argument 'out' must be Tensor, not {type(out).__name__}")
        check_unrecorded(name, out)
        if how == "apart":
            for each in out:
                check_apart(each, (*args, *kwargs.values()), name)
        results = function(*args, **kwargs)
        if isinstance(results, Tensor):
            raise TypeError(f"{name}(): argument 'out' must be Tensor, not {type(out).__name__}")
        if len(out) != len(results):
            raise TypeError(f"{name}(): expected {len(results)} tensors in 'out', got {len(out)}")
        pairs = list(zip(out, results, strict=True))
        for target, result in pairs:  # check all targets before writing the first one
            _check_target(target, result, name, exact or result.spec.dtype is int64)
        written = [_fill(target, result, name) for target, result in pairs]
        return (
            type(results)(written)
            if hasattr(results, "_fields") or type(results) is not tuple
            else tuple(written)
        )

    return complete


def check_apart(out: Tensor, arguments: Sequence[Any], name: str) -> None:
    """Raises: RuntimeError if `out` shares memory with an argument or with itself."""
    check_no_repeats(out.spec, name)
    if any(isinstance(each, Tensor) and memory_overlaps(each, out) for each in arguments):
        raise overlap(name, out.spec)


def overlap(name: str, *specs: Spec) -> RuntimeError:
    facts = ", ".join(f"{list(each.shape)} with strides {each.stride}" for each in specs)
    return RuntimeError(
        "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single "
        f"memory location. Please clone() the tensor before performing the operation.\n{name}: {facts}"
    )


def memory_overlaps(a: Tensor, b: Tensor) -> bool:
    """Whether the memory ranges of two tensors overlap."""
    if a._storage is not b._storage or not a.spec.numel or not b.spec.numel:
        return False
    (a_first, a_last), (b_first, b_last) = (
        (t._byte_offset, t._byte_offset + t.spec.span * t.spec.dtype.itemsize) for t in (a, b)
    )
    return a_first < b_last and b_first < a_last


def check_unrecorded(name: str, tensors: Sequence[Any]) -> None:
    """Raises: RuntimeError if one of the tensors of a call with `out=` requires grad, NotImplementedError if one has a tangent."""
    inner = [item for each in tensors if type(each) in (tuple, list) for item in each]
    if not (needs_recording(tensors) or inner and needs_recording(inner)):
        return
    if mode.reverse and any(getattr(each, "requires_grad", False) for each in (*tensors, *inner)):
        raise RuntimeError(
            f"{name}(): functions with out=... arguments don't support automatic differentiation, but one of the "
            "arguments requires grad."
        )
    raise NotImplementedError(
        f"Trying to use forward AD with {name}_out that does not support it because it is an out= function"
    )


def write_out(out: Tensor, result: Tensor, name: str, exact: bool = False) -> Tensor:
    """Write `result` into `out`. Resizes `out` if necessary, and converts to its dtype.

    Raises: RuntimeError if the category of the dtype is lower (with `exact`, if the dtype differs), or if the devices differ.
    """
    _check_target(out, result, name, exact)
    return _fill(out, result, name)


def check_result_dtype(out: Tensor, dtype: DType, name: str) -> None:
    """Raises: RuntimeError if a result of this dtype may not be written into `out`, which has another one."""
    if out.spec.dtype is not dtype:
        raise RuntimeError(
            f"Expected out tensor to have dtype {dtype.name}, but got {out.spec.dtype.name} instead\n{name}"
        )


def _check_target(out: Any, result: Any, name: str, exact: bool) -> None:
    if not isinstance(out, Tensor) or not isinstance(result, Tensor):
        expected = "tuple of Tensors" if isinstance(out, Tensor) else "Tensor"
        raise TypeError(f"{name}(): argument 'out' must be {expected}, not {type(out).__name__}")
    if exact:
        check_result_dtype(out, result.spec.dtype, name)
    check_unrecorded(name, (out,))
    check_out(out, result.spec.dtype, result.spec.device, name)
    if out.spec.shape == result.spec.shape:
        check_no_repeats(out.spec, name)


def _fill(out: Tensor, result: Tensor, name: str) -> Tensor:
    if out.spec.shape != result.spec.shape:
        resize_out(out, result.spec.shape, name)
    copy_values(out, result)
    return out


def check_out(out: Any, dtype, device, name: str) -> None:
    if not isinstance(out, Tensor):
        raise TypeError(f"{name}(): argument 'out' must be Tensor, not {type(out).__name__}")
    check_out_spec(out.spec, dtype, device, name)


def check_out_spec(out: Spec, dtype, device, name: str) -> None:
    """Raises: RuntimeError if results of `dtype` on `device` cannot be written into a tensor with the metadata `out`."""
    check_dtype(out, dtype, name)
    if out.device is not device:
        raise RuntimeError(
            f"Expected out tensor to have device {device}, but got {out.device} instead ({name})"
        )


def check_dtype(target: Spec, dtype, name: str) -> None:
    """Raises: RuntimeError if results of `dtype` cannot be written into `target`."""
    if dtype.category > target.dtype.category:
        raise RuntimeError(
            f"result type {_type_name(dtype)} can't be cast to the desired output type {_type_name(target.dtype)}\n{name}"
        )


def _type_name(dtype) -> str:
    return LEGACY_NAMES[dtype]


def resize_out(out: Tensor, sizes, name: str, stride: tuple[int, ...] | None = None) -> None:
    """Change the sizes and strides (default: contiguous) of `out`, and reallocate its memory if it is too small.

    Warns unless `out` is empty.
    """
    if out.spec.numel:
        warnings.warn(
            f"An output with one or more elements was resized since it had shape {list(out.spec.shape)}, which does not "
            f"match the required output shape {list(sizes)}. This behavior is deprecated, and in a future PyTorch "
            "release outputs will not be resized unless they have zero elements. You can explicitly reuse an out "
            f"tensor t by resizing it, inplace, to zero elements with t.resize_(0). ({name})",
            UserWarning,
            stacklevel=user_level(),
        )
    spec = out.spec
    resized = contiguous_spec(sizes, spec.dtype, spec.device)
    resize(out, resized if stride is None else make_spec(resized.shape, stride, spec.dtype, spec.device))


def resize(tensor: Tensor, spec: Spec) -> None:
    """Set the metadata of `tensor`, and grow its storage if it is too small."""
    grow(tensor._storage, tensor._byte_offset, spec)
    tensor.spec = spec


def grow(storage: Storage, start: int, spec: Spec) -> None:
    """Grow the storage for a tensor with metadata `spec` at byte `start`.

    Raises: RuntimeError if the size in bytes needs more than 63 bits.
    """
    needed = start + spec.span * spec.dtype.itemsize
    if needed >= 2**63:
        raise RuntimeError(
            f"Storage size calculation overflowed with sizes={list(spec.shape)} and strides={list(spec.stride)}"
        )
    if needed > storage.nbytes_:
        storage.resize_(needed)


def check_inplace(tensor: Tensor, name: str) -> None:
    """Raises: RuntimeError if several indices of the tensor refer to one element of memory."""
    check_no_repeats(tensor.spec, name)


def check_no_repeats(spec: Spec, name: str) -> None:
    if spec.repeats:
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
            f"Please clone() the tensor before performing the operation.\n{name}_: shape {list(spec.shape)}, strides "
            f"{spec.stride}"
        )
