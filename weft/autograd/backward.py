"""`backward` and `grad`: they check their arguments and run the engine."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from ..core.above import above
from ..core.dispatch import watchers
from ..core.entry import entry
from ..core.layout import preserve_format
from ..core.layout_spec import as_cotangent
from ..core.overrides import handles_dispatch, modes
from ..core.plans import PlanCache
from ..core.recording import unrecorded
from ..core.spec import Spec, contiguous_spec
from ..core.subclasses import is_wrapper, without_overrides
from ..core.tensor import Tensor, make
from ..core.warn import user_level
from ..families.map import FILL
from ..ops.creation.creation import empty, ones_like, zeros_like
from . import engine
from .carried import carriers
from .dual import Dual
from .graph import GradientEdge, Leaf


@without_overrides
def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Any = None,
) -> None:
    """Compute the gradients of `tensors`, weighted by `grad_tensors`, and add them to the `.grad` of the leaves.

    >>> import weft as torch
    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> torch.autograd.backward([x * x, 2 * x])
    >>> x.grad
    tensor(8.)
    """
    if grad_variables is not None:
        warnings.warn(
            "`grad_variables` is deprecated. Use `grad_tensors` instead.",
            FutureWarning,
            stacklevel=user_level(),
        )
        if grad_tensors is not None:
            raise RuntimeError(
                "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to `backward()`. Please only use "
                "`grad_tensors`."
            )
        grad_tensors = grad_variables
    roots = _roots(_tuple(tensors), _gradients(grad_tensors, _tuple(tensors)), create_graph)
    edges = None
    if inputs is not None:
        inputs = _tuple(inputs)
        if not inputs:
            raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
        for each in inputs:
            if isinstance(each, Tensor):
                each.retain_grad()
        edges = [_edge_of(each, position) for position, each in enumerate(inputs)]
    keep = create_graph if retain_graph is None else retain_graph
    engine.run(roots, wanted=edges, keep_graph=keep, create_graph=create_graph)


@entry
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
    """The gradients of `outputs`, weighted by `grad_outputs`, with respect to `inputs`.

    allow_unused: return None, instead of raising an error, for inputs that the outputs do not depend on.
    materialize_grads: return zeros for these inputs. is_grads_batched: the first dimension of each of `grad_outputs`, and of
    each result, is a batch dimension.

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
    if not inputs:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    keep = create_graph if retain_graph is None else retain_graph
    if is_grads_batched:
        return _batched(
            outputs, inputs, _tuple(grad_outputs), keep, create_graph, allow_unused, materialize_grads
        )
    roots = _roots(outputs, _gradients(grad_outputs, outputs), create_graph)
    edges = [_edge_of(each, position) for position, each in enumerate(inputs)]
    cotangents = engine.run(roots, wanted=edges, keep_graph=keep, create_graph=create_graph, accumulate=False)
    results = [
        None
        if isinstance(each, Tensor) and "_unconnected" in each.__dict__
        else cotangents.get(engine.key(edge))
        for each, edge in zip(inputs, edges, strict=True)
    ]
    if materialize_grads:
        return _materialized(results, inputs, create_graph)
    if not allow_unused and any(ct is None for ct in results):
        unused = next(k for k, ct in enumerate(results) if ct is None)
        raise RuntimeError(
            f"The differentiated Tensor at index {unused} appears to not have been used in the graph. Set "
            "allow_unused=True if this is the desired behavior."
        )
    return tuple(results)


def _materialized(results: Sequence[Any], inputs: Sequence[Any], create_graph: bool) -> tuple[Tensor, ...]:
    """Zeros in the place of None, which may be differentiated again where the other gradients may."""
    if any(ct is None and isinstance(each, GradientEdge) for ct, each in zip(results, inputs, strict=True)):
        raise RuntimeError("materialize_grads cannot be used when the given input is a GradientEdge")
    return tuple(
        zeros_like(each.detach(), requires_grad=create_graph) if ct is None else ct
        for ct, each in zip(results, inputs, strict=True)
    )


def _batched(outputs, inputs, grads, keep, create, allow_unused, materialize) -> tuple:
    """All gradients at once, by `vmap` over the gradients of the outputs."""
    for position, (each, output) in enumerate(zip(grads, outputs, strict=True)):
        if each is not None and each.shape[1:] != output.shape:
            raise RuntimeError(
                "If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch dimension. "
                "The sizes of the remaining dimensions are expected to match the shape of corresponding output, but a "
                f"mismatch was detected: grad_output[{position}] has a shape of {each.shape[1:]} and output[{position}] has "
                f"a shape of {output.shape}. If you only want some tensors in `grad_output` to be considered batched, "
                "consider using vmap."
            )
    batching = above("func.batching")
    vmap = batching.one_by_one if any(map(is_wrapper, (*outputs, *inputs))) else batching.vmap

    positions = [k for k, each in enumerate(grads) if each is not None]
    reached: list[int] = []

    def gradients(*cts: Tensor) -> tuple:
        by_output = dict(zip(positions, cts, strict=True))
        results = grad(
            outputs,
            inputs,
            [by_output.get(k) for k in range(len(grads))],
            keep,
            create,
            allow_unused=allow_unused or materialize,
        )
        reached[:] = [k for k, ct in enumerate(results) if ct is not None]
        return tuple([results[k] for k in reached])

    rows = vmap(gradients)(*[grads[k] for k in positions])
    by_input = dict(zip(reached, rows, strict=True))
    results = [by_input.get(k) for k in range(len(inputs))]
    return _materialized(results, inputs, create) if materialize else tuple(results)


