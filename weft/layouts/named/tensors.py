"""Defines a named tensor: strided memory, and a name or None for each dim.

A named tensor and its plain tensor share the memory and the place in the graph of autograd. So derivatives know nothing of names:
a call runs on the plain tensors, and only its results get names again.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Any

from ...autograd.dual import set_tangents, tangents
from ...autograd.graph import Leaf
from ...autograd.inplace import note_view
from ...core.layout import strided
from ...core.layout_spec import LayoutSpec, layout_spec
from ...core.spec import Spec
from ...core.tensor import VIEW_NOTES, Tensor, make
from .rules import NAMED

Names = tuple[str | None, ...]


def spec_names(spec: Any) -> Names:
    """Return the names of all dims of a tensor with this spec; None for dims without a name."""
    return (None,) * len(spec.shape) if type(spec) is Spec or spec.rules is not NAMED else spec.detail


def names_of(tensor: Tensor) -> Names:
    """Return the names of all dims; None for dims without a name."""
    return spec_names(tensor.spec)


def plain(tensor: Tensor) -> Tensor:
    """Return the same tensor without names."""
    spec: Any = tensor.spec
    if type(spec) is Spec or spec.rules is not NAMED:
        return tensor
    return _at_place_of(tensor, NAMED.memory(tensor))


def viewed(tensor: Tensor) -> Tensor:
    """`plain`, for a function that makes views: writes into a view reach the named tensor."""
    result = plain(tensor)
    follow(tensor, result)
    return result


def follow(tensor: Tensor, base: Tensor) -> None:
    """Make a named tensor a view of `base`, its plain tensor, for autograd, because `base` has other views.

    A write into one of them makes a new node of the base, and all views of the base follow it. A leaf need not, because writes into
    views of a leaf are errors.
    """
    if tensor is not base and tensor._base is None and type(tensor._autograd) is not Leaf:
        tensor._base = base
        note_view(tensor)


def _at_place_of(tensor: Tensor, result: Tensor) -> Tensor:
    """The result with the place of the tensor in the graph, and its tangents. A view learns of in-place writes into its base."""
    result._autograd, result._base = tensor._autograd, tensor._base
    if result._base is not None:
        for note in VIEW_NOTES:
            if note in tensor.__dict__:
                result.__dict__[note] = tensor.__dict__[note]
        note_view(result)
    return set_tangents(result, tangents(tensor))


def named(tensor: Tensor, names: Sequence[str | None]) -> Tensor:
    """The same plain tensor with names, which are valid. Without any name it is the plain tensor itself."""
    if not any(names) or type(tensor.spec) is not Spec:  # tensors of another layout have no names
        return tensor
    result = make(tensor._storage, tensor._byte_offset, named_spec(tensor.spec, tuple(names)))
    return _at_place_of(tensor, result)


# This cache keeps specs alive, because making one takes 3 us, and those of results would die with these (AMD Zen 4).
@functools.lru_cache(1024)
def named_spec(spec: Spec, names: Names) -> LayoutSpec:
    """The spec of a tensor with these names that has this one without them."""
    parts = spec.shape, spec.stride, spec.dtype, spec.device
    return layout_spec(*parts, strided, NAMED, names, spec.conj, spec.neg)


def take(target: Tensor, written: Tensor, names: Names) -> Tensor:
    """`target` after a write into `written`, its plain tensor: with the metadata and the history of that, and these names."""
    found = named(written, names)
    target.spec, target._byte_offset, target._storage = found.spec, found._byte_offset, found._storage
    target._autograd, target._base = written._autograd, written._base
    return set_tangents(target, tangents(written))


def checked_names(names: Iterable[Any], ndim: int, function: str) -> Names:
    """Names that a user gave for `ndim` dims.

    Raises: RuntimeError for a name that is no identifier, is given twice, or has no dim; TypeError for other objects.
    """
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise TypeError(f"{function}: argument 'names' must be tuple of names, not {type(names).__name__}")
    result = tuple(names)
    for name in result:
        if name is not None and not isinstance(name, str):
            raise TypeError(f"{function}: a name is a str or None, not {type(name).__name__}")
        if name is not None and not (name.isascii() and name.isidentifier()):
            raise RuntimeError(
                f"Invalid name: a valid identifier contains only digits, alphabetical characters, and/or underscore and starts "
                f"with a non-digit. got: '{name}'."
            )
    if len(result) != ndim:
        raise RuntimeError(
            f"{function}: Number of names ({len(result)}) and number of dimensions in tensor ({ndim}) do not match: "
            f"names {shown(result)}"
        )
    for name in result:
        if name is not None and result.count(name) > 1:
            raise RuntimeError(
                f"Cannot construct a tensor with duplicate names. Got names: {shown(result)}: '{name}' stands there "
                f"{result.count(name)} times."
            )
    return result


def require_names(target: Tensor, names: Names) -> None:
    """Raises: RuntimeError if a tensor that is written has names and they are not those of the result."""
    own = names_of(target)
    if any(own) and own != names:
        raise RuntimeError(
            f"Name mismatch: specified out tensor with names {shown(own)} are not the same as the computed output names {shown(names)}. "
            f"Please rename the out tensor's dims with `Tensor.rename`."
        )


def shown(names: Iterable[str | None]) -> str:
    """Names as messages write them: ['N', None]."""
    return f"[{', '.join('None' if name is None else repr(name) for name in names)}]"


def dim_of(name: str, names: Names, function: str) -> int:
    """Return the position of a name.

    Raises: RuntimeError if no dim has it.
    """
    if name not in names:
        raise RuntimeError(f"{function}: Name '{name}' not found in Tensor{shown(names)}.")
    return names.index(name)
