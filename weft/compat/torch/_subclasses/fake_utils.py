"""`torch._subclasses.fake_utils`: a mode that compares each operator with what fake tensors give."""

from __future__ import annotations

from typing import Any

from weft.compat.missing import module_getattr
from weft.library.python_dispatch import TorchDispatchMode


class CrossRefFakeMode(TorchDispatchMode):
    """A mode that runs each operator on fake tensors, too, and compares the metadata. Test files derive classes from it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(
            "torch._subclasses.CrossRefFakeMode: weft does not compare operators with fake tensors"
        )


__getattr__ = module_getattr(__name__)
