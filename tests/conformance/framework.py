"""PyTorch's own test framework, `torch.testing._internal`, on top of weft.

The framework is Python and in the wheel of PyTorch, which the tests have anyway. `bind` lets `import torch` mean weft, and serves
`torch.testing._internal` from the files of the wheel, unchanged. Nothing else of the wheel is imported.
"""

import importlib.machinery
import os
import sys
import sysconfig
from pathlib import Path

PACKAGE = "torch.testing._internal"


class FromWheel:
    """A finder of the framework's modules. It stands in front of weft's own, which has a module for every other name of torch."""

    def find_spec(self, name, path=None, target=None):
        """Where the module is in the wheel; None for all other modules."""
        if name == PACKAGE:
            path = [str(folder())]
        elif not name.startswith(f"{PACKAGE}."):
            return None
        return importlib.machinery.PathFinder.find_spec(name, path)


def folder():
    """The folder `torch/testing` of the installed PyTorch."""
    found = Path(sysconfig.get_path("purelib"), "torch", "testing")
    if not (found / "_internal").is_dir():
        raise FileNotFoundError(f"the tests need PyTorch, whose framework is in {found / '_internal'}")
    return found


def bind():
    """Bind `import torch` to weft and the framework to the wheel, in this process and in those that it starts."""
    import weft.compat

    weft.compat.install()
    sys.meta_path.insert(0, FromWheel())
    startup = Path(__file__).resolve().parent / "startup"
    os.environ["PYTHONPATH"] = os.pathsep.join((os.environ["PYTHONPATH"], str(startup)))
