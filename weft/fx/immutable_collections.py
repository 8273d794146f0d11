"""Lists and dicts that cannot be changed: the arguments of a `Node`.

>>> immutable_list([1, 2]) + [3]
[1, 2, 3]
>>> immutable_list([1, 2]).append(3)  # doctest: +ELLIPSIS
Traceback (most recent call last):
TypeError: 'immutable_list' object does not support mutation...
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from ..core.pytree import MappingKey, SequenceKey, register_pytree_node

__all__ = ["immutable_dict", "immutable_list"]

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")


def _refusal(name: str) -> Callable[..., NoReturn]:
    def method(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError(
            f"{type(self).__name__!r} object does not support mutation. The arguments of a torch.fx.Node are fixed, "
            "because the graph keeps track of who uses whom. Build a changed copy of the arguments and assign it: "
            "node.args = (*node.args, new)."
        )

    method.__name__ = name
    return method


class immutable_list(list[T]):  # noqa: N801 (PyTorch's name)
    """A list whose methods that would change it raise TypeError. It hashes as the tuple of its elements."""

    __delitem__ = _refusal("__delitem__")  # type: ignore[assignment]
    __iadd__ = _refusal("__iadd__")  # type: ignore[assignment]
    __imul__ = _refusal("__imul__")  # type: ignore[assignment]
    __setitem__ = _refusal("__setitem__")  # type: ignore[assignment]
    append = _refusal("append")
    clear = _refusal("clear")
    extend = _refusal("extend")
    insert = _refusal("insert")
    pop = _refusal("pop")
    remove = _refusal("remove")
    reverse = _refusal("reverse")
    sort = _refusal("sort")  # type: ignore[assignment]

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))

    def __reduce__(self) -> Any:
        return (type(self), (tuple(self),))


class immutable_dict(dict[K, V]):  # noqa: N801 (PyTorch's name)
    """A dict whose methods that would change it raise TypeError. It hashes as the set of its items."""

    __delitem__ = _refusal("__delitem__")  # type: ignore[assignment]
    __ior__ = _refusal("__ior__")  # type: ignore[assignment]
    __setitem__ = _refusal("__setitem__")  # type: ignore[assignment]
    clear = _refusal("clear")
    pop = _refusal("pop")  # type: ignore[assignment]
    popitem = _refusal("popitem")
    setdefault = _refusal("setdefault")  # type: ignore[assignment]
    update = _refusal("update")  # type: ignore[assignment]

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> Any:
        return (type(self), (dict(self),))


def _flatten_list(values: list[Any]) -> tuple[list[Any], None]:
    return list(values), None


def _flatten_dict(values: dict[Any, Any]) -> tuple[list[Any], list[Any]]:
    return list(values.values()), list(values)


register_pytree_node(
    immutable_list,
    _flatten_list,
    lambda values, context: immutable_list(values),
    serialized_type_name="torch.fx.immutable_collections.immutable_list",
    flatten_with_keys_fn=lambda values: (
        [(SequenceKey(place), each) for place, each in enumerate(values)],
        None,
    ),
)
register_pytree_node(
    immutable_dict,
    _flatten_dict,
    lambda values, context: immutable_dict(zip(context, values, strict=True)),
    serialized_type_name="torch.fx.immutable_collections.immutable_dict",
    flatten_with_keys_fn=lambda values: (
        [(MappingKey(key), each) for key, each in values.items()],
        list(values),
    ),
)
