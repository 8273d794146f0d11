"""A backward pass in two halves: first the gradients of the inputs of a computation, later those of everything else, its parameters.

The first half runs the nodes between the results and the inputs. Each of them computes the cotangents of only those of its inputs from which the wanted ones
were computed. The second half computes the others, from the cotangents that these nodes had, so that no product is computed twice
(Qi et al., Zero Bubble Pipeline Parallelism, 2023, arXiv:2401.10241).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.modes import DisableTorchFunction
from ..core.tensor import Tensor
from .backward import root
from .engine import _ignores, _Pass, _run
from .graph import Leaf, Node


class _First(_Pass):
    """A pass that runs the nodes on the way to the inputs, and notes what it leaves out."""

    def __init__(self, roots: Sequence[tuple[Any, Tensor]], wanted: Sequence[Any]):
        super().__init__(roots, wanted, keep_graph=True, create_graph=False, accumulate=True)
        # For each node: its cotangent, and its edges with None for those that have their cotangents.
        self.left: list[tuple[Node, Any, tuple]] = []

    def _useful_edges(self, node: Node, ct: Any) -> tuple | None:
        useful = super()._useful_edges(node, ct)
        if useful is None:
            self.left.append((node, ct, node._edges))
        return useful

    def _cotangents(self, node: Node, ct: Any, edges: tuple, spare: bool) -> Sequence[Any]:
        pairs = zip(node._edges, edges, strict=True)
        self.left.append((node, ct, tuple([each if found is None else None for each, found in pairs])))
        return super()._cotangents(node, ct, edges, spare)


class _Second(_Pass):
    """A pass from the edges that the first half has left."""

    def __init__(self, left: Sequence[tuple[Node, Any, tuple]], leaves: Sequence[tuple[Any, Tensor]]):
        edges = [(edge, None) for _, _, others in left for edge in others if edge is not None]
        super().__init__([*edges, *leaves], None, keep_graph=False, create_graph=False, accumulate=True)
        self.left = left

    def run(self, roots: Sequence[tuple[Any, Tensor]]) -> dict[Any, Tensor]:
        for node, ct, others in self.left:
            found: Sequence[Any] = (
                (None,) * len(others) if _ignores(node, ct) else self._pull(node, ct, others)
            )
            for position, edge in enumerate(others):
                if edge is None:
                    continue
                if found[position] is not None:
                    self._send(edge, found[position], node, position)
                elif type(edge) is Leaf:
                    self._give_leaf_nothing(edge)
            node._release()
        self.left = ()
        return super().run(roots)


class Rest:
    """The second half of a backward pass."""

    def __init__(self, left: Sequence[tuple[Node, Any, tuple]], leaves: Sequence[tuple[Any, Tensor]]):
        self._left, self._leaves = left, leaves

    def run(self) -> None:
        """Add the gradients that the first half has left to the `.grad` of their leaves, and free the graph."""
        with DisableTorchFunction():
            _run(_Second(self._left, self._leaves), self._leaves)
        self._left = self._leaves = ()


def backward_inputs(
    tensors: Sequence[Tensor], gradients: Sequence[Tensor | None], inputs: Sequence[Tensor]
) -> Rest:
    """Compute the gradients of `tensors`, weighted by `gradients`, and add them to the `.grad` of `inputs`, which are leaves.

    Returns the rest of the pass, which adds them to the other leaves. None for a gradient is 1.

    >>> import weft as torch
    >>> x, weight = torch.ones(2, requires_grad=True), torch.full((2,), 3.0, requires_grad=True)
    >>> rest = backward_inputs([(x * weight).sum()], [None], [x])
    >>> x.grad, weight.grad
    (tensor([3., 3.]), None)
    >>> rest.run()
    >>> x.grad, weight.grad
    (tensor([3., 3.]), tensor([1., 1.]))
    """
    roots = [
        root(each, gradient, k) for k, (each, gradient) in enumerate(zip(tensors, gradients, strict=True))
    ]
    edges = [each._autograd for each in inputs]
    if not edges:
        return Rest((), roots)
    leaves: list[tuple[Any, Tensor]] = []
    inner: list[tuple[Any, Tensor]] = []
    for pair in roots:
        (leaves if type(pair[0]) is Leaf and pair[0] not in edges else inner).append(pair)
    first = _First(inner, edges)
    with (
        DisableTorchFunction()
    ):  # rules are written for plain tensors, so neither classes nor modes are asked
        _run(first, inner)
    return Rest(first.left, leaves)
