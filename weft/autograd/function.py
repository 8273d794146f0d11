"""`torch.autograd.Function`: operations with a derivative that users define."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Container, Sequence
from typing import Any

from ..core.batched import function_hooks
from ..core.derivative import Derivative
from ..core.dispatch import PLAIN
from ..core.dtype import FLOAT
from ..core.grad_mode import is_grad_enabled
from ..core.layout_spec import as_cotangent
from ..core.op import Op
from ..core.overrides import overrides_functions
from ..core.recording import needs_recording, unrecorded
from ..core.tensor import Tensor, make, view_of
from ..core.uncounted import in_forward
from ..core.warn import user_level
from ..ops.creation.creation import zeros, zeros_like
from . import anomaly, dual, graph
from .graph import Leaf, Node, NodeSpec, Output, next_order, node_type, original
from .inplace import CUSTOM, MANY, check_write, rebase
from .nesting import nested_map as _nested_map  # noqa: F401 (PyTorch's tests import it)
from .saved import RELEASED, SECOND_TIME, SavedDual, SavedTensor, save


class FunctionCtx(Node):
    """The `ctx` of `forward` and `backward`, which is also the node in the graph."""

    __slots__ = (
        "_function", "needs_input_grad", "materialize_grads", "_to_save", "_forward_saved", "_pushing",
        "_dirty", "_not_differentiable", "__dict__",
    )  # fmt: skip

    _function: Any
    takes_nothing = True
    # Whether `backward` gets zeros, as for other results, in the place of None for those that require no grad.
    _materialize_non_diff_grads = True

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Save tensors (inputs, results or others) for `backward`, which reads them from `ctx.saved_tensors`."""
        for position, each in enumerate(tensors):
            if each is not None and not isinstance(each, Tensor):
                raise TypeError(
                    f"save_for_backward can only save variables, but argument {position} is of type {type(each).__name__}"
                )
        self._to_save = tensors

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Save tensors for `jvp`, which reads them from `ctx.saved_tensors` as well."""
        self._forward_saved = tensors

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Declare the inputs that `forward` modifies in place."""
        self._dirty = tensors

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Declare the results that require no grad."""
        self._not_differentiable = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Whether `backward` gets zeros (the default) or None as the gradient of an unused result."""
        self.materialize_grads = value

    @property
    def saved_tensors(self) -> tuple:
        """The tensors that `save_for_backward` saved.

        Raises: RuntimeError after backward has freed them, or if one was modified in place since.
        """
        if self._saved is RELEASED:
            raise RuntimeError(SECOND_TIME)
        if self._pushing is not None:
            return self._pushing
        if self._saved is None:
            return tuple(self._to_save)
        return tuple([None if entry is None else original(entry, self) for entry in self._saved])

    @property
    def saved_variables(self) -> tuple:
        """The old name of `saved_tensors`."""
        warnings.warn(
            "'saved_variables' is deprecated; use 'saved_tensors'",
            DeprecationWarning,
            stacklevel=user_level(),
        )
        return self.saved_tensors

    @property
    def _raw_saved_tensors(self) -> tuple:
        """The SavedTensor of each saved tensor, to which users can attach hooks."""
        if self._saved is RELEASED:
            raise RuntimeError(SECOND_TIME)
        return tuple([SavedTensor(self, place) for place in range(len(self._saved))])

    def mark_shared_storage(self, *pairs: Any) -> None:
        """Deprecated in PyTorch, and without effect."""
        warnings.warn(
            "mark_shared_storage is deprecated. Tensors with shared storages are automatically tracked. Note that calls to "
            "`set_()` are not tracked",
            FutureWarning,
            stacklevel=user_level(),
        )

    # -- the node --------------------------------------------------------------------------------------------------

    def _finish(self, results: Sequence[Any], constants: Container[int] = ()) -> None:
        """Save the tensors of `save_for_backward`. `constants` are the ids of the results that require no grad."""
        where = {id(each): index for index, each in enumerate(results) if id(each) not in constants}
        self._saved = [
            None if each is None else save(each, where.get(id(each), each._autograd))
            for each in self._to_save
        ]

    def _keep_tangents(self) -> None:
        """Store the tangents of the saved tensors, so that forward mode can differentiate the backward pass."""
        for position, each in enumerate(self._to_save):
            found = dual.tangents(each)
            if found:
                self._saved[position] = SavedDual(self._saved[position], found)

    def _pull(self, ct: Any, edges: tuple, recording: bool) -> Sequence[Any]:
        specs = self._spec.result
        cts, specs = (list(ct), specs) if type(specs) is tuple else ([ct], (specs,))
        if self.materialize_grads:
            for index, spec in enumerate(specs):
                if cts[index] is None and spec is not None:
                    cts[index] = zeros(spec.shape, dtype=spec.dtype, device=spec.device)
        gradients = self._function._backward(self, *cts)
        if not isinstance(gradients, tuple):
            gradients = (gradients,)
        return self._checked(gradients)

    def _checked(self, gradients: tuple) -> tuple:
        """Raises: RuntimeError if `backward` returned another number of gradients than `forward` has inputs."""
        n_inputs = len(self._edges)
        name = f"{type(self).__name__}"
        if len(gradients) > n_inputs and all(each is None for each in gradients[n_inputs:]):
            gradients = gradients[:n_inputs]
        if len(gradients) != n_inputs:
            raise RuntimeError(
                f"function {name} returned an incorrect number of gradients (expected {n_inputs}, got {len(gradients)})"
            )
        for position, (each, own) in enumerate(zip(gradients, self._spec.inputs, strict=True)):
            if each is None:
                continue
            if not isinstance(each, Tensor):
                kind = f"{type(each).__module__}.{type(each).__qualname__}".removeprefix("builtins.")
                raise RuntimeError(f"expected Variable or None (got {kind})\n{name}: gradient {position}")
            if own is None:
                raise RuntimeError(
                    f"function {name} returned a gradient different than None at position {position + 1}, but the "
                    "corresponding forward input was not a Variable"
                )
        return tuple(None if each is None else as_cotangent(each) for each in gradients)


