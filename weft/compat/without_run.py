"""The hint that `import torch` gives where PyTorch is not installed and the program has imported weft only under its own name."""

from __future__ import annotations

import sys
from typing import Any

from .binding import PACKAGES


class _Hint:
    """A finder that stands last on `sys.meta_path`, so it is asked only for packages that no other finder has found."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        """Raises: ModuleNotFoundError if an import statement asks for a package of PyTorch's; questions such as `importlib.util.find_spec` find nothing."""
        if name in PACKAGES and sys._getframe(2).f_code.co_name == "_find_and_load_unlocked":
            raise ModuleNotFoundError(
                f"No module named {name!r}: PyTorch is not installed. weft stands for it in a program that is started by "
                "`weft run script.py`, and after `import weft.compat; weft.compat.install()`",
                name=name,
            )


def arrange() -> None:
    """Append the finder to `sys.meta_path`, which `import weft` does once."""
    sys.meta_path.append(_Hint())  # type: ignore[arg-type]
