"""Module is the base class of layers and models."""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Callable
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeVar

from ..autograd.parameter import Buffer, Parameter
from ..core.above import above
from ..core.constructors import name_constructor
from ..core.registry import FUNCTIONS
from ..core.tensor import Tensor
from ..families.native_calls import when_installed
from ..ops.tensor.predicates import typename
from . import hooks, members, state
from .conversion import Conversion
from .hooks import Hooks
from .members import Members, is_buffer
from .native_attributes import NativeAttributes
from .state import State

M = TypeVar("M", bound="Module")

if TYPE_CHECKING:
    from typing import ParamSpec, Protocol

    P = ParamSpec("P")
    R = TypeVar("R", covariant=True)

    class _Forward(Protocol[P, R]):
        def forward(self, *args: P.args, **kwargs: P.kwargs) -> R: ...


def _keep_functions(cls: type) -> None:
    """Make public functions static that are attributes of a class, such as `conv = torch.conv2d`.

    They are builtins in PyTorch, which do not become methods. Functions of Python would.
    """
    for name, value in list(vars(cls).items()):
        if type(value) is FunctionType and FUNCTIONS.get(value.__name__) is value:
            setattr(cls, name, staticmethod(value))


def _forward_unimplemented(self: Module, *input: Any) -> Any:
    """Compute the output; every subclass defines this method."""
    raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')


