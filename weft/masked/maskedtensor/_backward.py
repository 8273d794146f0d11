"""Masked cotangents in the backward pass: a step's rule runs on the elements, and the mask goes beside them.

Elementwise steps keep the mask. Steps that only move elements, sums included, do to the mask what they do to the
elements. Other steps of plain tensors have no rule for masks, as in PyTorch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...autograd.carried import Carrier, carriers
from ...autograd.function import FunctionCtx
from ...core.overrides import DisableTorchFunctionSubclass
from ...core.tensor import Tensor, of_class
from ...families.map import Map
from .core import MaskedTensor, _masks_match, _with_mask, is_masked_tensor

# Steps whose gradient consists of elements of the cotangent, and of zeros.
_MOVING = frozenset(
    "getitem index select slice narrow view reshape flatten unflatten t transpose permute expand squeeze unsqueeze unfold "
    "diagonal split unbind chunk cat stack sum mean to_copy alias detach flip roll as_strided index_select gather "
    "to_dense sparse_mask with_values values_of".split()
)


def _pull(node: Any, ct: Any, edges: tuple, recording: bool) -> Sequence[Any]:
    if isinstance(node, FunctionCtx):
        return node._pull(ct, edges, recording)
    found = node._pull(_plain(ct), edges, recording)
    if isinstance(node._spec.op, Map):
        masks: Sequence[Any] = [ct._masked_mask] * len(found)
    elif node._spec.op.name.partition(".")[0] in _MOVING:
        pulled = node._pull(_as_elements(ct), edges, False)
        masks = [None if each is None else each.detach() != 0 for each in pulled]
    else:
        raise TypeError(
            f"backward of {node._spec.op.name} with a masked gradient is not supported: MaskedTensor has no rule for "
            f"{node.name()}; call to_tensor() on the masked result first"
        )
    return [None if each is None else _masked(each, mask) for each, mask in zip(found, masks, strict=True)]


def _plain(ct: Any) -> Any:
    if type(ct) is tuple:
        return tuple(map(_plain, ct))
    return of_class(Tensor, ct) if is_masked_tensor(ct) else ct


def _as_elements(ct: Any) -> Any:
    """The mask as a cotangent: ones and zeros."""
    if type(ct) is tuple:
        return tuple(map(_as_elements, ct))
    return ct._masked_mask.to(ct.dtype) if is_masked_tensor(ct) else ct


def _masked(data: Tensor, mask: Tensor) -> Any:
    return _with_mask(data, mask if mask.shape == data.shape else mask.expand(data.shape))


def _add(a: Tensor, b: Tensor) -> Any:
    """The sum of two cotangents.

    Raises: ValueError if they have different masks.
    """
    if not _masks_match(a, b):
        raise ValueError(
            "Input masks must match. If you need support for this, please open an issue on Github."
        )
    mask = a._masked_mask if isinstance(a, MaskedTensor) else b._masked_mask  # type: ignore[attr-defined]
    return _with_mask(_plain(a) + _plain(b), mask)


def _fit(ct: Any, wanted: Any) -> Any:
    """A cotangent in the shape and dtype of an input; masked-out elements add nothing to sums."""
    data, mask = _plain(ct), ct._masked_mask
    if data.shape != wanted.shape:
        data = data.masked_fill(~mask, 0).sum_to_size(wanted.shape)
        mask = mask.to(data.dtype).sum_to_size(wanted.shape) != 0
    result = _with_mask(data.to(wanted.dtype), mask)
    result._base = None  # the sum before it lost its dims is of no use
    return result


def _seed(result: Any, ct: Tensor) -> Any:
    return ct if is_masked_tensor(ct) else _with_mask(ct, result._masked_mask)


def _keep(ct: Any) -> Any:
    with DisableTorchFunctionSubclass():
        return _with_mask(ct.clone() if ct._autograd is None else ct, ct._masked_mask)


carriers[MaskedTensor] = Carrier(_pull, _add, _fit, _seed, _keep)
