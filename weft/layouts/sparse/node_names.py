"""Defines PyTorch's names of autograd's nodes, for results of sparse functions.

A rule may consist of several steps, or of one step that other functions have, too. The last node gets the name of the public function.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ...core.layout import strided
from ...core.recording import tape
from ...core.tensor import Tensor


def name_nodes(result: Any, name: str, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Name the last node of the result, or of each result, after the public function `name`. Returns the result."""
    if isinstance(result, Tensor):
        if result._autograd is not None and (name.endswith("_") or not any(each is result for each in args)):
            named = _NODES.get(name)
            tape.rename_after(
                result, named(args, kwargs) if callable(named) else named or name.removesuffix("_")
            )
    elif type(result) is tuple:
        for each in result:
            name_nodes(each, name, args, kwargs)
    return result


def named(function: Callable) -> Callable:
    """Decorator for a public function that also makes sparse tensors of plain ones, which is no rule then."""

    @functools.wraps(function)
    def naming(*args: Any, **kwargs: Any) -> Any:
        return name_nodes(function(*args, **kwargs), function.__name__, args, kwargs)

    return naming


def _of_product(args: tuple, kwargs: dict[str, Any]) -> str:
    dims = [each.dim() for each in (*args, *kwargs.values()) if isinstance(each, Tensor)]
    return (
        "mm" if dims == [2, 2] else "bmm" if dims == [3, 3] else "mv" if sorted(dims) == [1, 2] else "matmul"
    )


def _of_sparse_product(args: tuple, kwargs: dict[str, Any]) -> str:
    is_dense = any(isinstance(each, Tensor) and each.layout is strided for each in (*args, *kwargs.values()))
    return "sparse_addmm" if is_dense else "sparse_sparse_matmul"


def _of_sum(args: tuple, kwargs: dict[str, Any]) -> str:
    return "sum" if len(args) < 2 and "dim" not in kwargs else "SumBackward1"


def _of_sparse_sum(args: tuple, kwargs: dict[str, Any]) -> str:
    return "sum" if len(args) < 2 and "dim" not in kwargs else "sparse_sum"


def _of_to_sparse(args: tuple, kwargs: dict[str, Any]) -> str:
    return "ToSparseBackward0" if len(args) > 1 or "sparse_dim" in kwargs else "ToSparseBackward1"


# Public function -> the function that names the node, where it is another one; a name of a node; or a function that gives one of them.
_NODES: dict[str, str | Callable[[tuple, dict[str, Any]], str]] = {
    "__getitem__": "select",
    "matmul": _of_product,
    "nn.functional.linear": "mm",
    "nn.functional.relu": "relu",
    "norm": "NormBackward1",
    "sparse_coo_tensor": "SparseCooTensorWithDimsAndTensorsBackward0",
    "rsub": "RsubBackward1",
    "sparse.addmm": "sparse_addmm",
    "sparse.mm": _of_sparse_product,
    "sparse.sum": _of_sparse_sum,
    "square": "pow",
    "sum": _of_sum,
    "to_sparse": _of_to_sparse,
    **dict.fromkeys("to type double float half bfloat16 int long short char byte bool".split(), "to_copy"),
}
