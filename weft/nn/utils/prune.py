"""Pruning multiplies parameters by a mask of zeros and ones before each call."""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any

import weft

from ...core.tensor import Tensor
from ..module import Module


class BasePruningMethod(ABC):
    """The hook: computes the tensor `_tensor_name` from the parameter `name_orig` and the buffer `name_mask`.

    A subclass says by `PRUNING_TYPE` what it chooses from ("unstructured": single elements, "structured": slices of
    `dim`, "global": elements of all tensors together) and defines `compute_mask`.
    """

    _tensor_name: str
    PRUNING_TYPE: str

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the mask for a tensor of values; it keeps the zeros of `default_mask`."""

    def apply_mask(self, module: Module) -> Tensor:
        """Return the parameter, multiplied by its mask."""
        assert self._tensor_name is not None, f"Module {module} has to be pruned"
        mask = getattr(module, self._tensor_name + "_mask")
        original = getattr(module, self._tensor_name + "_orig")
        return mask.to(dtype=original.dtype) * original

    @classmethod
    def apply(
        cls, module: Module, name: str, *args: Any, importance_scores: Tensor | None = None, **kwargs: Any
    ) -> BasePruningMethod:
        """Prune a tensor of a module, which may have been pruned before, by `importance_scores` or its own values."""
        before = _hook_of(module, name)
        method: BasePruningMethod = cls(*args, **kwargs)
        method._tensor_name = name
        hook = method
        if before is not None:
            _, old = before
            hook = old if isinstance(old, PruningContainer) else PruningContainer(old)
            hook.add_pruning_method(method)
        original = getattr(module, name)
        if importance_scores is None:
            importance_scores = original
        elif importance_scores.shape != original.shape:
            raise AssertionError(
                f"importance_scores should have the same shape as parameter {name} of {module}, "
                f"got {importance_scores.shape} vs {original.shape}"
            )
        if before is None:
            default = weft.ones_like(original)
        else:
            default = getattr(module, name + "_mask").detach().clone()
        # The module changes only after this, so that it stays whole if a method of the program raises.
        mask = hook.compute_mask(importance_scores.detach(), default_mask=default)
        if before is None:
            module.register_parameter(name + "_orig", original)
            del module._parameters[name]
        else:
            del module._forward_pre_hooks[before[0]]
        module.register_buffer(name + "_mask", mask)
        setattr(module, name, hook.apply_mask(module))
        module.register_forward_pre_hook(hook)
        return hook

    def prune(
        self, t: Tensor, default_mask: Tensor | None = None, importance_scores: Tensor | None = None
    ) -> Tensor:
        """Return the tensor with some elements made zero; no module is involved."""
        if importance_scores is None:
            importance_scores = t
        elif importance_scores.shape != t.shape:
            raise AssertionError(
                f"importance_scores should have the same shape as tensor t, got {importance_scores.shape} vs {t.shape}"
            )
        if default_mask is None:
            default_mask = weft.ones_like(t)
        return t * self.compute_mask(importance_scores, default_mask=default_mask)

    def remove(self, module: Module) -> None:
        """Make the pruned tensor a parameter again."""
        name = self._tensor_name
        weight = self.apply_mask(module)
        if hasattr(module, name):
            delattr(module, name)
        original = module._parameters.pop(name + "_orig")
        assert original is not None
        original.data = weight.data
        del module._buffers[name + "_mask"]
        setattr(module, name, original)


class PruningContainer(BasePruningMethod):
    """Applies several prunings to one tensor; each chooses among the elements that the others left."""

    PRUNING_TYPE = "container"

    def __init__(self, *args: Any) -> None:
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        methods = args[0] if len(args) == 1 and isinstance(args[0], Iterable) else args
        for method in methods:
            if not self._pruning_methods and isinstance(method, BasePruningMethod):
                self._tensor_name = method._tensor_name
            self.add_pruning_method(method)

    def add_pruning_method(self, method: BasePruningMethod | None) -> None:
        """Add a pruning method. Raises: TypeError for anything else, ValueError for one of another tensor."""
        if not isinstance(method, BasePruningMethod) and method is not None:
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if method is not None and self._tensor_name != method._tensor_name:
            raise ValueError(
                "Can only add pruning methods acting on the parameter named "
                f"'{self._tensor_name}' to PruningContainer {self}. Found '{method._tensor_name}'"
            )
        self._pruning_methods += (method,)  # type: ignore[operator]

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Any:
        return iter(self._pruning_methods)

    def __getitem__(self, index: int) -> BasePruningMethod:
        return self._pruning_methods[index]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Return the default mask with the zeros of the newest pruning, which chooses among the elements that are left."""
        method = self._pruning_methods[-1]
        mask = default_mask.to(dtype=t.dtype)
        if method.PRUNING_TYPE == "unstructured":
            left: Any = mask == 1
        elif method.PRUNING_TYPE == "structured":
            dim = method.dim % t.dim()  # type: ignore[attr-defined]
            others = [each for each in range(t.dim()) if each != dim]
            left = (slice(None),) * dim + (mask.sum(dim=others) != 0,)
        elif method.PRUNING_TYPE == "global":
            left = (slice(None),) * t.dim()
        else:
            raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
        result = mask.clone()
        result[left] = method.compute_mask(t[left], default_mask=mask[left])
        return result


