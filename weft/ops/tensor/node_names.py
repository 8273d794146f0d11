"""PyTorch's names of the nodes in autograd's graph, where they do not follow from the name of the op.

A row states such a name as `node_name`. PyTorch numbers the overloads of a function, so the name may depend on the arguments:
`by_operand` and `by_dims` make functions that choose it. `with_node_name` is for functions that consist of several ops.
"""

from __future__ import annotations

from collections.abc import Callable

from ...core.recording import tape
from ...core.tensor import Tensor, end_view


def by_operand(number: str, tensor: str, position: int = 1) -> Callable:
    """The name is `number` or `tensor`, by the kind of the operand at `position`."""
    return lambda inputs, static: tensor if isinstance(inputs[position], Tensor) else number


def by_dims(of_all: str, of_dims: str) -> Callable:
    """The name of a reduction is `of_all` for all elements, `of_dims` for elements along given dims."""
    return lambda inputs, static: of_all if static[0] is None else of_dims


def with_node_name(result: Tensor, name: str) -> Tensor:
    """Rename the last node of `result`, because PyTorch records one node where weft records several."""
    if result._autograd is not None:
        tape.rename(result, lambda _: name)
        end_view(result)
    return result
