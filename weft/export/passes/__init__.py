"""Changes to whole exported programs: `torch.export.passes`."""

from __future__ import annotations

from typing import Any

from ... import Tensor, device
from ...core.pytree import tree_map
from ...nn import Parameter
from ..exported_program import ExportedProgram

__all__ = ["move_to_device_pass"]


def move_to_device_pass(ep: ExportedProgram, location: device | str | dict[str, str]) -> ExportedProgram:
    """Move a program to a device: its tensors, its example inputs, and the devices that its graph names.

    A dict gives the new device for each old one. The program is changed, and returned.
    """

    def moved(old: Any) -> Any:
        return device(location.get(str(old), str(old))) if isinstance(location, dict) else device(location)

    def moved_value(value: Any) -> Any:
        if isinstance(value, Parameter):
            return Parameter(value.detach().to(moved(value.device)), value.requires_grad)
        if isinstance(value, Tensor):
            return value.to(moved(value.device))
        return moved(value) if isinstance(value, device) else value

    for held in (ep.state_dict, ep.constants):
        held.update({name: moved_value(value) for name, value in held.items()})
    for node in ep.graph.nodes:
        if "device" in node.kwargs:
            node.kwargs = {**node.kwargs, "device": moved(node.kwargs["device"])}
        node.args = tree_map(moved_value, node.args)
    if ep.example_inputs is not None:
        ep._example_inputs = tree_map(moved_value, ep.example_inputs)
    ep.graph_module.recompile()
    return ep
