"""The stack of `__torch_function__` modes of this thread, and whether classes and modes are asked, under PyTorch's names."""

from __future__ import annotations

from enum import IntEnum

from weft.core.modes import TorchFunctionMode, pop_mode, push_mode
from weft.core.overrides import modes, switch


class _TorchFunctionState(IntEnum):
    """Who is asked: classes and modes, modes only, nobody."""

    ENABLED = 0
    SUBCLASSES_DISABLED = 1
    ALL_DISABLED = 2


def _get_torch_function_state() -> _TorchFunctionState:
    """Who is asked now. A context that disables modes as well takes them off the stack, so modes on the stack are asked."""
    return _TorchFunctionState.ENABLED if switch.on else _TorchFunctionState.SUBCLASSES_DISABLED


def _set_torch_function_state(state: _TorchFunctionState, /) -> None:
    """Ask classes or not.

    Raises: NotImplementedError for ALL_DISABLED, for which there is the context `torch._C.DisableTorchFunction`.
    """
    if state is _TorchFunctionState.ALL_DISABLED:
        raise NotImplementedError(
            "torch._C._set_torch_function_state: use the context torch._C.DisableTorchFunction to disable modes"
        )
    switch.on = state is _TorchFunctionState.ENABLED


def _len_torch_function_stack() -> int:
    """How many modes are on in this thread."""
    return len(modes.stack)


def _get_function_stack_at(index: int, /) -> TorchFunctionMode:
    """The mode at this place, the outermost first."""
    return modes.stack[index]


def _push_on_torch_function_stack(mode: TorchFunctionMode, /) -> None:
    """Let a mode decide first."""
    push_mode(mode)


def _pop_torch_function_stack() -> TorchFunctionMode:
    """Take the innermost mode off."""
    return pop_mode()
