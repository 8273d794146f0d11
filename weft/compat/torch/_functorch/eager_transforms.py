"""Transforms of functions."""

from typing import Any

from weft.func import functionalize, grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize, vjp
from weft.func.transforms import chosen

__all__ = [
    "functionalize", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize", "vjp",
]  # fmt: skip


def _slice_argnums(args: tuple, argnums: int | tuple[int, ...], as_tuple: bool = True) -> Any:
    """The arguments at the positions `argnums`; one position gives a tuple of one, or with as_tuple=False the argument itself.

    >>> _slice_argnums(("a", "b", "c"), (0, -1))
    ('a', 'c')
    """
    found = tuple(args[position] for position in chosen(args, argnums))
    return found if as_tuple or not isinstance(argnums, int) else found[0]
