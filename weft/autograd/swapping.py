"""Two functions of `torch.utils` that change objects in place."""

from __future__ import annotations

import weakref
from typing import Any

from ..core.names import ROOT, set_name
from ..core.tensor import Tensor
from .graph import Leaf


def set_module(obj: Any, mod: str) -> None:
    """Set the module that an object names as its own.

    Raises: TypeError if `mod` is no str.
    """
    if not isinstance(mod, str):
        raise TypeError("The mod argument should be a string")
    obj.__module__ = mod


def swap_tensors(t1: Tensor, t2: Tensor) -> None:
    """Swap two tensors, so that every variable that holds one of them then holds the values of the other.

    Raises: RuntimeError if a weak reference or a graph would see the change.

    >>> import weft as torch
    >>> a, b = torch.ones(2), torch.zeros(3)
    >>> swap_tensors(a, b)
    >>> a, b
    (tensor([0., 0., 0.]), tensor([1., 1.]))
    """
    leaves = [each._autograd if isinstance(each._autograd, Leaf) else None for each in (t1, t2)]
    for each, leaf in zip((t1, t2), leaves, strict=True):
        if any(reference is not (leaf and leaf.tensor) for reference in weakref.getweakrefs(each)):
            raise RuntimeError("Cannot swap a tensor that has weakref associated with it")
        if each.grad_fn is not None:
            raise RuntimeError("Cannot swap a tensor that a graph computes; detach it first")
    t1.__class__, t2.__class__ = t2.__class__, t1.__class__
    for name in ("_storage", "_byte_offset", "spec", "_autograd", "_base"):
        one, other = getattr(t1, name), getattr(t2, name)
        setattr(t1, name, other)
        setattr(t2, name, one)
    one, other = dict(t1.__dict__), dict(t2.__dict__)
    for target, attributes in ((t1, other), (t2, one)):
        target.__dict__.clear()
        target.__dict__.update(attributes)
    for leaf, tensor in zip(leaves, (t2, t1), strict=True):
        if leaf is not None:
            leaf.tensor = weakref.ref(tensor)


for _function in (set_module, swap_tensors):
    set_name(_function, f"{ROOT}.utils", _function.__name__)
