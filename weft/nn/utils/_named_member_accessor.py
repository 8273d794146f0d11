"""Exchanges parameters and buffers of modules by name, unchecked and fast, as `torch.nn.utils` does."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...compat.missing import module_getattr
from ...core.tensor import Tensor
from ...func import replaced
from ..module import Module

_MISSING = replaced.MISSING


def _check_name(module: Any, name: str) -> None:
    if not isinstance(module, Module):
        raise TypeError(f"{module} is not an instance of torch.nn.Module")
    if "." in name:
        raise KeyError('tensor name can\'t contain "."')
    if name == "":
        raise KeyError('tensor name can\'t be empty string ""')


def set_tensor(module: Module, name: str, tensor: Tensor) -> None:
    """Set the tensor of a name of a module; a parameter or buffer of this name is replaced."""
    _check_name(module, name)
    if name in module._parameters:
        module._parameters[name] = tensor  # type: ignore[assignment]
    elif name in module._buffers:
        module._buffers[name] = tensor
    else:
        setattr(module, name, tensor)


def swap_tensor(module: Module, name: str, tensor: Tensor, allow_missing: bool = False) -> Tensor:
    """Set the tensor of a name and return the old one; with `allow_missing`, return a sentinel if there was none.

    Given the sentinel as `tensor`, it removes the name.
    Raises: AttributeError if the module has no such name, TypeError if it is not a tensor.
    """
    _check_name(module, name)
    return replaced.swap_tensor(module, name, tensor, allow_missing)


class NamedMemberAccessor:
    """Gets and sets the tensors of a module and its submodules by dotted names.

    >>> import weft as torch
    >>> accessor = NamedMemberAccessor(torch.nn.Sequential(torch.nn.Linear(2, 1)))
    >>> accessor.swap_tensor("0.bias", torch.ones(1)).shape, accessor.get_tensor("0.bias")
    (torch.Size([1]), tensor([1.]))
    """

    def __init__(self, module: Module) -> None:
        self.module = module

    def _place(self, name: str) -> tuple[Module, str]:
        prefix, _, own = name.rpartition(".")
        return self.get_submodule(prefix), own

    def get_submodule(self, name: str) -> Module:
        """Return the module under a name; the empty one is this module."""
        return self.module.get_submodule(name)

    def get_tensor(self, name: str) -> Tensor:
        """Return the tensor of a name."""
        module, own = self._place(name)
        value = getattr(module, own)
        if not isinstance(value, Tensor):
            raise TypeError(f"{value} is not an instance of torch.Tensor")
        return value

    def set_tensor(self, name: str, value: Tensor) -> None:
        """Set the tensor of a name."""
        set_tensor(*self._place(name), value)

    def del_tensor(self, name: str) -> None:
        """Remove the tensor of a name."""
        delattr(*self._place(name))

    def swap_tensor(self, name: str, value: Tensor, allow_missing: bool = False) -> Tensor:
        """Set the tensor of a name and return the old one."""
        return swap_tensor(*self._place(name), value, allow_missing)

    def get_tensors(self, names: Iterable[str]) -> list[Tensor]:
        """`get_tensor` of each name."""
        return [self.get_tensor(name) for name in names]

    def set_tensors(self, names: Iterable[str], values: Iterable[Tensor]) -> None:
        """Call `set_tensor` for each name."""
        for name, value in zip(names, values, strict=True):
            self.set_tensor(name, value)

    def set_tensors_dict(self, named_tensors: dict[str, Tensor]) -> None:
        """Call `set_tensor` for each name."""
        self.set_tensors(named_tensors, named_tensors.values())

    def del_tensors(self, names: Iterable[str]) -> None:
        """Call `del_tensor` for each name."""
        for name in names:
            self.del_tensor(name)

    def swap_tensors(
        self, names: Iterable[str], values: Iterable[Tensor], allow_missing: bool = False
    ) -> list[Tensor]:
        """Call `swap_tensor` for each name."""
        return [
            self.swap_tensor(name, value, allow_missing) for name, value in zip(names, values, strict=True)
        ]

    def swap_tensors_dict(
        self, named_tensors: dict[str, Tensor], allow_missing: bool = False
    ) -> tuple[dict[str, Tensor], list[str]]:
        """Return the old tensors, and the names that had none. If a name fails, restore all tensors."""
        before = replaced.swap_tensors(self.module, named_tensors)
        missing = [name for name in named_tensors if before[name] is _MISSING]
        if missing and not allow_missing:
            replaced.swap_tensors(self.module, before)
            raise RuntimeError(f"Missing key(s): {', '.join(map(repr, missing))}.")
        return before, missing

    def check_keys(self, keys: Iterable[str]) -> tuple[list[str], list[str]]:
        """Return the names of the module that are not among `keys`, and the keys that are not names."""
        given, own = set(keys), {name for name, _ in self.named_tensors(remove_duplicate=False)}
        return sorted(own - given), sorted(given - own)

    def named_parameters(self, remove_duplicate: bool = True) -> Iterable[tuple[str, Tensor]]:
        """Yield the parameters of all modules."""
        yield from self.module.named_parameters(remove_duplicate=remove_duplicate)

    def named_buffers(self, remove_duplicate: bool = True) -> Iterable[tuple[str, Tensor]]:
        """Yield the buffers of all modules."""
        yield from self.module.named_buffers(remove_duplicate=remove_duplicate)

    def named_tensors(self, remove_duplicate: bool = True) -> Iterable[tuple[str, Tensor]]:
        """Yield the parameters and the buffers."""
        yield from self.named_parameters(remove_duplicate)
        yield from self.named_buffers(remove_duplicate)

    def named_modules(self, remove_duplicate: bool = True) -> Iterable[tuple[str, Module]]:
        """Return this module and those within."""
        yield from self.module.named_modules(remove_duplicate=remove_duplicate)


__getattr__ = module_getattr(__name__)
