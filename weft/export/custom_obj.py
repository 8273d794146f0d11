"""What a graph knows of objects of the user's classes: `torch.export.custom_obj`."""

from __future__ import annotations

import dataclasses

__all__ = ["ScriptObjectMeta"]


@dataclasses.dataclass
class ScriptObjectMeta:
    """The name of the constant that an object is, and the name of its class."""

    constant_name: str
    class_fqn: str
