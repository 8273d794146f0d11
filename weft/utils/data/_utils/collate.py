"""Collating: a list of items becomes one item with an additional first dimension."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

import numpy as np

from ....core.dtype import float64
from ....core.tensor import Tensor
from ....ops.assembly.joining import stack
from ....ops.creation.from_data import as_tensor, tensor

_Rules = dict[type | tuple[type, ...], Callable]

np_str_obj_array_pattern = re.compile(r"[SaUO]")
default_collate_err_msg_format = (
    "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"
)


def default_convert(data: Any) -> Any:
    """NumPy arrays and scalars as tensors, also within mappings and sequences; the rest as it is.

    >>> import numpy as np
    >>> from weft.utils.data import default_convert
    >>> default_convert({"x": np.array([1, 2]), "name": "a"})
    {'x': tensor([1, 2]), 'name': 'a'}
    """
    if isinstance(data, (Tensor, str, bytes)):
        return data
    if isinstance(data, (np.ndarray, np.generic)):
        is_text = isinstance(data, np.ndarray) and np_str_obj_array_pattern.search(data.dtype.str)
        return data if is_text else as_tensor(data)
    if isinstance(data, Mapping):
        return _mapping_like(data, {key: default_convert(data[key]) for key in data})
    if _is_namedtuple(data):
        return type(data)(*map(default_convert, data))
    if isinstance(data, tuple):
        return list(map(default_convert, data))
    if isinstance(data, Sequence):
        return _sequence_like(data, list(map(default_convert, data)))
    return data


def collate(batch: Any, *, collate_fn_map: _Rules | None = None) -> Any:
    """Collate by the rules of `collate_fn_map`: for a type, what makes one of a list of its instances.

    A rule is called with the list and `collate_fn_map=`. Mappings and sequences without a rule are collated entry by
    entry.

    Raises: TypeError for other types without a rule, RuntimeError if sequences differ in length.
    """
    first = batch[0]
    rule = _rule_for(first, collate_fn_map) if collate_fn_map is not None else None
    if rule is not None:
        return rule(batch, collate_fn_map=collate_fn_map)
    if isinstance(first, Mapping):
        return _mapping_like(first, _columns(first, batch, collate_fn_map))
    if _is_namedtuple(first):
        return type(first)(*(collate(column, collate_fn_map=collate_fn_map) for column in zip(*batch)))
    if isinstance(first, Sequence) and not isinstance(first, (str, bytes)):
        if any(len(item) != len(first) for item in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        transposed = [collate(column, collate_fn_map=collate_fn_map) for column in zip(*batch)]
        return transposed if isinstance(first, tuple) else _sequence_like(first, transposed)
    error = TypeError(default_collate_err_msg_format.format(type(first)))
    if first is None:
        error.add_note("The dataset gave None for an item: does its __getitem__ return?")
    raise error


def _columns(first: Mapping, batch: Any, rules: _Rules | None) -> dict:
    """The collated values of each key of `first`; errors get a note with the key."""
    columns = {}
    try:
        for key in first:
            columns[key] = collate([item[key] for item in batch], collate_fn_map=rules)
    except Exception as error:
        error.add_note(f"in the values of the key {key!r} of a batch of dicts")
        raise
    return columns


def _rule_for(item: Any, rules: _Rules) -> Callable | None:
    exact = rules.get(type(item))
    if exact is not None:
        return exact
    return next((rule for kind, rule in rules.items() if isinstance(item, kind)), None)


def _is_namedtuple(item: Any) -> bool:
    return isinstance(item, tuple) and hasattr(item, "_fields")


def _mapping_like(model: Any, values: dict) -> Any:
    """Return the values in a mapping of the type of `model`, if one can be made, with what else `model` knows."""
    try:
        if isinstance(model, MutableMapping):
            result = copy.copy(model)
            result.update(values)
            return result
        return type(model)(values)
    except TypeError:  # neither copied nor built from a dict
        return values


def _sequence_like(model: Any, values: list) -> Any:
    try:
        if isinstance(model, MutableSequence):
            result = copy.copy(model)
            for position, value in enumerate(values):
                result[position] = value
            return result
        return type(model)(values)
    except TypeError:  # neither copied nor built from a list, as range is not
        return values


def collate_tensor_fn(batch: Any, *, collate_fn_map: _Rules | None = None) -> Tensor:
    try:
        return stack(batch, 0)
    except RuntimeError as error:
        error.add_note(
            "Tensors of one batch have one shape: pad or crop them, in the dataset or in a collate_fn="
        )
        raise


def collate_numpy_array_fn(batch: Any, *, collate_fn_map: _Rules | None = None) -> Any:
    if np_str_obj_array_pattern.search(batch[0].dtype.str):
        raise TypeError(default_collate_err_msg_format.format(batch[0].dtype))
    return collate([as_tensor(item) for item in batch], collate_fn_map=collate_fn_map)


def collate_numpy_scalar_fn(batch: Any, *, collate_fn_map: _Rules | None = None) -> Tensor:
    return as_tensor(batch)


def collate_float_fn(batch: Any, *, collate_fn_map: _Rules | None = None) -> Tensor:
    return tensor(batch, dtype=float64)


def collate_int_fn(batch: Any, *, collate_fn_map: _Rules | None = None) -> Tensor:
    return tensor(batch)


def collate_str_fn(batch: Any, *, collate_fn_map: _Rules | None = None) -> Any:
    return batch


# Users add their types to it. The first entry that fits counts, unless the type itself has one.
default_collate_fn_map: _Rules = {
    Tensor: collate_tensor_fn,
    np.ndarray: collate_numpy_array_fn,
    (np.bool_, np.number, np.object_): collate_numpy_scalar_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}


def default_collate(batch: Any) -> Any:
    """One item of a list of items: tensors stacked, numbers as a tensor, mappings and sequences entry by entry.

    Raises: TypeError for what cannot be collated, RuntimeError if sizes differ.

    >>> from weft.utils.data import default_collate
    >>> default_collate([{"x": 1, "name": "a"}, {"x": 2, "name": "b"}])
    {'x': tensor([1, 2]), 'name': ['a', 'b']}
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)
