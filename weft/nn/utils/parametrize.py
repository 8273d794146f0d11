"""A parametrization is a module that computes a parameter or buffer from other tensors."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any

from ...autograd.parameter import Parameter
from ...core.grad_mode import no_grad
from ...core.restoring import contextmanager
from ...core.tensor import Tensor
from ..containers import ModuleDict, ModuleList
from ..module import Module

__all__ = [
    "ParametrizationList", "cached", "is_parametrized", "register_parametrization", "remove_parametrizations",
    "transfer_parametrizations_and_params", "type_before_parametrizations",
]  # fmt: skip

# The values of parametrized tensors by module and name, within `cached()`.
_cache: dict[tuple[int, str], Any] = {}
_cache_depth = 0


@contextmanager
def cached() -> Iterator[None]:
    """Compute every parametrized tensor only once within this context, at its first use."""
    global _cache_depth
    _cache_depth += 1
    try:
        yield
    finally:
        _cache_depth -= 1
        if not _cache_depth:
            _cache.clear()


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, in the order in which they are applied, and what they are applied to.

    That is the parameter or buffer `original`; or `original0`, `original1` and so on if the `right_inverse` of the
    first parametrization gives several.
    """

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False) -> None:
        if len(modules) == 0:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        inverse = self._inverse(original, required=False)
        _check_inverse_kind(inverse)
        self.is_tensor = isinstance(inverse, Tensor)
        self.ntensors = 1 if self.is_tensor else len(inverse)
        if self.is_tensor:
            if original.dtype != inverse.dtype:
                raise ValueError(
                    "When `right_inverse` outputs one tensor, it may not change the dtype.\n"
                    f"original.dtype: {original.dtype}\nright_inverse(original).dtype: {inverse.dtype}"
                )
            if original.device != inverse.device:
                raise ValueError(
                    "When `right_inverse` outputs one tensor, it may not change the device.\n"
                    f"original.device: {original.device}\nright_inverse(original).device: {inverse.device}"
                )
            _set(original, inverse)  # keep the object of the parameter, because an optimizer may hold it
            _register(self, "original", original)
        else:
            for i, part in enumerate(inverse):
                _check_part(part, i)
                if isinstance(original, Parameter):
                    part = Parameter(part, original.requires_grad)
                _register(self, f"original{i}", part.requires_grad_(original.requires_grad))
        if not unsafe:
            _check_same(self(), original, _CHANGED.format("{0}", "unless `unsafe`"))

    def right_inverse(self, value: Tensor) -> None:
        """Set the originals so that the parametrizations compute `value`.

        Raises: RuntimeError if one of them has no `right_inverse`; ValueError if the result has another shape or dtype.
        """
        inverse = self._inverse(value, required=True)
        if not self.is_tensor:
            _check_parts(inverse, self.ntensors)
        elif not isinstance(inverse, Tensor):
            raise ValueError(f"`right_inverse` should return a tensor. Got {type(inverse).__name__}")
        targets = [(inverse, "original")] if self.is_tensor else self._named(inverse)
        for i, (part, name) in enumerate(targets):
            _check_part(part, i)
            target = getattr(self, name)
            if part.dtype != target.dtype:
                raise ValueError(
                    f"Tensor returned by `right_inverse` has dtype {part.dtype} while `{name}` has dtype {target.dtype}"
                )
            _set(target, part)

    def _named(self, parts: Sequence[Tensor]) -> list[tuple[Tensor, str]]:
        return [(part, f"original{i}") for i, part in enumerate(parts)]

    def _inverse(self, value: Any, required: bool) -> Any:
        """Apply the inverse of all parametrizations to `value`, or only existing inverses unless it is `required`."""
        with no_grad():
            for module in reversed(list(self)):
                if hasattr(module, "right_inverse"):
                    try:
                        value = module.right_inverse(value)
                    except NotImplementedError:
                        if required:
                            raise
                elif required:
                    raise RuntimeError(
                        f"parametrization {type(module).__name__} does not implement right_inverse."
                    )
        return value

    def originals(self) -> list[Any]:
        """Return the tensors that the parametrizations are applied to."""
        names = ["original"] if self.is_tensor else [f"original{i}" for i in range(self.ntensors)]
        return [getattr(self, name) for name in names]

    def forward(self) -> Tensor:
        first, *others = self
        value = first(*self.originals())
        for module in others:
            value = module(value)
        return value


