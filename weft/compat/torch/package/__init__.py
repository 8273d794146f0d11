"""Archives of code and data, `torch.package`: weft tells that nothing comes from one, and declares the rest."""

from typing import Any

__all__ = ["is_from_package"]


def is_from_package(obj: Any) -> bool:
    """Whether a module, a class or an object was imported from an archive.

    >>> is_from_package(is_from_package)
    False
    """
    module = getattr(obj, "__name__", "") if type(obj).__name__ == "module" else type(obj).__module__
    return module.startswith("<torch_package_")
