"""The state of a module as a dictionary, and the checks when a module loads one."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ..autograd.handles import RemovableHandle
from ..autograd.parameter import Parameter, is_lazy
from ..autograd.swapping import swap_tensors
from ..core.grad_mode import no_grad
from ..core.tensor import Tensor
from ..core.warn import user_level
from . import conversion_settings as future

if TYPE_CHECKING:
    from .module import Module

_EXTRA_STATE = "_extra_state"


class _IncompatibleKeys(NamedTuple):
    """The keys that `load_state_dict` found only in the module or only in the dictionary."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"

    def __str__(self) -> str:
        return repr(self)


class State:
    """The part of `Module` that saves and loads parameters and buffers."""

    _version: int = 1  # the version of the layout of a class's state, for subclasses that change their layout

    if TYPE_CHECKING:
        _parameters: dict[str, Parameter | None]
        _buffers: dict[str, Tensor | None]
        _modules: dict[str, Module | None]
        _non_persistent_buffers_set: set[str]
        _state_dict_hooks: dict[int, Any]
        _state_dict_pre_hooks: dict[int, Any]
        _load_state_dict_pre_hooks: dict[int, Any]
        _load_state_dict_post_hooks: dict[int, Any]

    # ---- Saving ------------------------------------------------------------------------------------------------------

    def state_dict(
        self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> dict[str, Any]:
        """Return an OrderedDict from paths to all parameters and persistent buffers.

        The tensors share memory with those of the module and are detached, unless `keep_vars`. Its attribute `_metadata`
        has the version of each module's layout.

        >>> import weft as torch
        >>> module = torch.nn.Module()
        >>> module.scale = torch.nn.Parameter(torch.ones(1))
        >>> module.state_dict()
        OrderedDict(...)
        """
        if args:
            destination, prefix, keep_vars = _positional(args, destination, prefix, keep_vars)
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = metadata
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        for hook in self._state_dict_hooks.values():
            result = hook(self, destination, prefix, metadata)
            if getattr(hook, "_from_public_api", False):
                if result is not None:
                    raise RuntimeError("state_dict post-hook must return None")
            elif result is not None:
                destination = result
        return destination

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        """Write the state of this module, without its children, into `destination`."""
        for name, tensor in self._own_state().items():
            destination[prefix + name] = tensor if keep_vars or is_lazy(tensor) else tensor.detach()
        if _overrides(self, "get_extra_state"):
            destination[prefix + _EXTRA_STATE] = self.get_extra_state()

    def _own_state(self) -> dict[str, Tensor]:
        buffers = {k: v for k, v in self._buffers.items() if k not in self._non_persistent_buffers_set}
        return {name: tensor for name, tensor in (self._parameters | buffers).items() if tensor is not None}

    def get_extra_state(self) -> Any:
        """Return the state that a subclass saves in addition to tensors."""
        raise RuntimeError(f"{type(self).__name__} has no extra state: it does not define get_extra_state()")

    def set_extra_state(self, state: Any) -> None:
        """Restore the state that `get_extra_state` returned."""
        raise RuntimeError(f"{type(self).__name__} has no extra state: it does not define set_extra_state()")

    # ---- Loading -----------------------------------------------------------------------------------------------------

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> _IncompatibleKeys:
        """Copy the values of a state_dict into the module; with `assign` use the tensors themselves.

        Returns the keys that only the module or only the state_dict has, which are an error if `strict`.
        Raises: RuntimeError that lists all keys that are missing or unexpected and all shapes that differ.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        metadata = getattr(state_dict, "_metadata", {})
        values: dict[str, Any] = OrderedDict(state_dict)
        values._metadata = metadata  # type: ignore[attr-defined]
        keys = _IncompatibleKeys([], [])
        errors: list[str] = []
        _load(self, values, metadata, "", assign, keys, errors)
        if strict:
            kinds = (("Missing", keys.missing_keys), ("Unexpected", keys.unexpected_keys))
            errors[:0] = [
                f"{kind} key(s) in state_dict: {', '.join(map(_quoted, names))}. "
                for kind, names in kinds
                if names
            ]
        if errors:
            raise RuntimeError(
                f"Error(s) in loading state_dict for {type(self).__name__}:\n\t" + "\n\t".join(errors)
            )
        return keys

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Load the state of this module, without its children, from `state_dict`; subclasses extend this method.

        It adds errors to the three lists. `strict` says whether to look for missing and unexpected keys.
        """
        for hook in self._load_state_dict_pre_hooks.values():
            hook(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        own = self._own_state()
        assign = local_metadata.get("assign_to_params_buffers", False)
        for name, target in own.items():
            key = prefix + name
            if key in state_dict:
                problem = self._load_one(name, key, target, state_dict[key], assign)
                if problem:
                    error_msgs.append(problem)
            elif strict:
                missing_keys.append(key)
        extra = prefix + _EXTRA_STATE
        if _overrides(self, "set_extra_state"):
            if extra in state_dict:
                self.set_extra_state(state_dict[extra])
            elif strict:
                missing_keys.append(extra)
        elif strict and extra in state_dict:
            unexpected_keys.append(extra)
        if strict:
            unexpected_keys += (
                key for key in state_dict if key != extra and self._unexpected(key, prefix, own)
            )

    def _unexpected(self, key: str, prefix: str, own: dict[str, Any]) -> bool:
        """Return whether a key under `prefix` names neither a tensor of this module nor a child."""
        if not key.startswith(prefix):
            return False
        name, dot, _ = key.removeprefix(prefix).partition(".")
        return name not in (self._modules if dot else own)

    def _load_one(self, name: str, key: str, target: Tensor, value: Any, assign: bool) -> str | None:
        """Load one tensor. Returns an error message if it does not fit."""
        if not isinstance(value, Tensor):
            return (
                f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like object from '
                f"checkpoint but received {type(value)}"
            )
        # The value has no shape either, or else `target` would have the shape of the value.
        if is_lazy(target):
            return None
        if target.shape == () and value.dim() == 1:
            value = value[0]  # older versions saved scalars as vectors of one element
        if value.shape != target.shape:
            return (
                f"size mismatch for {key}: copying a param with shape {value.shape} from checkpoint, "
                f"the shape in current model is {target.shape}."
            )
        if target.is_meta and not value.is_meta and not assign:
            warnings.warn(
                f"for {key}: copying from a non-meta parameter in the checkpoint to a meta parameter in the current "
                "model, which is a no-op. (Did you mean to pass `assign=True` to assign items in the state dictionary "
                "to their corresponding key in the module instead of copying them in place?)",
                stacklevel=user_level(),
            )
        swap = future.get_swap_module_params_on_conversion()
        try:
            with no_grad():
                if swap:
                    _swap(target, value, assign)
                elif assign:
                    setattr(self, name, _assignable(value, target))
                else:
                    target.copy_(value)
        except Exception as error:
            action = "swapping" if swap else "assigning" if assign else "copying"
            return (
                f'While {action} the parameter named "{key}", whose dimensions in the '
                f"model are {target.shape} and whose dimensions in the checkpoint are {value.shape}, an exception "
                f"occurred : {error.args}."
            )
        return None

    # ---- Hooks -------------------------------------------------------------------------------------------------------

    def register_state_dict_pre_hook(self, hook: Any) -> RemovableHandle:
        """Have `hook(module, prefix, keep_vars)` called before `state_dict` looks at the module."""
        return _register(self._state_dict_pre_hooks, hook)

    def register_state_dict_post_hook(self, hook: Any) -> RemovableHandle:
        """Have `hook(module, state_dict, prefix, local_metadata)` called after `state_dict`; it may change the dict."""
        hook._from_public_api = True
        return _register(self._state_dict_hooks, hook)

    def _register_state_dict_hook(self, hook: Any) -> RemovableHandle:
        """Register a hook as `register_state_dict_post_hook` does; the result of this hook replaces the state_dict."""
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError(
                "Cannot register the same function as the state dict post hook that was "
                "previously registered via register_state_dict_post_hook"
            )
        return _register(self._state_dict_hooks, hook)

    def register_load_state_dict_pre_hook(self, hook: Any) -> RemovableHandle:
        """Have `hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)`
        called before the module's own state is loaded."""
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def _register_load_state_dict_pre_hook(self, hook: Any, with_module: bool = False) -> RemovableHandle:
        """Register a hook as `register_load_state_dict_pre_hook` does; it gets the module only if `with_module`."""
        return _register(self._load_state_dict_pre_hooks, hook if with_module else _WithoutModule(hook))

    def register_load_state_dict_post_hook(self, hook: Any) -> RemovableHandle:
        """Have `hook(module, incompatible_keys)` called after the module is loaded; it may change the two lists."""
        return _register(self._load_state_dict_post_hooks, hook)


class _WithoutModule(NamedTuple):
    """Calls a hook without the module."""

    hook: Any

    def __call__(self, module: Any, *args: Any) -> Any:
        return self.hook(*args)


def _register(registry: dict[int, Any], hook: Any) -> RemovableHandle:
    handle = RemovableHandle(registry)
    registry[handle.id] = hook
    return handle


def _positional(args: tuple, destination: Any, prefix: str, keep_vars: bool) -> tuple[Any, str, bool]:
    """Return the arguments of state_dict that were given without names."""
    warnings.warn(
        "Positional args are being deprecated, use kwargs instead. Refer to "
        "https://pytorch.org/docs/main/generated/torch.nn.Module.html#torch.nn.Module.state_dict for details.",
        FutureWarning,
        stacklevel=user_level(),
    )
    given = (destination, prefix, keep_vars)
    return (*args, *given[len(args) :])[:3]  # type: ignore[return-value]


def _load(
    module: Any,
    values: dict[str, Any],
    metadata: Any,
    prefix: str,
    assign: bool,
    keys: _IncompatibleKeys,
    errors: list[str],
) -> None:
    """Load a module and all inside; `values` has the keys under `prefix`."""
    own_metadata = {} if metadata is None else dict(metadata.get(prefix[:-1], {}))
    if assign:
        own_metadata["assign_to_params_buffers"] = True
    module._load_from_state_dict(
        values, prefix, own_metadata, True, keys.missing_keys, keys.unexpected_keys, errors
    )
    for name, child in module._modules.items():
        if child is not None:
            path = f"{prefix}{name}."
            inside = {key: value for key, value in values.items() if key.startswith(path)}
            _load(child, inside, metadata, path, assign, keys, errors)
    for hook in module._load_state_dict_post_hooks.values():
        if hook(module, keys) is not None:
            raise AssertionError(
                "Hooks registered with ``register_load_state_dict_post_hook`` are not expected to return new values, "
                "if incompatible_keys need to be modified, it should be done inplace."
            )


def _swap(target: Tensor, value: Tensor, assign: bool) -> None:
    """Swap a tensor of the module with what its method `module_load` makes of the loaded one."""
    new = target.module_load(value, assign=assign)
    if new is value or new is target:
        raise RuntimeError(
            "module_load returned one of self or other, please .detach() the result if returning one of the inputs in "
            "module_load"
        )
    swap_tensors(target, _assignable(new, target))


def _assignable(value: Tensor, target: Tensor) -> Tensor:
    """Return `value` as a Parameter with the `requires_grad` of `target`, or as a plain tensor if `target` is one."""
    if not isinstance(target, Parameter):
        return value
    if isinstance(value, Parameter):
        return value.requires_grad_(target.requires_grad)
    return Parameter(value, target.requires_grad)


def _overrides(module: State, name: str) -> bool:
    return getattr(type(module), name) is not getattr(State, name)


def _quoted(name: str) -> str:
    return f'"{name}"'