def takes_gradient(edge: Any) -> bool:
    """Whether a tensor whose `_autograd` is `edge` requires grad."""
    return edge is not None and type(edge) is not Dual


def _tuple(value: Any) -> tuple:
    if isinstance(value, (Tensor, GradientEdge)) or value is None:
        return (value,)
    return tuple(value)


def _gradients(gradients: Any, tensors: Sequence[Tensor]) -> tuple:
    if gradients is None:
        return (None,) * len(tensors)
    as_tuple = _tuple(gradients)
    if len(as_tuple) == 1 and as_tuple[0] is None:
        return (None,) * len(tensors)
    for each in as_tuple:
        if each is not None and not isinstance(each, Tensor):
            raise TypeError(f"gradients can be either Tensors or None, but got {type(each).__name__}")
    if len(as_tuple) != len(tensors):
        raise RuntimeError(f"got {len(tensors)} tensors and {len(as_tuple)} gradients")
    return as_tuple


def _edge_of(tensor: Any, position: int) -> Any:
    if isinstance(tensor, GradientEdge):
        return tensor.node if isinstance(tensor.node, Leaf) else tensor.node._output(tensor.output_nr)
    if not isinstance(tensor, Tensor):
        raise TypeError(f"element {position} of tensors must be a Tensor, not {type(tensor).__name__}")
    if not takes_gradient(tensor._autograd):
        raise RuntimeError("One of the differentiated Tensors does not require grad")
    return tensor._autograd


def _roots(tensors: Sequence[Any], gradients: Sequence[Any], create_graph: bool) -> list[tuple[Any, Tensor]]:
    roots = []
    for position, (tensor, gradient) in enumerate(zip(tensors, gradients, strict=True)):
        if isinstance(tensor, GradientEdge):
            tensor = _stand_in(tensor)
        if not isinstance(tensor, Tensor):
            raise TypeError(f"element {position} of tensors must be a Tensor, not {type(tensor).__name__}")
        roots.append(root(tensor, gradient, position))
    return roots


def root(tensor: Tensor, gradient: Any = None, position: int = 0) -> tuple[Any, Tensor]:
    """The edge at which backward of a tensor starts, and its cotangent there.

    Raises: RuntimeError if the tensor does not require grad, or is not a scalar and has no gradient.
    """
    edge = tensor._autograd
    kind = type(edge)
    if edge is None or kind is Dual or kind is Leaf and "_unconnected" in tensor.__dict__:
        raise RuntimeError(
            f"element {position} of tensors does not require grad and does not have a grad_fn\n"
            "Nothing it was computed from requires grad, or it was computed under no_grad, or from detach() or item()"
        )
    if gradient is not None:
        seed = _checked(gradient, tensor, position)
    elif watchers:
        seed = _watched_seed(tensor)
    else:
        plan = _seed_plans[(tensor.spec,)]
        storage = plan.allocate()
        plan.entry(storage.ptr, 1.0, plan.meta, plan.count)
        seed = make(storage, 0, plan.spec)
    if carriers and type(tensor) in carriers:
        seed = carriers[type(tensor)].seed(tensor, seed)
    return edge, seed


def _stand_in(edge: GradientEdge) -> Tensor:
    """An uninitialized tensor with the edge, and with the metadata of the tensor that the edge belongs to."""
    if isinstance(edge.node, Leaf):
        return edge.node.tensor()  # type: ignore[return-value]
    result = edge.node._spec.result
    own = result[edge.output_nr] if type(result) is tuple else result
    found = empty(own.shape, dtype=own.dtype, device=own.device)
    found._autograd = edge.node._output(edge.output_nr)
    return found


def _watched_seed(tensor: Tensor) -> Tensor:
    """The cotangent 1, made by the op that PyTorch makes it by, because somebody watches."""
    _seed_plans[(tensor.spec,)]  # raises if the tensor has no default gradient
    if modes.dispatch or handles_dispatch(type(tensor)):
        with unrecorded():
            return ones_like(tensor, memory_format=preserve_format)
    return ones_like(tensor.detach())


@PlanCache
def _seed_plans(spec: Spec) -> Any:
    """The plan of the cotangent 1 for a tensor with this spec."""
    if spec.numel != 1:
        raise RuntimeError(
            f"grad can be implicitly created only for scalar outputs\nthis one has shape {list(spec.shape)}: pass its "
            "gradient, or reduce it first, with .sum() say"
        )
    if spec.dtype.is_complex:
        raise RuntimeError(
            f"grad can be implicitly created only for real scalar outputs but got {spec.dtype!r}"
        )
    return FILL.write_plans[contiguous_spec(spec.shape, spec.dtype, spec.device), float]


def _checked(gradient: Any, tensor: Tensor, position: int) -> Tensor:
    gradient = as_cotangent(gradient)
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
