"""Python's `site` imports this in every interpreter of a `weft run`, as its folder leads PYTHONPATH there.

It binds `import torch` to weft, leaves `sys.path` as if it had not been there, and then runs the
`sitecustomize` that the interpreter would have run instead. Old interpreters read it too, so its syntax is old.
"""

import importlib.machinery
import importlib.util
import os
import sys


def _load(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # one module, also for `import weft.compat...` later on
    spec.loader.exec_module(module)
    return module


def _bind(folder):
    compat = os.path.dirname(folder)
    _load("weft.compat.binding", os.path.join(compat, "binding.py")).install()
    core = os.path.join(os.path.dirname(compat), "core")
    sys.excepthook = _load("weft.core.tracebacks", os.path.join(core, "tracebacks.py")).excepthook


def _run_next():
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize")
    if spec is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


if __name__ == "sitecustomize":  # and not the name by which a tool imports every file of a package
    _folder = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if os.path.abspath(path) != _folder]
    # An older Python that a script starts is not ours to bind.
    if sys.version_info >= (3, 11):  # noqa: UP036
        _bind(_folder)
    _run_next()
