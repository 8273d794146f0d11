"""`backward` and `grad`: what users give is checked here, then the engine runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.op import FUNCTIONS
from ..core.tensor import Tensor
from . import engine
from .dual import Dual
from .graph import GradientEdge, Leaf


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Any = None,
) -> None:
    """Add the derivatives of `tensors`, each times its gradient in `grad_tensors`, to the `.grad` of the leaves.

    >>> import weft as torch
    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> torch.autograd.backward([x * x, 2 * x])
    >>> x.grad
    tensor(8.)
    """
    if grad_variables is not None:
        if grad_tensors is not None:
            raise RuntimeError(
                "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to `backward()`. Please only use "
                "`grad_tensors`."
            )
        grad_tensors = grad_variables
    roots = _roots(_tuple(tensors), _gradients(grad_tensors, _tuple(tensors)), create_graph)
    wanted = None
    if inputs is not None:
        inputs = _tuple(inputs)
        if not inputs:
            raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
        wanted = [_edge_of(each, position) for position, each in enumerate(inputs)]
    keep = create_graph if retain_graph is None else retain_graph
    found = engine.run(roots, wanted=wanted, keep_graph=keep, create_graph=create_graph)
    for each, edge in zip(inputs or (), wanted or (), strict=True):
        if type(edge) is not Leaf and engine.key(edge) in found:  # leaves have been served by the engine
            ct = found[engine.key(edge)]
            before = each.__dict__.get("_grad")
            each._grad = ct.clone() if before is None else before + ct


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor | None, ...]:
    """The derivatives of the sum of `outputs`, each times its gradient in `grad_outputs`, with respect to `inputs`.

    allow_unused: inputs that play no part get None instead of an error. materialize_grads: zeros instead of None.
    is_grads_batched: the first dimension of each of `grad_outputs` counts gradients; so does that of the results.

    >>> import weft as torch
    >>> x = torch.tensor(2.0, requires_grad=True)
    >>> (dx,) = torch.autograd.grad(x**3, x, create_graph=True)
    >>> dx, torch.autograd.grad(dx, x)
    (tensor(12., grad_fn=<MulBackward0>), (tensor(12.),))
    """
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
        )
    outputs, inputs = _tuple(outputs), _tuple(inputs)
    keep = create_graph if retain_graph is None else retain_graph
    if is_grads_batched:
        return _batched(
            outputs, inputs, _tuple(grad_outputs), keep, create_graph, allow_unused, materialize_grads
        )
    edges = [_edge_of(each, position) for position, each in enumerate(inputs)]
    roots = _roots(outputs, _gradients(grad_outputs, outputs), create_graph)
    found = engine.run(roots, wanted=edges, keep_graph=keep, create_graph=create_graph, accumulate=False)
    results = [found.get(engine.key(edge)) for edge in edges]
    if materialize_grads:
        return tuple(
            FUNCTIONS["zeros_like"](each) if ct is None else ct
            for ct, each in zip(results, inputs, strict=True)
        )
    if not allow_unused and any(ct is None for ct in results):
        raise RuntimeError(
            "One of the differentiated Tensors appears to not have been used in the graph. Set allow_unused=True if this "
            f"is the desired behavior. (input {next(k for k, ct in enumerate(results) if ct is None)})"
        )
    return tuple(results)


def _batched(outputs, inputs, grads, keep, create, allow_unused, materialize) -> tuple:
    """One gradient after the other, and their results stacked."""
    size = next(each.shape[0] for each in grads if each is not None)
    rows = [
        grad(
            outputs,
            inputs,
            [None if each is None else each[row] for each in grads],
            keep or row + 1 < size,
            create,
            allow_unused=allow_unused,
            materialize_grads=materialize,
        )
        for row in range(size)
    ]
    stack = FUNCTIONS["stack"]
    return tuple(None if column[0] is None else stack(column) for column in zip(*rows, strict=True))


def _tuple(value: Any) -> tuple:
    if isinstance(value, (Tensor, GradientEdge)) or value is None:
        return (value,)
    return tuple(value)


def _gradients(given: Any, tensors: Sequence[Tensor]) -> tuple:
    if given is None:
        return (None,) * len(tensors)
    found = _tuple(given)
    if len(found) == 1 and found[0] is None:
        return (None,) * len(tensors)
    if len(found) != len(tensors):
        raise RuntimeError(f"got {len(tensors)} tensors and {len(found)} gradients")
    return found


def _edge_of(tensor: Any, position: int) -> Any:
    if isinstance(tensor, GradientEdge):
        return tensor.node if isinstance(tensor.node, Leaf) else tensor.node.output(tensor.output_nr)
    if not isinstance(tensor, Tensor):
        raise TypeError(f"element {position} of tensors must be a Tensor, not {type(tensor).__name__}")
    if tensor._autograd is None or type(tensor._autograd) is Dual:
        raise RuntimeError("One of the differentiated Tensors does not require grad")
    return tensor._autograd


def _roots(tensors: Sequence[Any], gradients: Sequence[Any], create_graph: bool) -> list[tuple[Any, Tensor]]:
    roots = []
    for position, (tensor, gradient) in enumerate(zip(tensors, gradients, strict=True)):
        if not isinstance(tensor, Tensor):
            raise TypeError(f"element {position} of tensors must be a Tensor, not {type(tensor).__name__}")
        edge = tensor._autograd
        if edge is None or type(edge) is Dual:
            raise RuntimeError(
                f"element {position} of tensors does not require grad and does not have a grad_fn"
            )
        roots.append(
            (edge, _first_cotangent(tensor) if gradient is None else _checked(gradient, tensor, position))
        )
    return roots


def _first_cotangent(tensor: Tensor) -> Tensor:
    own = tensor.spec
    if own.numel != 1:
        raise RuntimeError(
            f"grad can be implicitly created only for scalar outputs; this one has shape {list(own.shape)}: pass its "
            "gradient, or reduce it first, with .sum() say"
        )
    if own.dtype.is_complex:
        raise RuntimeError(
            f"grad can be implicitly created only for real scalar outputs but got {own.dtype!r}"
        )
    return FUNCTIONS["ones_like"](tensor.detach())


def _checked(gradient: Any, tensor: Tensor, position: int) -> Tensor:
    if not isinstance(gradient, Tensor):
        raise TypeError(f"gradients can be either Tensors or None, but got {type(gradient).__name__}")
    if gradient.spec.shape != tensor.spec.shape:
        raise RuntimeError(
            f"Mismatch in shape: grad_output[{position}] has a shape of {gradient.shape} and output[{position}] has a "
            f"shape of {tensor.shape}."
        )
    if gradient.spec.dtype.is_complex != tensor.spec.dtype.is_complex:
        raise RuntimeError(
            "For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: "
            f"grad_output[{position}] has a dtype of {gradient.dtype!r} and output[{position}] has a dtype of "
            f"{tensor.dtype!r}."
        )
    return gradient if gradient.spec.dtype is tensor.spec.dtype else gradient.to(tensor.spec.dtype)
