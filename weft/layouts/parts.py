"""Tensors that consist of several plain tensors, their parts: indices and values, or a buffer and offsets.

The values are the last part. Two functions connect a tensor to them, and both are differentiable:

    values = values_of(x)                     the values, as a plain tensor
    y = with_values(x, f(values))             a tensor with the structure of x and other values

So a rule that computes `f` of the values with weft's ordinary functions has a derivative without stating one.
"""

from __future__ import annotations

from typing import Any

from ..core.layout_calls import Rules
from ..core.layout_spec import LayoutSpec, NotStrided, layout_spec
from ..core.spec import Spec
from ..core.storage import FOREIGN, Storage
from ..core.subclasses import check_subclass
from ..core.tensor import Tensor, make, of_class
from ..families.custom_vjp import custom_vjp


class PartsStorage(Storage):
    """The storage of a tensor with parts. It has no memory of its own: `ptr` raises, so no kernel reads it by accident."""

    __slots__ = ("parts", "spec", "writes")

    parts: tuple[Tensor, ...]  # detached, none of them takes part in autograd
    spec: LayoutSpec
    writes: int  # in-place operations, without those on the memory of the values

    def __init__(self, parts: tuple[Tensor, ...], spec: LayoutSpec):
        self.parts, self.spec = parts, spec
        self.device, self.bin, self.owner = spec.device, FOREIGN, None
        self.nbytes_ = sum(part.nbytes for part in parts)
        self.exposed = True  # so that autograd never takes over the memory of the parts
        vars(Storage)["version"].__set__(self, 0)  # machine code reads the slot
        self.version = 0

    def __del__(self):
        pass

    def with_parts(self, parts: tuple[Tensor, ...], spec: LayoutSpec) -> PartsStorage:
        """A storage of the same class with other parts; what else a layout notes of its parts stays."""
        return type(self)(parts, spec)

    def take(self, other: PartsStorage) -> None:
        """Hold from now on what the other storage holds."""
        version = self.version + 1
        self.parts, self.spec, self.nbytes_ = other.parts, other.spec, other.nbytes_
        self.version = version

    @property
    def version(self) -> Any:  # type: ignore[override]
        """Counts writes into the memory of the values, too, because `x.values().mul_(2)` changes x.

        Values that were made in inference mode have a version that counts nothing, and so has then the tensor.
        """
        version = self.parts[-1]._storage.version
        return self.writes + version if type(version) is int else version

    @version.setter
    def version(self, number: Any) -> None:
        version = self.parts[-1]._storage.version
        self.writes = number - version if type(version) is int else 0

    @property
    def ptr(self) -> int:  # type: ignore[override]
        raise NotStrided(self.spec)


def bare(tensor: Tensor) -> Tensor:
    """The same memory as a tensor that takes no part in autograd and is no view."""
    if tensor._autograd is None and tensor._base is None:
        return tensor
    return make(tensor._storage, tensor._byte_offset, tensor.spec)


def parts_of(x: Tensor) -> tuple[Tensor, ...]:
    """The parts of a tensor that is not strided, without its history."""
    storage: Any = x._storage
    return storage.parts


def assign(result: Tensor, target: Tensor) -> None:
    """Let `target` hold what `result` holds, in place."""
    storage: Any = target._storage
    storage.take(result._storage)
    target.spec = result.spec
    if result._autograd is not None:
        target._autograd = result._autograd


def is_plain(x: Any) -> bool:
    return isinstance(x, Tensor) and type(x.spec) is Spec


# ---- Values and their derivatives ---------------------------------------------------------------------------------------


def _restricted(ct: Tensor, out: Any, template: Tensor, values: Any) -> Tensor:
    spec: Any = template.spec
    return spec.rules.restrict(ct, template)


@custom_vjp(None, _restricted)
def _with_values(template: Tensor, values: Tensor) -> Tensor:
    spec: Any = template.spec
    storage: Any = template._storage
    found = layout_spec(
        spec.shape, spec.stride, values.spec.dtype, values.spec.device, spec.layout, spec.rules, spec.detail
    )
    return make(storage.with_parts((*storage.parts[:-1], bare(values)), found), 0, found)


def with_values(template: Tensor, values: Tensor) -> Tensor:
    """Return a tensor with the structure of `template` (its parts but for the values, its shape) and these values.

    The derivative takes from the cotangent, which may be of any layout, what stands where `template` has values.
    """
    return _with_values(template, values)


@custom_vjp(lambda ct, out, x: with_values(x, ct))
def values_of(x: Tensor) -> Tensor:
    """Return the values of a tensor with parts, in the memory of the tensor."""
    values = parts_of(x)[-1]
    return make(values._storage, values._byte_offset, values.spec)


# ---- Rules that all tensors with parts have -----------------------------------------------------------------------------


def alias(x: Tensor) -> Tensor:
    """Return a new tensor with the same parts."""
    return with_values(x, values_of(x))


def _as_subclass(self: Tensor, cls: type) -> Tensor:
    check_subclass(cls)
    return of_class(cls, alias(self))


def _share_memory_(self: Tensor) -> Tensor:
    for part in parts_of(self):
        part.share_memory_()
    return self


def _is_shared(self: Tensor) -> bool:
    return all(part.is_shared() for part in parts_of(self))


def add_common_rules(rules: Rules) -> None:
    """Give a layout the rules of methods that do the same to each part."""
    rules.rule("as_subclass")(_as_subclass)
    rules.rule("share_memory_")(_share_memory_)
    rules.rule("is_shared")(_is_shared)
