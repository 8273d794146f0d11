"""What a graph knows of objects of the user's classes: `torch.export.custom_obj`."""

from __future__ import annotations

import dataclasses

from ..compat.missing import module_getattr

__all__ = ["ScriptObjectMeta"]


@dataclasses.dataclass
class ScriptObjectMeta:
    """The name of the constant that an object is, and the name of its class."""

    constant_name: str
    class_fqn: str


__getattr__ = module_getattr(__name__)
