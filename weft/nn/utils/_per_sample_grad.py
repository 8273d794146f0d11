"""Gradients of each sample's loss: backward leaves them in `grad_sample` of the parameters of a module."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from ...autograd.function import Function
from ...core import pytree as pytree
from ...core.subclasses import make_subclass
from ...core.tensor import Tensor
from ...func import functional_call, vjp, vmap
from .. import functional as F
from ..modules.module import Module

# Arguments that a layer function gets in backward instead of those of the call, so that it writes into no tensor again.
_IN_BACKWARD: dict[Callable, dict[str, Any]] = {
    F.linear: {},
    F.conv1d: {},
    F.conv2d: {},
    F.conv3d: {},
    F.embedding: {"max_norm": None, "sparse": False},
    F.group_norm: {},
    F.instance_norm: {"running_mean": None, "running_var": None},
    F.layer_norm: {},
}


def call_for_per_sample_grads(
    module: Module, *, batch_size: int | None = None, loss_reduction: str = "sum", batch_first: bool = True
) -> Callable:
    """The forward function of a module; backward then sets `grad_sample` of the parameters, and not `grad`.

    Shapes: `grad_sample` is [batch_size, *shape of the parameter]. With `batch_first=False`, dim 1 of the tensors counts samples.
    loss_reduction: "mean" multiplies the gradients by the batch size, because a mean divides each sample's loss by it.
    Raises: RuntimeError for layers without a rule (batch norm mixes samples), and if the batch sizes differ.

    >>> import weft as torch
    >>> from weft.nn.utils._per_sample_grad import call_for_per_sample_grads
    >>> model = torch.nn.Linear(4, 3)
    >>> call_for_per_sample_grads(model)(torch.randn(5, 4)).sum().backward()
    >>> model.weight.grad_sample.shape, model.weight.grad
    (torch.Size([5, 3, 4]), None)
    """
    _check(module, batch_size, loss_reduction)

    @functools.wraps(module.forward)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        count = batch_size or _batch_size(pytree.arg_tree_leaves(*args, **kwargs), batch_first)
        parameters = {
            name: ExpandedWeight(each, count, loss_reduction) if each.requires_grad else each
            for name, each in module.named_parameters()
        }
        return functional_call(module, parameters, args, kwargs)

    return wrapper


def _check(module: Any, batch_size: Any, loss_reduction: Any) -> None:
    if loss_reduction not in ("sum", "mean"):
        raise RuntimeError(f"Expected loss_reduction argument to be sum or mean, got {loss_reduction}")
    if not isinstance(module, Module):
        raise RuntimeError(f"Module passed must be nn.Module, got {type(module).__name__}")
    if not (batch_size is None or isinstance(batch_size, int)):
        raise RuntimeError(f"Batch size passed must be None or an integer, got {type(batch_size).__name__}")
    if batch_size is not None and batch_size < 1:
        raise RuntimeError(f"Batch size must be positive, got {batch_size}")
    for name, weight in module.named_parameters():
        if getattr(weight, "grad_sample", None) is not None:
            raise RuntimeError(
                f"The parameter {name} has a grad_sample already, to which backward would add. Set it to None first."
            )


def _batch_size(leaves: list, batch_first: bool) -> int:
    sizes = {each.shape[0 if batch_first else 1] for each in leaves if isinstance(each, Tensor)}
    if len(sizes) != 1:
        raise RuntimeError(
            f"The batch size must follow from the arguments: the tensors have the sizes {sorted(sizes)}. "
            "Pass batch_size= to call_for_per_sample_grads."
        )
    return sizes.pop()


class ExpandedWeight(Tensor):
    """A parameter in calls of layer functions whose backward computes a gradient for each sample."""

    orig_weight: Tensor
    batch_size: int
    loss_reduction: str

    def __new__(cls, orig_weight: Tensor, batch_size: int, loss_reduction: str) -> ExpandedWeight:
        weight = make_subclass(cls, orig_weight, True)
        weight.orig_weight, weight.batch_size = orig_weight, batch_size
        weight.loss_reduction = loss_reduction
        return weight

    def __init__(self, *arguments: Any) -> None:
        """The attributes are set by `__new__`."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: tuple = (), kwargs: Any = None) -> Any:
        if func not in _IN_BACKWARD:
            raise RuntimeError(f"Expanded Weights encountered but cannot handle function {func.__name__}")
        arguments = dict(inspect.signature(func).bind(*args, **kwargs or {}).arguments)
        input = arguments.pop("input")
        expanded = {
            name: arguments.pop(name)
            for name, each in list(arguments.items())
            if isinstance(each, ExpandedWeight)
        }
        _check_input(func, input, arguments, expanded.values())
        weights = [each.orig_weight for each in expanded.values()]
        return _Layer.apply(func, arguments, expanded, input, *weights)


