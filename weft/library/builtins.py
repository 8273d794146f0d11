"""Which operator a function is: `torch.add` is "aten::add". torch.fx reads the signatures of functions from the operators' schemas."""

from __future__ import annotations

import cmath
import functools
import math
from collections.abc import Iterator
from typing import Any

import weft

from ..core.registry import FUNCTIONS
from .qualified_name import torch_name

# Modules of PyTorch whose functions are operators of the same name.
_MODULES = frozenset(f"torch._C.{each}" for each in ("_nn", "_fft", "_linalg", "_special"))
# Functions of `torch` that PyTorch writes in Python, so that TorchScript compiles them, and two that are of `torch.ops`.
_NO_BUILTINS = frozenset(
    "cdist lu norm quantized_gru quantized_lstm stft tensordot unique unique_consecutive".split()
)
# Public functions whose operators have other names.
_OTHER_NAMES = {
    "_segment_reduce": "segment_reduce",
    "nested.to_padded_tensor": "nested_to_padded_tensor",
    "sparse.addmm": "_sparse_addmm",
    "sparse.log_softmax": "_sparse_log_softmax",
    "sparse.mm": "_sparse_mm",
    "sparse.sampled_addmm": "sparse_sampled_addmm",
    "sparse.softmax": "_sparse_softmax",
    "sparse.spdiags": "_spdiags",
    "sparse.spsolve": "_spsolve",
}
# Functions of Python's own modules that TorchScript has operators for. They are looked up when this module is imported,
# because torch.fx exchanges them in `math` while it traces.
_OF_PYTHON = [
    (getattr(module, name), name)
    for module, names in (
        (
            math,
            "acos acosh asin asinh atan atan2 atanh ceil copysign cos cosh degrees erf erfc exp expm1 fabs factorial floor fmod "
            "frexp gamma gcd isfinite isinf isnan ldexp lgamma log log10 log1p modf pow radians sin sinh sqrt tan tanh",
        ),
        (
            cmath,
            "acos acosh asin asinh atan atanh cos cosh exp isfinite isinf isnan log log10 sin sinh sqrt tan tanh",
        ),
    )
    for name in names.split()
]
_OF_PYTHON += [
    (math.remainder, "mathremainder"),
    (cmath.phase, "angle"),
    (cmath.rect, "polar"),
    (dict, "dict"),
]


def _find_builtin(fn: Any) -> str | None:
    """The name of the operator that `fn` calls; None for functions that PyTorch writes in Python, and for others.

    >>> import weft as torch
    >>> _find_builtin(torch.add), _find_builtin(torch.nn.functional.linear), _find_builtin(torch.nn.functional.relu)
    ('aten::add', 'aten::linear', None)
    """
    return _get_builtin_table().get(id(fn))


def _register_builtin(fn: Any, op: str) -> None:
    """Say that `fn` calls the operator `op`."""
    _get_builtin_table()[id(fn)] = op


@functools.cache
def _get_builtin_table() -> dict[int, str]:
    """The names of operators by the identity of functions. It is made at the first call: 2 ms on AMD Zen 3."""
    return {id(function): f"aten::{name}" for function, name in _builtins()}


def _builtins() -> Iterator[tuple[Any, str]]:
    yield from _OF_PYTHON
    yield weft.autograd.grad, "grad"
    yield weft.autograd.backward, "backward"
    for name, member in vars(weft).items():
        if callable(member) and name not in FUNCTIONS:
            yield member, name
    for name, function in FUNCTIONS.items():
        operator = _operator_of(name)
        if operator is not None:
            yield function, operator


def _operator_of(name: str) -> str | None:
    """The operator of the function that is public as `name`."""
    if name in _OTHER_NAMES:
        return _OTHER_NAMES[name]
    if "." not in name:
        return None if name in _NO_BUILTINS else name
    module, _, last = torch_name(name).rpartition(".")
    return last if module == "torch" or module in _MODULES else None
