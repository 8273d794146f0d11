"""The class of all DTensors: how public functions are called with them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ...autograd.carried import Carrier, carriers
from ...autograd.saved import Saved, SavedOutputs, unpack
from ...core import dispatch
from ...core.grad_mode import is_grad_enabled, no_grad
from ...core.overrides import DisableTorchFunctionSubclass, full_name
from ...core.subclasses import unconverted
from ...core.tensor import Tensor
from . import (  # noqa: F401 (they fill the table of rules)
    _elementwise,
    _graphs,
    _indexed,
    _losses,
    _others,
    _products,
    _reductions,
    _triangles,
    _views,
    linalg,
)
from ._api import DTensor, _from_local, _to_local, without_sums
from ._redistribute import redistributed
from ._regions import takes_plain
from ._rules import (
    as_distributed,
    everywhere,
    mesh_of,
    plain,
    rule_for,
    settle,
    tensors_in,
    whole,
)
from ._storage import NoPlacementRule, ShardedStorage, is_distributed, sharded, wrap


@functools.cache
def dtensor_class() -> type[DTensor]:
    """The class of all DTensors."""

    class Distributed(DTensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: tuple = (), kwargs: Any = None) -> Any:  # type: ignore[override]
            with DisableTorchFunctionSubclass():
                return _called(func, args, kwargs or {})

    Distributed.__name__ = Distributed.__qualname__ = "DTensor"
    Distributed.__module__ = DTensor.__module__
    ShardedStorage.new_tensor = staticmethod(functools.partial(object.__new__, Distributed))  # type: ignore[method-assign]
    return Distributed


@sharded.switches.append
def _carry_cotangents(on: bool) -> None:
    if on:
        carriers[dtensor_class()] = Carrier(_pull, _add, _fit, _seed, _keep)
    else:
        del carriers[dtensor_class()]


def _called(func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """The result of a public function, as DTensors.

    Raises: RuntimeError if there are plain tensors among its arguments.
    """
    name: Any = full_name(func) or getattr(func, "__name__", str(func))
    own = name.rpartition(".")[2]
    if own in _OF_VALUES:
        return _on_whole(func, args, kwargs, None)
    tensors = list(tensors_in((args, kwargs.values())))
    mixed = any(not is_distributed(each) and each.numel() != 1 for each in tensors)
    if mixed and not takes_plain(own):
        raise RuntimeError(
            f"{name}: got mixed torch.Tensor and DTensor, need to convert all torch.Tensor to DTensor before calling "
            "distributed operators!"
        )
    if own in _NEW_MEMORY and is_distributed(args[0]):
        raise NotImplementedError(
            f"{name}: a DTensor keeps its memory, which is that of the parts on all processes"
        )
    if own in _RANDOM_FILLS:
        return _written(func, args, kwargs)
    if own in _LIKE:
        return _like(func, *args, is_random=own.startswith("rand"), **kwargs)
    mesh = mesh_of(tensors)
    try:
        found = func(*args, **kwargs)
    except NoPlacementRule as error:
        if own.endswith("_") and not own.endswith("__") or own == "__setitem__":
            return _written(func, args, kwargs, because=error)
        found = _on_whole(func, args, kwargs, mesh)
    return found if func in unconverted() else _placed(found, tensors, mesh)


def _placed(found: Any, given: list[Tensor], mesh: Any) -> Any:
    """The plain tensors among results as DTensors: they are the same on all processes."""
    if isinstance(found, Tensor):
        if is_distributed(found):
            settle(found)
            return found
        if any(each is found for each in given):
            return found
        return DTensor.from_local(found, mesh, everywhere(mesh))
    if isinstance(found, (list, tuple)) and any(isinstance(each, Tensor) for each in found):
        kind: Any = type(found)
        return getattr(kind, "_make", kind)(_placed(each, given, mesh) for each in found)
    return found


# Functions that read all values, and give no tensors.
_OF_VALUES = frozenset(
    "item tolist numpy equal allclose is_nonzero __bool__ __int__ __float__ __complex__ __index__ __array__ __len__ "
    "__contains__ __format__".split()
)
# Functions that make a tensor of the shape of their first argument.
_LIKE = frozenset("zeros_like ones_like full_like empty_like rand_like randn_like randint_like".split())


# Methods that would give a tensor other memory.
_NEW_MEMORY = frozenset("set_ resize_ resize_as_".split())
# Methods that fill a tensor with random numbers.
_RANDOM_FILLS = frozenset(
    "normal_ uniform_ random_ bernoulli_ exponential_ cauchy_ geometric_ log_normal_".split()
)


def _written(func: Callable, args: tuple, kwargs: dict[str, Any], because: Exception | None = None) -> Any:
    """The result of an operation in place without a rule: all processes compute the whole, and each keeps its part.

    because: the operation reads its target, so the whole of it is gathered.
    Raises: NotImplementedError if the target is a copy of a part, if its shape or dtype would change, or if autograd would record the operation.
    """
    target, *others = args
    storage, spec, name = target._storage, target.spec, full_name(func)
    if storage.is_copy or target.grad_fn is not None and is_grad_enabled():
        reason = because or "it writes to a view of a dim that is cut, or to a result with a gradient"
        raise NotImplementedError(f"{name}: {reason}") from None
    with no_grad():
        full = storage.local.new_empty(spec.shape) if because is None else target.full_tensor().clone()
    found = func(
        full.requires_grad_(target.requires_grad),
        *map(_gathered, others),
        **{key: _gathered(each) for key, each in kwargs.items()},
    )
    if full.grad_fn is not None:
        raise NotImplementedError(f"{name}: there is no rule for the gradient of this write to a DTensor")
    if full.spec.shape != spec.shape or full.spec.dtype is not spec.dtype:
        raise NotImplementedError(f"{name}: a DTensor keeps its shape and its dtype")
    with no_grad():
        mesh = storage.mesh
        storage.local.copy_(redistributed(full, spec.shape, mesh, everywhere(mesh), storage.placements))
    return target if found is full else found


def _on_whole(func: Callable, args: tuple, kwargs: dict[str, Any], mesh: Any) -> Any:
    """The result of a function of the whole tensors; as DTensors if `mesh` is given."""
    found = func(*map(_gathered, args), **{name: _gathered(each) for name, each in kwargs.items()})
    return found if mesh is None else _placed(found, [], mesh)


def _gathered(value: Any) -> Any:
    """The value with all of each tensor in it on this process. Autograd follows."""
    if isinstance(value, DTensor):
        return value.full_tensor()
    if type(value) in (tuple, list):
        return type(value)([_gathered(each) for each in value])
    return value


def _like(func: Callable, input: Any, *args: Any, is_random: bool, **kwargs: Any) -> Any:
    """A tensor with the placements of another. Random numbers are drawn for the whole, so that they are the same on any mesh."""
    storage, spec = input._storage, input.spec
    mesh = storage.mesh
    places = without_sums(storage.placements)
    requires_grad = kwargs.pop("requires_grad", False)
    if is_random:
        model = storage.local.new_empty(0).expand(0).new_empty_strided(spec.shape, spec.stride)
        local = redistributed(func(model, *args, **kwargs), spec.shape, mesh, everywhere(mesh), places)
    else:
        local = func(storage.local, *args, **kwargs)
    result: Any = wrap(local, spec.like(dtype=local.spec.dtype, device=local.spec.device), mesh, places)
    return result.requires_grad_() if requires_grad else result


@rule_for(_from_local, _to_local)
def _as_it_is(op: Any, args: tuple, static: dict[str, Any]) -> Any:
    """Steps between parts and DTensors are no ops on parts."""
    return dispatch.PLAIN


# ---- Cotangents, see `autograd/carried.py` -----------------------------------------------------------------------------


def _pull(node: Any, ct: Any, edges: tuple, recording: bool) -> Any:
    """The cotangents of a step's inputs, as DTensors. Where the rule reads memory, it runs on whole tensors."""
    if node._spec.op is _from_local:  # whose input is plain
        return node._pull(ct, edges, recording)
    mesh = mesh_of((ct,))
    try:
        found = node._pull(ct, edges, recording)
    except NoPlacementRule:
        if recording:
            raise
        found = _on_whole_node(node, mesh)._pull(whole(ct, mesh), edges, recording)
    return [as_distributed(each, mesh) if isinstance(each, Tensor) else each for each in found]


