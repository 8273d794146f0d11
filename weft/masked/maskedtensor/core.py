"""`MaskedTensor`: a tensor of which a mask says, for each element, whether it has a value."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from ...autograd.function import Function
from ...core.dtype import DType, bool_, float16, float32, float64, int8, int16, int32, int64
from ...core.layout import sparse_coo, sparse_csr, strided
from ...core.overrides import DisableTorchFunctionSubclass, full_name
from ...core.recording import unrecorded
from ...core.registry import FUNCTIONS
from ...core.tensor import Tensor, of_class
from ...core.warn import user_level
from ...layouts.parts import parts_of

__all__ = ["MaskedTensor", "is_masked_tensor"]

_PROTOTYPE = (
    "The PyTorch API of MaskedTensors is in prototype stage and will change in the near future. Please open a Github "
    "issue for features requests and see our documentation on the torch.masked module for further information about "
    "the project."
)
_REQUIRES_GRAD = (
    "It is not recommended to create a MaskedTensor with a tensor that requires_grad. To avoid this, you can use "
    "data.detach().clone()"
)
_NOT_IMPLEMENTED = (
    "{name} is not implemented in __torch_dispatch__ for MaskedTensor.\nIf you would like this operator to be supported, "
    "please file an issue for a feature request at https://github.com/pytorch/maskedtensor/issues with a minimal "
    "reproducible code snippet.\nIn the case that the semantics for the operator are not trivial, it would be "
    "appreciated to also include a proposal for the semantics."
)
_DTYPES = frozenset((bool_, float16, float32, float64, int8, int16, int32, int64))


def is_masked_tensor(obj: Any, /) -> bool:
    """Whether `obj` is a MaskedTensor.

    >>> import warnings
    >>> import weft as torch
    >>> warnings.simplefilter("ignore")
    >>> data = torch.arange(3.0)
    >>> torch.masked.is_masked_tensor(data), torch.masked.is_masked_tensor(torch.masked.as_masked_tensor(data, data > 1))
    (False, True)
    """
    return isinstance(obj, MaskedTensor)


def _tensors_match(
    a: Tensor, b: Tensor, exact: bool = True, rtol: float = 1e-05, atol: float = 1e-08
) -> bool:
    """Whether two tensors of one layout agree in shape and elements; NaN agrees with NaN unless `exact`.

    Raises: ValueError if the layouts differ.
    """
    if a.layout is not b.layout:
        raise ValueError(f"`a` and `b` must have the same layout. Got {a.layout} and {b.layout}")
    if a.shape != b.shape:
        return False
    if a.layout is not strided:
        return all(
            _tensors_match(own, other, exact, rtol, atol)
            for own, other in zip(parts_of(a), parts_of(b), strict=True)
        )
    if exact:
        return bool((a == b).all())
    return bool(a.isclose(b.to(a.dtype), rtol=rtol, atol=atol, equal_nan=True).all())


def _masks_match(a: Any, b: Any) -> bool:
    """Whether two MaskedTensors have the same mask; anything else matches."""
    if not (is_masked_tensor(a) and is_masked_tensor(b)):
        return True
    return a._masked_mask is b._masked_mask or _tensors_match(a._masked_mask, b._masked_mask)


def _map_mt_args_kwargs(args: tuple, kwargs: dict[str, Any], map_fn: Callable) -> tuple[list, dict[str, Any]]:
    """Arguments with `map_fn` applied to each, and to the elements of lists and tuples among them."""

    def mapped(value: Any) -> Any:
        return type(value)(map(mapped, value)) if type(value) in (list, tuple) else map_fn(value)

    return [mapped(each) for each in args], {name: mapped(each) for name, each in kwargs.items()}


def _wrap_result(result_data: Any, result_mask: Any) -> Any:
    """MaskedTensors of a tensor and its mask, or of a list of them and theirs."""
    if isinstance(result_data, (list, tuple)):
        return type(result_data)(map(_wrap_result, result_data, result_mask))
    if not isinstance(result_data, Tensor):
        return result_data
    if result_data.layout is sparse_coo:
        result_data, result_mask = result_data.coalesce(), result_mask.coalesce()
    return _with_mask(result_data, result_mask)


def _with_mask(data: Tensor, mask: Tensor) -> Any:
    """The same tensor, its place in the graph of autograd included, as a MaskedTensor."""
    if isinstance(data, MaskedTensor) and data._masked_mask is mask:
        return data
    result = of_class(MaskedTensor, data)
    result._masked_mask = mask
    return result


def _get_data(a: Any) -> Any:
    """The elements of a MaskedTensor, masked-out ones included; other values as they are."""
    return _GetData.apply(a) if is_masked_tensor(a) else a


def _maybe_get_mask(a: Any) -> Any:
    return a.get_mask() if is_masked_tensor(a) else None


# ---- Steps between MaskedTensors and plain ones ------------------------------------------------------------------


class _GetData(Function):
    """The data of a MaskedTensor; the gradient gets its mask."""

    @staticmethod
    def forward(ctx: Any, input: Any) -> Tensor:
        ctx.mask = input._masked_mask
        return of_class(Tensor, input).detach()

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Any:
        if grad_output.layout is not ctx.mask.layout:
            grad_output = grad_output.sparse_mask(ctx.mask)
        return _with_mask(grad_output, ctx.mask)


class _Constructor(Function):
    """A MaskedTensor of data; the gradient of the data is masked, too."""

    @staticmethod
    def forward(ctx: Any, data: Tensor, mask: Tensor) -> Any:
        return MaskedTensor(data, mask)

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple:
        return grad_output, None


class _Reduced(Function):
    """A MaskedTensor of the result of a reduction; masked-out elements of the gradient are zeros of a plain tensor."""

    @staticmethod
    def forward(ctx: Any, data: Tensor, mask: Tensor) -> Any:
        return MaskedTensor(data, mask)

    @staticmethod
    def backward(ctx: Any, grad_output: Any) -> tuple:
        if is_masked_tensor(grad_output):
            grad_output = of_class(Tensor, grad_output).masked_fill(~grad_output._masked_mask, 0)
        return grad_output, None


for _function, _name in ((_GetData, "GetData"), (_Constructor, "Constructor"), (_Reduced, "Constructor")):
    _function.__name__ = _name
    _function._backward_cls.__name__ = f"{_name}Backward"


# ---- Printing --------------------------------------------------------------------------------------------------------


def _masked_tensor_str(data: Tensor, mask: Tensor, formatter: str) -> str:
    """The elements in nested brackets, `--` in place of those that are masked out."""
    if data.dim() == 1:
        cells = [
            formatter.format(value) if valid else None
            for value, valid in zip(data.tolist(), mask.tolist(), strict=True)
        ]
        width = max(8, *(len(cell) for cell in cells if cell is not None), 0)
        return "[" + ", ".join("--".rjust(width) if cell is None else cell for cell in cells) + "]"
    rows = (_masked_tensor_str(row, valid, formatter) for row, valid in zip(data, mask, strict=True))
    return "[\n" + ",\n".join("  " + row.replace("\n", "\n  ") for row in rows) + "\n]"


# ---- The class -------------------------------------------------------------------------------------------------------


@functools.cache
def _name_of(func: Callable) -> str:
    """`Tensor.add`, `add`, `special.exp2`, `Tensor.shape.__get__`: a function's name for the table of handlers."""
    return (full_name(func) or str(getattr(func, "__name__", func))).removeprefix("torch.")


