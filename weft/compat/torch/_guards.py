"""`torch._guards`: which mode makes the FakeTensors that a program works with."""

from __future__ import annotations

from typing import Any

from weft.core.pytree import tree_leaves
from weft.library.fake_tensor import FakeTensor, FakeTensorMode
from weft.library.python_dispatch import _get_current_dispatch_mode_stack


def active_fake_mode() -> FakeTensorMode | None:
    """The innermost FakeTensorMode that is on, None if none is."""
    return next(iter(_active_fake_modes()), None)


def detect_fake_mode(inputs: Any = None) -> FakeTensorMode | None:
    """The FakeTensorMode that is on, or to which the FakeTensors in `inputs`, any pytree, belong; None if there is none.

    Raises: AssertionError if there are several.
    """
    modes = [
        *((mode, "an active mode") for mode in _active_fake_modes()),
        *(
            (leaf.fake_mode, f"input {i}")
            for i, leaf in enumerate(tree_leaves(inputs))
            if isinstance(leaf, FakeTensor)
        ),
    ]
    for mode, source in modes[1:]:
        if mode is not modes[0][0]:
            raise AssertionError(
                f"fake mode ({modes[0][0]}) from {modes[0][1]} doesn't match mode ({mode}) from {source}"
            )
    return modes[0][0] if modes else None


def _active_fake_modes() -> list[FakeTensorMode]:
    """The modes that are on, the innermost first."""
    return [mode for mode in reversed(_get_current_dispatch_mode_stack()) if isinstance(mode, FakeTensorMode)]
