"""A module contains parameters, buffers and other modules by name, and can iterate over them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from ..autograd.parameter import Parameter
from ..core.tensor import Tensor
from ..ops.tensor.predicates import typename
from . import hooks

if TYPE_CHECKING:
    from .module import Module


def is_buffer(value: Any) -> bool:
    """Whether a module may hold the value as a buffer."""
    return value is None or isinstance(value, Tensor) or hasattr(value, "__torch_function__")


class Members:
    """The part of `Module` that holds parameters, buffers and other modules."""

    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Module | None]
    _non_persistent_buffers_set: set[str]

    # ---- Registration ------------------------------------------------------------------------------------------------

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter; None reserves the name.

        Raises: KeyError for a name that is empty, taken or has a dot in it; TypeError for anything but a Parameter;
        ValueError for the result of a recorded operation.
        """
        self._check_name("parameter", "_parameters", name)
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(
                f"cannot assign '{typename(param)}' object to parameter '{name}' (torch.nn.Parameter or None required)"
            )
        if param is not None and param.grad_fn is not None:
            raise ValueError(
                f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created explicitly. "
                f"To express '{name}' as a function of another Tensor, compute the value in the forward() method."
            )
        self._parameters[name] = hooks.registered(hooks.parameter_registration, self, name, param)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a tensor that is not trained but belongs to the module's state, unless `persistent` is False.

        Raises: KeyError for a name that is empty, taken or has a dot in it; TypeError for anything but a Tensor or an object
        that overrides functions of tensors.
        """
        self._check_name("buffer", "_buffers", name)
        if not is_buffer(tensor):
            raise TypeError(
                f"cannot assign '{typename(tensor)}' object to buffer '{name}' (torch Tensor or None required)"
            )
        self._buffers[name] = hooks.registered(hooks.buffer_registration, self, name, tensor)
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Add a child, under a name that need not be an identifier.

        Raises: KeyError for a name that is empty, taken or has a dot in it; TypeError for anything but a Module.
        """
        if module is not None and not isinstance(module, Members):
            several = (
                "\nSeveral modules are given one by one: *modules"
                if isinstance(module, (list, tuple))
                else ""
            )
            raise TypeError(f"{typename(module)} is not a Module subclass{several}")
        self._check_name("module", "_modules", name)
        self._modules[name] = hooks.registered(hooks.module_registration, self, name, module)

    def register_module(self, name: str, module: Module | None) -> None:
        """Add a child; it is another name of `add_module`."""
        self.add_module(name, module)

    def _check_name(self, kind: str, place: str, name: Any) -> None:
        if place not in self.__dict__:
            raise AttributeError(f"cannot assign {kind} before Module.__init__() call")
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {typename(name)}")
        if name not in self.__dict__[place] and hasattr(self, name):
            raise KeyError(f"attribute '{name}' already exists")
        if "." in name:
            got = f", got: {name}" if kind == "module" else ""
            raise KeyError(f'{kind} name can\'t contain "."{got}')
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')

    # ---- By path -----------------------------------------------------------------------------------------------------

    def get_submodule(self, target: str) -> Module:
        """Return the module at a path of names with dots between them; "" is this module.

        Raises: AttributeError if there is none.
        """
        module: Any = self
        for name in target.split(".") if target else ():
            module = module._member(name)
            if not isinstance(module, Members):
                raise AttributeError(f"`{name}` is not an nn.Module")
        return module

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Replace the module at a path, or add one; with `strict` only replace.

        Raises: AttributeError if the path leads nowhere, ValueError if it is empty or `module` is not a Module.
        """
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, Members):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        path, _, name = target.rpartition(".")
        parent: Any = self.get_submodule(path)
        if strict or hasattr(parent, name):
            parent.get_submodule(name)
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """Return the parameter at a path. Raises: AttributeError if there is none."""
        path, _, name = target.rpartition(".")
        found = self.get_submodule(path)._member(name)
        if not isinstance(found, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return found

    def get_buffer(self, target: str) -> Tensor:
        """Return the buffer at a path. Raises: AttributeError if there is none."""
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        found = module._member(name)
        if name not in module._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return found

    def _member(self, name: str) -> Any:
        if not hasattr(self, name):
            raise AttributeError(f"{type(self).__name__} has no attribute `{name}`")
        return getattr(self, name)

    # ---- Walking -----------------------------------------------------------------------------------------------------

    def named_modules(
        self, memo: set[Any] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """Yield (path, module) of this module and all inside, parents first; with `remove_duplicate` each only once."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, _joined(prefix, name), remove_duplicate)

    def modules(self, remove_duplicate: bool = True) -> Iterator[Any]:
        """Yield this module and all inside, parents first."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_children(self) -> Iterator[tuple[str, Any]]:
        """Yield (name, module) of the modules directly inside, each once."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator[Any]:
        """Yield the modules directly inside, each once."""
        for _, module in self.named_children():
            yield module

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Yield (path, parameter) of this module and, if `recurse`, of all inside; each once if `remove_duplicate`.

        >>> import weft as torch
        >>> module = torch.nn.Module()
        >>> module.scale = torch.nn.Parameter(torch.ones(1))
        >>> [name for name, _ in module.named_parameters(prefix="net")]
        ['net.scale']
        """
        yield from self._named_members(
            lambda module: module._parameters.items(), prefix, recurse, remove_duplicate
        )

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Yield the parameters of this module and, if `recurse`, of all inside, each once."""
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Yield (path, buffer) of this module and, if `recurse`, of all inside; each once if `remove_duplicate`."""
        yield from self._named_members(
            lambda module: module._buffers.items(), prefix, recurse, remove_duplicate
        )

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Yield the buffers of this module and, if `recurse`, of all inside, each once."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def _named_members(
        self,
        get_members_fn: Callable[[Any], Iterable[tuple[str, Any]]],
        prefix: str = "",
        recurse: bool = True,
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Any]]:
        seen = set()
        modules: Iterable[tuple[str, Any]] = [(prefix, self)]
        if recurse:
            modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
        for path, module in modules:
            for name, member in get_members_fn(module):
                if member is None or member in seen:
                    continue
                if remove_duplicate:
                    seen.add(member)
                yield _joined(path, name), member


def _joined(prefix: str, name: str) -> str:
    return f"{prefix}.{name}" if prefix else name
