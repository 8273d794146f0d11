"""Defines function transforms: gradients, vjp and jvp. All of them nest.

A transform differentiates with respect to a stand-in for each argument: a new leaf, or a view of the tensor if an outer
transform differentiates it as well. Results keep a grad_fn only if they depend on a tensor that requires grad outside of the
transform, and if grad mode is on there: a transform records what its function does, even within `no_grad`, but not for others.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ..autograd import dual, engine
from ..autograd.forward_ad import _set_fwd_grad_enabled
from ..autograd.graph import Leaf, Node, Output
from ..autograd.saved import Saved, SavedOutputs
from ..autograd.tensor import require_grad
from ..core.batched import BatchedStorage, open_levels, takes_part, takes_part_around, within
from ..core.dtype import FLOAT
from ..core.grad_mode import enable_grad, is_grad_enabled
from ..core.pytree import tree_flatten, tree_map, tree_unflatten
from ..core.tensor import Tensor, make
from ..ops.creation.creation import ones_like, zeros_like
from .running import check_refused, running


def stand_in(tensor: Tensor) -> Tensor:
    """Return a tensor with the same values, with respect to which a transform differentiates."""
    tensor = within(tensor)
    if tensor.requires_grad:
        return tensor.view_as(tensor)
    alias = dual.set_tangents(make(tensor._storage, tensor._byte_offset, tensor.spec), dual.tangents(tensor))
    alias._autograd = Leaf(alias, lasting=False)
    return alias


def stand_ins(tree: Any) -> tuple[Any, list[Tensor]]:
    """A pytree of stand-ins, and the list of the stand-ins.

    Raises: ValueError for leaves that are not tensors, RuntimeError for integer tensors.
    """
    leaves, structure = tree_flatten(tree)
    for x in leaves:
        if not isinstance(x, Tensor):
            raise ValueError(f"Thing passed to transform API must be Tensor, got {type(x)}")
        if x.spec.dtype.category < FLOAT:
            raise RuntimeError("only Tensors of floating point dtype can require gradients")
    replaced = [stand_in(x) for x in leaves]
    return tree_unflatten(replaced, structure), replaced


def released(tree: Any, stood_in: Sequence[Tensor], start: int) -> Any:
    """Detach the results that nobody outside of a transform differentiates.

    These are the results whose graph leads only to stand-ins. If grad mode is off outside, they are all results that were recorded
    inside; `start` is what `running` gave.
    """
    own = {each._autograd for each in stood_in if type(each._autograd) is Leaf}
    recording = is_grad_enabled()

    def release(x: Any) -> Any:
        if not isinstance(x, Tensor):
            return x
        if recording:
            stays = not x.requires_grad or _reaches_others(x._autograd, own)
        else:
            stays = not _recorded_since(x, start, own)
        return x if stays else _detached(x, recording)

    return tree_map(release, tree)


def _recorded_since(x: Tensor, start: int, own: set) -> bool:
    """Whether the tensor, or the batch of a sample, is a stand-in or the result of a step after `start`."""
    edge, storage = x._autograd, x._storage
    node = edge.node if type(edge) is Output else edge
    if node in own or isinstance(node, Node) and node._order >= start:
        return True
    return type(storage) is BatchedStorage and _recorded_since(storage.value, start, own)


def _detached(x: Tensor, recording: bool) -> Tensor:
    storage: Any = x._storage
    if not recording and type(storage) is BatchedStorage:
        storage = storage.detached()
    return dual.set_tangents(make(storage, x._byte_offset, x.spec), dual.tangents(x))


def _reaches_others(edge: Any, own: set) -> bool:
    seen: set = set()
    stack = [edge]
    while stack:
        edge = stack.pop()
        if type(edge) is Leaf:
            if edge not in own and edge.tensor() is not None:  # a deleted tensor cannot get a gradient
                return True
            continue
        node = edge.node if type(edge) is Output else edge
        if node not in seen:
            seen.add(node)
            stack += [each for each in node._edges if each is not None and each is not dual.DUAL]
    return False


def needs_graph(outputs: Sequence[Tensor], stood_in: Sequence[Tensor]) -> bool:
    """Whether the vjp of `outputs` must be recorded: if grad mode is on, and they depend on more than stand-ins or a transform is active."""
    if not is_grad_enabled():
        return False
    own = {each._autograd for each in stood_in if type(each._autograd) is Leaf}
    return (
        len(own) < len(stood_in)
        or bool(dual.levels)
        or any(y._autograd is not None and _reaches_others(y._autograd, own) for y in outputs)
        or bool(open_levels.stack)
        and any(takes_part_around(y._storage) or _holds_others(y._autograd) for y in outputs)
    )


def _holds_others(edge: Any) -> bool:
    """Whether a saved value of a step within `vmap` takes part in autograd around the call of `vmap`."""
    seen: set = set()
    stack = [edge]
    while stack:
        edge = stack.pop()
        node = edge.node if type(edge) is Output else edge
        if node is None or type(node) in (Leaf, dual.Dual) or node in seen:
            continue
        seen.add(node)
        for entry in node._saved:
            for each in entry if type(entry) is SavedOutputs else (entry,):
                if type(each) is Saved:
                    if takes_part_around(each.storage):
                        return True
                elif isinstance(each, tuple) or hasattr(each, "hook"):
                    return True  # tangents, or the value that a hook returned
        stack += node._edges
    return False


def pullback(
    outputs: Sequence[Tensor], inputs: Sequence[Tensor], cts: Sequence[Tensor], recording: bool | None = None
) -> list[Tensor]:
    """The cotangents of `inputs`, recorded if `recording`; None finds out whether something may ask for that. Zeros for inputs that the outputs do not depend on."""
    if recording is None:
        recording = is_grad_enabled() and any(map(takes_part, cts)) or needs_graph(outputs, inputs)
    roots = [(y._autograd, ct) for y, ct in zip(outputs, cts, strict=True) if y.requires_grad]
    edges = [x._autograd for x in inputs]
    found = engine.run(roots, wanted=edges, keep_graph=True, create_graph=recording, accumulate=False)
    return [
        zeros_like(x.detach()) if (ct := found.get(engine.key(edge))) is None else ct
        for x, edge in zip(inputs, edges, strict=True)
    ]


def split_aux(call: str, result: Any, has_aux: bool) -> tuple[Any, Any]:
    if not has_aux:
        return result, None
    if not isinstance(result, tuple) or len(result) != 2:
        raise RuntimeError(
            f"{call}: output of function f should be a tuple: (output, aux) if has_aux is True"
        )
    return result


def chosen(args: tuple, argnums: Any) -> tuple[int, ...]:
    """Return the positions in `argnums`, an int or a tuple of ints.

    Raises: RuntimeError for anything else, and for a position that is out of range or appears twice.
    """
    given = (argnums,) if isinstance(argnums, int) else argnums
    if not isinstance(given, tuple):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    if not given:
        raise RuntimeError("argnums must be non-empty")
    for k in given:
        if not isinstance(k, int):
            raise RuntimeError(f"argnum must be int, got: {type(k)}")
    for k in given:
        if not -len(args) <= k < len(args):
            raise RuntimeError(f"Got argnum={k}, but only {len(args)} positional inputs")
    found = tuple(k % len(args) for k in given)
    if len(set(found)) != len(found):
        raise RuntimeError(f"argnums elements must be unique, got {argnums}")
    return found


def with_arguments(args: tuple, positions: Sequence[int], values: Sequence[Any]) -> tuple:
    replaced = list(args)
    for position, value in zip(positions, values, strict=True):
        replaced[position] = value
    return tuple(replaced)


def grad_and_value(func: Callable, argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Callable:
    """A function that returns (gradient, value) of a function with a scalar result; with aux, (gradient, (value, aux)).

    >>> import weft as torch
    >>> torch.func.grad_and_value(lambda x: (x * x).sum())(torch.tensor([1.0, 2.0]))
    (tensor([2., 4.]), tensor(5.))
    """

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        positions = chosen(args, argnums)
        with running() as start:
            with enable_grad():
                values, inputs = stand_ins([args[k] for k in positions])
                output, aux = split_aux(
                    "grad_and_value(f)(*args)",
                    func(*with_arguments(args, positions, values), **kwargs),
                    has_aux,
                )
            _check_scalar(output)
            found = pullback([output], inputs, [ones_like(output.detach())])
        gradients = like_inputs(values, inputs, found)
        gradients = gradients[0] if isinstance(argnums, int) else tuple(gradients)
        gradients, output, aux = released((gradients, output, aux), inputs, start)
        return gradients, ((output, aux) if has_aux else output)

    return wrapper


def like_inputs(tree: Any, inputs: Sequence[Tensor], found: Sequence[Any]) -> Any:
    """Return a pytree of the same structure, with the result for each input in its place."""
    by_input = {id(x): y for x, y in zip(inputs, found, strict=True)}
    return tree_map(lambda x: by_input.get(id(x)), tree)


def _check_scalar(output: Any) -> None:
    if not isinstance(output, Tensor):
        raise RuntimeError(
            f"grad_and_value(f)(*args): Expected f(*args) to return a Tensor, got {type(output)}"
        )
    if output.dim():
        raise RuntimeError(
            "grad_and_value(f)(*args): Expected f(*args) to return a scalar Tensor, got tensor with "
            f"{output.dim()} dims. Maybe you wanted to use the vjp or jacrev APIs instead?"
        )


def grad(func: Callable, argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Callable:
    """A function that returns the gradient of a function with a scalar result; with aux, (gradient, aux).

    >>> import weft as torch
    >>> torch.func.grad(torch.func.grad(torch.sin))(torch.tensor(1.0))
    tensor(-0.8415)
    """
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        gradients, value = both(*args, **kwargs)
        return (gradients, value[1]) if has_aux else gradients

    return wrapper


# What messages call these two; jacrev is made of the first, jacfwd of the second.
VJP, _JVP = "vjp(f, *primals)", "jvp(f, primals, tangents)"


def check_outputs(call: str, outputs: Sequence[Any]) -> None:
    """Raises: RuntimeError unless the outputs of a function are tensors, at least one."""
    if not outputs or len(outputs) == 1 and outputs[0] is None:
        raise RuntimeError(
            f"{call}: Expected f to be a function that has non-empty output (got output = {outputs})"
        )
    for y in outputs:
        if not isinstance(y, Tensor):
            raise RuntimeError(
                f"{call}: expected f(*primals) to return only tensors, got unsupported type {type(y)}"
            )


def _check_inputs(name: str, inputs: Sequence[Any]) -> None:
    """Raises: RuntimeError unless the primals or tangents of `jvp` are tensors, at least one."""
    if not inputs:
        raise RuntimeError(f"{_JVP}: Expected {name} to contain at least one Tensor.")
    for x in inputs:
        if not isinstance(x, Tensor):
            raise RuntimeError(f"{_JVP}: Expected {name} to only contain Tensors, got {type(x)}")


def vjp(func: Callable, *primals: Any, has_aux: bool = False) -> tuple:
    """(output, vjp_fn), and aux: `vjp_fn(*cotangents)` returns a tuple of the cotangents of `primals`.

    >>> import weft as torch
    >>> y, pull = torch.func.vjp(torch.sin, torch.tensor([0.0, 1.0]))
    >>> pull(torch.ones(2))
    (tensor([1.0000, 0.5403]),)
    """
    with running() as start, enable_grad():
        values, inputs = stand_ins(list(primals))
        output, aux = split_aux(VJP, func(*values), has_aux)
    outputs, structure = tree_flatten(output)
    check_outputs(VJP, outputs)

    def pull(*cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        cts, given = tree_flatten(cotangents[0] if len(cotangents) == 1 else cotangents)
        if len(cts) != len(outputs):
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree structure of outputs to the function. "
                f"cotangents: {given}, primal output: {structure}"
            )
        for position, (ct, y) in enumerate(zip(cts, outputs, strict=True)):
            if ct.shape != y.shape:
                raise RuntimeError(
                    f"Mismatch in shape: grad_output[{position}] has a shape of {ct.shape} and output[{position}] has a "
                    f"shape of {y.shape}."
                )
        found = pullback(outputs, inputs, cts)
        return tuple(released(like_inputs(values, inputs, found), inputs, start))

    output, aux = released((tree_unflatten(outputs, structure), aux), inputs, start)
    return (output, pull, aux) if has_aux else (output, pull)


def jvp(func: Callable, primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> tuple:
    """Compute (output, tangent of the output), and aux, of `func(*primals)`.

    >>> import weft as torch
    >>> torch.func.jvp(torch.sin, (torch.tensor(0.0),), (torch.tensor(2.0),))
    (tensor(0.), tensor(2.))
    """
    if not isinstance(primals, tuple):
        raise RuntimeError(
            f"{_JVP}: Expected primals to be a tuple. E.g. it should be valid to call f(*primals)."
        )
    leaves, structure = tree_flatten(primals)
    given, given_structure = tree_flatten(tangents)
    if len(leaves) != len(given):
        raise RuntimeError(
            f"{_JVP}: Expected primals and tangents to have the same python structure. For example, if "
            "primals is a tuple of 3 tensors, tangents also must be. Got primals with structure "
            f"{structure} and tangents with structure {given_structure}"
        )
    _check_inputs("primals", leaves)
    _check_inputs("tangents", given)
    for primal, tangent in zip(leaves, given, strict=True):
        if primal.shape != tangent.shape:
            raise RuntimeError(
                "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
                f"supported. Tensor is of size {list(primal.shape)} while the given forward gradient is of size "
                f"{list(tangent.shape)}."
            )
    check_refused()
    level = dual.open_level()

    def tangent_of(y: Tensor) -> Tensor:
        found = dual.tangents(y).get(level)
        if found is None:
            if strict:
                raise RuntimeError(
                    "jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. This is "
                    "not allowed with strict=True."
                )
            return zeros_like(y.detach())
        return found

    try:
        with running() as start, enable_grad(), _set_fwd_grad_enabled(True):
            values = [dual.with_tangent(x, level, t) for x, t in zip(leaves, given, strict=True)]
            output, aux = split_aux(_JVP, func(*tree_unflatten(values, structure)), has_aux)
            check_outputs(_JVP, tree_flatten(output)[0])
            pushed = tree_map(tangent_of, output)
        output, aux = tree_map(
            lambda y: dual.at_outer_levels(y, level) if isinstance(y, Tensor) else y, (output, aux)
        )
        del values
    finally:
        dual.close_level(level)
    output, pushed, aux = released((output, pushed, aux), (), start)
    return (output, pushed, aux) if has_aux else (output, pushed)


def linearize(func: Callable, *primals: Any) -> tuple[Any, Callable]:
    """(output, jvp_fn): `jvp_fn(*tangents)` is the tangent of the output; `func` itself runs only once.

    >>> import weft as torch
    >>> y, push = torch.func.linearize(torch.sin, torch.tensor(0.0))
    >>> push(torch.tensor(2.0)), push(torch.tensor(3.0))
    (tensor(2.), tensor(3.))
    """
    with running() as start, enable_grad():
        values, inputs = stand_ins(list(primals))
        outputs, structure = tree_flatten(func(*values))
        dummies = [require_grad(zeros_like(y.detach())) for y in outputs]
        pulled = pullback(outputs, inputs, dummies)  # linear in the dummies, so the vjp of the vjp is the jvp

    def push(*tangents: Any) -> Any:
        given, _ = tree_flatten(list(tangents))
        found = pullback(pulled, dummies, given)
        return released(tree_unflatten(found, structure), [*inputs, *dummies], start)

    return released(tree_unflatten(outputs, structure), inputs, start), push
