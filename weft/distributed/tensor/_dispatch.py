"""Operations on DTensors, by `__torch_function__`: on the parts, after the operands have got the placements that the rule of the function asks for."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ...core.overrides import DisableTorchFunctionSubclass, full_name
from ...core.size import Size
from ...core.spec import contiguous_stride
from ...core.tensor import Tensor
from ...ops.creation.creation import empty
from ._api import DTensor, redistributed, wrapped
from ._rules import RULES, Call
from ._transitions import used_for_parts
from .placement_types import Placement, Replicate, Shard


@functools.cache
def dtensor_class() -> type[DTensor]:
    """The class of all DTensors."""

    class Distributed(DTensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: tuple = (), kwargs: Any = None) -> Any:  # type: ignore[override]
            return _dispatched(func, args, kwargs or {})

    Distributed.__name__ = Distributed.__qualname__ = "DTensor"
    Distributed.__module__ = DTensor.__module__
    return Distributed


@functools.lru_cache(maxsize=4096)
def _name(func: Callable) -> str:
    return full_name(func) or str(getattr(func, "__name__", func))


def _dispatched(func: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
    name = _name(func)
    tensors = list(_tensors((args, kwargs)))
    first = next(each for each in tensors if isinstance(each, DTensor))
    if name in _METADATA:
        return _METADATA[name](first, *args[1:], **kwargs)
    with DisableTorchFunctionSubclass():
        # Numbers as tensors are replicated, and so are tensors of one element in PyTorch.
        if any(not isinstance(each, DTensor) and each.numel() != 1 for each in tensors):
            raise RuntimeError(
                f"{name}: got mixed torch.Tensor and DTensor, need to convert all torch.Tensor "
                "to DTensor before calling distributed operators!"
            )
        if name in _LOCAL:
            return _placed_alike(func(*args, **kwargs), first)
        return _computed(func, name, first, args, kwargs)


def _computed(func: Callable, name: str, first: DTensor, args: tuple, kwargs: dict[str, Any]) -> Any:
    """The result of a function of the whole tensors."""
    short = name.removesuffix(".__get__").rpartition(".")[2]
    in_place = (short.endswith("_") and not short.startswith("__")) or short in (
        "__setitem__",
        "__iadd__",
        "__isub__",
        "__imul__",
    )
    operands = [each for each in _tensors((args, kwargs)) if isinstance(each, DTensor)]
    if "out" in kwargs:
        raise NotImplementedError(f"{name}(out=...) on DTensors")
    call = Call(short.strip("_"), [each._shape for each in operands], args, kwargs, in_place)
    wanted, out = _decided(call, operands)
    locals_: list[Tensor] = []
    for number, (operand, placements) in enumerate(zip(operands, wanted)):
        if in_place and not number and list(operand._placements) == placements:
            locals_.append(operand)  # the write is recorded for this very object
            continue
        local = redistributed(operand, placements)
        for group, placement, result in zip(first._device_mesh.get_all_groups(), placements, out):
            if placement == Replicate() and result != Replicate() and group.size() > 1:
                local = used_for_parts(local, group)
        locals_.append(local)
    values = iter(locals_)
    given = [_replaced(each, lambda _: next(values)) for each in (args, kwargs)]
    result = func(*given[0], **given[1])
    if in_place:
        return _written(operands[0], locals_[0], wanted[0])
    if not any(isinstance(each, Tensor) for each in _tensors(result)):
        return result
    shapes = _global_shapes(func, operands, args, kwargs, result, out)
    return _placed(result, first, out, shapes)


def _decided(call: Call, operands: Sequence[DTensor]) -> tuple[list[list[Placement]], list[Placement]]:
    """The placements that the operands and the result of a call shall have."""
    mesh = operands[0]._device_mesh
    wanted: list[list[Placement]] = [[] for _ in operands]
    out: list[Placement] = []
    rule = RULES.get(call.name)
    for dim in range(mesh.ndim):
        column = [operand._placements[dim] for operand in operands]
        whole: tuple[list[Placement], Placement] = ([Replicate()] * len(column), Replicate())
        if all(each == Replicate() for each in column) or rule is None:
            decision = whole
        else:
            decision = rule(call, column) or whole
        # A dimension can be cut along several dimensions of the mesh only where all operands are so already.
        if isinstance(decision[1], Shard) and decision[1] in out and decision[0] != column:
            decision = whole
        for places, placement in zip(wanted, decision[0]):
            places.append(placement)
        out.append(decision[1])
    return wanted, out


def _written(target: DTensor, local: Tensor, placements: Sequence[Placement]) -> DTensor:
    """`target`, after a function has written into its part, or into a copy with other placements."""
    if list(placements) != list(target._placements):
        copied = wrapped(local, target._device_mesh, tuple(placements), target._shape)
        target.copy_(redistributed(copied, target._placements))
    return target


def _global_shapes(
    func: Callable,
    operands: Sequence[DTensor],
    args: tuple,
    kwargs: dict[str, Any],
    result: Any,
    out: Sequence[Placement],
) -> list[Size]:
    """The sizes of the tensors of a result over all ranks."""
    if all(not isinstance(each, Shard) for each in out):
        return [each.shape for each in _tensors(result)]
    planned = [
        _replaced(each, lambda operand: empty(operand._shape, dtype=operand.dtype, device="meta"))
        for each in (args, kwargs)
    ]
    return [each.shape for each in _tensors(func(*planned[0], **planned[1]))]


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, list | tuple | dict):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _tensors(each)


def _replaced(value: Any, new: Callable[[DTensor], Any]) -> Any:
    """A container with other objects in the place of the DTensors."""
    if isinstance(value, DTensor):
        return new(value)
    if isinstance(value, dict):
        return {key: _replaced(each, new) for key, each in value.items()}
    if isinstance(value, list | tuple):
        kind: Any = type(value)
        return getattr(kind, "_make", kind)([_replaced(each, new) for each in value])
    return value


def _placed(result: Any, first: DTensor, placements: Sequence[Placement], shapes: Sequence[Size]) -> Any:
    """The tensors of a result as DTensors."""
    left = iter(shapes)

    def place(value: Any) -> Any:
        if isinstance(value, Tensor):
            return wrapped(value, first._device_mesh, tuple(placements), next(left))
        if isinstance(value, list | tuple) and any(isinstance(each, Tensor) for each in value):
            kind: Any = type(value)
            return getattr(kind, "_make", kind)([place(each) for each in value])
        return value

    return place(result)


def _placed_alike(result: Any, first: DTensor) -> Any:
    """A tensor that lies as another one does, or what is no tensor."""
    if not isinstance(result, Tensor) or result is first:
        return result
    made: Any = result if isinstance(result, dtensor_class()) else result.as_subclass(dtensor_class())
    if "_placements" not in vars(made):
        made._device_mesh, made._placements, made._shape = first._device_mesh, first._placements, first._shape
    return made


# What asks about the tensor, not about the part of this rank.
_METADATA: dict[str, Callable[..., Any]] = {
    "torch.Tensor.shape.__get__": lambda self: self._shape,
    "torch.Tensor.size": lambda self, dim=None: self._shape if dim is None else self._shape[dim],
    "torch.Tensor.numel": lambda self: self._shape.numel(),
    "torch.Tensor.nelement": lambda self: self._shape.numel(),
    "torch.Tensor.__len__": lambda self: self._shape[0],
    "torch.Tensor.stride": lambda self, dim=None: contiguous_stride(tuple(self._shape)) if dim is None else contiguous_stride(tuple(self._shape))[dim],
}  # fmt: skip

# What is the same for the tensor and the part of this rank.
_LOCAL = {
    f"torch.Tensor.{name}"
    for name in (
        "grad.__get__ grad.__set__ requires_grad.__get__ requires_grad.__set__ is_leaf.__get__ dtype.__get__ device.__get__ "
        "layout.__get__ ndim.__get__ grad_fn.__get__ dim data.__get__ detach requires_grad_ retain_grad register_hook "
        "register_post_accumulate_grad_hook backward is_floating_point is_complex is_contiguous element_size zero_ "
        "grad_dtype.__get__ is_meta.__get__ is_sparse.__get__ is_quantized.__get__ is_cuda.__get__ is_cpu.__get__ "
        "names.__get__ data_ptr untyped_storage storage _version.__get__ output_nr.__get__ retains_grad.__get__ "
        "is_inference is_signed is_conj is_neg contiguous clone __hash__ __deepcopy__ volatile.__get__ requires_grad.__delete__ "
        "grad.__delete__ is_set_to is_pinned is_shared share_memory_ _base.__get__ itemsize.__get__ nbytes.__get__"
    ).split()
} | {"torch.detach", "torch.clone", "torch.is_floating_point", "torch.is_complex", "torch.is_tensor"}
