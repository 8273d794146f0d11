"""Steps that users write: `torch.autograd.Function`."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Sequence
from typing import Any

from ..core.dtype import FLOAT
from ..core.grad_mode import mode
from ..core.op import FUNCTIONS, needs_recording, unrecorded
from ..core.tensor import Tensor, view_of
from . import graph
from .graph import Node, Output, next_order, node_type
from .inplace import MANY, check_write, rebase
from .saved import RELEASED, save, unpack


class FunctionCtx(Node):
    """What `forward` leaves for `backward`: the `ctx` of both, and the node in the graph."""

    __slots__ = (
        "function", "needs_input_grad", "materialize_grads", "_to_save", "_saved_edges", "_forward_saved",
        "_dirty", "_not_differentiable", "__dict__",
    )  # fmt: skip

    function: Any

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep tensors for `backward`, where they are `ctx.saved_tensors`: inputs, results, or others."""
        self._to_save = tensors

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Keep tensors for `jvp`."""
        self._forward_saved = tensors

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Say which inputs `forward` writes to."""
        self._dirty = tensors

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Say which results are constants."""
        self._not_differentiable = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Whether `backward` gets zeros (the default) or None for results that nobody used."""
        self.materialize_grads = value

    @property
    def saved_tensors(self) -> tuple:
        """What `save_for_backward` kept.

        Raises: RuntimeError after backward freed it, or if a tensor was written to since.
        """
        if self.saved is RELEASED:
            raise RuntimeError(graph.SECOND_TIME)
        if self.saved is None:
            return tuple(self._to_save)
        return tuple([None if entry is None else unpack(entry, self, True) for entry in self.saved])

    saved_variables = saved_tensors

    # -- the node --------------------------------------------------------------------------------------------------

    def finish(self, tensors: Sequence[Any], results: Sequence[Tensor]) -> None:
        """Save what was asked for, now that the results are known."""
        where = {id(result): index for index, result in enumerate(results)}
        self.saved = [
            None if each is None else save(each, where.get(id(each), each._autograd))
            for each in self._to_save
        ]
        self._to_save = ()

    def pull(self, ct: Any, edges: tuple, recording: bool) -> Sequence[Any]:
        if self.saved is RELEASED:
            raise RuntimeError(graph.SECOND_TIME)
        cts = list(ct) if type(self.result) is tuple else [ct]
        specs = self.result if type(self.result) is tuple else (self.result,)
        if self.materialize_grads:
            for index, own in enumerate(specs):
                if cts[index] is None:
                    cts[index] = FUNCTIONS["zeros"](own.shape, dtype=own.dtype, device=own.device)
        found = self.function.backward(self, *cts)
        if not isinstance(found, tuple):
            found = (found,)
        return self._checked(found)

    def _checked(self, found: tuple) -> tuple:
        """Raises: RuntimeError if `backward` returned another number of gradients than `forward` has inputs."""
        wanted = len(self.edges)
        name = f"{type(self).__name__}"
        if len(found) > wanted and all(each is None for each in found[wanted:]):
            found = found[:wanted]
        if len(found) != wanted:
            raise RuntimeError(
                f"function {name} returned an incorrect number of gradients (expected {wanted}, got {len(found)})"
            )
        for position, (each, own) in enumerate(zip(found, self.specs, strict=True)):
            if each is None:
                continue
            if not isinstance(each, Tensor):
                raise TypeError(
                    f"{name}: expected a Tensor or None for gradient {position}, got {type(each).__name__}"
                )
            if own is None:
                raise RuntimeError(
                    f"function {name} returned a gradient different from None at position {position + 1}, but the "
                    "corresponding forward input was not a Variable"
                )
        return found


class _FunctionMeta(type):
    def __init__(cls, name, bases, namespace):
        super().__init__(name, bases, namespace)
        cls._node_type = node_type(f"{name}Backward", FunctionCtx)
        cls._takes_ctx = not _overrides(cls, "setup_context")


def _overrides(cls: Any, name: str) -> bool:
    return any(
        name in each.__dict__ for each in cls.__mro__ if each.__dict__.get("_is_function_base") is None
    )