def _on_whole_node(node: Any, mesh: Any) -> Any:
    """The node with the whole of each tensor that it has saved."""
    made = object.__new__(type(node))
    made._spec, made._edges, made._order = node._spec, node._edges, node._order
    made._notes = made._leaves = None
    made._saved = tuple([_whole_saved(each, node, mesh) for each in node._saved])
    return made


def _whole_saved(value: Any, node: Any, mesh: Any) -> Any:
    if type(value) is Saved or type(value) is SavedOutputs:
        value = unpack(value, node, False)
    return whole(value, mesh)


def _add(a: Tensor, b: Tensor) -> Tensor:
    return a + b


def _fit(ct: Tensor, wanted: Any) -> Tensor:
    if ct.spec.shape != wanted.shape:
        ct = ct.sum_to_size(wanted.shape)
    if ct.spec.dtype.is_complex and not wanted.dtype.is_complex:
        ct = ct.real
    return ct.to(wanted.dtype)


def _seed(result: Any, ct: Tensor) -> Tensor:
    return as_distributed(ct, result._storage.mesh)


def _keep(ct: Any) -> Any:
    """The gradient of a leaf, with memory of its own."""
    if ct._autograd is not None:
        return ct
    storage = ct._storage
    return wrap(plain(storage.local).clone(), ct.spec, storage.mesh, storage.placements)
