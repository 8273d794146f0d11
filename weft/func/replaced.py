"""Modules called with parameters and buffers that are not their own."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from ..core.restoring import contextmanager
from ..core.tensor import Tensor
from ..core.warn import user_level

__all__ = ["functional_call"]


def functional_call(
    module: Any,
    parameters_and_buffers: Mapping[str, Tensor],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """The older name of `torch.func.functional_call`."""
    warnings.warn(
        "This API is deprecated as of PyTorch 2.0 and will be removed in a future version of PyTorch. Please use "
        "torch.func.functional_call instead which is a drop-in replacement.",
        FutureWarning,
        stacklevel=user_level(),
    )
    return _functional_call(
        module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict
    )


@contextmanager
def _reparametrize_module(
    module: Any,
    parameters_and_buffers: Mapping[str, Tensor],
    tie_weights: bool = False,
    strict: bool = False,
    stack_weights: bool = False,
) -> Iterator[None]:
    """A context in which a module has the tensors at some paths replaced. The arguments are those of `_functional_call`.

    stack_weights: of tensors with several names, put those back first that came last. That changes nothing here.
    """
    tensors = _complete(module, parameters_and_buffers, tie_weights, strict)
    with _replaced(module, parameters_and_buffers, tensors):
        yield


def _functional_call(
    module: Any,
    parameters_and_buffers: Mapping[str, Tensor],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with the tensors at some paths replaced; `args` is a tuple, or the one argument.

    With `tie_weights`, a tensor that the module has under several names is replaced under all of them. `strict`
    wants all parameters and buffers, and nothing else.
    Raises: RuntimeError for keys that are missing or unexpected, if `strict`; ValueError if tied names get
    different tensors; AttributeError for a path that leads nowhere.
    """
    if args is None:
        args = ()
    elif not isinstance(args, tuple):
        args = (args,)
    tensors = _complete(module, parameters_and_buffers, tie_weights, strict)
    with _replaced(module, parameters_and_buffers, tensors):
        return module(*args, **(kwargs or {}))


def _complete(module: Any, given: Mapping[str, Tensor], tie_weights: bool, strict: bool) -> dict[str, Tensor]:
    """Compute `given`, and the other names of the tensors in it."""
    if not tie_weights and not strict:
        return dict(given)
    names = defaultdict(list)  # by the tensor they have in the module
    own: dict[str, Tensor] = {
        **dict(module.named_parameters(remove_duplicate=False)),
        **dict(module.named_buffers(remove_duplicate=False)),
    }
    for name, tensor in own.items():
        names[tensor].append(name)
    result = dict(given)
    if tie_weights:
        for tied in names.values():
            _tie(tied, given, result)
    if strict:
        _check_keys(module, own, result)
    return result


def _tie(tied: list[str], given: Mapping[str, Tensor], result: dict[str, Tensor]) -> None:
    """If one name of a tensor gets a new value, give it to all names of the tensor."""
    present = [name for name in tied if name in given]
    if len({id(given[name]) for name in present}) > 1:
        raise ValueError(
            f"functional_call got multiple values for keys {sorted(present)}, which are tied. "
            "Consider using tie_weights=False"
        )
    if present:
        result.update(dict.fromkeys(tied, given[present[0]]))


def _check_keys(module: Any, own: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    problems = []
    for kind, keys in (("Unexpected", given.keys() - own.keys()), ("Missing", own.keys() - given.keys())):
        if keys:
            problems.append(f"{kind} key(s): {', '.join(map(repr, sorted(keys)))}.")
    if problems:
        raise RuntimeError(
            f"Error(s) in reparametrizing for {type(module).__name__}:\n\t" + "\n\t".join(problems)
        )


# ---- Exchanging tensors --------------------------------------------------------------------------------------------------

# Takes the place of a tensor under a name that a module does not have.
MISSING: Any = object()


def swap_tensor(module: Any, name: str, tensor: Any, allow_missing: bool = False) -> Any:
    """Set the tensor of a name and return the old one; with `allow_missing`, return MISSING if there was none.

    Given MISSING as `tensor`, it removes the name.
    Raises: AttributeError if the module has no such name; TypeError if a value is neither a tensor nor None.
    """
    if tensor is not MISSING and tensor is not None and not isinstance(tensor, Tensor):
        raise TypeError(f"{tensor} is not an instance of torch.Tensor")
    for members in (module._parameters, module._buffers):
        if name in members:
            before = members[name]
            if tensor is MISSING:
                del members[name]
            else:
                members[name] = tensor
            return before
    before = getattr(module, name, MISSING)
    if before is MISSING and not allow_missing:
        raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
    if before is not MISSING and before is not None and not isinstance(before, Tensor):
        raise TypeError(f"attribute `{name}`: {before} is not an instance of torch.Tensor")
    if tensor is not MISSING:
        setattr(module, name, tensor)
    elif before is not MISSING:
        delattr(module, name)
    return before


def swap_tensors(module: Any, tensors: Mapping[str, Any]) -> dict[str, Any]:
    """Set the tensors at these paths, and return the old ones. If a path fails, all tensors are put back.

    A path without a tensor has MISSING in the result.
    """
    before: dict[str, Any] = {}
    try:
        for path, tensor in tensors.items():
            owner, _, name = path.rpartition(".")
            before[path] = swap_tensor(module.get_submodule(owner), name, tensor, allow_missing=True)
    except Exception:
        swap_tensors(module, _reversed(before))
        raise
    return before


def _reversed(tensors: dict[str, Any]) -> dict[str, Any]:
    """In the reverse order, because several paths may lead to one tensor."""
    return dict(reversed(tensors.items()))


@contextmanager
def _replaced(module: Any, given: Any, tensors: Mapping[str, Any]) -> Iterator[None]:
    """Within this context the tensors at these paths are others. At its end, `given` gets those that the module has set."""
    before = swap_tensors(module, tensors)
    try:
        yield
    finally:
        after = swap_tensors(module, _reversed(before))
        for path in given:
            if after[path] is not given[path]:
                given[path] = after[path]