def _refuse(func: Callable, types: Any) -> Any:
    """Raises: TypeError, because MaskedTensor does not support the function."""
    name = _name_of(func).rpartition("Tensor.")[2]
    warnings.warn(_NOT_IMPLEMENTED.format(name=name), UserWarning, stacklevel=user_level())
    listed = "".join(f"\n  - tensor subclass {kind}" for kind in types)
    raise TypeError(
        f"Multiple dispatch failed for 'torch.{_name_of(func)}'; all __torch_dispatch__ handlers returned "
        f"NotImplemented:\n{listed}"
    )


class MaskedTensor(Tensor):
    """A tensor with a mask of the same shape: elements where the mask is False have no value.

    Data and mask are both strided, COO or CSR. Sparse ones have the same entries, on which elementwise functions compute.
    Functions of single elements keep the mask, reductions leave masked-out elements aside, and so do gradients.

    >>> import warnings
    >>> import weft as torch
    >>> warnings.simplefilter("ignore")
    >>> data = torch.arange(6.0).reshape(2, 3)
    >>> masked = torch.masked.masked_tensor(data, data % 2 == 0, requires_grad=True)
    >>> masked
    MaskedTensor(
      [
        [  0.0000,       --,   2.0000],
        [      --,   4.0000,       --]
      ]
    )
    >>> total = masked.square().sum()
    >>> total
    MaskedTensor( 20.0000, True)
    >>> total.backward()
    >>> masked.grad
    MaskedTensor(
      [
        [  0.0000,       --,   4.0000],
        [      --,   8.0000,       --]
      ]
    )
    """

    _masked_mask: Tensor

    @staticmethod
    def __new__(cls: Any, data: Any, mask: Any, requires_grad: bool = False) -> Any:
        if is_masked_tensor(data) or not isinstance(data, Tensor):
            raise TypeError("data must be a Tensor")
        if is_masked_tensor(mask) or not isinstance(mask, Tensor):
            raise TypeError("mask must be a Tensor")
        warnings.warn(_PROTOTYPE, UserWarning, stacklevel=user_level())
        if data.requires_grad:
            warnings.warn(_REQUIRES_GRAD, UserWarning, stacklevel=user_level())
        _validate(data, mask)
        with unrecorded():
            result = of_class(cls, _restricted(data.detach(), mask))
        result._base = None
        return result

    def __init__(self, data: Tensor, mask: Tensor, requires_grad: bool = False):
        mask = mask.detach()
        self._masked_mask = mask.coalesce().clone() if mask.layout is sparse_coo else mask.clone()
        if requires_grad:
            if not (self.dtype.is_floating_point or self.dtype.is_complex):
                raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
            with DisableTorchFunctionSubclass():
                self.requires_grad_()

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        formatter = "{0:8.4f}" if self.dtype.is_floating_point else "{0}"
        data, mask = of_class(Tensor, self).detach().to_dense(), self._masked_mask.to_dense()
        if data.dim() == 0:
            return f"MaskedTensor({formatter.format(data.item()) if mask else '--'}, {bool(mask)})"
        text = _masked_tensor_str(data, mask, formatter)
        return "MaskedTensor(\n  " + text.replace("\n", "\n  ") + "\n)"

    __str__ = __repr__

    def __format__(self, format_spec: str) -> str:
        return repr(self)

    @classmethod
    def __torch_function__(cls: Any, func: Any, types: Any, args: tuple = (), kwargs: Any = None) -> Any:
        from . import _ops_refs  # it needs this class

        handler = _ops_refs.handler_of(_name_of(func))
        with DisableTorchFunctionSubclass():
            if handler is None:
                return _refuse(func, types)
            return handler(func, *args, **kwargs or {})

    @classmethod
    def unary(cls: Any, fn: Callable, data: Tensor, mask: Tensor) -> Any:
        """The MaskedTensor of `fn(data)` and the mask."""
        return MaskedTensor(fn(data), mask)

    def __lt__(self, other: Any) -> Any:
        if self.layout is not strided:
            return FUNCTIONS["lt"](self, other)
        if is_masked_tensor(other):
            other = other.get_data()
        return MaskedTensor(self.get_data() < other, self._masked_mask)

    def to_tensor(self, value: Any) -> Tensor:
        """A plain strided tensor, with `value` in place of masked-out elements."""
        return self.get_data().to_dense().masked_fill(~self._masked_mask.to_dense(), value)

    def get_data(self) -> Tensor:
        """The elements as a plain tensor; those that are masked out have no meaning."""
        return _get_data(self)

    def get_mask(self) -> Tensor:
        """Where elements have a value."""
        return self._masked_mask

    def is_sparse_coo(self) -> bool:  # type: ignore[override]
        return self.layout is sparse_coo

    def is_sparse_csr(self) -> bool:  # type: ignore[override]
        return self.layout is sparse_csr

    @property
    def is_sparse(self) -> bool:  # type: ignore[override]
        return self.layout is not strided

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        with DisableTorchFunctionSubclass():
            copy = _with_mask(self.detach().clone(), self._masked_mask.clone())
            copy.requires_grad_(self.requires_grad)
        memo[id(self)] = copy
        return copy

    def __reduce_ex__(self, protocol: Any) -> Any:
        data = of_class(Tensor, self).detach()
        return _rebuilt, (data, self._masked_mask, self.requires_grad)


