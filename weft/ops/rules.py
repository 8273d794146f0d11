"""What the derivatives of ops are written with; how they are stated: `core/derivative.py`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core.op import FUNCTIONS
from ..core.spec import Spec
from ..core.tensor import Tensor
from ..families.map import NUMBERS


def conj(factor: Any) -> Any:
    """The complex conjugate of a tensor or a number."""
    return factor.conjugate() if isinstance(factor, NUMBERS) else factor.conj()


# ---- Rules that many ops share -----------------------------------------------------------------------------------------


def same(ct: Tensor, out: None, *inputs: None) -> Tensor:
    return ct


def negative(ct: Tensor, out: None, *inputs: None) -> Tensor:
    return -ct


def zero(ct: Tensor, out: None, *inputs: None) -> Tensor:
    """Of functions that are constant almost everywhere."""
    return FUNCTIONS["zeros_like"](ct)


def unknown(what: str) -> Callable:
    """Stands for a derivative that nobody has a formula for."""

    def rule(ct, out, *inputs):
        raise NotImplementedError(f"the derivative for '{what}' is not implemented.")

    return rule


# ---- Reductions ------------------------------------------------------------------------------------------------------


def kept(reduced: Tensor, dims: Sequence[int], keepdim: bool) -> Tensor:
    """A reduced tensor with the dims that it was reduced over, of size 1."""
    if not keepdim:
        for dim in dims:
            reduced = reduced.unsqueeze(dim)
    return reduced


def restored(reduced: Tensor, whole: Spec, dims: Sequence[int], keepdim: bool) -> Tensor:
    """A reduced tensor, repeated to the shape that was reduced."""
    return kept(reduced, dims, keepdim).expand(whole.shape)


# ---- Names of nodes: PyTorch numbers the forms of an op that take numbers or tensors ----------------------------------


def numbered(name: str, position: int = 1) -> Callable:
    """1 where the input at `position` is a tensor, 0 where it is a number."""
    names = f"{name}Backward0", f"{name}Backward1"
    return lambda inputs, static: names[isinstance(inputs[position], Tensor)]