class Function(metaclass=_FunctionMeta):
    """A function with a derivative of one's own: subclasses state `forward` and `backward`, and call `apply`.

    `forward(ctx, *args)` computes; `backward(ctx, *gradients of the results)` returns a gradient (or None) for each
    argument of forward. Or `forward(*args)` with `setup_context(ctx, inputs, output)`. `jvp(ctx, *tangents)` serves
    forward mode, `vmap(info, in_dims, *args)` serves `torch.func.vmap`.

    >>> import weft as torch
    >>> class Cube(torch.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x**3
    ...     @staticmethod
    ...     def backward(ctx, grad):
    ...         (x,) = ctx.saved_tensors
    ...         return grad * 3 * x**2
    >>> x = torch.tensor(2.0, requires_grad=True)
    >>> Cube.apply(x).backward()
    >>> x.grad
    tensor(12.)
    """

    _is_function_base = True
    generate_vmap_rule = False

    def __init__(self, *args: Any, **kwargs: Any):
        warnings.warn(
            f"{type(self)} should not be instantiated. Methods on autograd functions are all static, so you should "
            "invoke them on the class itself. Instantiating an autograd function will raise an error in a future version "
            "of PyTorch.",
            DeprecationWarning,
            stacklevel=2,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd "
            "function with static forward method. (Example: https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)"
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """What the function computes. To be stated by subclasses."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: Any) -> Any:
        """What to keep for backward, where forward has no `ctx`."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """The gradients of the arguments of forward. To be stated by subclasses, here or as `vjp`."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with "
            "backward mode AD."
        )

    vjp = backward

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """The tangents of the results. To be stated by subclasses that serve forward mode."""
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
        )

    @staticmethod
    def vmap(info: Any, in_dims: tuple, *args: Any) -> Any:
        """The function over a batch. To be stated by subclasses."""
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap staticmethod or set "
            "generate_vmap_rule=True."
        )

    @classmethod
    def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
        """Call the function; its step is recorded if an argument requires grad."""
        if kwargs and cls._takes_ctx:
            given: Any = args
        elif kwargs:
            bound = inspect.signature(cls.forward).bind(*args, **kwargs)
            bound.apply_defaults()
            args, kwargs, given = bound.args, {}, bound.args
        else:
            given = args
        ctx = _context(cls, given)
        recording = mode.enabled and needs_recording(given)
        with unrecorded():
            if cls._takes_ctx:
                output = cls.forward(ctx, *args, **kwargs)
            else:
                output = cls.forward(*args)
                cls.setup_context(ctx, args, output)
        if not recording:
            ctx.finish(given, ())
            return output
        return _recorded(ctx, given, output)


def _context(cls: Any, args: Sequence[Any]) -> Any:
    ctx: Any = object.__new__(cls._node_type)
    ctx.function, ctx.op, ctx.static = cls, cls, ()
    ctx.edges = tuple([x._autograd if isinstance(x, Tensor) else None for x in args])
    ctx.specs = [x.spec if isinstance(x, Tensor) else None for x in args]
    ctx.needs_input_grad = tuple([mode.enabled and edge is not None for edge in ctx.edges])
    ctx.saved, ctx._to_save, ctx._forward_saved = None, (), ()
    ctx._dirty, ctx._not_differentiable = (), ()
    ctx.materialize_grads = True
    ctx.result, ctx.hooks, ctx.extra = None, None, None
    ctx.order = next_order()
    return ctx


def _recorded(ctx: Any, args: Sequence[Any], output: Any) -> Any:
    """The results of `forward`, as those of the node."""
    single = isinstance(output, Tensor)
    results = [output] if single else list(output)
    constants = {id(each) for each in ctx._not_differentiable}
    dirty = {id(each) for each in ctx._dirty}
    inputs = {id(each) for each in args if isinstance(each, Tensor)}
    for each in ctx._dirty:
        check_write(each)
    given = {}  # what `forward` returned -> what `apply` returns
    for index, each in enumerate(results):
        if isinstance(each, Tensor) and id(each) in inputs and id(each) not in dirty:
            # An input returned as it is becomes a view of it: the input itself must not get a history.
            results[index] = view_of(each, each._start, each.spec)
        elif isinstance(each, Tensor) and each._autograd is not None and id(each) not in dirty:
            results[index] = each.detach()
        given[id(each)] = results[index]
    tensors = [each for each in results if isinstance(each, Tensor)]
    ctx._to_save = tuple([given.get(id(each), each) for each in ctx._to_save])
    for original, each in given.items():
        if original in constants:
            constants.add(id(each))
    ctx.finish(args, tensors)
    ctx.result = tensors[0].spec if len(tensors) == 1 else tuple([each.spec for each in tensors])
    for index, each in enumerate(tensors):
        if id(each) in constants or each.spec.dtype.category < FLOAT:
            continue
        edge = ctx if len(tensors) == 1 else Output(ctx, index)
        if id(each) in dirty:
            rebase(each, edge)
        else:
            each._autograd = edge
            if each._base is not None:
                each._unwritable = MANY if len(tensors) > 1 else CUSTOM  # type: ignore[attr-defined]
    return results[0] if single else tuple(results)


# Why a view of an input that `forward` returned must not be written to.
CUSTOM = (
    "is a view and is being modified inplace. This view was created inside a custom Function (or because an input was "
    "returned as-is) and the autograd logic to handle view+inplace would override the custom backward associated with "
    "the custom Function, leading to incorrect gradients. This behavior is forbidden. You can fix this by cloning the "
    "output of the custom Function."
)


def once_differentiable(backward: Any) -> Any:
    """Decorator for `backward`s that are not themselves differentiable: asking for second derivatives raises."""

    def wrapper(ctx: Any, *cts: Any) -> Any:
        with unrecorded():
            found = backward(ctx, *cts)
        if not mode.enabled or not needs_recording(cts):
            return found
        found = found if isinstance(found, tuple) else (found,)
        return tuple(each if each is None else _twice(each.detach(), cts) for each in found)

    return wrapper


def _twice(result: Tensor, cts: Sequence[Any]) -> Tensor:
    return graph.record(_TWICE, result, [each for each in cts if isinstance(each, Tensor)])


class _Twice:
    """The step of a backward that was declared to be differentiable once."""

    name = "trying to differentiate twice a function that was marked with @once_differentiable"
    node_name = "DelayedErrorBackward0"
    derivative = None


_TWICE = _Twice()