def _restricted(data: Tensor, mask: Tensor) -> Tensor:
    """A copy of the data. Sparse data gets the entries of its mask, zeros included.

    Raises: ValueError for as many entries as the mask has in other places, which are more likely a mistake.
    """
    if data.layout is strided:
        return data.clone()
    if data.layout is sparse_coo:
        data, mask = data.coalesce(), mask.coalesce()
    if data._nnz() != mask._nnz():
        return data.sparse_mask(mask)
    if all(map(_tensors_match, parts_of(data)[:-1], parts_of(mask)[:-1])):
        return data.clone()
    if data.layout is sparse_coo:
        raise ValueError("data and mask are both sparse COO tensors but do not have the same indices.")
    raise ValueError("data and mask are both sparse CSR tensors but do not share either crow or col indices.")


def _rebuilt(data: Tensor, mask: Tensor, requires_grad: bool) -> Any:
    result = _with_mask(data, mask)
    return result.requires_grad_() if requires_grad else result


def _validate(data: Tensor, mask: Tensor) -> None:
    if data.dim() != mask.dim():
        raise ValueError("data.dim() must equal mask.dim()")
    if data.shape != mask.shape:
        raise ValueError("data.size() must equal mask.size()")
    if mask.dtype is not bool_:
        raise TypeError("mask must have dtype bool.")
    if data.layout is not mask.layout:
        raise TypeError(
            f"data and mask must have the same layout. Got {data.layout} and {mask.layout}: convert one of them, "
            "for example by mask.to_sparse()"
        )
    if data.layout not in (strided, sparse_coo, sparse_csr):
        raise TypeError(
            f"data layout of {data.layout} is not supported. Convert data and mask by to_sparse() or to_sparse_csr()"
        )
    dtype: DType = data.dtype
    if dtype not in _DTYPES:
        raise TypeError(f"{dtype} is not supported in MaskedTensor.")