class Module(Members, Hooks, State, Conversion):
    """The base class of all layers and models has parameters, buffers and other modules, and computes by `forward`.

    Attributes that are Parameters or Modules are found by `parameters()`, `modules()` and `state_dict()`. The base
    classes hold what it does besides computing: `Members` (what it contains), `Hooks`, `State` (saving and
    loading) and `Conversion` (dtype and device).

    >>> import weft as torch
    >>> class Scale(torch.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.factor = torch.nn.Parameter(torch.tensor(2.0))
    ...
    ...     def forward(self, x):
    ...         return x * self.factor
    >>> with torch.no_grad():
    ...     Scale()(torch.tensor([1.0, 2.0]))
    tensor([2., 4.])
    """

    dump_patches: bool = False
    call_super_init: bool = (
        False  # whether __init__ calls that of the next class in the method resolution order
    )

    _compiled_call_impl: Any = None  # PyTorch stores the compiled call here; weft has none

    training: bool
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Module | None]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not self.call_super_init:
            self._refuse(args, kwargs)
        # Write into __dict__, because __setattr__ is slow.
        self.__dict__.update(
            training=True,
            _parameters={},
            _buffers={},
            _non_persistent_buffers_set=set(),
            _is_full_backward_hook=None,
            **{name: OrderedDict() for name in hooks.REGISTRIES},
            _modules={},
        )
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        _keep_functions(cls)
        if cls.__init__ is not Module.__init__:  # that one asks for the class itself
            name_constructor(cls)
        if _attributes.installed:
            _attributes.put(cls)

    def _refuse(self, args: tuple, kwargs: dict[str, Any]) -> None:
        name = type(self).__name__
        if kwargs:
            raise TypeError(f"{name}.__init__() got an unexpected keyword argument '{next(iter(kwargs))}'")
        if args:
            raise TypeError(f"{name}.__init__() takes 1 positional argument but {len(args) + 1} were given")

    # An attribute, so that type checkers let `forward` of subclasses have any parameters.
    forward: Callable[..., Any] = _forward_unimplemented

    if TYPE_CHECKING:  # a call takes the arguments of `forward`, and has its result

        def __call__(self: _Forward[P, R], *args: P.args, **kwargs: P.kwargs) -> R: ...

    else:

        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            if (
                self._forward_hooks
                or self._forward_pre_hooks
                or self._backward_hooks
                or self._backward_pre_hooks
                or hooks.any_global
            ):
                return self._call_with_hooks(args, kwargs)
            try:
                return self.forward(*args, **kwargs)
            except Exception as error:
                self._explain(error, args)
                raise

    def _call_impl(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module; libraries wrap the method of this name."""
        return Module.__call__(self, *args, **kwargs)

    def _wrapped_call_impl(self, *args: Any, **kwargs: Any) -> Any:
        return self._call_impl(*args, **kwargs)

    def _slow_forward(self, *input: Any, **kwargs: Any) -> Any:
        """Call `forward`; PyTorch traces the call in the method of this name."""
        return self.forward(*input, **kwargs)

    def _replicate_for_data_parallel(self) -> Any:
        """Return a shallow copy without parameters, whose buffers and submodules may be replaced."""
        replica = self.__new__(type(self))
        replica.__dict__ = self.__dict__.copy()
        replica._parameters = {}
        replica._buffers = replica._buffers.copy()
        replica._modules = replica._modules.copy()
        replica._is_replica = True  # type: ignore[assignment]
        return replica

    def _explain(self, error: Exception, args: tuple) -> None:
        """Add to an error the layer that it comes from and its arguments. Of nested modules, name the innermost."""
        if not self._modules and not getattr(error, "__notes__", ()):
            given = [
                f"{list(each.shape)} {each.dtype}" if isinstance(each, Tensor) else type(each).__name__
                for each in args
            ]
            error.add_note(f"in {self!r}, called with {', '.join(given) or 'no arguments'}")

    # ---- Attributes --------------------------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        # Python calls it only for names that are neither in the instance's dictionary nor in the class.
        own = self.__dict__
        if "_parameters" in own:
            found = own["_parameters"]
            if name in found:
                return found[name]
            found = own["_modules"]
            if name in found:
                return found[name]
            found = own["_buffers"]
            if name in found:
                return found[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'", name=name, obj=self)

    def __setattr__(self, name: str, value: Any) -> None:
        own = self.__dict__
        if isinstance(value, Parameter):
            self._check_initialised("parameters")
            self._forget(name, "_buffers", "_modules")
            self.register_parameter(name, value)
        elif name in own.get("_parameters", ()):
            if value is not None:
                raise TypeError(_cannot_assign(value, "parameter", name, "torch.nn.Parameter or None"))
            self.register_parameter(name, None)
        elif isinstance(value, Module):
            self._check_initialised("module")
            self._forget(name, "_parameters", "_buffers")
            own["_modules"][name] = hooks.registered(hooks.module_registration, self, name, value)
        elif name in own.get("_modules", ()):
            if value is not None:
                raise TypeError(_cannot_assign(value, "child module", name, "torch.nn.Module or None"))
            own["_modules"][name] = hooks.registered(hooks.module_registration, self, name, None)
        elif isinstance(value, Tensor) and isinstance(value, Buffer):
            self._register_assigned(name, value)
        elif name in own.get("_buffers", ()):
            if not is_buffer(value):
                raise TypeError(
                    _cannot_assign(value, "buffer", name, "torch.nn.Buffer, torch.Tensor or None")
                )
            own["_buffers"][name] = hooks.registered(hooks.buffer_registration, self, name, value)
        else:
            object.__setattr__(self, name, value)

    def _register_assigned(self, name: str, value: Any) -> None:
        """Register a Buffer that is assigned. Subclasses may override `register_buffer` without its parameter `persistent`."""
        if "persistent" in inspect.signature(self.register_buffer).parameters:
            self.register_buffer(name, value, value.persistent)
        elif value.persistent:
            self.register_buffer(name, value)
        else:
            raise RuntimeError(
                "Registering a non-persistent buffer on a Module subclass that implements register_buffer() without the "
                "persistent argument is not allowed."
            )

    def _check_initialised(self, what: str) -> None:
        if "_parameters" not in self.__dict__:
            raise AttributeError(f"cannot assign {what} before Module.__init__() call")

    def _forget(self, name: str, *places: str) -> None:
        """Remove the parameter, buffer or module that has this name."""
        own = self.__dict__
        own.pop(name, None)
        for place in places:
            own[place].pop(name, None)
        self._non_persistent_buffers_set.discard(name)

    def __delattr__(self, name: str) -> None:
        for place in (self._parameters, self._buffers, self._modules):
            if name in place:
                del place[name]
                self._non_persistent_buffers_set.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        names = {*dir(type(self)), *self.__dict__, *self._parameters, *self._buffers, *self._modules}
        return sorted(name for name in names if not name[:1].isdigit())

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        # A pickle of an older version lacks the registries of newer kinds of hooks.
        for name in hooks.REGISTRIES:
            self.__dict__.setdefault(name, OrderedDict())
        self.__dict__.setdefault("_non_persistent_buffers_set", set())
        self.__dict__.setdefault("_is_full_backward_hook", None)

    # ---- What is done to all of it -----------------------------------------------------------------------------------

    def apply(self: M, fn: Callable[[Module], None]) -> M:
        """Call `fn` with every module inside, children first, then with this one."""
        for child in self.children():
            child.apply(fn)
        fn(self)
        return self

    def train(self: M, mode: bool = True) -> M:
        """Set `training`, which layers such as Dropout read, in this module and all modules inside."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for child in self.children():
            child.train(mode)
        return self

    def eval(self: M) -> M:
        """Call `train(False)`."""
        return self.train(False)

    def requires_grad_(self: M, requires_grad: bool = True) -> M:
        """Set `requires_grad` of all parameters."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Set the gradients of all parameters to None, or fill them with zeros."""
        for parameter in self.parameters():
            if parameter.grad is None or set_to_none:
                parameter.grad = None
                continue
            if parameter.grad.grad_fn is not None:
                parameter.grad.detach_()
            else:
                parameter.grad.requires_grad_(False)
            parameter.grad.zero_()

    def share_memory(self: M) -> M:
        """Move all parameters and buffers to memory that other processes can see."""
        return self._apply(lambda tensor: tensor.share_memory_())

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Let calls of this module run as if `torch.compile`, with these arguments, had been applied to it."""
        compile = above("compiler").compile

        self.__dict__.pop("forward", None)
        compiled = compile(self.forward, *args, **kwargs)
        if compiled is not self.forward:
            self.__dict__["forward"] = compiled

    # ---- Printing ----------------------------------------------------------------------------------------------------

    def extra_repr(self) -> str:
        """Return the text that `repr` shows besides the children; several lines are shown as separate lines."""
        return ""

    def _get_name(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = [f"({name}): {indented(repr(child))}" for name, child in self._modules.items()]
        if not children and len(lines) <= 1:
            return f"{self._get_name()}({extra})"
        return block(self._get_name(), lines + children)


def block(name: str, lines: list[str]) -> str:
    """Return `name(`, the indented lines, and `)`."""
    return f"{name}(\n  " + "\n  ".join(lines) + "\n)"


def indented(text: str) -> str:
    """Indent all lines but the first by two columns."""
    return text.replace("\n", "\n  ")


def _cannot_assign(value: Any, kind: str, name: str, wanted: str) -> str:
    return f"cannot assign '{typename(value)}' as {kind} '{name}' ({wanted} expected)"


# Annotations in the parts of Module name it. `typing.get_type_hints` looks names up in the namespace of each part's module.
for _part in (members, state):
    vars(_part)["Module"] = Module

_attributes = NativeAttributes(Module)
when_installed(_attributes.install)
