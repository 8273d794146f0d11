"""`rearrange`: transpose, split and merge named dims according to a pattern."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from ..core.tensor import Tensor
from ..ops.assembly.joining import stack

Group = list[str]


def rearrange(tensor: Any, pattern: str, **axes_lengths: int) -> Tensor:
    """Rearrange the dims of a tensor from the left side of `pattern` to the right side. (a b) is the merge of dims a and b.

    A list of tensors is stacked along a new first dim. `...` stands for any number of dims.

    Raises: ValueError if the pattern does not match the tensor.

    >>> import weft as torch
    >>> images = torch.zeros(2, 3, 4, 6)
    >>> torch.func.rearrange(images, "b c (h two) w -> b (c two) h w", two=2).shape
    torch.Size([2, 6, 2, 6])
    """
    if not isinstance(tensor, Tensor):
        tensor = stack(tuple(tensor))
    sides = pattern.split("->")
    if len(sides) != 2:
        raise ValueError(f"rearrange: the pattern {pattern!r} must have one '->'")
    left, right = (_groups(side, pattern) for side in sides)
    left, right = _without_ellipsis(left, right, tensor.dim(), pattern)
    names, wanted = [name for group in left for name in group], [name for group in right for name in group]
    if sorted(name for name in names if name != "1") != sorted(name for name in wanted if name != "1"):
        raise ValueError(f"rearrange: the sides of {pattern!r} must have the same names")
    if len(left) != tensor.dim():
        raise ValueError(
            f"rearrange: {pattern!r} is for {len(left)} dims, but the tensor has shape {list(tensor.shape)}"
        )
    unused = set(axes_lengths) - set(names)
    if unused:
        raise ValueError(
            f"rearrange: lengths of {sorted(unused)} are given, but {pattern!r} does not have them"
        )
    lengths = _lengths(left, tensor.shape, axes_lengths, pattern)
    kept = [name for name in names if name != "1"]
    split = tensor.reshape([lengths[name] for name in kept])
    order = [kept.index(name) for name in wanted if name != "1"]
    return split.permute(order).reshape(
        [math.prod(lengths[name] for name in group if name != "1") for group in right]
    )


def _groups(side: str, pattern: str) -> list[Group]:
    """The dims of one side of a pattern. Each is a list of the names that are merged."""
    groups: list[Group] = []
    inside = False
    for token in re.findall(r"\.\.\.|\w+|\S", side):
        if token in "()":
            if inside == (token == "("):
                raise ValueError(f"rearrange: the brackets of {pattern!r} do not match")
            inside = not inside
            if inside:
                groups.append([])
        elif token == "..." or token == "1" or token.isidentifier():
            if inside:
                groups[-1].append(token)
            else:
                groups.append([token])
        else:
            raise ValueError(f"rearrange: {token!r} in {pattern!r} is neither a name, nor 1, nor ...")
    if inside:
        raise ValueError(f"rearrange: the brackets of {pattern!r} do not match")
    names = [name for group in groups for name in group if name != "1"]
    if len(set(names)) != len(names):
        raise ValueError(f"rearrange: a name appears twice on one side of {pattern!r}")
    return groups


def _without_ellipsis(
    left: list[Group], right: list[Group], n_dims: int, pattern: str
) -> tuple[list[Group], list[Group]]:
    if ["..."] not in left:
        return left, right
    names = [f"...{i}" for i in range(n_dims - len(left) + 1)]
    at = left.index(["..."])
    left = [*left[:at], *([name] for name in names), *left[at + 1 :]]
    expanded: list[Group] = []
    for group in right:
        if group == ["..."]:
            expanded += [[name] for name in names]
        else:
            expanded.append([each for name in group for each in (names if name == "..." else [name])])
    return left, expanded


def _lengths(
    groups: Sequence[Group], shape: Sequence[int], given: dict[str, int], pattern: str
) -> dict[str, int]:
    """The size of each name. The size of one name of a group may follow from the others."""
    lengths = dict(given)
    for group, size in zip(groups, shape, strict=True):
        names = [name for name in group if name != "1"]
        unknown = [name for name in names if name not in lengths]
        known = math.prod(lengths[name] for name in names if name in lengths)
        if len(unknown) > 1:
            raise ValueError(f"rearrange: give the lengths of all but one of {unknown} in {pattern!r}")
        if unknown and known and size % known == 0:
            lengths[unknown[0]] = size // known
        elif unknown or known != size:
            raise ValueError(f"rearrange: a dim of size {size} is not made up of {names} in {pattern!r}")
    return lengths
