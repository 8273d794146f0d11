"""Functions that move integers and compute nothing: views, copies, indexing and sorting run on the plain tensor of the integers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ...core.dispatch import PLAIN
from ...core.dtype import QUANTIZED as STORED
from ...core.dtype import bool_, cpp_name, float32
from ...core.layout import preserve_format, suggested_format
from ...core.subclasses import check_subclass
from ...core.tensor import Tensor, of_class
from ...ops.assembly.joining import cat as joined
from ...ops.creation.creation import empty
from ...ops.creation.ranges import arange
from .numbers import along
from .quantizers import PerChannel, Quantizer
from .rules import QUANTIZED
from .tensors import (
    BITS,
    dequantize,
    integers_of,
    is_quantized,
    like,
    per_tensor,
    plain,
    quantized,
    quantizer_of,
    take,
)

rule = QUANTIZED.rule

# For every quantizer, which the results keep.
_KEEPING = frozenset(
    """contiguous detach data view reshape flatten view_as reshape_as unflatten ravel cpu cuda pin_memory resolve_conj resolve_neg
    _conj_physical conj real""".split()
)
# Views whose results have some of the channels, or channels along another dim.
_CHANNEL_VIEWS = frozenset(
    "select narrow split split_with_sizes tensor_split chunk unbind unsqueeze squeeze __getitem__".split()
)
# For tensors with one scale and one zero point.
_MOVING = frozenset(
    """t T mT H mH adjoint transpose swapaxes swapdims permute movedim moveaxis expand expand_as broadcast_to as_strided unfold diagonal
    diag broadcast_tensors flip fliplr flipud rot90 roll repeat tile repeat_interleave index_select gather take take_along_dim masked_select hsplit vsplit dsplit
    sort msort topk kthvalue max min amax amin maximum minimum cummax cummin where resize_ t_ transpose_ swapaxes_ squeeze_ unsqueeze_
    as_strided_ channel_shuffle pixel_shuffle pixel_unshuffle nn.functional.channel_shuffle nn.functional.pixel_shuffle
    nn.functional.pixel_unshuffle __reversed__ atleast_1d atleast_2d atleast_3d squeeze_copy narrow_copy""".split()
)
_ON_INTEGERS = _KEEPING | _CHANNEL_VIEWS | _MOVING
# These take elements from two tensors.
_CHOOSING = frozenset("where max min maximum minimum".split())
QUANTIZED.unchanged = frozenset(
    """__len__ __repr__ __format__ __contains__ storage untyped_storage _typed_storage
    storage_offset data_ptr const_data_ptr is_contiguous nbytes is_pinned is_shared share_memory_ is_set_to is_same_size dim_order stride
    is_inference get_device is_tensor numel is_complex is_floating_point is_signed is_conj is_neg is_same_size names has_names _is_view
    requires_grad_ storage_type is_storage typename allclose size as_tensor asarray to_dense empty_quantized quantize_per_tensor quantize_per_channel
    quantize_per_tensor_dynamic quantized_batch_norm quantized_max_pool1d quantized_max_pool2d quantized_max_pool3d
    resize resize_as nn.functional.upsample nn.functional.upsample_nearest nn.functional.upsample_bilinear""".split()
)


def on_integers(name: str, function: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
    if name not in _ON_INTEGERS:
        return PLAIN
    x, *others = [each for each in _flat((*args, *kwargs.values())) if is_quantized(each)]
    if name in _CHOOSING:
        _check_choices(name, args, kwargs)
    if x.dtype in BITS:
        return _on_bytes(name, function, x, args, kwargs)
    quantizer = quantizer_of(x)
    for each in others:
        if each.dtype is not x.dtype:
            raise RuntimeError(
                f"{name}: the tensors have the dtypes {x.dtype} and {each.dtype}, which must be equal"
            )
        if name in _MOVING and quantizer_of(each) != quantizer and not name.endswith("_as"):
            raise RuntimeError(
                f"{name}: the tensors have different scales or zero points: write x.dequantize()"
            )
    if isinstance(quantizer, PerChannel):
        if name in _CHANNEL_VIEWS:
            return _views_of_channels(x, quantizer, function, args, kwargs)
        if name in _MOVING:
            raise RuntimeError(
                f"{name}: Setting strides is possible only on uniformly quantized tensor: write x.dequantize() for the numbers"
            )
    plain_args = _plain(args)
    result = function(*plain_args, **{key: _plain(value) for key, value in kwargs.items()})
    if result is plain_args[0]:
        return take(x, result, quantizer) if name.endswith("_") else x
    if is_quantized(kwargs.get("out")):
        return take(kwargs["out"], result, quantizer)
    return _each_quantized(result, x, quantizer)


QUANTIZED.on_integers = on_integers


def _check_choices(name: str, args: tuple, kwargs: dict[str, Any]) -> None:
    """Raises: NotImplementedError if a function would choose between integers of a quantized tensor and numbers, or none but asks for nonzeros."""
    given = (*args, *(value for key, value in kwargs.items() if key != "out"))
    if name == "where":
        choices = [each for each in given if not isinstance(each, Tensor) or each.dtype is not bool_]
    else:
        choices = [each for each in given if isinstance(each, Tensor)]
    if name == "where" and len(choices) < 2 or not all(map(is_quantized, choices)):
        raise QUANTIZED.missing(name)


def _flat(values: Any) -> Iterator[Any]:
    for each in values:
        if type(each) in (list, tuple):
            yield from _flat(each)
        else:
            yield each


def _plain(value: Any) -> Any:
    if is_quantized(value):
        return plain(value)
    return type(value)(map(_plain, value)) if type(value) in (tuple, list) else value


def _each_quantized(result: Any, x: Tensor, quantizer: Quantizer) -> Any:
    """Results with this quantizer; tensors of another dtype than the integers' are indices."""
    if isinstance(result, Tensor):
        return quantized(result, quantizer, x.dtype) if result.dtype is STORED[x.dtype] else result
    if isinstance(result, (tuple, list)):
        kind: Any = type(result)
        return getattr(kind, "_make", kind)(_each_quantized(each, x, quantizer) for each in result)
    return result


