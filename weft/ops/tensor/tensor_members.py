"""Small members of Tensor that old programs and libraries read: `volatile`, `__nonzero__`, `module_load`, `_use_count`."""

from __future__ import annotations

import warnings
from typing import Any, NoReturn

from ...core.dtype import DType
from ...core.entry import entry
from ...core.grad_mode import no_grad
from ...core.names import named
from ...core.public import public
from ...core.registry import add_function, add_method
from ...core.streams import Stream
from ...core.tensor import Tensor
from ...core.warn import user_level
from .storage import TypedStorage


@public("method")
def __delitem__(self: Tensor, index: Any) -> NoReturn:
    """Raises: TypeError, because the size of a tensor is fixed."""
    raise TypeError("Tensor does not support deleting items")


@public("method")
def __setstate__(self: Tensor, state: Any) -> None:
    """Take over the attributes that a pickle stored."""
    # Such a state has the members in __slots__, too.
    if isinstance(state, tuple) and len(state) == 2 and isinstance(state[1], dict):
        for name, value in state[1].items():
            setattr(self, name, value)
        state = state[0]
    if state:
        self.__dict__.update(state)


def _volatile(self: Tensor) -> bool:
    """False. Since PyTorch 0.4 tensors are not volatile, because `torch.no_grad()` replaces the flag."""
    warnings.warn("volatile was removed (Variable.volatile is always False)", stacklevel=user_level())
    return False


def _grad_dtype(self: Tensor) -> DType | None:
    """The dtype that `grad` must have: that of the tensor."""
    return self.spec.dtype


@public("method")
def const_data_ptr(self: Tensor) -> int:
    """Return `data_ptr`, for callers that only read."""
    return self.data_ptr()


@public("method")
def module_load(self: Tensor, other: Tensor, assign: bool = False) -> Tensor:
    """What `Module.load_state_dict` puts in the place of this tensor, given the tensor that it loads.

    A class of tensors may override it; it is called if `torch.__future__.set_swap_module_params_on_conversion` is on.
    """
    if assign:
        return other.detach()
    with no_grad():
        return self.copy_(other).detach()


@public("method")
def record_stream(self: Tensor, s: Any) -> None:
    """Let the memory of the tensor be free, after the tensor is gone, only when a stream is done with the work that it was given until then.

    A tensor that is used by another stream than the one on which it was made needs this, unless its own stream waits for that stream before
    the tensor is deleted.

    Raises: NotImplementedError for a tensor of the CPU, RuntimeError if `s` is not a stream, as in PyTorch.
    """
    if not isinstance(s, Stream):
        raise RuntimeError("unknown parameter type")
    backend = self.spec.device.backend
    if not backend.has_events:
        raise NotImplementedError(
            "Could not run 'aten::record_stream' with arguments from the 'CPU' backend."
        )
    backend.record_use(self._storage, s.stream_id)


@public("method")
def resize(self: Tensor, *sizes: Any) -> Tensor:
    """The elements in other sizes, of which there are as many; deprecated, `reshape` does it."""
    warnings.warn("non-inplace resize is deprecated", stacklevel=user_level())
    return self.reshape(*sizes)


@public("method")
def resize_as(self: Tensor, tensor: Tensor) -> Tensor:
    """Call `resize` with the sizes of another tensor; deprecated."""
    warnings.warn("non-inplace resize_as is deprecated", stacklevel=user_level())
    return self.reshape(tensor.shape)


@public("method")
def reinforce(self: Tensor, reward: Any) -> NoReturn:
    """Raises: RuntimeError, because PyTorch removed the method; `torch.distributions` replaces it."""
    raise RuntimeError(
        "reinforce() was removed. Use torch.distributions instead: draw with sample() and differentiate "
        "-log_prob(action) * reward."
    )


@public("function method")
def slice_inverse(
    input: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """The tensor of which `input` is a slice, if it has the sizes and strides of `src`."""
    return input.as_strided(src.shape, src.stride(), src.storage_offset())


def _no_device(name: str, error: Exception) -> None:
    @named(name)
    def method(
        self: Tensor, device: Any = None, non_blocking: bool = False, memory_format: Any = None
    ) -> Tensor:
        """Return the tensor on a device of type {name}.

        Raises: an error, because there is none.
        """
        raise error

    add_method(name, method)


_no_device("ipu", RuntimeError("PyTorch is not linked with support for ipu devices"))
_no_device("mtia", AssertionError("Torch not compiled with MTIA enabled"))


@public("function method", name="_is_zerotensor")
def is_zerotensor(input: Tensor) -> bool:
    """False: weft has no tensors of zeros without memory."""
    return False


@public("function")
def is_distributed(input: Tensor) -> bool:
    """Whether the tensor lies on several machines: no."""
    return False


@public("method", name="_use_count")
def use_count(self: Tensor) -> int:
    """How many references C++ has to the tensor: one, that of the Python object."""
    return 1


@public("method", name="_typed_storage")
def typed_storage(self: Tensor) -> Any:
    """Return the storage with the dtype of the tensor, without the warning of `storage()`."""
    return TypedStorage(wrap_storage=self.untyped_storage(), dtype=self.dtype)


@public("method", name="_conj")
def lazy_conj(self: Tensor) -> Tensor:
    """Return `conj`, by the name of the kernel."""
    return self.conj()


def _in_place(name: str) -> None:
    @named(name)
    def function(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        """Return `input.{name}(...)`."""
        return getattr(input, name)(*args, **kwargs)

    add_function(name, entry(function))


for _name in ("addmv_", "gcd_", "lcm_", "xlogy_"):
    _in_place(_name)

_members: Any = Tensor
_members.__long__ = Tensor.__int__
_members.__nonzero__ = _members.__bool__
_members.volatile = property(_volatile)
_members.grad_dtype = property(_grad_dtype)
_members._has_symbolic_sizes_strides = property(lambda self: False)
_members._cdata = property(lambda self: id(self))
_members._grad_fn = property(lambda self: self.grad_fn)
