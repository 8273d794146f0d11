"""PyTorch's own test framework, `torch.testing._internal`, on top of weft.

The framework is Python and in the wheel of PyTorch, which the tests have anyway. `bind` lets `import torch` mean weft, and serves
`torch.testing._internal` from the files of the wheel, unchanged. Nothing else of the wheel is imported.
"""

import importlib.machinery
import operator
import os
import re
import sys
import sysconfig
from pathlib import Path

PACKAGE = "torch.testing._internal"
# A table with a line for each function of PyTorch, private ones as well.
TABLE = f"{PACKAGE}.generated.annotated_fn_args"


class FromWheel:
    """A finder of the framework's modules. It stands in front of weft's own, which has a module for every other name of torch."""

    def find_spec(self, name, path=None, target=None):
        """Where the module is in the wheel; None for all other modules."""
        if name == PACKAGE:
            path = [str(folder())]
        elif not name.startswith(f"{PACKAGE}."):
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if name == TABLE and spec is not None:
            spec.loader = _Table(name, spec.origin)
        return spec


class _Table(importlib.machinery.SourceFileLoader):
    """Leaves out the lines of the table whose functions weft does not have."""

    def get_code(self, fullname):
        lines = Path(self.path).read_text().splitlines()
        return compile("\n".join(line for line in lines if _is_there(line)), self.path, "exec")


def _is_there(line):
    function = re.match(r"    torch\.([\w.]+): ", line)
    try:
        return function is None or operator.attrgetter(function[1])(sys.modules["torch"]) is not None
    except AttributeError:
        return False


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
