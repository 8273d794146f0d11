"""`torch.distributed.checkpoint.stateful`: what has a state that can be saved."""

from typing import Any, Protocol, TypeVar, runtime_checkable

__all__ = ["Stateful", "StatefulT"]


@runtime_checkable
class Stateful(Protocol):
    """An object with `state_dict` and `load_state_dict`: modules, optimizers, schedules.

    >>> import weft as torch
    >>> from weft.distributed.checkpoint.stateful import Stateful
    >>> isinstance(torch.nn.Linear(2, 1), Stateful), isinstance(3, Stateful)
    (True, False)
    """

    def state_dict(self) -> dict[str, Any]:
        """What there is to save."""
        ...

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what was saved."""
        ...


StatefulT = TypeVar("StatefulT", bound=Stateful)