class _Parametrized:
    """What a module becomes when its first tensor is parametrized: asked for such a tensor, it computes it."""

    parametrizations: ModuleDict

    def __getattr__(self, name: str) -> Any:
        modules = self.__dict__.get("_modules", {})
        if name != "parametrizations" and "parametrizations" in modules:
            parametrizations = modules["parametrizations"]
            if name in parametrizations:
                return self._value(name, parametrizations[name])
        return super().__getattr__(name)  # type: ignore[misc]

    def _value(self, name: str, parametrization: ParametrizationList) -> Any:
        if not _cache_depth:
            return parametrization()
        key = (id(self), name)
        if key not in _cache:
            _cache[key] = parametrization()
        return _cache[key]

    def __setattr__(self, name: str, value: Any) -> None:
        parametrizations = self.__dict__["_modules"].get("parametrizations", ())
        if name in parametrizations:
            parametrizations[name].right_inverse(value)
        else:
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self.parametrizations})

    def __deepcopy__(self, memo: dict) -> Any:
        result: Any = type(self).__new__(type(self))
        memo[id(self)] = result
        result.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return result

    def __getstate__(self) -> Any:
        raise RuntimeError(
            "Serialization of parametrized modules is only supported through state_dict(). See:\n"
            "https://pytorch.org/tutorials/beginner/saving_loading_models.html"
            "#saving-loading-a-general-checkpoint-for-inference-and-or-resuming-training"
        )


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Make a parameter or buffer of a module the result of `parametrization`, applied to its old value.

    Where there is one already, the new one is applied to its result. If the parametrization has a method
    `right_inverse`, the first value is `parametrization(right_inverse(what it was))`, and the tensor can be assigned
    to. With `unsafe`, shape and dtype may change.
    Raises: ValueError if the module has no such tensor, or if the result differs in shape or dtype.

    >>> import weft as torch
    >>> class Symmetric(torch.nn.Module):
    ...     def forward(self, x):
    ...         return x.triu() + x.triu(1).mT
    >>> layer = torch.nn.utils.parametrize.register_parametrization(torch.nn.Linear(3, 3), "weight", Symmetric())
    >>> torch.equal(layer.weight, layer.weight.mT)
    True
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        _add(module, tensor_name, parametrization, unsafe)
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        original = getattr(module, tensor_name)
        # Create the list before anything changes, because it raises if the parametrization does not fit.
        parametrizations = ParametrizationList([parametrization], original, unsafe=unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            kind = type(module)
            module.__class__ = type(f"Parametrized{kind.__name__}", (_Parametrized, kind), {})
            module.parametrizations = ModuleDict()
        module.parametrizations[tensor_name] = parametrizations
    else:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name '{tensor_name}'"
        )
    return module


