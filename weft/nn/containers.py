"""Modules that hold other modules, in order or by key."""

from __future__ import annotations

import operator
import warnings
from collections import OrderedDict
from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from itertools import islice
from typing import Any, TypeVar

from ..core.tensor import Tensor
from ..core.warn import user_level
from .module import Module, block, indented

T = TypeVar("T")
L = TypeVar("L", bound="_Ordered")


class _Ordered(Module):
    """Holds modules by position; their names are '0', '1' and so on unless the caller names them."""

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, slice):
            return self._part(idx)
        return self._modules[self._name(idx)]

    def _part(self, index: slice) -> Any:
        return type(self)(list(self)[index])  # type: ignore[arg-type]

    def __setitem__(self, idx: int, module: Module) -> None:
        setattr(self, self._name(idx), module)

    def __delitem__(self, idx: Any) -> None:
        for name in list(self._modules)[idx] if isinstance(idx, slice) else [self._name(idx)]:
            delattr(self, name)
        self._renumber(list(self))

    def _name(self, index: Any) -> str:
        """Return the name of the module at a position. Raises: IndexError if there is none."""
        index = operator.index(index)
        size = len(self)
        if not -size <= index < size:
            raise IndexError(f"index {index} is out of range")
        return next(islice(self._modules, index % size, None))

    def _renumber(self, modules: list[Any]) -> None:
        self._modules = {str(i): module for i, module in enumerate(modules)}

    def append(self: L, module: Module) -> L:
        """Add a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self: L, modules: Iterable[Module]) -> L:
        """Add modules at the end. Raises: TypeError for anything that is not a collection of modules."""
        if not isinstance(modules, Iterable):
            raise TypeError(
                f"{type(self).__name__}.extend should be called with an iterable, but got {type(modules).__name__}"
            )
        for module in list(modules):
            self.append(module)
        return self

    def insert(self: L, index: int, module: Module) -> L:
        """Add a module before position `index`, as into a list. Raises: AssertionError if it is not a Module."""
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        modules = list(self)
        modules.insert(index, module)
        self._renumber(modules)
        return self

    def pop(self, key: Any) -> Any:
        """Remove the module at a position and return it."""
        module = self[key]
        del self[key]
        return module

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.isdigit()]


class Sequential(_Ordered):
    """Calls modules one after the other, each with the output of the one before.

    The caller gives them in order, or in one OrderedDict that names them.

    >>> import weft as torch
    >>> torch.nn.Sequential(torch.nn.Sequential(), torch.nn.Sequential())
    Sequential(
      (0): Sequential()
      (1): Sequential()
    )
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        named = args[0].items() if len(args) == 1 and isinstance(args[0], OrderedDict) else enumerate(args)
        for name, module in named:
            self.add_module(str(name), module)

    def forward(self, input: Any) -> Tensor:  # as that of most last modules, so that checkers need no cast
        for module in self._modules.values():
            input = module(input)  # type: ignore[misc]
        return input

    def _part(self, index: slice) -> Sequential:
        return type(self)(OrderedDict(list(self._modules.items())[index]))

    def extend(self, sequential: Iterable[Module]) -> Sequential:
        """Add modules at the end. Raises: TypeError for anything that is not a collection of modules."""
        return super().extend(sequential)

    def insert(self, index: int, module: Module) -> Sequential:
        """Add a module before position `index`, which may be the length.

        Raises: IndexError if there is no such position, AssertionError if it is not a Module.
        """
        if not -len(self) <= index <= len(self):
            raise IndexError(f"Index out of range: {index}")
        return super().insert(index, module)

    def __add__(self, other: Sequential) -> Sequential:
        return Sequential(*self, *_checked(other))

    def __iadd__(self, other: Sequential) -> Sequential:
        return self.extend(_checked(other))

    def __mul__(self, other: int) -> Sequential:
        return Sequential(*self._times(other))

    __rmul__ = __mul__

    def __imul__(self, other: int) -> Sequential:
        return self.extend(self._times(other)[len(self) :])

    def _times(self, count: Any) -> list[Module]:
        if not isinstance(count, int):
            raise TypeError(f"unsupported operand type(s) for *: {type(self)} and {type(count)}")
        if count <= 0:
            raise ValueError(f"Non-positive multiplication factor {count} for {type(self)}")
        return list(self) * count


