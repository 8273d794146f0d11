"""replicate: DistributedDataParallel for a module that stays itself, with its class's methods and its parameters' names."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ...nn.module import Module
from .._extended_class import Extension, extended
from ..data_parallel import DistributedDataParallel
from ..fsdp import FSDPModule

__all__ = ["replicate"]


class _State:
    """The DistributedDataParallel of a module. It begins with the first call, when the module is on its device."""

    def __init__(self, module: Module, ignored: set[Module], settings: dict[str, Any]):
        self.module, self.ignored, self.settings = module, ignored, settings
        self.syncs = True
        self.hooks: list[tuple[Any, Any]] = []  # the arguments of register_comm_hook
        self.parallel: DistributedDataParallel | None = None

    def before(self, module: Module, args: Any, kwargs: Any) -> None:
        if self.parallel is None:
            self.parallel = self._begun()
        self.parallel.require_backward_grad_sync = self.syncs
        self.parallel.prepare_call()

    def _begun(self) -> DistributedDataParallel:
        module = self.module
        ignored = {id(each) for part in self.ignored for each in (*part.parameters(), *part.buffers())}
        DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(
            module,
            [
                name
                for name, each in (*module.named_parameters(), *module.named_buffers())
                if id(each) in ignored
            ],
        )
        found = DistributedDataParallel(module, **self.settings)
        for args, kwargs in self.hooks:
            found.register_comm_hook(*args, **kwargs)
        return found


class DDP(Extension):
    """What `replicate` adds to the class of a module."""

    _extension_prefix, _extension_function = "DDP", "replicate"
    _replicate_state: _State

    def set_requires_gradient_sync(self, requires_gradient_sync: bool) -> None:
        """Whether backward passes average gradients. While they do not, each process adds up its own."""
        self._replicate_state.syncs = requires_gradient_sync

    def register_comm_hook(self, state: object, hook: Callable) -> None:
        """Let `hook(state, bucket)` average gradients, as in DistributedDataParallel."""
        self._replicate_state.hooks.append(((state, hook), {}))


def replicate(module: Module, ignored_modules: Iterable[Module] | None = None, **kwargs: Any) -> Module:
    """Let all processes have the same module: backward averages its gradients, as in DistributedDataParallel.

    ignored_modules: parts whose parameters and buffers each process keeps to itself. kwargs: arguments of DistributedDataParallel.

    Returns the module, whose class is a subclass now with the methods `set_requires_gradient_sync` and `register_comm_hook`.

    Raises: RuntimeError for a module to which fully_shard() or replicate() was applied.

    >>> import weft as torch
    >>> from weft.distributed._composable.replicate import replicate
    >>> dist = torch.distributed
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> model = replicate(torch.nn.Linear(2, 1))
    >>> type(model).__name__, list(model.state_dict()), model(torch.ones(3, 2)).shape
    ('DDPLinear', ['weight', 'bias'], torch.Size([3, 1]))
    >>> dist.destroy_process_group()
    """
    for kind, name in ((FSDPModule, "fully_shard"), (DDP, "replicate")):
        if isinstance(module, kind):
            raise RuntimeError(f"Cannot apply `replicate()` on a Module already managed by `{name}`")
    state = _State(module, set(ignored_modules or ()), kwargs)
    module.__dict__["_replicate_state"] = state
    module.register_forward_pre_hook(state.before, with_kwargs=True)
    module.__class__ = extended(type(module), DDP)
    return module