def _add(module: Module, tensor_name: str, parametrization: Module, unsafe: bool) -> None:
    """Add a parametrization to a tensor that has some already."""
    if not unsafe:
        present = getattr(module, tensor_name)
        result = parametrization(present)
        _check_same(result, present, _CHANGED.format("{0}", "unless the `unsafe`"))
        if hasattr(parametrization, "right_inverse"):
            try:
                inverse = parametrization.right_inverse(result)
            except NotImplementedError:
                pass
            else:
                if not isinstance(inverse, Tensor):
                    raise ValueError(
                        f"parametrization.right_inverse must return a tensor. Got: {type(inverse).__name__}"
                    )
                _check_same(
                    inverse,
                    present,
                    "The tensor returned by parametrization.right_inverse must have the same {0} as "
                    f"module.{tensor_name}, unless the `unsafe` flag is enabled.",
                )
    parametrizations = module.parametrizations[tensor_name]
    parametrizations.append(parametrization)
    parametrizations.unsafe |= unsafe


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Return whether a tensor of the module, or any, is parametrized."""
    parametrizations = getattr(module, "parametrizations", None)
    if not isinstance(parametrizations, ModuleDict):
        return False
    return len(parametrizations) > 0 if tensor_name is None else tensor_name in parametrizations


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Make a parametrized tensor an ordinary one, from its present value or from the tensor that it was computed from.

    Raises: ValueError if it is not parametrized, or if it is computed from several and not to be left as it is.
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    parametrizations = module.parametrizations[tensor_name]
    if parametrizations.is_tensor:
        original = parametrizations.original
        if leave_parametrized:
            with no_grad():
                value = getattr(module, tensor_name)
            _set(original, value)
    elif leave_parametrized:
        value = getattr(module, tensor_name)
        original = Parameter(value) if value.requires_grad else value
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in terms of a "
            "sequence of tensors."
        )
    del module.parametrizations[tensor_name]
    if not is_parametrized(module):
        module.__class__ = type_before_parametrizations(module)
        del module.parametrizations
    _register(module, tensor_name, original)
    return module


def type_before_parametrizations(module: Module) -> type:
    """Return the class that the module had before its first tensor was parametrized."""
    return type(module).__bases__[1] if isinstance(module, _Parametrized) else type(module)


def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: str | None = None
) -> Module:
    """Give a module the parametrizations of another, and what they are applied to, for one tensor or for all.

    Shapes: as in `from_module`; parametrizations that `to_module` has are kept in front.
    """
    if not is_parametrized(from_module):
        return to_module
    for name in [tensor_name] if tensor_name is not None else list(from_module.parametrizations):
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name)))
        for parametrization in from_module.parametrizations[name]:
            register_parametrization(to_module, name, parametrization, unsafe=True)
        source, target = from_module.parametrizations[name], to_module.parametrizations[name]
        names = ["original"] if source.is_tensor else [f"original{i}" for i in range(source.ntensors)]
        for each in names:
            setattr(target, each, getattr(source, each))
    return to_module


def _register(module: Module, name: str, tensor: Tensor) -> None:
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


def _set(target: Tensor, value: Tensor) -> None:
    """Give a tensor the values, and the shape, of another one; it stays the same object."""
    with no_grad():
        target.data = value.detach().clone() if value._storage is target._storage else value.detach()


def _check_inverse_kind(value: Any) -> None:
    if not isinstance(value, (Tensor, Sequence)):
        raise ValueError(
            f"'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). Got {type(value).__name__}"
        )


def _check_parts(parts: Any, count: int) -> None:
    if not isinstance(parts, Sequence):
        raise ValueError(f"'right_inverse' must return a sequence of tensors. Got {type(parts).__name__}.")
    if len(parts) != count:
        raise ValueError(
            f"'right_inverse' must return a sequence of tensors of length {count}. Got a sequence of length {len(parts)}."
        )


def _check_part(part: Any, place: int) -> None:
    if not isinstance(part, Tensor):
        raise ValueError(
            "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). Got element "
            f"{place} of the sequence with type {type(part).__name__}."
        )


_CHANGED = "Registering a parametrization may not change the {0} of the tensor, {1} flag is enabled."


def _check_same(result: Any, present: Tensor, message: str) -> None:
    """Raises: ValueError if a parametrization gives another kind of tensor; `message` names the fixed property."""
    if not isinstance(result, Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(result).__name__}.")
    for what in ("dtype", "shape"):
        before, after = getattr(present, what), getattr(result, what)
        if before != after:
            raise ValueError(
                f"{message.format(what)}\nunparametrized {what}: {before}\nparametrized {what}: {after}"
            )
