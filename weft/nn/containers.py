"""Modules that hold other modules, or parameters, in order or by key."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from .module import Module, block, indented


class _Ordered(Module):
    """Modules by position. The names of its children are '0', '1' and so on, unless they were given."""

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def _name(self, index: Any) -> str:
        """The name of the child at a position. Raises: IndexError if there is none."""
        index = operator.index(index)
        size = len(self)
        if not -size <= index < size:
            raise IndexError(f"index {index} is out of range")
        return next(islice(self._modules, index % size, None))

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.isdigit()]


class Sequential(_Ordered):
    """Modules called one after the other, each with the output of the one before.

    They are given in order, or as one OrderedDict that names them.

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

    def forward(self, input: Any) -> Any:
        for module in self._modules.values():
            input = module(input)  # type: ignore[misc]
        return input

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(OrderedDict(list(self._modules.items())[index]))
        return self._modules[self._name(index)]

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, self._name(index), module)

    def __delitem__(self, index: Any) -> None:
        names = list(self._modules)[index] if isinstance(index, slice) else [self._name(index)]
        for name in names:
            delattr(self, name)
        # The others move up.
        self._modules = {str(i): module for i, module in enumerate(self._modules.values())}

    def append(self, module: Module) -> Sequential:
        """Add a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self, sequential: Iterable[Module]) -> Sequential:
        """Add the modules of another Sequential at the end."""
        for module in sequential:
            self.append(module)
        return self

    def insert(self, index: int, module: Module) -> Sequential:
        """Add a module before position `index`, which may be the length.

        Raises: IndexError if there is no such position, AssertionError if it is no Module.
        """
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        size = len(self)
        if not -size <= index <= size:
            raise IndexError(f"Index out of range: {index}")
        modules = list(self._modules.values())
        modules.insert(index, module)
        self._modules = {str(i): each for i, each in enumerate(modules)}
        return self

    def pop(self, key: Any) -> Module:
        """Take a module out, and give it."""
        module = self[key]
        del self[key]
        return module

    def __add__(self, other: Any) -> Sequential:
        if not isinstance(other, Sequential):
            raise ValueError(
                f"add operator supports only objects of Sequential class, but {type(other)} is given."
            )
        return Sequential(*self, *other)

    def __iadd__(self, other: Any) -> Sequential:
        if not isinstance(other, Sequential):
            raise ValueError(
                f"add operator supports only objects of Sequential class, but {type(other)} is given."
            )
        return self.extend(list(other))

    def __mul__(self, other: int) -> Sequential:
        return Sequential(*self._times(other))

    __rmul__ = __mul__

    def __imul__(self, other: int) -> Sequential:
        modules = self._times(other)
        return self.extend(modules[len(self) :])

    def _times(self, count: Any) -> list[Module]:
        if not isinstance(count, int):
            raise TypeError(f"unsupported operand type(s) for *: {type(self)} and {type(count)}")
        if count <= 0:
            raise ValueError(f"Non-positive multiplication factor {count} for {type(self)}")
        return list(self) * count


class ModuleList(_Ordered):
    """A list of modules, which are found by `parameters()` and the like.

    >>> import weft as torch
    >>> layers = torch.nn.ModuleList([torch.nn.Sequential(), torch.nn.Sequential()])
    >>> layers
    ModuleList(
      (0-1): 2 x Sequential()
    )
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self += modules

    def _name(self, index: Any) -> str:
        index = operator.index(index)
        if not -len(self) <= index < len(self):
            raise IndexError(f"index {index} is out of range")
        return str(index % len(self))

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(list(self._modules.values())[index])  # type: ignore[arg-type]
        return self._modules[self._name(index)]

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, self._name(index), module)

    def __delitem__(self, index: Any) -> None:
        modules = list(self._modules.values())
        del modules[index if isinstance(index, slice) else int(self._name(index))]
        self._modules = {str(i): module for i, module in enumerate(modules)}

    def __iadd__(self, modules: Iterable[Module]) -> ModuleList:
        return self.extend(modules)

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        combined = ModuleList()
        for i, module in enumerate([*self, *other]):
            combined.add_module(str(i), module)
        return combined

    def append(self, module: Module) -> ModuleList:
        """Add a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> ModuleList:
        """Add modules at the end. Raises: TypeError for anything that cannot be iterated over."""
        if not isinstance(modules, Iterable):
            raise TypeError(
                f"ModuleList.extend should be called with an iterable, but got {type(modules).__name__}"
            )
        for module in list(modules):
            self.append(module)
        return self

    def insert(self, index: int, module: Module) -> None:
        """Add a module before position `index`."""
        modules = list(self._modules.values())
        modules.insert(index, module)
        self._modules = {}
        for i, each in enumerate(modules):
            self.add_module(str(i), each)

    def pop(self, key: Any) -> Module:
        """Take a module out, and give it."""
        module = self[key]
        del self[key]
        return module

    def __repr__(self) -> str:
        groups: list[list[Any]] = []  # of neighbours that print alike: [first, last, text]
        for i, module in enumerate(self):
            text = repr(module)
            if groups and groups[-1][2] == text:
                groups[-1][1] = i
            else:
                groups.append([i, i, text])
        if not groups:
            return f"{self._get_name()}()"
        return block(self._get_name(), [_group(*group) for group in groups])


def _group(first: int, last: int, text: str) -> str:
    if first == last:
        return f"({first}): {indented(text)}"
    return f"({first}-{last}): {last - first + 1} x {indented(text)}"
