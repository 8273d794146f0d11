"""The members of Tensor for autograd: requires_grad, grad, grad_fn, backward, hooks, detach."""

from __future__ import annotations

import warnings
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from ..core.batched import open_levels
from ..core.checking import checked
from ..core.dtype import FLOAT, DType
from ..core.grad_mode import mode
from ..core.layout_spec import is_strided
from ..core.native_property import native_property
from ..core.public import public
from ..core.tensor import Tensor
from ..core.warn import user_level
from ..ops.tensor.predicates import is_inference
from . import engine
from .backward import backward as _backward
from .backward import root
from .dual import Dual
from .graph import Leaf, Node, Output, add_hook, endpoint, notes_of
from .handles import RemovableHandle


def _requires_grad(self: Tensor) -> bool:
    """Whether autograd records operations on this tensor."""
    edge = self._autograd
    return edge is not None and type(edge) is not Dual


def _set_requires_grad(self: Tensor, value: Any) -> None:
    if type(value) is not bool:
        raise RuntimeError("requires_grad must be a bool")
    if value and self.spec.dtype.category < FLOAT:
        raise RuntimeError("only Tensors of floating point and complex dtype can require gradients")
    require_grad(self, value)


@public("method")
def requires_grad_(self: Tensor, requires_grad: bool = True) -> Tensor:
    """Set `requires_grad` of this tensor.

    Raises: RuntimeError for integer and bool tensors, if a result shall not require grad, and within `vmap`.

    >>> import weft as torch
    >>> x = torch.tensor([1.0, 2.0]).requires_grad_()
    >>> (x * x).sum().backward()
    >>> x.grad
    tensor([2., 4.])
    """
    if open_levels.stack:
        raise RuntimeError(
            "You are attempting to call Tensor.requires_grad_() (or perhaps using torch.autograd.functional.* APIs) inside of "
            "a function being transformed by vmap. Call requires_grad_() outside of that function, or use torch.func.grad, "
            "vjp, jacrev, jacfwd or hessian within it."
        )
    return require_grad(self, requires_grad)


def require_grad(self: Tensor, requires_grad: bool = True) -> Tensor:
    """As `requires_grad_`, but also within `vmap`."""
    edge = self._autograd
    if isinstance(edge, (Node, Output)):
        if not requires_grad:
            raise RuntimeError(
                "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in a "
                "subgraph that doesn't require differentiation use var_no_grad = var.detach()."
            )
    elif requires_grad:
        if self.spec.dtype.category < FLOAT:
            raise RuntimeError("only Tensors of floating point dtype can require gradients")
        if type(edge) is not Leaf:
            if is_inference(self) and not mode.inference:
                raise RuntimeError(
                    "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed."
                )
            self._autograd = Leaf(self)
        self.__dict__.pop("_unconnected", None)
    elif type(edge) is Leaf:
        self._autograd = None
    return self


def renew_leaf(self: Tensor) -> None:
    """Let operations that are recorded from now on lead to a new Leaf, with the tensor's hooks. For other tensors: nothing."""
    before = self._autograd
    if type(before) is Leaf:
        self._autograd = leaf = Leaf(self, before.lasting)
        leaf.hooks, leaf.after = before.hooks, before.after


def _grad(self: Tensor) -> Tensor | None:
    """The sum of the gradients that `backward` has computed for this tensor; None before the first."""
    gradient = self._grad
    if gradient is None and isinstance(self._autograd, (Node, Output)) and not _retains_grad(self):
        warnings.warn(
            "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be "
            "populated during autograd.backward(). If you indeed want the .grad field to be populated for a non-leaf "
            "Tensor, use .retain_grad() on the non-leaf Tensor. If you access the non-leaf Tensor by mistake, make sure "
            "you access the leaf Tensor instead. See github.com/pytorch/pytorch/pull/30531 for more information.",
            UserWarning,
            stacklevel=user_level(),
        )
    return gradient


