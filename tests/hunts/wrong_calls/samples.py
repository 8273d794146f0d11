"""Right calls to begin with: PyTorch's operator database, and what it leaves out. Imported where PyTorch runs."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import torch

from . import more
from .calls import Array, Call, Named

_PRIVATE = ("_", "torch._", "torch.ops", "jiterator_")


def names() -> list[str]:
    """The names of what there are samples of."""
    return sorted({*_database(), *more.CALLS})


def _database() -> dict[str, list]:
    if not _known:
        from quick_torch import op_db

        for op in op_db():
            if (not op.name.startswith(_PRIVATE) or op.name.startswith("__")) and op.supported_dtypes("cpu"):
                _known.setdefault(op.name, []).append(op)
    return _known


_known: dict[str, list] = {}
_DTYPES = (torch.float32, torch.int64, torch.complex64, torch.bool, torch.float64)


def calls_of(name: str, seed: int, count: int) -> list[Call]:
    """Up to `count` right calls of an op, with other ones for other seeds."""
    if name in more.CALLS and (seed % 3 == 0 or name not in _database()):
        return more.CALLS[name]
    torch.manual_seed(seed)
    found: list[Call] = []
    ops = _database()[name]
    op = ops[seed % len(ops)]
    supported = [each for each in _DTYPES if each in op.supported_dtypes("cpu")]
    dtypes = supported or sorted(op.supported_dtypes("cpu"), key=str)
    dtype = dtypes[0] if seed % 3 else dtypes[seed // 3 % len(dtypes)]
    grad = op.supports_autograd and dtype.is_floating_point and seed % 2 == 0
    path = _path(op)
    if path is None:
        return []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            samples = list(itertools.islice(op.sample_inputs("cpu", dtype, requires_grad=grad), 40))
        except Exception:
            return []
    step = max(len(samples) // count, 1)
    for sample in samples[seed % step :: step][:count]:
        try:
            args = _plain((sample.input, *sample.args))
            kwargs = {key: _plain(value) for key, value in sample.kwargs.items()}
        except _Unknown:
            continue
        for form in _forms(path, op, seed):
            found.append(Call(form, args, kwargs))
    return found


def _path(op: Any) -> str | None:
    for path in (op.name, f"Tensor.{op.name}"):
        target = torch
        for part in path.split("."):
            target = getattr(target, part, None)
        if callable(target):
            return path
    return None


def _forms(path: str, op: Any, seed: int) -> list[str]:
    """The function, and for some seeds the method or the in-place method."""
    method = f"Tensor.{op.name}"
    if seed % 4 == 1 and "." not in op.name and hasattr(torch.Tensor, op.name):
        return [method]
    if seed % 4 == 3 and op.inplace_variant is not None and hasattr(torch.Tensor, f"{op.name}_"):
        return [f"{method}_"]
    return [path]


class _Unknown(Exception):
    """What cannot travel."""


def _plain(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return _array(value)
    if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
        return Named(str(value).rpartition(".")[2])
    if isinstance(value, torch.device):
        return str(value)
    if isinstance(value, torch.Size):
        return tuple(value)
    if type(value) in (tuple, list):
        return type(value)(map(_plain, value))
    if isinstance(value, slice):
        return slice(*map(_plain, (value.start, value.stop, value.step)))
    if value is None or value is Ellipsis or isinstance(value, (bool, int, float, complex, str)):
        return value
    raise _Unknown


def _array(tensor: torch.Tensor) -> Array:
    if tensor.layout is not torch.strided or tensor.device.type != "cpu":
        raise _Unknown
    grad, tensor = tensor.requires_grad, tensor.detach().resolve_conj().resolve_neg()
    dtype = str(tensor.dtype).rpartition(".")[2]
    if not tensor.numel():
        return Array(dtype, tuple(tensor.shape), tensor.stride(), 0, b"", grad)
    span = 1 + sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride(), strict=True))
    if span > 1 << 16:
        raise _Unknown
    flat = tensor.as_strided((span,), (1,)).clone()
    return Array(
        dtype, tuple(tensor.shape), tensor.stride(), 0, flat.view(torch.uint8).numpy().tobytes(), grad
    )
