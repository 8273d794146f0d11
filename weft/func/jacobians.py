"""Jacobians and Hessians: `jacrev` computes all rows by one batched vjp, `jacfwd` all columns by one batched jvp."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..core.grad_mode import enable_grad
from ..core.pytree import tree_flatten, tree_unflatten
from ..core.tensor import Tensor
from ..ops.creation.creation import eye, zeros_like
from .batching import vmap
from .running import running
from .transforms import (
    VJP,
    check_outputs,
    chosen,
    jvp,
    like_inputs,
    needs_graph,
    pullback,
    released,
    split_aux,
    stand_ins,
    with_arguments,
)


def _basis(tensor: Tensor) -> Tensor:
    """Return a batch of contiguous tensors of its shape with a single 1, one for each element."""
    spec = tensor.spec
    return eye(spec.numel, dtype=spec.dtype, device=spec.device).reshape(spec.numel, *spec.shape)


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

    if chunk_size is not None and chunk_size <= 0:
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        positions = chosen(args, argnums)
        picked = tuple(args[k] for k in positions)

        def inner(*values: Any) -> Any:
            return func(*with_arguments(args, positions, values), **kwargs)

        with running() as start, enable_grad():
            values, inputs = stand_ins(list(picked))
            output, aux = split_aux(VJP, inner(*values), has_aux)
        outputs, structure = tree_flatten(output)
        check_outputs(VJP, outputs)
        recording = needs_graph(outputs, inputs)
        rows = []
        for y in outputs:

            def row(ct: Tensor, y: Tensor = y) -> tuple:
                return tuple(pullback([y], inputs, [ct], recording))

            found = vmap(row, chunk_size=chunk_size)(_basis(y)) if y.numel() else _no_rows(inputs)
            shaped = [each.reshape(*y.shape, *x.shape) for each, x in zip(found, inputs, strict=True)]
            columns = like_inputs(values, inputs, shaped)
            rows.append(columns[0] if isinstance(argnums, int) else tuple(columns))
        result, aux = released((tree_unflatten(rows, structure), aux), inputs, start)
        return (result, aux) if has_aux else result

    return wrapper


def _no_rows(inputs: list[Tensor]) -> list[Tensor]:
    return [x.new_zeros(0, *x.shape) for x in inputs]


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

        aux: Any = None
        by_input = []  # by_input[input][output] is the Jacobian
        structure: Any = None
        for index, x in enumerate(inputs):

            def column(tangent: Tensor, index: int = index) -> tuple:
                nonlocal structure
                tangents = tuple(
                    tangent if k == index else zeros_like(z.detach()) for k, z in enumerate(inputs)
                )
                _, pushed, *rest = jvp(inner, tuple(inputs), tangents, has_aux=has_aux)
                leaves, structure = tree_flatten(pushed)
                return tuple(leaves), (rest[0] if has_aux else None)

            pushed, aux = vmap(column, out_dims=(-1, None), randomness=randomness, chunk_size=chunk_size)(
                _basis(x)
            )
            by_input.append([each.reshape(*each.shape[:-1], *x.shape) for each in pushed])
        by_output = []
        for each in zip(*by_input, strict=True):
            tree = tree_unflatten(list(each), in_structure)
            by_output.append(tree[0] if isinstance(argnums, int) else tuple(tree))
        result = tree_unflatten(by_output, structure)
        return (result, aux) if has_aux else result

    return wrapper


def hessian(func: Callable, argnums: int | tuple[int, ...] = 0) -> Callable:
    """A function that returns the matrix of second derivatives, forward over reverse.

    >>> import weft as torch
    >>> torch.func.hessian(lambda x: (x**3).sum())(torch.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)
