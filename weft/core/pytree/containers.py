"""Python's own containers as nodes. Classes that extend them (ordered outputs of models, say) register these functions."""

from __future__ import annotations

import importlib
import json
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Iterable
from typing import Any

from ..size import Size
from .key_paths import GetAttrKey, MappingKey, SequenceKey
from .nodes import Context, DumpableContext, register_pytree_node


def _tuple_flatten(d: tuple) -> tuple[list, Context]:
    return list(d), None


def _tuple_flatten_with_keys(d: Iterable) -> tuple[list, Context]:
    return [(SequenceKey(index), child) for index, child in enumerate(d)], None


def _tuple_unflatten(values: Iterable, context: Context) -> tuple:
    return tuple(values)


def _list_flatten(d: list) -> tuple[list, Context]:
    return d, None


_list_flatten_with_keys = _tuple_flatten_with_keys


def _list_unflatten(values: Iterable, context: Context) -> list:
    return list(values)


def _deque_flatten(d: deque) -> tuple[list, Context]:
    return list(d), d.maxlen


def _deque_flatten_with_keys(d: deque) -> tuple[list, Context]:
    return _tuple_flatten_with_keys(d)[0], d.maxlen


def _deque_unflatten(values: Iterable, context: Context) -> deque:
    return deque(values, maxlen=context)


def _dict_flatten(d: dict) -> tuple[list, Context]:
    return list(d.values()), list(d)


def _dict_flatten_with_keys(d: dict) -> tuple[list, Context]:
    return [(MappingKey(key), child) for key, child in d.items()], list(d)


def _dict_unflatten(values: Iterable, context: Context) -> dict:
    return dict(zip(context, values))


_ordereddict_flatten = _odict_flatten = _dict_flatten
_ordereddict_flatten_with_keys = _dict_flatten_with_keys


def _ordereddict_unflatten(values: Iterable, context: Context) -> OrderedDict:
    return OrderedDict(zip(context, values))


_odict_unflatten = _ordereddict_unflatten


def _defaultdict_flatten(d: defaultdict) -> tuple[list, Context]:
    return list(d.values()), [d.default_factory, list(d)]


def _defaultdict_flatten_with_keys(d: defaultdict) -> tuple[list, Context]:
    return _dict_flatten_with_keys(d)[0], [d.default_factory, list(d)]


def _defaultdict_unflatten(values: Iterable, context: Context) -> defaultdict:
    factory, keys = context
    return defaultdict(factory, zip(keys, values))


def _defaultdict_serialize(context: Context) -> DumpableContext:
    factory, keys = context
    return {
        "default_factory_module": factory.__module__,
        "default_factory_name": factory.__qualname__,
        "dict_context": keys,
    }


def _defaultdict_deserialize(dumped: DumpableContext) -> Context:
    module = importlib.import_module(dumped["default_factory_module"])
    return [getattr(module, dumped["default_factory_name"]), dumped["dict_context"]]


def _namedtuple_flatten(d: Any) -> tuple[list, Context]:
    return list(d), type(d)


def _namedtuple_flatten_with_keys(d: Any) -> tuple[list, Context]:
    return [(GetAttrKey(name), child) for name, child in zip(d._fields, d)], type(d)


def _namedtuple_unflatten(values: Iterable, context: Context) -> Any:
    return context(*values)


def _namedtuple_serialize(context: Context) -> DumpableContext:
    raise NotImplementedError(f"Can't serialize TreeSpec of namedtuple class {context}")


register_pytree_node(
    tuple,
    _tuple_flatten,
    _tuple_unflatten,
    serialized_type_name="builtins.tuple",
    flatten_with_keys_fn=_tuple_flatten_with_keys,
)
register_pytree_node(
    list,
    _list_flatten,
    _list_unflatten,
    serialized_type_name="builtins.list",
    flatten_with_keys_fn=_list_flatten_with_keys,
)
register_pytree_node(
    Size,
    _tuple_flatten,
    _tuple_unflatten,  # they need not be sizes any more
    serialized_type_name="torch.Size",
    flatten_with_keys_fn=_tuple_flatten_with_keys,
)
register_pytree_node(
    deque,
    _deque_flatten,
    _deque_unflatten,
    serialized_type_name="collections.deque",
    flatten_with_keys_fn=_deque_flatten_with_keys,
)
register_pytree_node(
    dict,
    _dict_flatten,
    _dict_unflatten,
    serialized_type_name="builtins.dict",
    flatten_with_keys_fn=_dict_flatten_with_keys,
)
register_pytree_node(
    OrderedDict,
    _ordereddict_flatten,
    _ordereddict_unflatten,
    serialized_type_name="collections.OrderedDict",
    flatten_with_keys_fn=_ordereddict_flatten_with_keys,
)
register_pytree_node(
    defaultdict,
    _defaultdict_flatten,
    _defaultdict_unflatten,
    serialized_type_name="collections.defaultdict",
    to_dumpable_context=_defaultdict_serialize,
    from_dumpable_context=_defaultdict_deserialize,
    flatten_with_keys_fn=_defaultdict_flatten_with_keys,
)
register_pytree_node(
    namedtuple,  # type: ignore[arg-type]
    _namedtuple_flatten,
    _namedtuple_unflatten,
    serialized_type_name="collections.namedtuple",
    to_dumpable_context=_namedtuple_serialize,
    from_dumpable_context=json.loads,
    flatten_with_keys_fn=_namedtuple_flatten_with_keys,
)
