"""Hooks of modules are functions that run around `forward` and when gradients pass."""

from __future__ import annotations

import itertools
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from ..autograd.handles import RemovableHandle
from ..core.warn import user_level
from .backward_hooks import Passage, hook_last_node

# The dictionaries of hooks that every module has, by handle id.
REGISTRIES = (
    "_backward_pre_hooks", "_backward_hooks", "_forward_hooks", "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called", "_forward_pre_hooks", "_forward_pre_hooks_with_kwargs",
    "_state_dict_hooks", "_state_dict_pre_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks",
)  # fmt: skip

Registry = OrderedDict  # handle id -> hook

# ---- Hooks of all modules -----------------------------------------------------------------------------------------------

# Every dictionary that a call must read, so that a call without hooks makes one test.
any_global: Registry = OrderedDict()
_global_forward_pre: Registry = OrderedDict()
_global_forward: Registry = OrderedDict()
_global_with_kwargs: Registry = OrderedDict()
_global_always: Registry = OrderedDict()
_global_backward_pre: Registry = OrderedDict()
_global_backward: Registry = OrderedDict()  # full backward hooks
_global_last_node: Registry = OrderedDict()  # old backward hooks
parameter_registration: Registry = OrderedDict()
buffer_registration: Registry = OrderedDict()
module_registration: Registry = OrderedDict()

# PyTorch's names for these dictionaries. Programs assign an empty one to them, in order to remove all hooks.
_HOOKS: dict[str, tuple[Registry, ...]] = {
    "_global_forward_pre_hooks": (_global_forward_pre,),
    "_global_forward_hooks": (_global_forward,),
    "_global_backward_pre_hooks": (_global_backward_pre,),
    "_global_backward_hooks": (_global_backward, _global_last_node),
}
GLOBAL = {
    **_HOOKS,
    "_global_forward_hooks_with_kwargs": (_global_with_kwargs,),
    "_global_forward_hooks_always_called": (_global_always,),
    "_global_parameter_registration_hooks": (parameter_registration,),
    "_global_buffer_registration_hooks": (buffer_registration,),
    "_global_module_registration_hooks": (module_registration,),
}


def replace_global(name: str, hooks: Registry) -> None:
    """Have the hooks `hooks` of all modules, instead of those in the dictionary that PyTorch calls `name`."""
    new = dict(hooks)
    for registry in GLOBAL[name]:
        registry.clear()
    GLOBAL[name][0].update(new)
    any_global.clear()
    for registry in itertools.chain(*_HOOKS.values()):
        any_global.update(dict.fromkeys(registry, True))


def register_module_forward_pre_hook(hook: Callable) -> RemovableHandle:
    """Have `hook(module, args)` called before `forward` of every module; its result replaces the arguments."""
    return _register(hook, _global_forward_pre, any_global)


