"""Tensors of the oracle (PyTorch) as weft's and back, and how results of the two are compared."""

from typing import NamedTuple

import numpy as np
import quick_torch  # noqa: F401 (makes torch.manual_seed quick)
import torch
from expected import judge

import weft

FLOATS = ("float16", "bfloat16", "float32", "float64")
INTEGERS = ("uint8", "int8", "int16", "int32", "int64")
COMPLEX = ("complex64", "complex128")
DTYPES = ("bool", *INTEGERS, *FLOATS, *COMPLEX)

# Relative and absolute tolerance; torch's own vector functions are some ulp off.
TOLERANCE = {
    "float16": (2e-3, 1e-6), "bfloat16": (1.6e-2, 1e-6), "float32": (4e-6, 1e-6), "float64": (1e-11, 1e-12),
    "complex32": (4e-3, 1e-3), "complex64": (2e-5, 1e-5), "complex128": (1e-10, 1e-10),
}  # fmt: skip


def name_of(dtype) -> str:
    return str(dtype).removeprefix("torch.")


def to_weft(tensor: torch.Tensor):
    """The same values, strides and offset, in memory of its own."""
    if tensor.numel() == 0:
        return weft.empty_strided(
            tuple(tensor.shape), tensor.stride(), dtype=getattr(weft, name_of(tensor.dtype))
        )
    whole = tensor.untyped_storage().nbytes() // tensor.element_size()
    flat = torch.as_strided(tensor, (whole,), (1,), 0).clone()
    memory = weft.from_numpy(flat.view(torch.uint8).numpy().copy()).view(getattr(weft, name_of(tensor.dtype)))
    return memory.as_strided(tuple(tensor.shape), tensor.stride(), tensor.storage_offset())


def to_torch(tensor) -> torch.Tensor:
    result = torch.empty(tuple(tensor.shape), dtype=getattr(torch, name_of(tensor.dtype)))
    if result.numel():
        memory = np.array(
            tensor.clone(memory_format=weft.contiguous_format).reshape(-1).view(weft.uint8).numpy()
        )
        result.view(-1).copy_(torch.from_numpy(memory).view(result.dtype))
    return result


def strides_that_count(tensor) -> tuple[int, ...]:
    """The strides of the dims along which there is another element."""
    pairs = zip(tensor.stride(), tensor.shape, strict=True)
    return tuple(step for step, size in pairs if size > 1) if tensor.numel() else ()


def converted(value):
    """The arguments of a call of torch as those of the same call of weft."""
    if isinstance(value, torch.Tensor):
        return to_weft(value)
    if isinstance(value, torch.dtype):
        return getattr(weft, name_of(value))
    if isinstance(value, (list, tuple)):
        return type(value)(map(converted, value))
    return value


def outcome(function, args, kwargs):
    try:
        return function(*args, **kwargs)
    except Exception as error:
        return error


def assert_same(got, expected, what="") -> None:
    """dtype, shape and strides are equal, values within the tolerance of the dtype."""
    if isinstance(expected, (tuple, list)):
        assert len(got) == len(expected), what
        for one, other in zip(got, expected, strict=True):
            assert_same(one, other, what)
        return
    if not isinstance(expected, torch.Tensor):
        assert got == expected, what
        return
    assert name_of(got.dtype) == name_of(expected.dtype), what
    assert tuple(got.shape) == tuple(expected.shape), what
    assert strides_that_count(got) == strides_that_count(expected), (what, got.stride(), expected.stride())
    rtol, atol = TOLERANCE.get(name_of(expected.dtype), (0, 0))
    torch.testing.assert_close(
        to_torch(got),
        expected.contiguous(),
        rtol=rtol,
        atol=atol,
        equal_nan=True,
        msg=lambda text: f"{what}\n{text}",
    )


class _Call(NamedTuple):
    """A call, which is a text only in the message of a failure: PyTorch takes a millisecond for the text of a tensor."""

    path: str
    args: tuple
    kwargs: dict

    def __str__(self) -> str:
        return f"{self.path} {self.args} {self.kwargs}"


def check(path: str, *args, method: bool = False, raises: bool = False, **kwargs) -> None:
    """weft does what torch does: the same result; with `raises`, an exception of the same type.

    Where torch has no kernel for a dtype (NotImplementedError), weft may have one.
    """
    what = _Call(path, args, kwargs)
    mine, options = converted(args), {name: converted(value) for name, value in kwargs.items()}
    expected = outcome(_find(torch, path, method), args, kwargs)
    got = outcome(_find(weft, path, method), mine, options)
    if isinstance(expected, NotImplementedError):
        return
    judge(expected, raises, what)
    if isinstance(expected, Exception):
        assert type(got) is type(expected), f"{what}: {got!r} instead of {expected!r}"
        return
    assert not isinstance(got, Exception), f"{what}: {got!r}"
    assert_same(got, expected, what)
    if path.endswith("_"):
        assert_same(mine[0], args[0], what)


def check_raises(path: str, *args, **kwargs) -> None:
    """Both raise an exception of the same type."""
    check(path, *args, raises=True, **kwargs)


def _find(module, path: str, method: bool):
    found = module.Tensor if method else module
    for part in path.split("."):
        found = getattr(found, part)
    return found