def _set_grad(self: Tensor, value: Any) -> None:
    if value is None:
        self.__dict__.pop("_grad", None)
        return
    if not isinstance(value, Tensor):
        kind = type(value).__name__
        raise TypeError(f"assigned grad expected to be a Tensor or None but got grad of type {kind}")
    if value is self:
        raise RuntimeError("can't assign Variable as its own grad")
    spec = self.spec
    wanted = spec.dtype if self._grad_dtype is ... else self._grad_dtype
    if wanted is not None and value.spec.dtype is not wanted:
        raise RuntimeError(
            f"attempting to assign a gradient of {value.dtype!r} to a tensor of {spec.dtype!r} with grad_dtype {wanted!r}: "
            "set its grad_dtype to the dtype of the gradient, or to None for any"
        )
    if value.spec.device is not spec.device:
        raise RuntimeError(
            f"attempting to assign a gradient with device type '{value.spec.device.type}' to a tensor with device type "
            f"'{spec.device.type}'. Please ensure that the gradient and the tensor are on the same device"
        )
    if value.spec.shape != spec.shape:
        raise RuntimeError(
            f"attempting to assign a gradient of size '{list(value.spec.shape)}' to a tensor of size '{list(spec.shape)}'. "
            "Please ensure that the gradient and the tensor are the same size"
        )
    if is_strided(value.spec) and not is_strided(spec):
        raise RuntimeError(
            f"attempting to assign a gradient to a tensor that has data of a different type: the tensor is {self.layout}, the "
            "gradient is dense"
        )
    self._grad = value  # type: ignore[attr-defined]


def _del_grad(self: Tensor) -> None:
    self.__dict__.pop("_grad", None)


def _grad_dtype(self: Tensor) -> DType | None:
    """The dtype in which gradients are added up in `.grad`: the tensor's own unless set; None for any.

    >>> import weft as torch
    >>> weight = torch.ones(2, dtype=torch.bfloat16, requires_grad=True)
    >>> weight.grad_dtype = torch.float32
    >>> weight.sum().backward()
    >>> weight.grad
    tensor([1., 1.])
    """
    _check_leaf(self, "accessed")
    return self.spec.dtype if self._grad_dtype is ... else self._grad_dtype


def _set_grad_dtype(self: Tensor, value: Any) -> None:
    _check_leaf(self, "set")
    if value is not None and not isinstance(value, DType):
        raise RuntimeError(f"grad_dtype must be a torch.dtype or None, but got {type(value).__name__}")
    grad = self._grad
    if value is not None and grad is not None and grad.spec.dtype is not value:
        raise RuntimeError(
            f"Cannot set grad_dtype to {value!r} because there is already a gradient with dtype {grad.dtype!r}. Please clear "
            "the gradient (.grad = None) before changing grad_dtype"
        )
    self._grad_dtype = value  # type: ignore[attr-defined]


def _check_leaf(self: Tensor, verb: str) -> None:
    if isinstance(self._autograd, (Node, Output)):
        raise RuntimeError(f"grad_dtype can only be {verb} on leaf tensors.")


def _grad_fn(self: Tensor) -> Any:
    """The node whose result this tensor is; None for a leaf."""
    edge = self._autograd
    if edge is None or type(edge) is Leaf or type(edge) is Dual:
        return None
    return endpoint(edge)[0]


def _output_nr(self: Tensor) -> int:
    """Which of the results of its `grad_fn` this tensor is."""
    edge = self._autograd
    return edge.index if type(edge) is Output else 0


def _is_leaf(self: Tensor) -> bool:
    """Whether this tensor is not the result of a recorded operation."""
    return _grad_fn(self) is None


def _retains_grad(self: Tensor) -> bool:
    """Whether `retain_grad` was called on this result."""
    edge = self._autograd
    if edge is None or type(edge) in (Leaf, Dual):
        return False
    node, index = endpoint(edge)
    return node._notes is not None and index in node._notes.retained


def _version(self: Tensor) -> int:
    """How often the memory has been written to.

    Raises: RuntimeError for tensors made in inference mode, whose writes are not counted.
    """
    if is_inference(self):
        raise RuntimeError("Inference tensors do not track version counter.")
    return self._storage.version


def _is_view(self: Tensor) -> bool:
    return self._base is not None


def _backward_hooks(self: Tensor) -> dict | None:
    """The hooks that `register_hook` added, by their ids; None if there were never any."""
    edge = self._autograd
    if edge is None or type(edge) is Dual:
        return None
    if type(edge) is Leaf:
        return edge.hooks
    node, index = endpoint(edge)
    return None if node._notes is None else node._notes.tensor.get(index)


def _set_backward_hooks(self: Tensor, hooks: dict | None) -> None:
    edge = self._autograd
    if edge is None or type(edge) is Dual:
        if hooks:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    elif type(edge) is Leaf:
        edge.hooks = hooks
    else:
        node, index = endpoint(edge)
        notes_of(node).tensor[index] = hooks or OrderedDict()


def _kept(message: str) -> Callable:
    """The deleter of a property that PyTorch refuses to delete."""

    def refuse(self: Tensor) -> None:
        raise RuntimeError(message)

    return refuse


