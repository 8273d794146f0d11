"""`as_sparse_gradcheck`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from weft.layouts.leaves import of_values


def as_sparse_gradcheck(gradcheck: Callable) -> Callable:
    """`gradcheck` of functions that take sparse tensors: it varies the values of those that require gradients.

    With `masked=True` these are the values of the entries. Without it, they are all elements, those without an entry included.
    """

    @functools.wraps(gradcheck)
    def gradcheck_with_sparse_support(func: Callable, inputs: Any, **options: Any) -> bool:
        inputs = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
        return gradcheck(*of_values(func, inputs, options.pop("masked", False)), **options)

    return gradcheck_with_sparse_support
