"""What can be asked of a tensor: its kind, its place, the dtype of a result."""

from __future__ import annotations

import inspect
from typing import Any

from ...core.checking import check_tensor
from ...core.dtype import DType
from ...core.entry import entry
from ...core.layout import (
    Layout,
    MemoryFormat,
    channels_last,
    channels_last_3d,
    contiguous_format,
    sparse_coo,
    sparse_csr,
    strided,
)
from ...core.names import named
from ...core.promotion import common_dtype
from ...core.public import public
from ...core.registry import add_function, add_member
from ...core.spec import Spec
from ...core.tensor import Tensor
from ...families.map import NUMBERS
from ..assembly.copying import is_contiguous


@public("function")
def is_tensor(obj: Any, /) -> bool:
    """Whether `obj` is a Tensor."""
    return isinstance(obj, Tensor)


def _asked(name: str) -> None:
    """Return `weft.name(input)` for a method without arguments."""
    method = getattr(Tensor, name)

    @named(name, method.__doc__)
    def function(input: Tensor) -> Any:
        check_tensor(input, name)
        return method(input)

    add_function(name, entry(function))


for _name in ("is_floating_point", "is_complex", "is_signed", "is_conj", "is_neg", "numel"):
    _asked(_name)


@public("function method")
def is_nonzero(input: Tensor) -> bool:
    """Whether the only element is not zero.

    Raises: RuntimeError unless there is exactly one element.
    """
    check_tensor(input, "is_nonzero")
    return bool(input)


@public("function method")
def is_inference(input: Tensor) -> bool:
    """Whether the tensor's memory was made in inference mode."""
    check_tensor(input, "is_inference")
    return type(input._storage.version) is not int


@public("function method")
def get_device(input: Tensor) -> int:
    """Return the number of the device; -1 for the CPU and meta."""
    check_tensor(input, "get_device")
    where = input.spec.device
    return -1 if where.index is None and not input.is_cuda else where.index or 0


@public("function", asks=True)
def result_type(tensor1: Any, tensor2: Any) -> DType:
    """Return the dtype of an arithmetic result of two tensors or numbers.

    >>> import weft as torch
    >>> torch.result_type(torch.ones(2, dtype=torch.int32), 1.5)
    torch.float32
    """
    operands: list[Any] = []
    for value in (tensor1, tensor2):
        if isinstance(value, Tensor):
            operands.append(value.spec)
        elif isinstance(value, NUMBERS):
            operands.append(next(kind for kind in NUMBERS if isinstance(value, kind)))
        else:
            raise TypeError(
                "result_type() received an invalid combination of arguments - got "
                f"({type(tensor1).__name__}, {type(tensor2).__name__}): expected tensors and numbers"
            )
    return common_dtype(operands)


@public("function")
def typename(obj: Any, /) -> str:
    """Return the name of the type of `obj`, with its module; 'torch.FloatTensor' and the like for tensors."""
    if isinstance(obj, Tensor):
        return obj.type()
    named = obj if hasattr(obj, "__qualname__") or inspect.ismodule(obj) else type(obj)
    name = getattr(named, "__qualname__", None) or named.__name__
    module = getattr(named, "__module__", None)
    return name if module in (None, "builtins") else f"{module}.{name}"


# ---- Methods and properties ---------------------------------------------------------------------------------------------


def _is_layout(wanted: Layout) -> property:
    return property(lambda self: type(self.spec) is not Spec and self.spec.layout is wanted)


add_member("is_sparse", _is_layout(sparse_coo))
add_member("is_sparse_csr", _is_layout(sparse_csr))
add_member(
    "is_quantized", property(lambda self: type(self.spec) is not Spec and self.spec.rules.name == "quantized")
)
add_member(
    "is_nested", property(lambda self: type(self.spec) is not Spec and self.spec.rules.name == "nested")
)
# Kinds of tensors that weft has none of.
_NEVER = "is_mkldnn is_mps is_vulkan is_maia is_ipu is_mtia".split()
for _name in _NEVER:
    add_member(_name, property(lambda self: False))
add_member("is_xla", property(lambda self: self.spec.device.type == "xla"))
add_member("is_xpu", property(lambda self: self.spec.device.type == "xpu"))
add_member("name", property(lambda self: None))


@public("method")
def is_pinned(self: Tensor, device: Any = None) -> bool:
    """Whether the memory is page-locked for transfers to a GPU."""
    return self._storage.is_pinned()


@public("method")
def is_distributed(self: Tensor) -> bool:
    return False


@public("method")
def is_coalesced(self: Tensor) -> bool:
    """Raise: only sparse tensors have an answer."""
    raise RuntimeError("is_coalesced expected sparse coordinate tensor layout but got Strided")


@public("method")
def sparse_dim(self: Tensor) -> int:
    """Return the number of sparse dimensions: none."""
    return 0


@public("method")
def dense_dim(self: Tensor) -> int:
    """Return the number of dense dimensions: all."""
    return len(self.spec.shape)


@public("method")
def dim_order(self: Tensor, *, ambiguity_check: bool | list[MemoryFormat] = False) -> tuple[int, ...]:
    """The dimensions as they lie in memory, outermost first.

    Raises: RuntimeError if that is ambiguous and `ambiguity_check` asks; formats in it decide between orders. AttributeError for
    sparse tensors.
    """
    if self.layout is not strided:
        raise AttributeError(
            f"Can't get dim order on sparse type: {self.type()} Use Tensor.to_dense() to convert to a dense tensor first."
        )
    spec = self.spec
    order = tuple(sorted(range(len(spec.shape)), key=lambda dim: -spec.stride[dim]))
    if ambiguity_check is False:
        return order
    strides = [spec.stride[dim] for dim in range(len(spec.shape))]
    unique = len(set(strides)) == len(strides) and 1 not in spec.shape
    if ambiguity_check is True and not unique:
        raise RuntimeError(
            "The tensor does not have unique dim order, or cannot map to exact one of the given memory formats."
        )
    if ambiguity_check is True or unique:
        return order
    fitting = [each for each in ambiguity_check if _fits(self, each)]
    if len(fitting) != 1:
        raise RuntimeError(
            "The tensor does not have unique dim order, or cannot map to exact one of the given memory formats."
        )
    dims = range(len(spec.shape))
    return tuple(dims) if fitting[0] is contiguous_format else (0, *dims[2:], 1)


def _fits(tensor: Tensor, memory_format: MemoryFormat) -> bool:
    ndim = {channels_last: 4, channels_last_3d: 5}.get(memory_format, tensor.dim())
    return tensor.dim() == ndim and is_contiguous(tensor, memory_format)
