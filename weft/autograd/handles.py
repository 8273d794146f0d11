"""Handles that remove registered hooks."""

from __future__ import annotations

import itertools
import warnings
import weakref
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from ..core.warn import user_level

_ids = itertools.count()


class RemovableHandle:
    """Takes a hook out of the dictionary that it was registered in; as a context manager, at the end of the block.

    `extra_dict` is one more dictionary, or several, that say something about the hook under the same id.

    >>> hooks = {}
    >>> handle = RemovableHandle(hooks)
    >>> hooks[handle.id] = print
    >>> handle.remove(); hooks
    {}
    """

    def __init__(self, hooks_dict: Any, *, extra_dict: Any = None):
        self.id = next(id for id in _ids if id not in hooks_dict)  # unpickled hooks have ids of their own
        self.hooks_dict_ref = _Dict(hooks_dict)
        self.extra_dict_ref = tuple(_Dict(each) for each in _several(extra_dict))

    def remove(self) -> None:
        """Remove the hook, unless it or its owner is gone."""
        for each in (self.hooks_dict_ref, *self.extra_dict_ref):
            hooks = each()
            if hooks is not None:
                hooks.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exception: Any) -> None:
        self.remove()


def _several(extra: Any) -> Sequence[Any]:
    if extra is None:
        return ()
    return extra if isinstance(extra, (list, tuple)) else (extra,)


class _Dict:
    """A reference to a dictionary. It is weak where the type allows it, so that a handle keeps no module alive."""

    __slots__ = ("_get",)

    def __init__(self, hooks: Any):
        self._get = (lambda: hooks) if type(hooks) is dict else weakref.ref(hooks)

    def __call__(self) -> Any:
        return self._get()

    def __reduce__(self) -> tuple:
        hooks = self._get()
        return _Dict, (OrderedDict() if hooks is None else hooks,)


def unserializable_hook(f: Any) -> Any:
    """Decorator of a hook of tensors: whoever saves such a tensor is warned that the hook is lost."""
    f.__torch_unserializable__ = True
    return f


def warn_if_has_hooks(tensor: Any) -> None:
    """Warn of the hooks of a tensor that are lost when it is saved."""
    for hook in (getattr(tensor, "_backward_hooks", None) or {}).values():
        if not hasattr(hook, "__torch_unserializable__"):
            warnings.warn(
                f"backward hook {hook!r} on tensor will not be serialized.  If this is expected, you can decorate the "
                "function with @torch.utils.hooks.unserializable_hook to suppress this warning",
                stacklevel=user_level(),
            )


class BackwardHook:
    """The full backward hooks of one call of a module: `setup_input_hook(args)` before it, `setup_output_hook` after.

    The hooks get the gradients of the inputs and of the outputs once both are known.
    """

    def __init__(self, module: Any, user_hooks: Any, user_pre_hooks: Any) -> None:
        self.module, self.user_hooks, self.user_pre_hooks = module, list(user_hooks), list(user_pre_hooks)
        self._inputs: tuple = ()
        self._outputs: tuple | None = None

    def setup_input_hook(self, args: tuple) -> tuple:
        """Watch the tensors of the arguments; the arguments as they are to be used."""
        from .graph import register_multi_grad_hook

        tensors = [each for each in args if hasattr(each, "requires_grad") and each.requires_grad]
        places = [place for place, each in enumerate(args) if any(each is other for other in tensors)]
        if tensors and self.user_hooks:

            def called(gradients: Sequence[Any]) -> None:
                found: list[Any] = [None] * len(args)
                for place, gradient in zip(places, gradients, strict=True):
                    found[place] = gradient
                for hook in self.user_hooks:
                    if hook(self.module, tuple(found), self._outputs) is not None:
                        raise NotImplementedError(
                            "BackwardHook: a hook that replaces gradients of inputs; register it with "
                            "Module.register_full_backward_hook"
                        )

            register_multi_grad_hook(tensors, called)
        return args

    def setup_output_hook(self, args: Any) -> Any:
        """Watch the tensors of the results; the results as they are to be used."""
        from .graph import register_multi_grad_hook

        results = args if isinstance(args, tuple) else (args,)
        tensors = [each for each in results if hasattr(each, "requires_grad") and each.requires_grad]
        if tensors:

            def called(gradients: Sequence[Any]) -> None:
                self._outputs = tuple(gradients)
                for hook in self.user_pre_hooks:
                    hook(self.module, self._outputs)

            register_multi_grad_hook(tensors, called)
        return args