# ---- Views of channels ---------------------------------------------------------------------------------------------------


def _views_of_channels(
    x: Tensor, quantizer: PerChannel, function: Callable, args: tuple, kwargs: dict[str, Any]
) -> Any:
    """The same view of a tensor that holds the number of the channel everywhere says which channels each result has."""
    numbers = along(arange(x.shape[quantizer.axis]), quantizer.axis, x.dim()).expand(x.shape)
    result = function(plain(x), *args[1:], **kwargs)
    channels = function(numbers, *args[1:], **kwargs)
    if isinstance(result, Tensor):
        return _with_channels(x, quantizer, result, channels)
    pairs = zip(result, channels, strict=True)
    return type(result)(_with_channels(x, quantizer, each, numbers_) for each, numbers_ in pairs)


def _with_channels(x: Tensor, quantizer: PerChannel, integers: Tensor, channels: Tensor) -> Tensor:
    steps = channels.stride()
    axis = next((dim for dim, step in enumerate(steps) if step and channels.shape[dim] > 1), None)
    if not channels.numel():
        raise RuntimeError("a view of a quantized tensor with parameters per channel has no elements")
    first = int(channels[(0,) * channels.dim()])
    if axis is not None:
        if integers._base is None:
            raise RuntimeError("a tensor with parameters per channel is indexed by numbers and slices only")
        count = channels.shape[axis]
        found = quantizer.of_channels(slice(first, first + count * steps[axis], steps[axis]))
        return quantized(integers, found.along(axis), x.dtype)
    of_one = quantizer.of_channel(first)
    if isinstance(of_one, PerChannel):
        of_one = of_one.along(next((dim for dim, step in enumerate(steps) if step), 0))
    return quantized(integers, of_one, x.dtype)


def _on_bytes(name: str, function: Callable, x: Tensor, args: tuple, kwargs: dict[str, Any]) -> Tensor:
    """Views of all elements, where a byte holds several."""
    if name not in _KEEPING:
        raise RuntimeError(f"{name}: a byte holds several integers of {x.dtype}: write x.dequantize()")
    target = function(empty(x.shape, device="meta"), *args[1:], **kwargs)
    return quantized(plain(x), quantizer_of(x), x.dtype, target.shape)


@rule("clone")
def clone(input: Tensor, *, memory_format: Any = None) -> Tensor:
    integers = plain(input)
    if memory_format is None or memory_format is preserve_format:
        memory_format = suggested_format(integers.spec)
    copied = integers.clone(memory_format=memory_format)
    return quantized(copied, quantizer_of(input), input.dtype, input.shape if input.dtype in BITS else None)


# ---- Joining -------------------------------------------------------------------------------------------------------------


def cat_as(tensors: Any, dim: int, by: Quantizer) -> Tensor:
    """Tensors with one scale and one zero point each, joined; integers of another quantizer are quantized again."""
    dtype = tensors[0].dtype
    for each in tensors:
        if not is_quantized(each) or each.dtype is not dtype:
            raise RuntimeError(f"cat: all tensors must have the dtype {dtype}, but one has {each.dtype}")
        per_tensor(each, "cat")
    integers = [
        plain(each) if quantizer_of(each) == by else integers_of(dequantize(each), by, dtype)
        for each in tensors
    ]
    return quantized(joined(integers, dim), by, dtype)


@rule("cat")
def cat(tensors: Any, dim: int = 0) -> Tensor:
    first = next(each for each in tensors if is_quantized(each))
    return cat_as(tensors, dim, per_tensor(first, "cat"))


@rule("stack")
def stack(tensors: Any, dim: int = 0) -> Tensor:
    return cat([each.unsqueeze(dim) for each in tensors], dim)


@rule("__iter__")
def _iter(self: Tensor) -> Any:
    return iter(self.unbind(0))


# ---- Writing -------------------------------------------------------------------------------------------------------------


