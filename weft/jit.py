"""`torch.jit`, which weft does not have: programs run as they are."""

from __future__ import annotations

from typing import Any

from .compat.missing import module_getattr


def load(f: Any, map_location: Any = None, *args: Any, **kwargs: Any) -> Any:
    """Raises: RuntimeError, for every file."""
    raise RuntimeError(
        f"torch.jit.load({str(f)!r}): weft does not run TorchScript. Load the model in PyTorch, save its state_dict with "
        "torch.save, and load that into the module's Python class"
    )


__getattr__ = module_getattr(__name__)