def register_module_forward_hook(
    hook: Callable, *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Have `hook(module, args, output)` called after `forward` of every module; its result replaces the output."""
    marks = ([_global_with_kwargs] if with_kwargs else []) + ([_global_always] if always_call else [])
    return _register(hook, _global_forward, any_global, *marks)


def register_module_full_backward_pre_hook(hook: Callable) -> RemovableHandle:
    """Have `hook(module, grad_output)` called before backward of every module; its result replaces the gradients."""
    return _register(hook, _global_backward_pre, any_global)


def register_module_full_backward_hook(hook: Callable) -> RemovableHandle:
    """Have `hook(module, grad_input, grad_output)` called after backward of every module; its result replaces
    the gradients of the inputs."""
    if _global_last_node:
        raise RuntimeError(_TWO_KINDS.format("as a global Module hook"))
    return _register(hook, _global_backward, any_global)


def register_module_backward_hook(hook: Callable) -> RemovableHandle:
    """The older kind of backward hook, which sees the gradients of the last step of `forward` only."""
    if _global_backward:
        raise RuntimeError(_TWO_KINDS.format("as a global Module hook"))
    return _register(hook, _global_last_node, any_global)


_TWO_KINDS = "Cannot use both regular backward hooks and full backward hooks {}. Please use only one of them."


def register_module_parameter_registration_hook(hook: Callable) -> RemovableHandle:
    """Have `hook(module, name, param)` called for every new parameter; the hook's result takes its place."""
    return _register(hook, parameter_registration)


def register_module_buffer_registration_hook(hook: Callable) -> RemovableHandle:
    """Have `hook(module, name, buffer)` called for every new buffer; the hook's result takes its place."""
    return _register(hook, buffer_registration)


def register_module_module_registration_hook(hook: Callable) -> RemovableHandle:
    """Have `hook(module, name, submodule)` called for every new child; the hook's result takes its place."""
    return _register(hook, module_registration)


def registered(registry: Registry, module: Any, name: str, value: Any) -> Any:
    """Return `value`, or the replacement that the last registration hook with a result returned."""
    for hook in registry.values():
        result = hook(module, name, value)
        if result is not None:
            value = result
    return value


def _register(hook: Callable, registry: Registry, *marks: Registry, prepend: bool = False) -> RemovableHandle:
    """Add a hook to its registry, and its id to the registries of its options."""
    handle = RemovableHandle(registry, extra_dict=list(marks))
    registry[handle.id] = hook
    if prepend:
        registry.move_to_end(handle.id, last=False)
    for mark in marks:
        mark[handle.id] = True
    return handle


# ---- Hooks of one module ------------------------------------------------------------------------------------------------


class Hooks:
    """The part of `Module` that has hooks for calls."""

    if TYPE_CHECKING:
        forward: Callable
        _is_full_backward_hook: bool | None
        _backward_pre_hooks: Registry
        _backward_hooks: Registry
        _forward_hooks: Registry
        _forward_hooks_with_kwargs: Registry
        _forward_hooks_always_called: Registry
        _forward_pre_hooks: Registry
        _forward_pre_hooks_with_kwargs: Registry

    def register_forward_pre_hook(
        self, hook: Callable, *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Have `hook(module, args)` called before `forward`; its result replaces the arguments.

        With `with_kwargs`, `hook(module, args, kwargs)`, which returns None or a pair. `prepend` puts it first.
        """
        marks = [self._forward_pre_hooks_with_kwargs] if with_kwargs else []
        return _register(hook, self._forward_pre_hooks, *marks, prepend=prepend)

    def register_forward_hook(
        self, hook: Callable, *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> RemovableHandle:
        """Have `hook(module, args, output)` called after `forward`; its result replaces the output.

        With `with_kwargs`, `hook(module, args, kwargs, output)`. With `always_call` it is called after an error too.

        >>> import weft as torch
        >>> class Twice(torch.nn.Module):
        ...     def forward(self, x):
        ...         return 2 * x
        >>> twice = Twice()
        >>> handle = twice.register_forward_hook(lambda module, args, output: output + 1)
        >>> twice(torch.tensor(1))
        tensor(3)
        >>> handle.remove(); twice(torch.tensor(1))
        tensor(2)
        """
        marks = [self._forward_hooks_with_kwargs] if with_kwargs else []
        marks += [self._forward_hooks_always_called] if always_call else []
        return _register(hook, self._forward_hooks, *marks, prepend=prepend)

    def register_full_backward_pre_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Have `hook(module, grad_output)` called when the gradients of the outputs are known; its result
        replaces them."""
        return _register(hook, self._backward_pre_hooks, prepend=prepend)

    def register_full_backward_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Have `hook(module, grad_input, grad_output)` called when the gradients of the inputs are known; its
        result replaces them. Both are tuples, with None for values that are not tensors.

        >>> import weft as torch
        >>> module = torch.nn.Sequential()
        >>> handle = module.register_full_backward_hook(lambda module, grad_input, grad_output: (grad_input[0] * 2,))
        >>> x = torch.ones(2, requires_grad=True)
        >>> module(x).sum().backward(); x.grad
        tensor([2., 2.])
        """
        self._set_kind(full=True)
        return _register(hook, self._backward_hooks, prepend=prepend)

    def register_backward_hook(self, hook: Callable) -> RemovableHandle:
        """The older kind of backward hook, which sees the gradients of the last step of `forward` only."""
        self._set_kind(full=False)
        return _register(hook, self._backward_hooks)

    def _set_kind(self, full: bool) -> None:
        if self._is_full_backward_hook is (not full):
            raise RuntimeError(_TWO_KINDS.format("on a single Module"))
        self._is_full_backward_hook = full

    def _call_with_hooks(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        called: set[int] = set()
        try:
            return self._hooked_forward(args, kwargs, called)
        except Exception:
            self._call_rest(args, kwargs, called)
            raise

    def _hooked_forward(self, args: tuple, kwargs: dict[str, Any], called: set[int]) -> Any:
        for id, hook in _both(_global_forward_pre, self._forward_pre_hooks):
            args, kwargs = self._call_pre_hook(id, hook, args, kwargs)
        passage = self._passage()
        if passage:
            args = passage.enter(args)
        result = self.forward(*args, **kwargs)
        for id, hook in _both(_global_forward, self._forward_hooks):
            called.add(id)
            replaced = self._call_forward_hook(id, hook, args, kwargs, result)
            if replaced is not None:
                result = replaced
        if passage:
            result = passage.leave(result)
        last_node = self._get_backward_hooks()[1]
        if last_node:
            hook_last_node(self, last_node, args, result)
        return result

    def _passage(self) -> Passage | None:
        """Return the Passage that calls the full backward hooks, or None without hooks."""
        hooks, pre_hooks = self._get_backward_hooks()[0], self._get_backward_pre_hooks()
        return Passage(self, hooks, pre_hooks) if hooks or pre_hooks else None

    def _get_backward_hooks(self) -> tuple[list[Callable], list[Callable]]:
        """Return the full backward hooks of all modules and of this one, and the old hooks."""
        full = [*_global_backward.values(), *self._own_backward_hooks(full=True)]
        return full, [*_global_last_node.values(), *self._own_backward_hooks(full=False)]

    def _get_backward_pre_hooks(self) -> list[Callable]:
        return [*_global_backward_pre.values(), *self._backward_pre_hooks.values()]

    def _own_backward_hooks(self, full: bool) -> Iterable[Callable]:
        return self._backward_hooks.values() if self._is_full_backward_hook is full else ()

    def _call_pre_hook(self, id: int, hook: Callable, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        if id in self._forward_pre_hooks_with_kwargs:
            result = hook(self, args, kwargs)
            if result is None:
                return args, kwargs
            if not (isinstance(result, tuple) and len(result) == 2):
                raise RuntimeError(
                    f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {result}."
                )
            return result
        result = hook(self, args)
        if result is None:
            return args, kwargs
        return (result if isinstance(result, tuple) else (result,)), kwargs

    def _call_forward_hook(self, id: int, hook: Callable, args: tuple, kwargs: dict, result: Any) -> Any:
        if id in self._forward_hooks_with_kwargs or id in _global_with_kwargs:
            return hook(self, args, kwargs, result)
        return hook(self, args, result)

    def _call_rest(self, args: tuple, kwargs: dict[str, Any], called: set[int]) -> None:
        """After an error, call the remaining hooks that are registered with `always_call`."""
        for id, hook in _both(_global_forward, self._forward_hooks):
            always = id in self._forward_hooks_always_called or id in _global_always
            if always and id not in called:
                try:
                    self._call_forward_hook(id, hook, args, kwargs, None)
                except Exception as error:
                    warnings.warn(
                        "module forward hook with ``always_call=True`` raised an exception that was silenced as another "
                        f"error was raised in forward: {error}",
                        stacklevel=user_level(),
                    )


def _both(of_all: Registry, own: Registry) -> Iterator[tuple[int, Callable]]:
    """Return a copy of the hooks of all modules and then the module's, because a hook may remove itself."""
    return itertools.chain(list(of_all.items()), list(own.items()))
