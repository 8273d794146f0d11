"""Tensors without values that know a device, `torch._subclasses.fake_tensor`: classes to ask about."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, NoReturn

from ..compat.missing import module_getattr
from ..core.overrides import disabled
from ..core.tensor import Tensor
from ..utils._python_dispatch import TorchDispatchMode


class UnsupportedFakeTensorException(RuntimeError):
    """An operation that has no form without values."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class DynamicOutputShapeException(RuntimeError):
    """The shape of a result depends on values."""

    def __init__(self, func: Any) -> None:
        super().__init__(func)
        self.func = func


class FakeTensor(Tensor):
    """No tensor is one: tensors without values are those of device "meta"."""

    __torch_function__ = disabled  # so that functions need not ask for a class without objects

    def __new__(cls, *args: Any, **kwargs: Any) -> NoReturn:  # type: ignore[misc]
        raise NotImplementedError(
            "FakeTensor: use tensors of device='meta', which have a shape and a dtype and no values"
        )


class FakeTensorMode(TorchDispatchMode):
    """It can be made; entering it raises NotImplementedError."""

    def __init__(
        self,
        *,
        allow_fallback_kernels: bool = True,
        allow_non_fake_inputs: bool = False,
        shape_env: Any = None,
        static_shapes: bool | None = None,
        export: bool = False,
    ) -> None:
        super().__init__()
        self.allow_fallback_kernels, self.allow_non_fake_inputs = (
            allow_fallback_kernels,
            allow_non_fake_inputs,
        )
        self.shape_env, self.static_shapes, self.export = shape_env, static_shapes, export


def is_fake(x: object) -> bool:
    """Whether it is a FakeTensor: no."""
    return isinstance(x, FakeTensor)


def maybe_get_fake_mode(t: object) -> FakeTensorMode | None:
    """The mode of a FakeTensor, so None."""
    return None


@contextlib.contextmanager
def unset_fake_temporarily() -> Iterator[None]:
    """A context without a FakeTensorMode."""
    yield


__getattr__ = module_getattr(__name__)
