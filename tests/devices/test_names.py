"""Nothing outside weft/devices knows a device by name, but for what PyTorch's users write and read.

So a new device is a folder, and nothing else has to change.
"""

import ast
import re
from fnmatch import fnmatch
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "weft"
NAMES = "cuda xpu xla mps mtia hip hpu privateuseone reference".split()
_QUOTED = re.compile(rf"""["'](?:{"|".join(NAMES)})""")

# Where a name may stand, and why.
REASONS = {
    "modules, classes and methods that PyTorch calls after a device": "__init__.py cuda/* compat/* amp/* "
    "ops/assembly/copying.py ops/creation/legacy.py ops/tensor/*.py core/storage.py core/tensor.py nn/utils/rnn.py",
    "arguments whose default PyTorch calls by name": "autograd/hooks.py autograd/profiler.py autograd/profiler_util.py "
    "utils/checkpoint.py fx/experimental/const_fold.py library/fake_tensor.py",
    "lists of types that PyTorch's functions return or accept": "optim/*.py library/*.py library/registry/*.py "
    "library/higher_order/*.py distributed/*.py",
    "formats that name devices": "interop/*.py serialization/*.py nn/parameter_containers.py",
    "PyTorch's list of types, which of them are accelerators, and autocast's dtype of each": "core/device.py core/autocast.py",
    "what `weft doctor` says of drivers": "cli/doctor.py",
    "a package of layers that have no quantized kernels": "ao/nn/quantized/__init__.py",
}


def named(path):
    """Whether a module has a device's name, alone or with an index, as a string."""
    text = path.read_text()
    if not _QUOTED.search(text):  # parsing takes longer
        return False
    return any(
        isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and node.value.partition(":")[0] in NAMES
        for node in ast.walk(ast.parse(text))
    )


def modules():
    for path in PACKAGE.rglob("*.py"):
        where = path.relative_to(PACKAGE).as_posix()
        if not where.startswith("devices/") and named(path):
            yield where


def test_devices_are_named_where_pytorch_names_them():
    patterns = " ".join(REASONS.values()).split()
    found = list(modules())
    others = [where for where in found if not any(fnmatch(where, pattern) for pattern in patterns)]
    assert not others, (
        "ask the backend of the device instead of comparing names, or say here why a name must stand there"
    )
    unused = [pattern for pattern in patterns if not any(fnmatch(where, pattern) for where in found)]
    assert not unused
