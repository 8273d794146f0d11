"""The binding of `import torch` to weft, in this process and in those that it starts.

Start-up (startup/sitecustomize.py) loads this file by its path in every interpreter of a `weft run`, so it imports
neither weft, which a process that never imports torch should not pay for, nor the slower of Python's own modules.
"""

import importlib
import os
import sys
from importlib.machinery import ModuleSpec, PathFinder
from types import CodeType, ModuleType

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# A folder on PYTHONPATH reaches subprocesses and spawned workers alike, whatever starts them, and leaves alone
# every interpreter outside of the run, which a .pth file in site-packages would not.
STARTUP = os.path.join(PACKAGE, "compat", "startup")


class _Alias:
    """A loader that puts the weft module itself under its torch name: there is one module, not a copy."""

    def __init__(self, module: ModuleType):
        self.module = module

    def create_module(self, spec: ModuleSpec) -> None:
        """The default: an empty module, which gives way in `exec_module`."""

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None
        # The import system hands out what stands here after this call, not the empty module it came with.
        sys.modules[module.__spec__.name] = self.module

    def get_code(self, name: str) -> CodeType:
        """What `python -m torch.x` runs."""
        assert self.module.__spec__ is not None
        return self.module.__spec__.loader.get_code(self.module.__name__)  # type: ignore[union-attr]


class _Binding:
    """A finder that stands first on `sys.meta_path`, ahead of an installed PyTorch."""

    def __init__(self) -> None:
        self.displaced: dict[str, ModuleType] = {}  # the torch modules there were before install()

    def find_spec(self, fullname, path=None, target=None) -> ModuleSpec | None:
        if fullname == "weft":  # the same weft in every process, also where it is not installed
            return PathFinder.find_spec(fullname, [os.path.dirname(PACKAGE)])
        if not _is_torch(fullname):
            return None
        weft_name = "weft" + fullname.removeprefix("torch")
        try:
            module = importlib.import_module(weft_name)
        except ModuleNotFoundError as error:
            if error.name != weft_name:  # weft has it, but something that it needs is not installed
                raise
            if sys._getframe(2).f_code.co_name == "find_spec":  # importlib.util's: a question, not an import
                return None
            from weft.compat.missing import missing_module

            raise missing_module(fullname) from None
        is_package = hasattr(module, "__path__")
        # _Alias is no subclass of importlib.abc.Loader: importing that takes 18 ms.
        return ModuleSpec(fullname, _Alias(module), is_package=is_package)  # type: ignore[arg-type]


_binding = _Binding()


def install() -> None:
    """Bind `torch` and everything under it to weft, here and in processes started from now on.

    Modules already imported from PyTorch are put aside until `uninstall`; names that a module took from them
    keep their meaning. Installing twice is the same as installing once. A process that is started with `-E`,
    `-I`, `-S` or another PYTHONPATH is not bound.

    >>> import weft, weft.compat
    >>> weft.compat.install()
    >>> import torch
    >>> torch is weft
    True
    >>> weft.compat.uninstall()
    """
    if _binding in sys.meta_path:
        return
    _binding.displaced = _take_torch_modules()
    sys.meta_path.insert(0, _binding)
    _set_python_path([STARTUP, *_python_path()])


def uninstall() -> None:
    """Undo `install`: what was imported from PyTorch before it is back, and the rest is found as usual."""
    if _binding not in sys.meta_path:
        return
    sys.meta_path.remove(_binding)
    _take_torch_modules()
    sys.modules.update(_binding.displaced)
    _binding.displaced = {}
    _set_python_path(_python_path())


def _is_torch(name: str) -> bool:
    return name == "torch" or name.startswith("torch.")


def _take_torch_modules() -> dict[str, ModuleType]:
    return {name: sys.modules.pop(name) for name in list(sys.modules) if _is_torch(name)}


def _python_path() -> list[str]:
    """The folders of PYTHONPATH, without ours."""
    folders = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    return [folder for folder in folders if folder and folder != STARTUP]


def _set_python_path(folders: list[str]) -> None:
    if folders:
        os.environ["PYTHONPATH"] = os.pathsep.join(folders)
    else:
        os.environ.pop("PYTHONPATH", None)