class BackwardCFunction(FunctionCtx):
    """The base class of the nodes of Functions."""

    __slots__ = ()


class FunctionMeta(type):
    """Decides, once for each Function, which of its methods `apply` and the engine call."""

    def __init__(cls, name, bases, attrs):
        super().__init__(name, bases, attrs)
        cls._backward_cls = node_type(f"{name}Backward", BackwardCFunction)
        cls._takes_ctx = not overrides(cls, "setup_context")
        # Whether `setup_context` gets arguments that the caller of `apply` does not give.
        cls._has_defaults = not cls._takes_ctx and _has_defaults(cls.forward)
        cls._backward = staticmethod(cls.vjp if overrides(cls, "vjp") else cls.backward)
        if overrides(cls, "vjp") and overrides(cls, "backward"):
            cls._backward = staticmethod(_both)


def _has_defaults(function: Callable) -> bool:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # a builtin function
        return False
    return any(each.default is not inspect.Parameter.empty for each in parameters)


def _both(*args: Any) -> Any:
    raise RuntimeError(
        "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only implement one of them."
    )


def overrides(cls: Any, name: str) -> bool:
    return any(
        name in each.__dict__ for each in cls.__mro__ if each.__dict__.get("_is_function_base") is None
    )


class Function(metaclass=FunctionMeta):
    """A function with a custom derivative. A subclass defines `forward` and `backward`; callers use `apply`.

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
    # Methods of `ctx`; PyTorch's Functions show them, too.
    save_for_backward = FunctionCtx.save_for_backward
    save_for_forward = FunctionCtx.save_for_forward
    mark_dirty = FunctionCtx.mark_dirty
    mark_shared_storage = FunctionCtx.mark_shared_storage
    mark_non_differentiable = FunctionCtx.mark_non_differentiable
    set_materialize_grads = FunctionCtx.set_materialize_grads

    def __init__(self, *args: Any, **kwargs: Any):
        warnings.warn(
            f"{type(self)} should not be instantiated. Methods on autograd functions are all static, so you should "
            "invoke them on the class itself. Instantiating an autograd function will raise an error in a future version "
            "of PyTorch.",
            DeprecationWarning,
            stacklevel=user_level(),
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd "
            "function with static forward method. (Example: https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)"
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the results. Subclasses define this method."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: Any) -> Any:
        """Save values for backward. Subclasses define this method if their `forward` takes no `ctx`."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """Return the gradients of the arguments of forward. Subclasses define this method or `vjp`."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with "
            "backward mode AD."
        )

    vjp = backward

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """Return the tangents of the results. Subclasses that support forward mode define this method."""
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
        )

    @staticmethod
    def vmap(info: Any, in_dims: tuple, *args: Any) -> Any:
        """Compute the function over a batch. Subclasses define this method."""
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap staticmethod or set "
            "generate_vmap_rule=True."
        )

    @classmethod
    def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
        """Call the function, and record it if an argument requires grad."""
        if function_hooks and (answer := function_hooks[0](cls, args, kwargs)) is not PLAIN:
            return answer
        return cls.apply_unbatched(args, kwargs)

    @classmethod
    def apply_unbatched(cls: Any, args: tuple, kwargs: dict[str, Any], forward: Any = None) -> Any:
        """As `apply`, which asks `function_hooks` first. `forward` computes the results in place of `forward(*args)`."""
        if (kwargs or cls._has_defaults) and not cls._takes_ctx:
            bound = inspect.signature(cls.forward).bind(*args, **kwargs)
            bound.apply_defaults()
            args, kwargs = bound.args, {}
        ctx = _context(cls, args)
        with in_forward(ctx):
            if cls._takes_ctx:
                output = cls.forward(ctx, *args, **kwargs)
            else:
                output = (forward or cls.forward)(*args)
                cls.setup_context(ctx, args, output)
        if not isinstance(output, (Tensor, tuple)):
            return output  # there is no tensor to differentiate
        if is_grad_enabled() and any(edge is not None for edge in ctx._edges):
            result = _recorded(ctx, args, output)
        else:
            result = _apart_from_inputs(ctx, args, output)
        if dual.levels:
            _push_forward(ctx, args, output, result)
        ctx._to_save = ()
        return result


