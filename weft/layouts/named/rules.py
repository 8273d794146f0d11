"""The rules of named tensors: a call runs on the plain tensors, and a rule says which names its results have."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from ...core.layout_calls import Rules
from ...core.spec import Spec, make_spec
from ...core.tensor import Tensor, make
from ...core.warn import user_level


@functools.lru_cache(1024)
def _plain_spec(spec: Spec) -> Spec:
    return make_spec(spec.shape, spec.stride, spec.dtype, spec.device, spec.conj, spec.neg)


class NamedRules(Rules):
    """Rules whose default is to run the function on plain tensors (`calls.py`)."""

    def names_of(self, spec: Any) -> tuple[str | None, ...]:
        return spec.detail

    def memory(self, x: Tensor) -> Tensor:
        return make(x._storage, x._byte_offset, _plain_spec(x.spec))

    def cotangent(self, tensor: Tensor) -> Tensor:
        """Derivatives know nothing of names."""
        warnings.warn(
            f"Autograd was passed a named grad tensor with dims {list(tensor.names)}. Derivatives have no names, so they are ignored: "
            "write grad.rename(None).",
            stacklevel=user_level(),
        )
        return tensor.rename(None)

    run: Callable[[str, Callable, tuple, dict[str, Any], bool], Any]

    def answer(self, name: str, function: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
        forward, _ = self.forward(name, args)
        rule = self.functions.get(forward)
        if rule is not None:
            return rule(*args, **kwargs)
        return self.run(forward, function, args, kwargs, forward != name)


NAMED = NamedRules("named", "write x.rename(None) to compute with the tensor without names")