def _check_input(func: Any, input: Any, arguments: dict, expanded: Any) -> None:
    if isinstance(input, ExpandedWeight) or not isinstance(input, Tensor):
        raise RuntimeError(
            f"Expanded Weights requires a Tensor as the first input, got {type(input).__name__} in function {func.__name__}"
        )
    if func in (F.linear, F.embedding) and input.dim() < 2:
        raise RuntimeError(
            f"Input does not have a batch dimension. {func.__name__} with Expanded Weights expected input of at least "
            f"rank 2, got of rank {input.dim()}"
        )
    if func is F.layer_norm and input.dim() <= len(arguments["normalized_shape"]):
        raise RuntimeError(
            "Expanded Weights: Layer norm should not normalize over batch dimension for per sample gradient computations, "
            f"but normalized_shape {arguments['normalized_shape']} has all dims of the input"
        )
    if input.shape[0] == 0:
        raise RuntimeError(f"0 is not a valid batch size for Expanded Weights, in function {func.__name__}")
    for each in expanded:
        if input.shape[0] != each.batch_size:
            raise RuntimeError(
                "Expected ExpandedWeights to have batch size matching input but got input batch size of "
                f"{input.shape[0]} with ExpandedWeight of batch size {each.batch_size}"
            )


class _Layer(Function):
    """Differentiates a layer function: the gradient of the weights is by vmap of the same function."""

    @staticmethod
    def forward(ctx: Any, func: Any, arguments: dict, expanded: dict, input: Tensor, *weights: Tensor) -> Any:
        ctx.save_for_backward(input, *weights)
        ctx.func, ctx.arguments, ctx.expanded = func, arguments, expanded
        return func(input, **arguments, **dict(zip(expanded, weights)))

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        input, *weights = ctx.saved_tensors
        (cotangent,) = cotangents
        changed = _IN_BACKWARD[ctx.func]
        if ctx.func is F.instance_norm and not ctx.arguments["use_input_stats"]:
            changed = {}  # the running statistics are read, and not written
        arguments = {**ctx.arguments, **changed}

        def layer(input: Tensor, *weights: Tensor) -> Tensor:
            return ctx.func(input, **arguments, **dict(zip(ctx.expanded, weights)))

        def of_one(sample: Tensor, cotangent: Tensor) -> Any:
            _, pull = vjp(lambda *weights: layer(sample.unsqueeze(0), *weights), *weights)
            return pull(cotangent.unsqueeze(0))

        for each, gradient in zip(ctx.expanded.values(), vmap(of_one)(input, cotangent)):
            _add_grad_sample(each, gradient)
        gradient = None
        if ctx.needs_input_grad[3]:
            _, pull = vjp(lambda input: layer(input, *weights), input)
            (gradient,) = pull(cotangent)
        return None, None, None, gradient, *(None for _ in weights)


def _add_grad_sample(expanded: ExpandedWeight, gradient: Tensor) -> None:
    if expanded.loss_reduction == "mean":
        gradient = gradient * expanded.batch_size
    weight: Any = expanded.orig_weight
    before = getattr(weight, "grad_sample", None)
    weight.grad_sample = gradient if before is None else before + gradient
