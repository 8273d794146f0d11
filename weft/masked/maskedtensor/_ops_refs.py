"""What MaskedTensor does when it is given to a function: a handler for each supported one, by its name."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ...autograd.function import Function
from ...core.dtype import bool_
from ...core.layout import strided
from ...core.registry import FUNCTIONS
from ...core.tensor import Tensor
from ...ops.creation.creation import ones
from ...ops.indexing.masking import where
from .binary import BINARY_NAMES, INPLACE_BINARY_NAMES, _apply_native_binary
from .core import _GetData, _masks_match, _maybe_get_mask, _Reduced, _with_mask, is_masked_tensor
from .passthrough import PASSTHROUGH_NAMES, _apply_pass_through_fn
from .reductions import REDUCE_NAMES, _reduction
from .unary import INPLACE_UNARY_NAMES, UNARY_NAMES, _apply_native_unary

__all__: list[str] = []

_OPERATORS = (
    "__add__ __radd__ __sub__ __mul__ __rmul__ __truediv__ __rtruediv__ __div__ __rdiv__ __floordiv__ __mod__ "
    "__iadd__ __isub__ __imul__ __itruediv__ __idiv__ __ifloordiv__ __imod__ __and__ __or__ __xor__ "
    "__rand__ __ror__ __rxor__ __iand__ __ior__ __ixor__ __eq__ __ne__ __le__ __ge__ __gt__"
).split()

# Questions about metadata and about the place in the graph of autograd: the answer does not depend on the mask.
_METADATA = (
    "size stride dim ndimension numel nelement is_floating_point is_complex is_signed is_inference is_conj is_neg "
    "element_size storage_offset data_ptr get_device is_same_size is_shared is_pinned dim_order is_coalesced is_nonzero "
    "requires_grad_ retain_grad register_hook register_post_accumulate_grad_hook backward grad "
    "__len__ __hash__ __repr__ __str__ __format__ __bool__ __float__ __int__ __index__ __complex__ __contains__ __dir__ "
    "_is_view result_type is_tensor"
).split()

# Properties that permute dimensions.
_REFUSED = frozenset(("Tensor.T.__get__",))


class _MaskedWhere(Function):
    """Elements and masks chosen from two tensors."""

    @staticmethod
    def forward(ctx: Any, cond: Tensor, self: Any, other: Any) -> Any:
        ctx.cond = cond
        data = where(cond, self, other)
        masks = [_mask_like(each, data) for each in (self, other)]
        return _with_mask(data, where(cond, *masks))

    @staticmethod
    def backward(ctx: Any, grad_output: Any) -> tuple:
        cond = ctx.cond
        mask = grad_output._masked_mask if is_masked_tensor(grad_output) else cond | ~cond
        data = _GetData.apply(grad_output) if is_masked_tensor(grad_output) else grad_output
        of_self = _with_mask(data.masked_fill(~cond, 0), mask & cond)
        of_other = _with_mask(data.masked_fill(cond, 0), mask & ~cond)
        return None, of_self, of_other


def _mask_like(value: Any, data: Tensor) -> Tensor:
    if is_masked_tensor(value):
        return value._masked_mask.expand(data.shape)
    return ones(data.shape, dtype=bool_)


def _where(fn: Callable, condition: Any, input: Any, other: Any) -> Any:
    if is_masked_tensor(condition):
        raise TypeError(
            "where() of a condition that is a MaskedTensor is not supported: pass condition.to_tensor(False)"
        )
    return _MaskedWhere.apply(condition, input, other)


def _where_method(fn: Callable, self: Any, condition: Any, other: Any) -> Any:
    return _where(fn, condition, self, other)


def _softmax(fn: Callable, input: Any, dim: Any, *args: Any, dtype: Any = None, **kwargs: Any) -> Any:
    mask = input._masked_mask.to_dense()
    data = _GetData.apply(input).to_dense()
    return _Reduced.apply(FUNCTIONS["masked.softmax"](data, dim, dtype=dtype, mask=mask), mask)


def _keep_mask(fn: Callable, input: Any, *args: Any, **kwargs: Any) -> Any:
    """Conversions, and tensors made like a MaskedTensor."""
    result = fn(input, *args, **kwargs)
    if not isinstance(result, Tensor) or result is input:
        return result
    if not is_masked_tensor(input):  # plain.to(masked)
        return result
    return _with_mask(result, input._masked_mask)


def _copy_(fn: Callable, self: Any, src: Any, *args: Any) -> Any:
    if not (is_masked_tensor(self) and is_masked_tensor(src) and _masks_match(self, src)):
        raise ValueError("copy_ expects two MaskedTensors with the same mask")
    return fn(self, src, *args)


def _item(fn: Callable, self: Any) -> Any:
    if self.numel() == 1 and not bool(_maybe_get_mask(self)):
        raise ValueError("__torch_dispatch__, aten._local_scalar_dense: expected a mask tensor")
    return fn(self)


def _not_for_subclasses(fn: Callable, *args: Any, **kwargs: Any) -> Any:
    name = fn.__name__
    ending = " is not supported for tensor subclasses" + (", got MaskedTensor" if name == "tolist" else ".")
    raise RuntimeError(f".{name}(){ending}")


def _to_sparse(fn: Callable, input: Any, *args: Any, **kwargs: Any) -> Any:
    """The entries of the result are those of the mask, zeros of the data included."""
    mask = fn(input._masked_mask, *args, **kwargs)
    data = _GetData.apply(input)
    return _with_mask(data.sparse_mask(mask) if data.layout is strided else fn(data, *args, **kwargs), mask)


def _of_strided(handler: Callable) -> Callable:
    """The handler, refusing sparse data."""

    def handle(fn: Callable, input: Any, *args: Any, **kwargs: Any) -> Any:
        if input.layout is not strided:
            raise ValueError("MaskedTensors with sparse data do not have is_contiguous")
        return handler(fn, input, *args, **kwargs)

    return handle


def _plainly(fn: Callable, *args: Any, **kwargs: Any) -> Any:
    return fn(*args, **kwargs)


def _masked_function(fn: Callable, input: Any, *args: Any, mask: Any = None, **kwargs: Any) -> Any:
    """`torch.masked.sum` and the like take the mask of the input, and return a plain tensor."""
    args = tuple(each.get_data() if is_masked_tensor(each) else each for each in args)
    if is_masked_tensor(input):
        mask = input._masked_mask if mask is None else mask & input._masked_mask
        input = input.get_data()
    return fn(input, *args, mask=mask, **kwargs)


def _masked_logaddexp(fn: Callable, input: Any, other: Any, **kwargs: Any) -> Any:
    masks = dict(zip(("input_mask", "other_mask"), map(_maybe_get_mask, (input, other))))
    values = [each.get_data() if is_masked_tensor(each) else each for each in (input, other)]
    return fn(*values, **{**masks, **kwargs})


@functools.cache
def _table() -> dict[str, Callable]:
    """Handlers by the name of the function without its namespace."""
    reductions = {name: _reduction(name) for name in REDUCE_NAMES}
    return {
        **dict.fromkeys(_METADATA, _plainly),
        **dict.fromkeys([*UNARY_NAMES, *INPLACE_UNARY_NAMES], _apply_native_unary),
        **dict.fromkeys(
            ["__neg__", "__abs__", "__pos__", "__invert__", "__pow__", "__ipow__"], _apply_native_unary
        ),
        **dict.fromkeys(["float_power"], _apply_native_unary),
        **dict.fromkeys([*BINARY_NAMES, *INPLACE_BINARY_NAMES, *_OPERATORS], _apply_native_binary),
        **dict.fromkeys(PASSTHROUGH_NAMES, _apply_pass_through_fn),
        **reductions,
        **dict.fromkeys(
            "to type type_as float double half bfloat16 int long short char byte bool cpu ones_like cfloat cdouble".split(),
            _keep_mask,
        ),
        **dict.fromkeys(["to_sparse", "to_sparse_coo", "to_sparse_csr"], _to_sparse),
        **dict.fromkeys(["tolist", "numpy", "__array__"], _not_for_subclasses),
        "contiguous": _of_strided(_apply_pass_through_fn),
        "is_contiguous": _of_strided(_plainly),
        "where": _where,
        "Tensor.where": _where_method,
        "softmax": _softmax,
        "copy_": _copy_,
        "item": _item,
    }


def handler_of(name: str) -> Callable | None:
    """The handler of the function of that name; None if MaskedTensor does not support it.

    A handler is called with the function and its arguments, and calls functions that no longer ask the class.
    """
    table = _table()
    if name in table:
        return table[name]
    if name == "masked.logaddexp":
        return _masked_logaddexp
    if name.startswith("masked."):
        return _masked_function
    if name in _REFUSED:
        return None
    short = name.removeprefix("Tensor.").removeprefix("special.").removeprefix("nn.functional.")
    if short in table:
        return table[short]
    return _plainly if short.endswith((".__get__", ".__set__", ".__delete__")) else None
