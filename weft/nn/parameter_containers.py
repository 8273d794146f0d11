"""Modules that hold parameters, in order or by key."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..autograd.parameter import Parameter
from ..core import device as places
from ..core.tensor import Tensor
from ..ops.tensor.predicates import typename
from .containers import pairs
from .module import Module, indented


class _Holder(Module):
    """The base of both containers. Tensors become Parameters, and other values stay as they are."""

    def _keep(self, name: str, value: Any) -> None:
        is_data = isinstance(value, Tensor) and not isinstance(value, Parameter)
        setattr(self, name, Parameter(value) if is_data else value)

    def _described(self, type_of: Any, values: Iterable[tuple[Any, Any]]) -> str:
        """Return one line for each value; `type_of(tensor)` names its type."""
        lines = []
        for name, value in values:
            if isinstance(value, Tensor):
                kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
                size = "x".join(map(str, value.shape))
                named = value.device.type in ("cuda", places.private_name)
                where = f" ({value.device})" if named else ""
                lines.append(f"  ({name}): {kind} containing: [{type_of(value)} of size {size}{where}]")
            else:
                lines.append(f"  ({name}): Object of type: {type(value).__name__}")
        lines += (f"({name}): {indented(repr(module))}" for name, module in self._modules.items())
        text = "\n".join(lines)
        return f"{self._get_name()}({text})" if len(lines) == 1 else self._in_lines(lines)

    def _in_lines(self, lines: list[str]) -> str:
        if not lines:
            return f"{self._get_name()}()"
        return f"{self._get_name()}(\n" + "".join(f"  {line}\n" for line in lines) + ")"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(f"{type(self).__name__} should not be called.")


class ParameterList(_Holder):
    """A list of parameters that belong to the module that holds the list; tensors in it become Parameters.

    >>> import weft as torch
    >>> torch.nn.ParameterList([torch.ones(2), torch.ones(2, 3)])
    ParameterList(
        (0): Parameter containing: [torch.float32 of size 2]
        (1): Parameter containing: [torch.float32 of size 2x3]
    )
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return iter(self[i] for i in range(len(self)))

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, slice):
            return type(self)(list(self)[idx])
        return getattr(self, self._name(idx))

    def __setitem__(self, idx: int, param: Any) -> None:
        self._keep(self._name(idx), param)

    def _name(self, index: Any) -> str:
        index = operator.index(index)
        if not -len(self) <= index < len(self):
            raise IndexError(f"index {index} is out of range")
        return str(index % len(self))

    def append(self, value: Any) -> ParameterList:
        """Add a parameter at the end."""
        self._size += 1
        self[-1] = value
        return self

    def extend(self, values: Iterable[Any]) -> ParameterList:
        """Add parameters at the end. Raises: TypeError for anything that is not a collection of them."""
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            raise TypeError(
                f"ParameterList.extend should be called with an iterable, but got {type(values).__name__}"
            )
        for value in list(values):
            self.append(value)
        return self

    def __iadd__(self, parameters: Iterable[Any]) -> ParameterList:
        return self.extend(parameters)

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.isdigit()]

    def __repr__(self) -> str:
        return self._described(lambda tensor: tensor.dtype, enumerate(self))


class ParameterDict(_Holder):
    """A dictionary of parameters that belong to the module that holds it; tensors in it become Parameters.

    >>> import weft as torch
    >>> scales = torch.nn.ParameterDict({"x": torch.ones(1)})
    >>> "x" in scales, len(scales)
    (True, 1)
    """

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def __getitem__(self, key: str) -> Any:
        return getattr(self, _attribute(key))

    def __setitem__(self, key: str, value: Any) -> None:
        self._keep(_attribute(key), value)
        self._keys[key] = None

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, _attribute(key))

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._keys)

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def clear(self) -> None:
        """Remove all parameters."""
        for key in list(self):
            del self[key]

    def pop(self, key: str) -> Any:
        """Remove a parameter and return it."""
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Remove the last (key, parameter) and return it."""
        key = next(reversed(self))
        return key, self.pop(key)

    def get(self, key: str, default: Any = None) -> Any:
        """Return the parameter of a key, or `default` if there is none."""
        return self[key] if key in self else default

    def setdefault(self, key: str, default: Any = None) -> Any:
        """Return the parameter of a key; if there is none, set it to `default` first."""
        if key not in self:
            self[key] = default
        return self[key]

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """Return a new ParameterDict with one value for all keys."""
        return ParameterDict((key, default) for key in keys)

    def copy(self) -> ParameterDict:
        """Return a new ParameterDict with the same parameters."""
        return ParameterDict(self.items())

    def keys(self) -> Any:
        """Return the keys."""
        return self._keys.keys()

    def items(self) -> Iterable[tuple[str, Any]]:
        """Return the (key, parameter) pairs."""
        return ((key, self[key]) for key in self)

    def values(self) -> Iterable[Any]:
        """Return the parameters."""
        return (self[key] for key in self)

    def update(self, parameters: Any) -> None:
        """Add or replace parameters from a mapping or from (key, parameter) pairs.

        A mapping that is not an OrderedDict or ParameterDict is taken in the order of its sorted keys.
        """
        if isinstance(parameters, ParameterDict):
            parameters = parameters.items()
        sort = isinstance(parameters, Mapping) and not isinstance(parameters, OrderedDict)
        found = pairs(parameters, "ParameterDict")
        for key, value in sorted(found, key=operator.itemgetter(0)) if sort else found:
            self[key] = value

    def __or__(self, other: ParameterDict) -> ParameterDict:
        result = self.copy()
        result.update(other)
        return result

    def __ror__(self, other: ParameterDict) -> ParameterDict:
        result = ParameterDict(other)
        result.update(self)
        return result

    def __ior__(self, other: ParameterDict) -> ParameterDict:
        self.update(other)
        return self

    def __repr__(self) -> str:
        return self._described(typename, self.items())


def _attribute(key: Any) -> str:
    """Return the name of the attribute that holds the value of a key. Raises: TypeError for anything but a string."""
    if not isinstance(key, str):
        raise TypeError(
            "Index given to ParameterDict cannot be used as a key as it is not a string "
            f"(type is '{type(key).__name__}'). Open an issue on github if you need non-string keys."
        )
    return key