def _context(cls: Any, args: Sequence[Any]) -> Any:
    ctx: Any = object.__new__(cls._backward_cls)
    ctx._function = cls
    ctx._edges = tuple([x._autograd if isinstance(x, Tensor) and x.requires_grad else None for x in args])
    ctx._spec = NodeSpec.of(cls, tuple([x.spec if isinstance(x, Tensor) else None for x in args]), (), None)
    ctx.needs_input_grad = tuple([edge is not None for edge in ctx._edges])
    ctx._saved, ctx._to_save, ctx._forward_saved, ctx._pushing = None, (), (), None
    ctx._dirty, ctx._not_differentiable = (), ()
    ctx.materialize_grads = True
    ctx._notes = None
    ctx._leaves = [x for x, edge in zip(args, ctx._edges, strict=True) if type(edge) is Leaf and edge.lasting]
    ctx._order = next_order()
    if anomaly.tracing:
        anomaly.trace(ctx)
    return ctx


def _recorded(ctx: Any, args: Sequence[Any], output: Any) -> Any:
    """Make the node the grad_fn of the results of `forward`."""
    single = isinstance(output, Tensor)
    results = [output] if single else list(output)
    constants = {id(each) for each in ctx._not_differentiable}
    dirty = {id(each) for each in ctx._dirty}
    inputs = {id(each) for each in args if isinstance(each, Tensor)}
    if not dirty <= {id(each) for each in results}:
        raise RuntimeError(
            "Some elements marked as dirty during the forward method were not returned as output. The inputs that are "
            "modified inplace must all be outputs of the Function."
        )
    for each in ctx._dirty:
        check_write(each)
        each._storage.version += 1
    applied = {}  # id of each result of `forward` -> the result of `apply`
    for index, each in enumerate(results):
        if isinstance(each, Tensor) and id(each) not in dirty:
            if id(each) in inputs:
                results[index] = _view_of_input(each)
            elif each._autograd is not None:
                results[index] = _without_history(each)
        applied[id(each)] = results[index]
    tensors = [each for each in results if isinstance(each, Tensor)]
    ctx._to_save = tuple([applied.get(id(each), each) for each in ctx._to_save])
    constants |= {id(applied[each]) for each in constants if each in applied}
    ctx._finish(results, constants)
    # Every result that `forward` returned has a position, tensor or not, because backward has an argument for each.
    unmaterialized = () if ctx._materialize_non_diff_grads else constants
    specs = [None if id(each) in unmaterialized else getattr(each, "spec", None) for each in results]
    ctx._spec.result = specs[0] if single else tuple(specs)
    for index, each in enumerate(results):
        if not isinstance(each, Tensor) or id(each) in constants or each.spec.dtype.category < FLOAT:
            continue
        edge = ctx if single else Output(ctx, index)
        if id(each) in dirty:
            rebase(each, edge)
        else:
            each._autograd = edge
            if each._base is not None:
                each._unwritable = MANY if len(tensors) > 1 else CUSTOM  # type: ignore[attr-defined]
    return results[0] if single else tuple(results)