class Identity(BasePruningMethod):
    """Prunes nothing, but creates the mask and the parameter `name_orig`."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        return default_mask


class _Amount(BasePruningMethod):
    """Prunes a number of elements or slices, or a fraction of them."""

    def __init__(self, amount: Any) -> None:
        _validate_pruning_amount_init(amount)
        self.amount = amount

    def _count(self, size: int) -> int:
        """Return how many of `size` to prune. Raises: ValueError if that is more than there are."""
        _validate_pruning_amount(self.amount, size)
        return _compute_nparams_toprune(self.amount, size)


class RandomUnstructured(_Amount):
    """Prunes elements at random."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        return _without_lowest(-weft.rand_like(t), self._count(t.nelement()), default_mask)


class L1Unstructured(_Amount):
    """Prunes the elements of least absolute value."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        return _without_lowest(weft.abs(t), self._count(t.nelement()), default_mask)


class _Structured(_Amount):
    """Prunes slices of `dim`, those of the lowest `_scores`."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: Any, dim: int = -1) -> None:
        super().__init__(amount)
        self.dim = dim

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        if t.dim() <= 1:
            raise ValueError(
                "Structured pruning can only be applied to multidimensional tensors. "
                f"Found tensor of shape {t.shape} with {t.dim()} dims"
            )
        if self.dim >= t.dim():
            raise IndexError(f"Invalid index {self.dim} for tensor of size {t.shape}")
        count = self._count(t.shape[self.dim])
        if count == 0:
            return default_mask
        scores = self._scores(t)
        kept = weft.topk(scores, scores.numel() - count).indices
        return default_mask * weft.zeros_like(t).index_fill(self.dim, kept, 1.0)

    def _scores(self, t: Tensor) -> Tensor:
        raise NotImplementedError


class RandomStructured(_Structured):
    """Prunes slices of a dim at random."""

    def _scores(self, t: Tensor) -> Tensor:
        return weft.rand(t.shape[self.dim])


class LnStructured(_Structured):
    """Prunes the slices of a dim of least `n`-norm."""

    def __init__(self, amount: Any, n: Any, dim: int = -1) -> None:
        super().__init__(amount, dim)
        self.n = n

    def _scores(self, t: Tensor) -> Tensor:
        dim = self.dim % t.dim()
        return weft.norm(t, p=self.n, dim=[each for each in range(t.dim()) if each != dim])