del Sequential.forward.__annotations__[
    "return"
]  # PyTorch's has none, and torch.fx writes annotations into its code


def _checked(other: Any) -> Sequential:
    if not isinstance(other, Sequential):
        raise ValueError(
            f"add operator supports only objects of Sequential class, but {type(other)} is given."
        )
    return other


class ModuleList(_Ordered):
    """A list of modules, whose parameters and buffers belong to the module that holds the list.

    >>> import weft as torch
    >>> torch.nn.ModuleList([torch.nn.Sequential(), torch.nn.Sequential()])
    ModuleList(
      (0-1): 2 x Sequential()
    )
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def _get_abs_string_index(self, idx: int) -> str:
        """Return the name of the module at a position, which may be negative."""
        return self._name(idx)

    def __iadd__(self, modules: Iterable[Module]) -> ModuleList:
        return self.extend(modules)

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList([*self, *other])

    def __repr__(self) -> str:
        # A run has the first and last position of neighbours with equal reprs, and their text.
        runs: list[tuple[int, int, str]] = []
        for i, text in enumerate(map(repr, self)):
            first = runs.pop()[0] if runs and runs[-1][2] == text else i
            runs.append((first, i, text))
        lines = [f"{_range(first, last)}{indented(text)}" for first, last, text in runs]
        return block(self._get_name(), lines) if lines else f"{self._get_name()}()"


def _range(first: int, last: int) -> str:
    return f"({first}): " if first == last else f"({first}-{last}): {last - first + 1} x "


class ModuleDict(Module):
    """A dictionary of modules, whose parameters and buffers belong to the module that holds the dictionary.

    >>> import weft as torch
    >>> blocks = torch.nn.ModuleDict({"encode": torch.nn.Sequential()})
    >>> "encode" in blocks, list(blocks)
    (True, ['encode'])
    """

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Remove all modules."""
        self._modules.clear()

    def pop(self, key: str) -> Any:
        """Remove a module and return it."""
        return self._modules.pop(key)

    def keys(self) -> KeysView[str]:
        """Return the keys."""
        return self._modules.keys()

    def items(self) -> ItemsView[str, Any]:
        """Return the (key, module) pairs."""
        return self._modules.items()

    def values(self) -> ValuesView[Any]:
        """Return the modules."""
        return self._modules.values()

    def update(self, modules: Any) -> None:
        """Add or replace modules from a mapping or from (key, module) pairs."""
        for key, module in pairs(modules, "ModuleDict"):
            self[key] = module


def pairs(given: Any, name: str) -> list[tuple[str, Any]]:
    """Return the (key, value) pairs of the mapping or sequence of pairs that updates an object of class `name`.

    Raises: TypeError for anything else, ValueError for elements that are not pairs.
    """
    if not isinstance(given, Iterable):
        raise TypeError(
            f"{name}.update should be called with an iterable of key/value pairs, but got {type(given).__name__}"
        )
    if isinstance(given, (Mapping, ModuleDict)):
        return list(given.items())
    found = list(given)
    for i, pair in enumerate(found):
        if not isinstance(pair, Iterable):
            raise TypeError(
                f"{name} update sequence element #{i} should be Iterable; is {type(pair).__name__}"
            )
        if len(list(pair)) != 2:
            raise ValueError(
                f"{name} update sequence element #{i} has length {len(list(pair))}; 2 is required"
            )
    return [(key, value) for key, value in found]


class Container(Module):
    """A module whose children are keyword arguments. Deprecated, because a Module with attributes does the same."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__()
        warnings.warn(
            "nn.Container is deprecated. All of it's functionality is now implemented in nn.Module. Subclass that instead.",
            FutureWarning,
            stacklevel=user_level(),
        )
        for name, module in kwargs.items():
            self.add_module(name, module)
