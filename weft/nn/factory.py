"""The keyword arguments with which layers create their parameters."""

from __future__ import annotations

from typing import Any

_NAMES = ("device", "dtype", "memory_format")


def factory_kwargs(kwargs: dict[str, Any] | None) -> dict[str, Any]:
    """Return the arguments of `kwargs` that functions such as `torch.empty` take: device, dtype and memory_format.

    They may also lie in a dict `kwargs["factory_kwargs"]`.
    Raises: TypeError for other names, and for a name in both places.

    >>> factory_kwargs({"device": "cpu", "factory_kwargs": {"dtype": None}})
    {'dtype': None, 'device': 'cpu'}
    """
    given = dict(kwargs or {})
    found = dict(given.pop("factory_kwargs", {}))
    unknown = given.keys() - set(_NAMES)
    if unknown:
        raise TypeError(f"unexpected kwargs {unknown}: expected some of {', '.join(_NAMES)}")
    for name, value in given.items():
        if name in found:
            raise TypeError(f"{name} specified twice, in **kwargs and in factory_kwargs")
        found[name] = value
    return found
