"""PyTorch's names for what profiles note: `aten::add` for `torch.add`, `+` and the kernel; `weft::` where PyTorch has no operator."""

from __future__ import annotations

import functools
import re
from typing import Any

from ..families.product import Product
from ..families.update import FusedUpdate
from ..library.namespaces import OpOverload, OpOverloadPacket
from ..library.registry import aten, dispatching
from ..library.registry.aten_calls import SYNONYMS

# Functions whose operators have another name.
_OPERATORS = {
    "cross_entropy": "cross_entropy_loss", "nll_loss": "nll_loss_nd", "grid_sample": "grid_sampler",
    "affine_grid": "affine_grid_generator",
}  # fmt: skip
# Functions of metadata: PyTorch answers them without calling an operator.
_UNSEEN = frozenset(
    "dim get_device is_complex is_conj is_contiguous is_floating_point is_inference is_neg is_signed ndimension nelement numel "
    "requires_grad_ size storage_offset stride".split()
)


def prepare() -> None:
    """Read PyTorch's names now, so that no call has to."""
    dispatching.paths()
    _names()


@functools.cache
def name_of_function(function: Any) -> str | None:
    """The operator that a public function calls; None for functions without one, whose parts are noted instead."""
    if isinstance(function, (OpOverload, OpOverloadPacket)):
        packet = function._overloadpacket if isinstance(function, OpOverload) else function
        qualified = packet._qualified_op_name
        return (
            None if qualified.startswith("profiler::") else qualified
        )  # those begin and end events themselves
    name = dispatching.paths().get(function)
    if name is None or name in _UNSEEN:
        return None
    return _listed(_OPERATORS.get(name, name)) or _listed(SYNONYMS.get(name, name))


def name_of_op(op: Any, method: str, args: tuple) -> str:
    """The operator that one of weft's ops computes."""
    if isinstance(op, FusedUpdate):  # `weft::sgd`, from optim/sgd.py
        return f"weft::{op.rule.__module__.rpartition('.')[2]}"
    name = _name_of_product(args) if isinstance(op, Product) else _name_of(op.name, op.node_name)
    if name == "aten::linear":  # the public function has the name of the whole, as in PyTorch
        name = "aten::addmm" if len(args[0]) == 3 else "aten::mm"
    return f"{name}_" if method == "inplace" and _listed(name.removeprefix("aten::") + "_") else name


def name_of_deferred(name: str) -> str:
    """The operator that a deferred op with this name computes."""
    return _name_of(name, None)


def _name_of_product(args: tuple) -> str:
    a, b = [each.spec.ndim for each in args[-2:]]
    if b == 1:
        return "aten::dot" if a == 1 else "aten::mv"
    return "aten::bmm" if b > 2 else "aten::mm"


@functools.cache
def _name_of(name: str, node_name: Any) -> str:
    node = re.sub(r"Backward\d*$", "", node_name) if isinstance(node_name, str) else ""
    snake = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", node).lower()
    name = name.replace(".", "_")
    return _listed(_OPERATORS.get(name, name)) or _listed(snake) or f"weft::{name}"


def _listed(name: str) -> str | None:
    return f"aten::{name}" if name in _names() else None


@functools.cache
def _names() -> frozenset[str]:
    return frozenset(aten.names())
