"""Taking the parameters of layers into the nodes that call them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import weft

from .._compatibility import compatibility
from ..graph_module import GraphModule

__all__ = ["default_matching", "extract_attrs_for_lowering", "lift_lowering_attrs_to_nodes"]


def default_matching(name: str, target_version: int) -> str:
    """The attribute `name` as it is called in any version."""
    return name


_nn = weft.nn
_CONV = ["weight", "bias", "kernel_size", "stride", "padding", "dilation", "groups", "padding_mode"]
_BATCH_NORM = ["weight", "bias", "running_mean", "running_var", "eps"]
# Class of a layer -> version of its state, the attributes to take, how they are called.
module_fetch_book: dict[type, tuple[int, list[str], Callable[[str, int], str]]] = {
    _nn.Linear: (1, ["weight", "bias"], default_matching),
    _nn.Conv2d: (1, _CONV, default_matching),
    _nn.BatchNorm2d: (2, _BATCH_NORM, default_matching),
    _nn.AdaptiveAvgPool2d: (1, [], default_matching),
    _nn.MaxPool2d: (
        1,
        ["kernel_size", "stride", "padding", "dilation", "return_indices", "ceil_mode"],
        default_matching,
    ),
    _nn.ReLU: (1, ["inplace"], default_matching),
}


@compatibility(is_backward_compatible=False)
def extract_attrs_for_lowering(mod: Any) -> dict[str, Any]:
    """The name of the class of a layer, and the attributes that another implementation of it needs.

    Raises: RuntimeError for layers that are not in the table.
    """
    attributes: dict[str, Any] = {"name": weft.typename(mod)}
    if type(mod) not in module_fetch_book:
        return attributes
    version, names, matching = module_fetch_book[type(mod)]
    if getattr(mod, "_version", version) < version:
        raise RuntimeError(
            f"Fetcher version {version} try to fetch {weft.typename(mod)} version {mod._version}"
        )
    for name in names:
        attributes[name] = getattr(mod, matching(name, getattr(mod, "_version", version)))
    return attributes


@compatibility(is_backward_compatible=False)
def lift_lowering_attrs_to_nodes(fx_module: GraphModule) -> None:
    """Note these attributes as `node.attrs_for_lowering`, here and in the GraphModules that are called."""
    submodules = dict(fx_module.named_modules())
    for node in fx_module.graph.nodes:
        if node.op != "call_module":
            continue
        module: Any = submodules[str(node.target)]
        if isinstance(module, GraphModule):
            lift_lowering_attrs_to_nodes(module)
        else:
            node.attrs_for_lowering = extract_attrs_for_lowering(module)  # type: ignore[attr-defined]
