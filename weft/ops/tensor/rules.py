"""What the derivatives of ops are written with; how they are stated: `core/derivative.py`."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

from ...core.recording import tape
from ...core.spec import Spec
from ...core.tensor import Tensor, end_view
from ...families.map import NUMBERS
from ..creation.creation import zeros_like


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
    return zeros_like(ct)


def unknown(what: str) -> Callable:
    """Stands for a derivative that nobody has a formula for."""

    def rule(ct, out, *inputs):
        raise NotImplementedError(f"the derivative for '{what}' is not implemented.")

    return rule


# ---- Reductions ------------------------------------------------------------------------------------------------------


def kept(reduced: Tensor, dims: Sequence[int] | None, keepdim: bool) -> Tensor:
    """A reduced tensor with the dims that it was reduced over, of size 1; if all were (None), it broadcasts anyway."""
    if not keepdim and dims is not None:
        for dim in dims:
            reduced = reduced.unsqueeze(dim)
    return reduced


def restored(reduced: Tensor, whole: Spec, dims: Sequence[int] | None, keepdim: bool) -> Tensor:
    """A reduced tensor, repeated to the shape that was reduced."""
    return kept(reduced, dims, keepdim).expand(whole.shape)


def shared(ct: Tensor, chosen: Tensor, dims: Sequence[int] | None) -> Tensor:
    """A cotangent divided evenly among the chosen elements of each reduction; `ct` has the reduced dims.

    The other elements do not depend on the cotangent, because an infinite cotangent times zero is NaN. They get zero,
    or NaN where no element was chosen, as in PyTorch.
    """
    count = chosen.sum(dims, keepdim=dims is not None)
    return (ct / count).where(chosen, 0 / count)


def sum_of(cotangents: Sequence[Tensor]) -> Tensor | None:
    """Of an input, from several results."""
    return functools.reduce(operator.add, cotangents) if cotangents else None


def placed(ct: Tensor, indices: Tensor, whole: Spec, dim: int) -> Tensor:
    """Each cotangent where its element was taken from along `dim`, zero elsewhere."""
    if not whole.shape:
        return ct.clone()
    return ct.new_zeros(whole.shape).scatter(dim, indices, ct)


# ---- Names of nodes: PyTorch numbers the forms of an op that take numbers or tensors ----------------------------------


def numbered(name: str, position: int = 1) -> Callable:
    """1 where the input at `position` is a tensor, 0 where it is a number."""
    names = f"{name}Backward0", f"{name}Backward1"
    return lambda inputs, static: names[isinstance(inputs[position], Tensor)]


def shown_as(result: Tensor, node: str) -> Tensor:
    """`result`, new and made by several steps, under the name of the one step that PyTorch records."""
    if result._autograd is not None:
        tape.rename(result, lambda name: node)
        end_view(result)
    return result


def by_dims(name: str, whole: int = 0, dims: int = 1) -> Callable:
    """The numbers of a reduction of all elements, and over given dims."""
    return lambda inputs, static: f"{name}Backward{whole if static[0] is None else dims}"