def _integers_for(target: Tensor, value: Any, function: str) -> Tensor:
    """The integers that numbers are for a tensor with one scale and one zero point; those of a quantized tensor as they are."""
    if is_quantized(value):
        if value.dtype is not target.dtype:
            raise RuntimeError(
                f"{function}: the tensors have the dtypes {target.dtype} and {value.dtype}, which must be equal"
            )
        return plain(value)
    by = per_tensor(target, function)
    if not isinstance(value, Tensor):
        value = empty((), device=target.device).fill_(value)
    return integers_of(value.to(float32), by, target.dtype)


def assign(result: Tensor, target: Tensor) -> None:
    """Let `target` hold what the quantized tensor `result` holds, in place."""
    integers = plain(target)
    if integers.shape != result.shape:
        integers.resize_(result.shape)
    take(target, integers.copy_(plain(result)), quantizer_of(result))


QUANTIZED.assign = assign


@rule("copy_")
def copy_(self: Tensor, src: Tensor, non_blocking: bool = False) -> Tensor:
    if not is_quantized(self):
        raise RuntimeError(
            "Copying from quantized Tensor to non-quantized Tensor is not allowed, please use dequantize to get a float Tensor from a "
            "quantized Tensor"
        )
    quantizer = quantizer_of(self)
    if is_quantized(src):
        theirs = quantizer_of(src)
        if type(theirs) is not type(quantizer):
            raise RuntimeError("Quantized Copy only works with same qscheme")
        integers, quantizer = _integers_for(self, src, "copy_"), theirs
    else:
        if src.dtype is not float32:
            raise RuntimeError(f"Quantized copy only works with kFloat as source Tensor, not {src.dtype}")
        integers = integers_of(src.detach().to(self.device).expand(self.shape), quantizer, self.dtype)
    return (
        take(self, plain(self).copy_(integers), quantizer)
        if self.dtype not in BITS
        else _take_bytes(self, integers, quantizer)
    )


def _take_bytes(self: Tensor, integers: Tensor, quantizer: Quantizer) -> Tensor:
    plain(self).copy_(integers)
    self.spec = quantized(integers, quantizer, self.dtype, self.shape).spec
    return self


@rule("fill_")
def fill_(self: Tensor, value: Any) -> Tensor:
    return copy_(self, empty((), device=self.device).fill_(value))


@rule("zero_")
def zero_(self: Tensor) -> Tensor:
    return fill_(self, 0.0)


@rule("__setitem__")
def _setitem(self: Tensor, index: Any, value: Any) -> None:
    if not is_quantized(self):
        raise RuntimeError(
            "__setitem__: a quantized tensor is written into a plain one: write x.dequantize()"
        )
    if isinstance(quantizer_of(self), PerChannel):
        part = self[index]
        part.copy_(value if isinstance(value, Tensor) else empty((), device=self.device).fill_(value))
        return
    plain(self)[index] = _integers_for(self, value, "__setitem__")


@rule("masked_fill")
def masked_fill(self: Tensor, mask: Tensor, value: Any) -> Tensor:
    return like(self, plain(self).masked_fill(mask, _integers_for(self, value, "masked_fill")))


@rule("index_put")
def index_put(self: Tensor, indices: Any, values: Tensor, accumulate: bool = False) -> Tensor:
    if accumulate:
        raise RuntimeError("index_put: integers with a zero point are not added up: write x.dequantize()")
    return like(self, plain(self).index_put(tuple(indices), _integers_for(self, values, "index_put")))


@rule("as_subclass")
def as_subclass(self: Tensor, cls: type) -> Tensor:
    check_subclass(cls)
    return of_class(cls, self.detach())


@rule("set_")
def set_(self: Tensor, source: Any = None, *args: Any, **kwargs: Any) -> Tensor:
    if not is_quantized(self):
        kinds = cpp_name(source.dtype), cpp_name(self.dtype)
        raise RuntimeError(f"Could not set tensor of type {kinds[0]} to a tensor of type {kinds[1]}")
    if not is_quantized(source) or args or kwargs:
        raise RuntimeError(
            "set_: a quantized tensor takes the memory of another quantized tensor: write x.set_(y)"
        )
    self._storage, self._byte_offset, self.spec = source._storage, source._byte_offset, source.spec
    return self


# ---- Tensors like another ------------------------------------------------------------------------------------------------


@rule("empty_like")
def empty_like(
    input: Tensor, *, dtype: Any = None, device: Any = None, memory_format: Any = None, **options: Any
) -> Tensor:
    if dtype is not None and dtype is not input.dtype:
        return empty(input.shape, dtype=dtype, device=device or input.device)
    return input.to(device=device or input.device, copy=True)


@rule("full_like")
def full_like(input: Tensor, fill_value: Any, **options: Any) -> Tensor:
    result = empty_like(input, **options)
    return result.fill_(fill_value)


@rule("ones_like")
def ones_like(input: Tensor, **options: Any) -> Tensor:
    return full_like(input, 1.0, **options)


@rule("zeros_like")
def zeros_like(input: Tensor, **options: Any) -> Tensor:
    return full_like(input, 0.0, **options)
