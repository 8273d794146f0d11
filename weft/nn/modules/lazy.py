"""Modules that learn their shapes from their first input."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from ...autograd.parameter import is_lazy
from ...core.grad_mode import no_grad

if TYPE_CHECKING:
    from ..module import Module

    Base = Module
else:
    Base = object

__all__ = ["LazyModuleMixin"]


class LazyModuleMixin(Base):
    """Creates the parameters of a Module at its first call. A class lists it before its other base.

    A subclass creates UninitializedParameters in `__init__` and gives them their shapes in `initialize_parameters`,
    which is called with the arguments of `forward`. After that the module is an ordinary one of class
    `cls_to_become`, if there is one.
    """

    cls_to_become: type[Any] | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._load_hook: Any = self._register_load_state_dict_pre_hook(self._lazy_load_hook)
        self._initialize_hook: Any = self.register_forward_pre_hook(self._infer_parameters, with_kwargs=True)

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Give the parameters their shapes from the arguments of `forward`; every subclass defines this method."""
        raise NotImplementedError(f"initialize_parameters is not implemented for {type(self).__name__}")

    def has_uninitialized_params(self) -> bool:
        """Return whether a parameter or buffer still has no shape."""
        return any(is_lazy(each) for each in self._own_tensors().values())

    def _own_tensors(self) -> dict[str, Any]:
        return dict(itertools.chain(self._parameters.items(), self._buffers.items()))

    def _lazy_load_hook(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        """Before loading, give parameters and buffers without a shape the shapes of the tensors to load."""
        for name, tensor in self._own_tensors().items():
            given = state_dict.get(prefix + name)
            if is_lazy(tensor) and given is not None and not is_lazy(given):
                with no_grad():
                    tensor.materialize(given.shape)

    def _infer_parameters(self, module: Any, args: tuple, kwargs: dict[str, Any] | None = None) -> None:
        """Before the first call, give all parameters their shapes and become an ordinary module."""
        module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise RuntimeError(f"module {self._get_name()} has not been fully initialized")
        module._initialize_hook.remove()
        module._load_hook.remove()
        del module._initialize_hook, module._load_hook
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become