def _post_accumulate_grad_hooks(self: Tensor) -> dict | None:
    """The hooks that `register_post_accumulate_grad_hook` added; None if there were never any."""
    return self._autograd.after if type(self._autograd) is Leaf else None


_MEMBERS: dict[str, Any] = {
    "requires_grad": native_property(
        _requires_grad, _set_requires_grad, _kept("requires_grad must be a bool")
    ),
    "grad": native_property(_grad, _set_grad, _del_grad),
    "grad_dtype": property(_grad_dtype, _set_grad_dtype),
    "grad_fn": property(_grad_fn),
    "output_nr": property(_output_nr),
    "is_leaf": native_property(_is_leaf),
    "retains_grad": property(_retains_grad),
    "_grad_fn": property(_grad_fn, fdel=_kept("Deletion of _grad_fn not allowed. Detach tensor instead!")),
    "_backward_hooks": property(
        _backward_hooks, _set_backward_hooks, _kept("Deletion of _backwards_hooks not allowed!")
    ),
    "_post_accumulate_grad_hooks": property(_post_accumulate_grad_hooks),
    "_version": property(_version),
    "_is_view": _is_view,
}
for _name, _member in _MEMBERS.items():
    setattr(Tensor, _name, _member)  # some replace members for tensors without memory of their own


@public("method", checks=False)
def backward(
    self: Tensor,
    gradient: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Compute the gradients of this tensor, weighted by `gradient`, and add them to the `.grad` of the leaves.

    gradient: a tensor of the same shape; optional for a tensor of one element. retain_graph: keep the saved tensors, so that
    backward can run again. create_graph: record the backward pass. inputs: compute `.grad` only for these tensors.

    Raises: RuntimeError if the tensor does not require grad, if gradient is missing or of another shape, or when it
    is called twice without retain_graph.
    """
    if gradient is retain_graph is inputs is None and create_graph is False:  # the usual call needs no checks
        engine.run([root(self)])
    else:
        _checked_backward(self, gradient, retain_graph, create_graph, inputs)


def _backward_with(
    self: Tensor, gradient: Any, retain_graph: bool | None, create_graph: bool, inputs: Any
) -> None:
    if gradient is None and inputs is None:  # no loops over several tensors
        keep = create_graph if retain_graph is None else retain_graph
        engine.run([root(self)], keep_graph=keep, create_graph=create_graph)
    else:
        _backward(self, gradient, retain_graph, create_graph, inputs=inputs)


_checked_backward = checked(_backward_with, "backward")


@public("method")
def retain_grad(self: Tensor) -> None:
    """Let backward store the gradient of this result, which is not a leaf, in `.grad`."""
    edge = self._autograd
    if edge is None or type(edge) is Dual:
        raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
    if type(edge) is Leaf:
        return
    node, index = endpoint(edge)
    notes_of(node).retained[index] = weakref.ref(self)


@public("method")
def register_hook(self: Tensor, hook: Callable) -> RemovableHandle:
    """Call `hook(grad)` when backward has computed the gradient of this tensor. A tensor that it returns replaces the gradient.

    >>> import weft as torch
    >>> x = torch.ones(2, requires_grad=True)
    >>> handle = x.register_hook(lambda grad: grad * 10)
    >>> x.sum().backward()
    >>> x.grad
    tensor([10., 10.])
    """
    edge = self._autograd
    if edge is None or type(edge) is Dual:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    if type(edge) is Leaf:
        if edge.hooks is None:
            edge.hooks = OrderedDict()
        return add_hook(edge.hooks, hook)
    node, index = endpoint(edge)
    return add_hook(notes_of(node).tensor.setdefault(index, OrderedDict()), hook)


@public("method")
def register_post_accumulate_grad_hook(self: Tensor, hook: Callable) -> RemovableHandle:
    """Call `hook(tensor)` after backward has added the gradient of this leaf to its `.grad`."""
    edge = self._autograd
    if edge is None:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    if type(edge) is not Leaf:
        raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    if edge.after is None:
        edge.after = OrderedDict()
    return add_hook(edge.after, hook)


@public("function method", name="detach_")
def detach_(input: Tensor) -> Tensor:
    """Detach this tensor in place: it requires no grad afterwards.

    Raises: RuntimeError for views.
    """
    if input._base is not None and not mode.inference:
        raise RuntimeError(
            "Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel (DDP) for training, "
            "and gradient_as_bucket_view is set as True, gradients are views of DDP buckets, and hence detach_() cannot be "
            "called on these gradients. Use set_to_none=True in zero_grad(), or zero_() where the gradients must stay."
        )
    input._autograd = None
    return input