class CustomFromMask(BasePruningMethod):
    """Prunes where a given mask is zero."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        assert default_mask.shape == self.mask.shape
        return default_mask * self.mask.to(dtype=default_mask.dtype)


def identity(module: Module, name: str) -> Module:
    """Make a mask for a parameter without pruning anything."""
    Identity.apply(module, name)
    return module


def random_unstructured(module: Module, name: str, amount: Any) -> Module:
    """Prune elements of a parameter at random: `amount` of them, or that fraction if it is a float."""
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(
    module: Module, name: str, amount: Any, importance_scores: Tensor | None = None
) -> Module:
    """Prune the elements of a parameter that are nearest to zero: `amount` of them, or that fraction.

    >>> import weft as torch
    >>> layer = torch.nn.utils.prune.l1_unstructured(torch.nn.Linear(4, 2), "weight", amount=0.5)
    >>> int((layer.weight == 0).sum())
    4
    """
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module: Module, name: str, amount: Any, dim: int) -> Module:
    """Prune slices of `dim` of a parameter at random: `amount` of them, or that fraction."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: Module, name: str, amount: Any, n: Any, dim: int, importance_scores: Tensor | None = None
) -> Module:
    """Prune the slices of `dim` of a parameter that have the least `n`-norm: `amount` of them, or that fraction."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def global_unstructured(
    parameters: Any,
    pruning_method: type[BasePruningMethod],
    importance_scores: Mapping[tuple[Module, str], Tensor] | None = None,
    **kwargs: Any,
) -> None:
    """Prune elements of several parameters, (module, name) pairs, compared with each other.

    Raises: TypeError for anything but pairs, or for a method that is not unstructured.
    """
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    pairs = list(parameters)
    scores = importance_scores or {}
    if not isinstance(scores, Mapping):
        raise TypeError("global_unstructured(): importance_scores is not of type dict")
    values = [scores.get((module, name), getattr(module, name)).detach() for module, name in pairs]
    masks = [
        getattr(module, name + "_mask", weft.ones_like(value)) for (module, name), value in zip(pairs, values)
    ]
    names: Any = "temp"
    container = PruningContainer()
    container._tensor_name = names
    method = pruning_method(**kwargs)
    method._tensor_name = names
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            f'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method {pruning_method} of '
            f"type {method.PRUNING_TYPE}"
        )
    container.add_pruning_method(method)
    vector = weft.cat([value.flatten() for value in values])
    mask = container.compute_mask(vector, weft.cat([each.flatten() for each in masks]))
    parts = mask.split([value.numel() for value in values])
    for (module, name), value, part in zip(pairs, values, parts):
        custom_from_mask(module, name, part.view_as(value))


def custom_from_mask(module: Module, name: str, mask: Tensor) -> Module:
    """Prune a parameter where a mask is zero."""
    CustomFromMask.apply(module, name, mask)
    return module


def remove(module: Module, name: str) -> Module:
    """Make the pruned values of a parameter its own. Raises: ValueError if it is not pruned."""
    found = _hook_of(module, name)
    if found is None:
        raise ValueError(
            f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed"
        )
    id, hook = found
    hook.remove(module)
    del module._forward_pre_hooks[id]
    return module


def is_pruned(module: Module) -> bool:
    """Return whether the module, or one inside, has a pruned parameter."""
    return any(
        isinstance(hook, BasePruningMethod)
        for each in module.modules()
        for hook in each._forward_pre_hooks.values()
    )


def _hook_of(module: Module, name: str) -> tuple[int, Any] | None:
    for id, hook in module._forward_pre_hooks.items():
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            return id, hook
    return None


def _without_lowest(scores: Tensor, count: int, mask: Tensor) -> Tensor:
    """Return `mask` with zeros at the `count` lowest scores."""
    result = mask.clone()
    if count:
        result.view(-1)[weft.topk(scores.view(-1), k=count, largest=False).indices] = 0
    return result


def _validate_pruning_amount_init(amount: Any) -> None:
    """Raise TypeError or ValueError for what is neither a fraction nor a number of elements."""
    if not isinstance(amount, numbers.Real):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    value = float(amount)
    if value < 0 or (value > 1.0 and not isinstance(amount, numbers.Integral)):
        raise ValueError(
            f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer"
        )


def _validate_pruning_amount(amount: Any, tensor_size: int) -> None:
    """Raise ValueError for more elements than there are."""
    if isinstance(amount, numbers.Integral) and int(amount) > tensor_size:
        raise ValueError(
            f"amount={amount} should be smaller than the number of parameters to prune={tensor_size}"
        )


def _compute_nparams_toprune(amount: Any, tensor_size: int) -> int:
    """How many of the elements are pruned."""
    return int(amount) if isinstance(amount, numbers.Integral) else round(amount * tensor_size)