def _view_of_input(tensor: Tensor) -> Tensor:
    """The result of `apply` for an input that `forward` returns as it is, because the input must keep its own grad_fn."""
    if overrides_functions(type(tensor)):
        return tensor.detach()  # the handler of the class makes the object
    return view_of(tensor, tensor._byte_offset, tensor.spec)


def _apart_from_inputs(ctx: Any, args: Sequence[Any], output: Any) -> Any:
    """The results of a function that is not recorded: no input but those that `forward` has modified."""
    if not isinstance(output, Tensor):
        return tuple(
            [_apart_from_inputs(ctx, args, each) if isinstance(each, Tensor) else each for each in output]
        )
    for each in args:
        if each is output and not any(each is modified for modified in ctx._dirty):
            return _unrecorded_input(each)
    return output


def _unrecorded_input(tensor: Tensor) -> Tensor:
    return _without_history(tensor) if tensor.requires_grad else _view_of_input(tensor)


def _without_history(tensor: Tensor) -> Tensor:
    result = make(tensor._storage, tensor._byte_offset, tensor.spec)
    result._base = tensor._base
    return result


def _push_forward(ctx: Any, args: Sequence[Any], output: Any, result: Any) -> None:
    """For every level at which an input has a tangent, call `jvp` and set the tangents of the results.

    `output` is the result of `forward`, and `result` that of `apply`.
    """
    by_input = [dual.tangents(x) for x in args]
    outputs, results = [(each,) if isinstance(each, Tensor) else each for each in (output, result)]
    constants = {id(each) for each in ctx._not_differentiable}
    dirty = {id(each) for each in ctx._dirty}
    for level in sorted(set().union(*by_input)):
        input_tangents = [each.get(level) for each in by_input]
        if ctx.materialize_grads:
            input_tangents = [
                zeros_like(x.detach()) if t is None and _is_float(x) else t
                for x, t in zip(args, input_tangents, strict=True)
            ]
        versions = [None if t is None else t._storage.version for t in input_tangents]
        ctx._pushing = tuple(
            [dual.at_outer_levels(x, level) if isinstance(x, Tensor) else x for x in ctx._forward_saved]
        )
        pushed = ctx._function.jvp(ctx, *input_tangents)
        ctx._pushing = None
        pushed = pushed if isinstance(pushed, tuple) else (pushed,)
        if len(pushed) != len(results):
            raise RuntimeError(
                f"Function {type(ctx).__name__} returned an incorrect number of jvp values (expected {len(results)}, got "
                f"{len(pushed)})"
            )
        given = [each.get(level) for each in by_input]
        for position, (own, each, tangent) in enumerate(zip(outputs, results, pushed, strict=True)):
            if tangent is None or not isinstance(each, Tensor):
                continue
            if not _is_float(each) or id(own) in constants:
                raise RuntimeError(
                    f"Function's jvp returned a gradient at position {position}, but the corresponding forward output is "
                    "not a differentiable Tensor. You should return None at that position instead."
                )
            if id(own) in dirty:
                _check_modified(each, tangent, args, given, versions)
            elif each._base is not None and level in dual.user_levels:
                _check_view(each, tangent, args, given)
            dual.set_tangents(each, {**dual.tangents(each), level: tangent})
    if ctx._saved:
        ctx._keep_tangents()


