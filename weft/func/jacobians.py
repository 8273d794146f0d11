"""Jacobians and Hessians: one row by a pullback each, or one column by a pushforward each."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..core.layout import contiguous_format
from ..core.registry import FUNCTIONS
from ..core.tensor import Tensor
from ..utils._pytree import tree_flatten, tree_unflatten
from .transforms import chosen, jvp, vjp, with_arguments


def _basis(tensor: Tensor) -> Any:
    """Contiguous tensors of its shape with a single 1, one for each element."""
    for position in range(tensor.numel()):
        one = FUNCTIONS["zeros_like"](tensor.detach(), memory_format=contiguous_format)
        one.view(-1)[position] = 1
        yield one


def jacrev(
    func: Callable,
    argnums: int | tuple[int, ...] = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Callable:
    """A function that returns the Jacobian, of shape [*output, *input], row by row in reverse mode.

    >>> import weft as torch
    >>> torch.func.jacrev(lambda x: x * x)(torch.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        positions = chosen(args, argnums)
        picked = tuple(args[k] for k in positions)

        def inner(*values: Any) -> Any:
            return func(*with_arguments(args, positions, values), **kwargs)

        output, pull, *aux = vjp(inner, *picked, has_aux=has_aux)
        outputs, structure = tree_flatten(output)
        rows = []
        for index, y in enumerate(outputs):
            found = []
            for one in _basis(y):
                cts = [
                    one if k == index else FUNCTIONS["zeros_like"](z.detach()) for k, z in enumerate(outputs)
                ]
                found.append(pull(tree_unflatten(cts, structure)))
            rows.append(_stacked(found, y.shape, picked))
        result = tree_unflatten([each[0] if isinstance(argnums, int) else each for each in rows], structure)
        return (result, aux[0]) if has_aux else result

    return wrapper


def _stacked(rows: list, shape: Any, inputs: tuple) -> tuple:
    """Rows, each a tuple of pytrees like `inputs`, as one pytree whose tensors begin with the dims of `shape`."""
    leaves, structure = tree_flatten(inputs)
    columns = list(zip(*[tree_flatten(tuple(row))[0] for row in rows], strict=True)) if rows else []
    stack = FUNCTIONS["stack"]
    found = [
        stack(columns[k]).reshape(*shape, *x.shape) if rows else x.new_zeros(*shape, *x.shape)
        for k, x in enumerate(leaves)
    ]
    return tree_unflatten(found, structure)


def jacfwd(
    func: Callable,
    argnums: int | tuple[int, ...] = 0,
    has_aux: bool = False,
    *,
    randomness: str = "error",
    chunk_size: int | None = None,
) -> Callable:
    """A function that returns the Jacobian, of shape [*output, *input], column by column in forward mode.

    >>> import weft as torch
    >>> torch.func.jacfwd(lambda x: x * x)(torch.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        positions = chosen(args, argnums)
        inputs, in_structure = tree_flatten(tuple(args[k] for k in positions))

        def inner(*values: Any) -> Any:
            picked = tree_unflatten(list(values), in_structure)
            return func(*with_arguments(args, positions, picked), **kwargs)

        aux: list = []
        by_input = []  # for each input, for each output: the Jacobian
        structure: Any = None
        for index, x in enumerate(inputs):
            columns = []
            for one in _basis(x):
                tangents = tuple(
                    one if k == index else FUNCTIONS["zeros_like"](z.detach()) for k, z in enumerate(inputs)
                )
                _, pushed, *aux = jvp(inner, tuple(inputs), tangents, has_aux=has_aux)
                leaves, structure = tree_flatten(pushed)
                columns.append(leaves)
            stack = FUNCTIONS["stack"]
            by_input.append(
                [stack(each, -1).reshape(*each[0].shape, *x.shape) for each in zip(*columns, strict=True)]
            )
        by_output = []
        for each in zip(*by_input, strict=True):
            tree = tree_unflatten(list(each), in_structure)
            by_output.append(tree[0] if isinstance(argnums, int) else tuple(tree))
        result = tree_unflatten(by_output, structure)
        return (result, aux[0]) if has_aux else result

    return wrapper


def hessian(func: Callable, argnums: int | tuple[int, ...] = 0) -> Callable:
    """A function that returns the matrix of second derivatives, forward over reverse.

    >>> import weft as torch
    >>> torch.func.hessian(lambda x: (x**3).sum())(torch.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)
