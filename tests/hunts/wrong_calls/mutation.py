"""Wrong arguments from right ones: one or two leaves of a call are replaced."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .calls import Array, Call, array_of, contiguous, numpy_dtype

HUGE = 2**62
DTYPES = ("bool", "uint8", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64")


def mutant(call: Call, random: random.Random) -> Call | None:
    """The call with one or two arguments replaced; None if there is nothing to replace."""
    places = list(_places(call))
    if not places:
        return None
    chosen = random.sample(places, min(len(places), random.choice((1, 1, 1, 2))))
    changes: list[str] = []
    for place in chosen:
        if changes and any(
            place[: len(other)] == other[: len(place)] for other in chosen if other is not place
        ):
            continue  # one is a part of the other
        old = _get(call, place)
        found = _other(old, random)
        if found is None:
            continue
        text, new = found
        call = _put(call, place, new)
        changes.append(f"{'.'.join(map(str, place))}: {text}")
    return dataclasses.replace(call, change="; ".join(changes)) if changes else None


def _places(call: Call) -> Iterator[tuple]:
    for part in ("args", "kwargs", "inputs"):
        yield from _leaves(getattr(call, part), (part,))


def _leaves(value: Any, path: tuple) -> Iterator[tuple]:
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _leaves(item, (*path, name))
    elif isinstance(value, (tuple, list)):
        if len(path) > 1:
            yield path
        for place, item in enumerate(value):
            yield from _leaves(item, (*path, place))
    elif len(path) > 1 and isinstance(value, (Array, bool, int, float, complex, str, type(None))):
        yield path


def _get(call: Call, path: tuple) -> Any:
    value = getattr(call, path[0])
    for key in path[1:]:
        value = value[key]
    return value


def _put(call: Call, path: tuple, new: Any) -> Call:
    return dataclasses.replace(call, **{path[0]: _with(getattr(call, path[0]), path[1:], new)})


def _with(value: Any, path: tuple, new: Any) -> Any:
    if not path:
        return new
    key, *rest = path
    if isinstance(value, dict):
        return {**value, key: _with(value[key], tuple(rest), new)}
    items = list(value)
    items[key] = _with(items[key], tuple(rest), new)
    return tuple(items) if isinstance(value, tuple) else items


def _other(old: Any, random: random.Random) -> tuple[str, Any] | None:
    if isinstance(old, Array):
        return _other_tensor(old, random)
    if isinstance(old, bool):
        return _plain(random.choice((None, 2, 0.5, "a", not old)))
    if isinstance(old, int):
        choices = (float(old), old + 0.5, None, -1, -old - 1, old + 1, 0, HUGE, -HUGE, 2**31, True, "a")
        return _plain(random.choice(choices))
    if isinstance(old, (float, complex)):
        return _plain(random.choice((None, float("nan"), float("inf"), -1.0, 0.0, -float("inf"), "a", 1e300)))
    if isinstance(old, str):
        return _plain(random.choice((None, "", "nonsense", 1)))
    if old is None:
        return _plain(random.choice((0, -1, 1.5, HUGE, "a")))
    if isinstance(old, (tuple, list)):
        return _other_sequence(old, random)
    return None


def _plain(value: Any) -> tuple[str, Any]:
    return repr(value), value


def _other_sequence(old: Any, random: random.Random) -> tuple[str, Any] | None:
    kind = type(old)
    if hasattr(old, "_fields"):
        return None
    ways: tuple[tuple[str, Callable], ...] = (
        ("empty", lambda: kind()),
        ("one more", lambda: kind([*old, *old[-1:]])),
        ("one less", lambda: kind(old[:-1])),
        ("None", lambda: None),
        ("its first item", lambda: old[0] if old else 0),
    )
    text, make = random.choice(ways)
    return text, make()


def _other_tensor(old: Array, random: random.Random) -> tuple[str, Any] | None:
    if old.dtype == "complex32":
        return None
    ways = list(_TENSOR)
    if old.dtype in ("int64", "int32"):
        ways += [_out_of_range] * 6
    return random.choice(ways)(old, random)


def _zero_dim(old: Array, random: random.Random):
    values = old.values().reshape(-1)
    value = values[:1].reshape(()) if values.size else np.zeros((), numpy_dtype(old.dtype))
    return "0-dim", array_of(value, old.dtype, old.requires_grad)


def _empty(old: Array, random: random.Random):
    shape = list(old.shape)
    if shape and random.random() < 0.7:
        shape[random.randrange(len(shape))] = 0
    else:
        shape = [0]
    return f"empty {shape}", array_of(np.zeros(shape, numpy_dtype(old.dtype)), old.dtype, old.requires_grad)


def _wrong_size(old: Array, random: random.Random):
    if not old.shape:
        return _more_dims(old, random)
    shape = list(old.shape)
    dim = random.randrange(len(shape))
    shape[dim] = max(shape[dim] + random.choice((-1, 1, 1, 2)), 0)
    return f"shape {shape}", array_of(np.resize(old.values(), shape), old.dtype, old.requires_grad)


def _more_dims(old: Array, random: random.Random):
    values = np.expand_dims(old.values(), random.randint(0, len(old.shape)))
    if random.random() < 0.4:
        values = np.repeat(values, 2, values.shape.index(1))
    return f"shape {list(values.shape)}", array_of(values, old.dtype, old.requires_grad)


def _fewer_dims(old: Array, random: random.Random):
    if not old.shape or not old.shape[0]:
        return _more_dims(old, random)
    dim = random.randrange(len(old.shape))
    if not old.shape[dim]:
        return _more_dims(old, random)
    return f"without dim {dim}", array_of(old.values().take(0, dim), old.dtype, old.requires_grad)


def _wrong_dtype(old: Array, random: random.Random):
    dtype = random.choice([each for each in DTYPES if each != old.dtype])
    values = old.values()
    if not dtype.startswith("complex") and values.dtype.kind == "c":
        values = values.real
    if dtype[0] in "uib":
        values = np.nan_to_num(values.astype(np.float64 if values.dtype.kind not in "iub" else values.dtype))
    with np.errstate(all="ignore"):
        values = values.astype(numpy_dtype(dtype))
    grad = old.requires_grad and dtype[0] in "fbc" and dtype != "bool"
    return dtype, array_of(values, dtype, grad)


def _other_strides(old: Array, random: random.Random):
    values = old.values()
    if not values.size or not values.shape:
        return None
    if random.random() < 0.5:
        order = random.sample(range(values.ndim), values.ndim)
        memory = np.ascontiguousarray(values.transpose(order))
        strides = [0] * values.ndim
        for dim, step in zip(order, contiguous(memory.shape), strict=True):
            strides[dim] = step
        data, stride, offset = memory.tobytes(), tuple(strides), 0
    else:  # with gaps
        wide = np.zeros((*values.shape[:-1], values.shape[-1] * 2 + 1), values.dtype)
        wide[..., 1::2] = values
        stride = tuple(
            step * (2 if dim == values.ndim - 1 else 1) for dim, step in enumerate(contiguous(wide.shape))
        )
        data, offset = wide.tobytes(), 1
        last = offset + sum((size - 1) * step for size, step in zip(values.shape, stride, strict=True))
        data = data[: (last + 1) * values.itemsize]  # the last element is the last of its memory
    return f"strides {stride}", Array(old.dtype, old.shape, stride, offset, data, old.requires_grad)


def _expanded(old: Array, random: random.Random):
    if not old.shape or 0 in old.shape:
        return None
    dim = random.randrange(len(old.shape))
    one = np.ascontiguousarray(old.values().take([0], dim))
    stride = [0 if k == dim else step for k, step in enumerate(contiguous(one.shape))]
    return f"expanded dim {dim}", Array(
        old.dtype, old.shape, tuple(stride), 0, one.tobytes(), old.requires_grad
    )


def _overlapping(old: Array, random: random.Random):
    if len(old.shape) < 2 or 0 in old.shape:
        return None
    length = 1 + sum(size - 1 for size in old.shape)
    memory = np.resize(old.values().reshape(-1), length)
    stride = (1,) * len(old.shape)
    return "overlapping", Array(old.dtype, old.shape, stride, 0, memory.tobytes(), old.requires_grad)


def _no_tensor(old: Array, random: random.Random):
    values = old.values()
    return (
        _plain(random.choice((None, 1, 2.5, "a", values.reshape(-1)[:2].astype(np.float64).tolist())))
        if values.dtype.kind not in "cV"
        else _plain(None)
    )


def _grad(old: Array, random: random.Random):
    if old.dtype[0] not in "fbc" or old.dtype == "bool":
        return None
    return "requires_grad", dataclasses.replace(old, requires_grad=not old.requires_grad)


def _out_of_range(old: Array, random: random.Random):
    values = np.array(old.values())
    if not values.size:
        return _zero_dim(old, random)
    largest = 2**31 - 1 if old.dtype == "int32" else HUGE
    bad = random.choice((-1, -2, int(values.max()) + 1, 5, 1000, largest, -largest))
    values.reshape(-1)[random.randrange(values.size)] = bad
    return f"with index {bad}", array_of(values, old.dtype)


_TENSOR: tuple[Callable, ...] = (
    _zero_dim, _empty, _empty, _wrong_size, _wrong_size, _wrong_size, _more_dims, _fewer_dims, _wrong_dtype,
    _wrong_dtype, _other_strides, _other_strides, _expanded, _overlapping, _no_tensor, _grad,
)  # fmt: skip