def _check_modified(
    result: Tensor, tangent: Tensor, args: Sequence[Any], given: Sequence[Any], versions: Sequence[Any]
) -> None:
    """Raises: RuntimeError unless `jvp` has modified the tangent of an input that `forward` has modified, and returns it."""
    position = next(k for k, each in enumerate(args) if each is result)
    own = given[position]
    if own is None:
        return
    if tangent._storage.version == versions[position] or tangent._storage is not own._storage:
        raise RuntimeError(
            "An inplace custom Function is not modifying the forward mode gradients inplace. If the forward is modifying an "
            "input inplace, then the jvp function must modify the corresponding gradient inplace."
        )
    if tangent is not own:
        raise RuntimeError(
            "An inplace custom Function is not returning the forward mode gradients as-is. If the forward is modifying an "
            "input inplace, then the jvp function must modify the gradient inplace and return it as-is."
        )


def _check_view(result: Tensor, tangent: Tensor, args: Sequence[Any], given: Sequence[Any]) -> None:
    """Raises: RuntimeError if a result is a view of an input, and its tangent is no view of the tangent of the input."""
    own = next(
        (t for x, t in zip(args, given, strict=True) if t is not None and _root(x) is result._base), None
    )
    if own is None:
        return
    if tangent._base is None:
        raise RuntimeError(
            "A custom Function's forward is returning a view (or an input as-is) but the jvp is not returning a view."
        )
    if tangent._base is not _root(own):
        what = "the given grad input" if own._base is None else "the same base as the given grad input"
        raise RuntimeError(
            f"A custom Function is returning a view but the jvp is not returning a view of {what}."
        )


def _root(tensor: Tensor) -> Tensor:
    return tensor if tensor._base is None else tensor._base


def _is_float(x: Any) -> bool:
    return isinstance(x, Tensor) and x.spec.dtype.category >= FLOAT


class InplaceFunction(Function):
    """A Function with a flag `inplace`."""

    def __init__(self, inplace: bool = False):
        super().__init__()
        self.inplace = inplace


class NestedIOFunction(Function):
    """PyTorch's old base class for Functions of nested inputs. It only exists by name, because `forward` is static now."""

    @staticmethod
    def forward_extended(*input: Any) -> Any:
        raise NotImplementedError

    @staticmethod
    def backward_extended(*grad_output: Any) -> Any:
        raise NotImplementedError


def once_differentiable(fn: Any) -> Any:
    """Decorator for a `backward` that is not differentiable. Second derivatives raise an error."""

    @functools.wraps(fn)
    def wrapper(ctx: Any, *cts: Any) -> Any:
        with unrecorded():
            gradients = fn(ctx, *cts)
        if not needs_recording(cts):
            return gradients
        gradients = gradients if isinstance(gradients, tuple) else (gradients,)
        return tuple(each if each is None else _twice(each.detach(), cts) for each in gradients)

    return wrapper


def _twice(result: Tensor, cts: Sequence[Any]) -> Tensor:
    return graph.record(_TWICE, result, [each for each in cts if isinstance(each, Tensor)])


def _refuse(ct, out, *inputs):
    raise RuntimeError("trying to differentiate twice a function that was marked with @once_differentiable")


_TWICE = Op("once_differentiable", Derivative(joint=_refuse), "DelayedErrorBackward0")
