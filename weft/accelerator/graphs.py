"""Recorded work of an accelerator, `torch.accelerator.graphs`."""

from __future__ import annotations

from typing import Any

from ._module import module, none_available

__all__ = ["Graph"]


class Graph:
    """Work that an accelerator has recorded and can repeat.

    Raises: RuntimeError without an accelerator, NotImplementedError with one, because weft does not record its work yet.
    """

    def __init__(
        self,
        keep_graph: bool = False,
        *,
        pool: tuple[int, int] | None = None,
        capture_error_mode: str = "default",
    ):
        module()
        raise NotImplementedError("torch.accelerator.Graph: weft does not record the work of a device yet")

    def capture_begin(self) -> None:
        """Begin to record."""
        raise none_available()

    def capture_end(self) -> None:
        """End the recording."""
        raise none_available()

    def instantiate(self) -> None:
        """Prepare what was recorded to run."""
        raise none_available()

    def replay(self) -> None:
        """Run what was recorded."""
        raise none_available()

    def reset(self) -> None:
        """Forget what was recorded."""
        raise none_available()

    def pool(self) -> Any:
        """The memory that it uses."""
        raise none_available()

    def enable_debug_mode(self) -> None:
        """Keep what `debug_dump` needs."""
        raise none_available()

    def debug_dump(self, path: str) -> None:
        """Write a picture of it."""
        raise none_available()
