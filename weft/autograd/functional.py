"""Derivatives of functions of tensors, `torch.autograd.functional`; `torch.func` composes better.

`inputs` is a tensor or a tuple of tensors, and the results have the same form. `create_graph`: the results can be
differentiated again. `strict`: raise an error if an output does not depend on an input.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core.grad_mode import enable_grad
from ..core.tensor import Tensor
from ..ops.assembly.joining import stack
from ..ops.creation.creation import ones_like, zeros_like
from .backward import grad


def vjp(
    func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple:
    """(outputs, products of v with the Jacobian): v is like the outputs, and not needed if they are one number.

    >>> import weft as torch
    >>> torch.autograd.functional.vjp(torch.exp, torch.zeros(2), torch.ones(2))
    (tensor([1., 1.]), tensor([1., 1.]))
    """
    with enable_grad():
        values = _inputs("vjp", inputs, create_graph)
        outputs = _called("vjp", func, values)
        cts = _vectors("vjp", v, outputs, "user-provided function returns")
        _check_strict(outputs, strict)
        gradients = _grad("vjp", outputs, values, cts, create_graph, strict)
        _check_depends("jacobian", gradients, strict and create_graph)
    return _form(outputs, create_graph, _is_single(outputs)), _form(
        gradients, create_graph, isinstance(inputs, Tensor)
    )


def jvp(
    func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple:
    """(outputs, products of the Jacobian with v): v is like the inputs, and not needed if they are one number.

    >>> import weft as torch
    >>> torch.autograd.functional.jvp(torch.exp, torch.zeros(2), torch.tensor([1.0, 2.0]))
    (tensor([1., 1.]), tensor([1., 2.]))
    """
    with enable_grad():
        values = _inputs("jvp", inputs, create_graph)
        tangents = _vectors("jvp", v, values, "input to the user-provided function is")
        outputs = _called("jvp", func, values)
        _check_strict(outputs, strict)
        pushed = _push("jvp", outputs, values, tangents, create_graph, strict)
        _check_depends("jacobian", pushed, strict and create_graph)
    single = _is_single(outputs)
    return _form(outputs, create_graph, single), _form(pushed, create_graph, single)


def jacobian(
    func: Callable,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """The Jacobian, of shape [*output, *input]; for tuples a tuple, by output, of tuples, by input.

    >>> import weft as torch
    >>> torch.autograd.functional.jacobian(lambda x: x * x, torch.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    if strategy not in ("reverse-mode", "forward-mode"):
        raise AssertionError(
            'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your function has more outputs '
            'than inputs, "forward-mode" tends to be more performant. Otherwise, prefer to use "reverse-mode".'
        )
    if strategy == "forward-mode" and not vectorize:
        raise NotImplementedError(
            "Computing Jacobian using forward-AD or forward-over-reverse Hessian isonly implemented for `vectorize=True`."
        )
    if strict and vectorize:
        raise RuntimeError(
            "torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not supported together. Please "
            "either set `strict=False` or `vectorize=False`."
        )
    with enable_grad():
        values = _inputs("jacobian", inputs, create_graph)
        outputs = _called("jacobian", func, values)
        _check_strict(outputs, strict)
        rows = [_jacobian_rows(f"Output {k}", y, values, create_graph, strict) for k, y in enumerate(outputs)]
    single = isinstance(inputs, Tensor)
    by_output = [_form(each, create_graph, single) for each in rows]
    return by_output[0] if _is_single(outputs) else tuple(by_output)


def _jacobian_rows(what: str, y: Tensor, values: tuple, create_graph: bool, strict: bool) -> tuple:
    size = y.numel()
    rows: list = []
    for position in range(size):
        element = y.reshape(-1)[position]
        rows.append(_grad("jacobian", (element,), values, None, create_graph, strict, keep=True, what=what))
        _check_depends("jacobian", rows[-1], strict and create_graph)
    if not size:
        return tuple(y.new_zeros((*y.shape, *x.shape)) for x in values)
    return tuple(
        stack(column).reshape((*y.shape, *x.shape))
        for column, x in zip(zip(*rows, strict=True), values, strict=True)
    )


def hessian(
    func: Callable,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The second derivatives of a function with a scalar result; for a tuple of inputs, a tuple of tuples.

    >>> import weft as torch
    >>> torch.autograd.functional.hessian(lambda x: (x**3).sum(), torch.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    single = isinstance(_tensors("inputs given to hessian", inputs) and inputs, Tensor)

    if strict and vectorize:
        raise RuntimeError(
            "torch.autograd.functional.hessian: `strict=True` and `vectorized=True` are not supported together. Please "
            "either set `strict=False` or `vectorize=False`."
        )

    def first(*values: Tensor) -> Any:
        output = _one_scalar("hessian", _called("hessian", func, values))
        _check_strict((output,), strict)
        gradients = _grad("hessian", (output,), values, None, True, False)
        _check_twice(gradients, strict)
        return gradients[0] if single else gradients

    return jacobian(first, inputs, create_graph=create_graph, strict=strict)


def vhp(
    func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple:
    """(output, products of v with the Hessian) of a function with a scalar result.

    >>> import weft as torch
    >>> torch.autograd.functional.vhp(lambda x: (x**3).sum(), torch.tensor([1.0, 2.0]), torch.ones(2))
    (tensor(9.), tensor([ 6., 12.]))
    """
    with enable_grad():
        values = _inputs("vhp", inputs, create_graph)
        vectors = _vectors("vhp", v, values, "input to the user-provided function is")
        outputs = _called("vhp", func, values)
        _one_scalar("vhp", outputs)
        _check_strict(outputs, strict)
        first = _grad("vhp", outputs, values, None, True, strict)
        _check_twice(first, strict)
        gradients = _grad("vhp", first, values, vectors, create_graph, strict)
        _check_depends("hessian", gradients, strict and create_graph)
    return _form(outputs, create_graph, True), _form(gradients, create_graph, isinstance(inputs, Tensor))


def hvp(
    func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple:
    """(output, products of the Hessian with v) of a function with a scalar result; `vhp` is the same, and faster.

    >>> import weft as torch
    >>> torch.autograd.functional.hvp(lambda x: (x**3).sum(), torch.tensor([1.0, 2.0]), torch.ones(2))
    (tensor(9.), tensor([ 6., 12.]))
    """
    with enable_grad():
        values = _inputs("hvp", inputs, create_graph)
        vectors = _vectors("hvp", v, values, "input to the user-provided function is")
        outputs = _called("hvp", func, values)
        _one_scalar("hvp", outputs)
        _check_strict(outputs, strict)
        first = _grad("hvp", outputs, values, None, True, strict)
        _check_twice(first, strict)
        pushed = _push("hvp", first, values, vectors, create_graph, strict)
        _check_depends("hessian", pushed, strict and create_graph)
    return _form(outputs, create_graph, True), _form(pushed, create_graph, isinstance(inputs, Tensor))


def _construct_standard_basis_for(
    tensors: Sequence[Tensor], tensor_numels: Sequence[int]
) -> tuple[Tensor, ...]:
    """The columns of an identity matrix that belong to each tensor, in its dtype and on its device.

    Raises: AssertionError without tensors, or if there is not a number of elements for each.
    """
    if not tensors or len(tensors) != len(tensor_numels):
        raise AssertionError(
            f"Expected a number of elements for each tensor, got {len(tensors)} and {len(tensor_numels)}"
        )
    blocks, start = [], 0
    for tensor, size in zip(tensors, tensor_numels, strict=True):
        block = tensor.new_zeros((sum(tensor_numels), size))
        block.diagonal(-start).fill_(1)
        blocks.append(block)
        start += size
    return tuple(blocks)


# ---- What they share -----------------------------------------------------------------------------------------------


def _inputs(name: str, inputs: Any, create_graph: bool) -> tuple[Tensor, ...]:
    """Stand-ins for the inputs: views that belong to their graph, or, without `create_graph`, new leaves."""
    return tuple(
        x.view_as(x) if create_graph and x.requires_grad else x.detach().view_as(x).requires_grad_()
        for x in _tensors(f"inputs given to {name}", inputs)
    )


def _tensors(what: str, value: Any) -> tuple[Tensor, ...]:
    """A tensor, or a tuple of them, as a tuple.

    Raises: TypeError for anything else.
    """
    if isinstance(value, Tensor):
        return (value,)
    subject = what.split(" given to")[0]
    if not isinstance(value, tuple):
        raise TypeError(
            f"The {what} must be either a Tensor or a tuple of Tensors but the given {subject} has type {type(value)}."
        )
    for position, x in enumerate(value):
        if not isinstance(x, Tensor):
            raise TypeError(
                f"The {what} must be either a Tensor or a tuple of Tensors but the value at index {position} has type "
                f"{type(x)}."
            )
    return value


def _called(name: str, func: Callable, values: Sequence[Tensor]) -> tuple[Tensor, ...]:
    found = func(*values)
    outputs = _tensors(f"outputs of the user-provided function given to {name}", found)
    return _Several(outputs) if not isinstance(found, Tensor) else outputs


class _Several(tuple):
    """The results of a function that returned a tuple."""


def _is_single(outputs: tuple) -> bool:
    """Whether the function returned a tensor rather than a tuple of them."""
    return type(outputs) is not _Several


def _vectors(name: str, v: Any, like: Sequence[Tensor], what: str) -> tuple[Tensor, ...]:
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise RuntimeError(
                f"The vector v can only be None if the {what} a single Tensor with a single element."
            )
        return tuple(ones_like(each.detach()) for each in like)
    vectors = _tensors(f"v given to {name}", v)
    if len(vectors) != len(like):
        if len(like) == 1:
            raise RuntimeError("The given v should contain a single Tensor.")
        raise RuntimeError(f"v is a tuple of invalid length: should be {len(like)} but got {len(vectors)}.")
    for position, (each, wanted) in enumerate(zip(vectors, like, strict=True)):
        if each.shape != wanted.shape:
            raise RuntimeError(
                f"{f'Entry {position} in v' if len(like) > 1 else 'v'} has invalid size: should be {wanted.shape} but got "
                f"{each.shape}."
            )
    return vectors


def _check_strict(outputs: Sequence[Tensor], strict: bool) -> None:
    for position, y in enumerate(outputs):
        if strict and not y.requires_grad:
            raise RuntimeError(
                f"Output {position} of the user-provided function does not require gradients. The outputs must be computed "
                "in a differentiable manner from the input when running in strict mode."
            )


def _check_twice(first: Sequence[Tensor], strict: bool) -> None:
    for position, x in enumerate(first):
        if strict and not x.requires_grad:
            raise RuntimeError(
                "While computing the hessian, found that the jacobian of the user-provided function with respect to input "
                f"{position} is independent of the input. This is not allowed in strict mode. You should ensure that your "
                "function is twice differentiable and that the jacobian depends on the inputs (this would be violated by a "
                "linear function for example)."
            )


def _check_depends(what: str, derivatives: Sequence[Tensor], strict: bool) -> None:
    """Refuse derivatives that are constants, where strict mode wants to differentiate them again."""
    for position, each in enumerate(derivatives):
        if strict and not each.requires_grad:
            raise RuntimeError(
                f"The {what} of the user-provided function is independent of input {position}. This is not allowed in strict "
                "mode when create_graph=True."
            )


def _one_scalar(name: str, outputs: Sequence[Tensor]) -> Tensor:
    """The only result, which has one element."""
    if not _is_single(tuple(outputs)) or len(outputs) != 1:
        raise RuntimeError(f"The function given to {name} should return a single Tensor")
    output = outputs[0]
    if output.dim() != 0 and output.numel() != 1:
        raise RuntimeError(
            f"The Tensor returned by the function given to {name} should contain a single element\nit has shape "
            f"{list(output.shape)}"
        )
    return output


def _grad(
    name: str,
    outputs: Sequence[Tensor],
    values: Sequence[Tensor],
    cts: Any,
    create_graph: bool,
    strict: bool,
    keep: bool | None = None,
    what: str = "The output",
) -> tuple[Tensor, ...]:
    pairs = [(y, None if cts is None else cts[k]) for k, y in enumerate(outputs) if y.requires_grad]
    gradients: Sequence[Any] = (None,) * len(values)
    if pairs:
        gradients = grad(
            [y for y, _ in pairs],
            values,
            [ct for _, ct in pairs],
            allow_unused=True,
            create_graph=create_graph,
            retain_graph=keep,
        )
    if strict and any(each is None for each in gradients):
        position = next(k for k, each in enumerate(gradients) if each is None)
        raise RuntimeError(
            f"{what} of the user-provided function is independent of input {position}. This is not allowed in strict mode."
        )
    return tuple(zeros_like(x.detach()) if g is None else g for g, x in zip(gradients, values, strict=True))


def _push(
    name: str,
    outputs: Sequence[Tensor],
    values: Sequence[Tensor],
    tangents: Any,
    create_graph: bool,
    strict: bool,
) -> tuple[Tensor, ...]:
    """The tangents of `outputs`: the vjp of the vjp, which is linear in its cotangents."""
    dummies = tuple(ones_like(y.detach()).requires_grad_() for y in outputs)
    pulled = _grad(name, outputs, values, dummies, True, strict)
    return _grad(name, pulled, dummies, tangents, create_graph, False)


def _form(tensors: Sequence[Tensor], create_graph: bool, single: bool) -> Any:
    results = tuple(tensors) if create_graph else tuple(each.detach() for each in tensors)
    return results[0] if single else results
