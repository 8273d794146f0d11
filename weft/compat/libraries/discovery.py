"""Registration of tensors with other libraries: the array API standard, einops, opt_einsum, Matplotlib."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from types import ModuleType
from typing import Any

from ...core.names import ROOT
from ...core.public import public
from ...core.tensor import Tensor
from ...core.when_imported import when_imported
from ...ops.linalg.einsum import einsum as _einsum
from ...ops.linalg.matmul import tensordot as _tensordot

# ---- The array API standard ------------------------------------------------------------------------------------------


@public("method")
def __array_namespace__(self: Tensor, *, api_version: str | None = None) -> ModuleType:
    """The functions of the array API standard for tensors.

    Raises: ValueError for later versions of the standard.

    >>> import weft
    >>> weft.ones(2).__array_namespace__().unique_values(weft.tensor([3, 1, 3]))
    tensor([1, 3])
    """
    from . import array_api

    if api_version is not None and api_version > array_api.__array_api_version__:
        raise ValueError(
            f"array API version {api_version}: weft has {array_api.__array_api_version__} and what is older"
        )
    return array_api


@public("method")
def to_device(self: Tensor, device: Any, /, *, stream: Any = None) -> Tensor:
    """The tensor on a device; the name of `to` in the array API standard."""
    return self.to(device)


# ---- einops ----------------------------------------------------------------------------------------------------------


def _join_einops(backends: Any) -> None:
    """Define a backend for einops, which searches the subclasses of its base class by `framework_name`."""

    class WeftBackend(backends.TorchBackend):
        framework_name = "weft"

        def __init__(self) -> None:
            # In place of the backend of einops, which imports torch.
            self.torch = sys.modules[ROOT]

    # Keep a reference, because a class refers to its subclasses weakly.
    backends.WeftBackend = WeftBackend


# ---- opt_einsum ------------------------------------------------------------------------------------------------------


def _join_opt_einsum(dispatch: Any) -> None:
    """Register with opt_einsum, which selects functions by the package of a class: "weft", or "torch" under `weft run`.

    In the second case the functions also handle PyTorch's own tensors, because a program may use both.
    """
    theirs = sys.modules["opt_einsum.backends.torch"]

    def einsum(equation: str, *operands: Any, **options: Any) -> Any:
        if not _all_ours(operands):
            return theirs.einsum(equation, *operands, **options)
        letters = theirs.convert_to_valid_einsum_chars(
            equation
        )  # because opt_einsum also has labels beyond a-zA-Z
        return _einsum(letters, *operands)

    def tensordot(x: Any, y: Any, axes: Any = 2) -> Any:
        return _tensordot(x, y, axes) if _all_ours((x, y)) else theirs.tensordot(x, y, axes)

    def evaluate_constants(constants: Any, expression: Any) -> Any:
        if not _all_ours(constants):
            return theirs.evaluate_constants(constants, expression)
        return expression(*constants, backend="torch", evaluate_constants=True)

    dispatch._aliases["weft"] = "opt_einsum.backends.torch"
    for package in ("torch", "weft"):
        dispatch._cached_funcs["einsum", package] = einsum
        dispatch._cached_funcs["tensordot", package] = tensordot
        dispatch.EVAL_CONSTS_BACKENDS[package] = evaluate_constants


def _all_ours(values: Iterable[Any]) -> bool:
    return all(isinstance(value, Tensor) for value in values)


# ---- Matplotlib ------------------------------------------------------------------------------------------------------


def _join_matplotlib(cbook: Any) -> None:
    """Let Matplotlib treat tensors as arrays. Otherwise it treats a sequence of sequences as several data sets."""
    is_torch_array = cbook._is_torch_array
    cbook._is_torch_array = lambda x: isinstance(x, Tensor) or is_torch_array(x)


when_imported("einops._backends", _join_einops)
when_imported("opt_einsum.backends.dispatch", _join_opt_einsum)
when_imported("matplotlib.cbook", _join_matplotlib)
