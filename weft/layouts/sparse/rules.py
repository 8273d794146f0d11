"""The rules of sparse tensors, which the files of this folder fill."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.dtype import LEGACY_NAMES
from ...core.layout import sparse_coo
from ...core.layout_calls import Rules
from ...core.promotion import can_cast
from ...core.recording import needs_recording, tape
from ...core.tensor import Tensor, make
from ..parts import add_common_rules, assign, is_plain, parts_of, values_of, with_values
from .node_names import name_nodes


def _restrict(ct: Tensor, template: Tensor) -> Tensor:
    if ct.layout is template.layout and have_same_indices(ct, template):
        # A mask would add up the entries of an element, each of which has the whole cotangent of the element already.
        return values_of(ct)
    return values_of(ct.sparse_mask(template))


def have_same_indices(x: Tensor, y: Tensor) -> bool:
    """Whether the indices of two tensors of one layout are equal."""
    pairs = zip(parts_of(x)[:-1], parts_of(y)[:-1], strict=True)
    return all(
        one is other or one.shape == other.shape and bool((one == other).all()) for one, other in pairs
    )


def write(result: Tensor, target: Tensor, keeps_memory: bool = False) -> None:
    """Let `target` hold the result in its own dtype.

    A compressed target whose indices stay gets the new values in the memory of the old ones, so `target.values()` from before sees them.
    In COO that is so with `keeps_memory`, as in PyTorch for functions of one tensor, and not for sums and products.
    Raises: RuntimeError if the layouts differ, if the dtype does not fit, or if the target is a leaf that requires grad.
    """
    tape.check_write(target)
    if not can_cast(result.dtype, target.dtype):
        kinds = LEGACY_NAMES[result.dtype], LEGACY_NAMES[target.dtype]
        raise RuntimeError(f"result type {kinds[0]} can't be cast to the desired output type {kinds[1]}")
    if result.layout is not target.layout:
        raise RuntimeError(f"the result is {result.layout}, but the tensor to write into is {target.layout}")
    if is_plain(target):
        target.copy_(result)
        return
    if result.dtype is not target.dtype:
        result = with_values(result, values_of(result).to(target.dtype))
    if (keeps_memory or target.layout is not sparse_coo) and _has_indices_of(result, target):
        _write_values(result, target)
    else:
        assign(result, target)


def _has_indices_of(result: Tensor, target: Tensor) -> bool:
    same = all(a is b for a, b in zip(parts_of(result)[:-1], parts_of(target)[:-1]))
    return same and result.shape == target.shape


def _write_values(result: Tensor, target: Tensor) -> None:
    parts_of(target)[-1].copy_(parts_of(result)[-1])  # counts as a write into the target, too
    if result._autograd is not None:
        target._autograd = result._autograd


class _SparseRules(Rules):
    """The rules of sparse tensors. Nodes of autograd get PyTorch's names."""

    def answer(self, name: str, function: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
        name, args = self.forward(name, args)
        return name_nodes(super().answer(name, function, args, kwargs), name, args, kwargs)

    def operands(self, args: tuple) -> tuple:
        """A recorded operation reads a copy of the tensor that it overwrites, because its derivative may need the old values."""
        if not needs_recording(args):
            return args
        target = args[0]
        copy = target
        if not is_plain(target):
            storage: Any = target._storage
            *structure, values = storage.parts
            copy = make(storage.with_parts((*structure, values.clone()), storage.spec), 0, target.spec)
            copy._autograd = target._autograd
        return tuple(copy if each is target else each for each in args)

    def gradient(self, ct: Tensor) -> Tensor:
        """As in PyTorch, the new tensor of COO does not say that it is coalesced, unless it has less than two entries."""
        storage: Any = ct._storage
        if ct.layout is sparse_coo:
            storage.is_coalesced = storage.parts[0].shape[1] < 2
        return ct


SPARSE = _SparseRules("sparse", "write x.to_dense() to compute with the dense tensor", write, _restrict)
add_common_rules(SPARSE)
