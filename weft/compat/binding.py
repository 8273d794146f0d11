"""The binding of `import torch` to weft, in this process and in those that it starts.

Start-up (startup/sitecustomize.py) loads this file by its path in every interpreter of a `weft run`, so it imports
neither weft, which a process that never imports torch should not pay for, nor the slower of Python's own modules.
"""

from __future__ import annotations

import importlib
import os
import sys
from importlib.machinery import ModuleSpec
from types import CodeType, FunctionType, ModuleType

TYPE_CHECKING = False  # importing typing for it takes longer than all else here
if TYPE_CHECKING:
    from typing import Any

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# A folder on PYTHONPATH reaches subprocesses and spawned workers alike, whatever starts them, and leaves alone
# every interpreter outside of the run, which a .pth file in site-packages would not.
STARTUP = os.path.join(PACKAGE, "compat", "startup")
# The top-level packages that PyTorch's distribution and that of PyTorch/XLA install, and what stands for them.
PACKAGES = {"torch": "weft", "functorch": "weft.functorch", "torch_xla": "weft.compat.torch_xla"}
# Folders whose modules PyTorch does not have, so that nothing is declared for them. Looking for a declaration in the modules
# of `compat` that do the looking would never end.
_INNER = ("core", "engine", "families", "ops", "interop", "devices", "compat", "io")


class _Alias:
    """A loader that puts a module itself under another name: there is one module, not a copy."""

    def __init__(self, module: ModuleType):
        self.module = module

    def create_module(self, spec: ModuleSpec) -> None:
        """The default: an empty module, which `exec_module` replaces."""

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None
        # The import system returns what sys.modules holds after this call, not the empty module it passed in.
        sys.modules[module.__spec__.name] = self.module

    def get_code(self, name: str) -> CodeType:
        """What `python -m torch.x` runs."""
        spec = self.module.__spec__
        assert spec is not None
        return spec.loader.get_code(spec.name)  # type: ignore[union-attr]


def alias(name: str, module: ModuleType) -> ModuleSpec:
    """What a finder answers for `name`, so that it is another name of `module`."""
    # The module may be under this name already. The import system would then take the module's own
    # spec instead of this one, and load it again.
    sys.modules.pop(name, None)
    if name.partition(".")[2] != module.__name__.partition(".")[2]:
        _alias_parts(name, module)
    # _Alias is no subclass of importlib.abc.Loader: importing that takes 18 ms.
    return ModuleSpec(name, _Alias(module), is_package="__path__" in vars(module))  # type: ignore[arg-type]


def _alias_parts(name: str, package: ModuleType) -> None:
    """Put the loaded modules of a package under its other name as well.

    To import them once more would give the package an attribute for each, and hide functions that have the name of a module.
    """
    prefix = f"{package.__name__}."
    for full_name, module in list(sys.modules.items()):
        if full_name.startswith(prefix):
            sys.modules[f"{name}.{full_name.removeprefix(prefix)}"] = module


class _Naming:
    """A loader of a weft module that gives it its torch name as soon as it is loaded."""

    def __init__(self, loader: Any):
        self.loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self.loader.exec_module(module)
        _give_torch_name(module)

    def get_code(self, name: str) -> CodeType:
        return self.loader.get_code(self.loader.name)  # `name` may be the torch name

    def __getattr__(self, name: str) -> Any:
        return getattr(self.loader, name)  # get_source, get_resource_reader, ...


class _Binding:
    """A finder that stands first on `sys.meta_path`, ahead of an installed PyTorch."""

    def __init__(self) -> None:
        self.displaced: dict[str, ModuleType] = {}  # the torch modules there were before install()
        # An object, its attribute, and the name that the attribute held before install().
        self.renamed: list[tuple[Any, str, str]] = []

    def find_spec(self, fullname, path=None, target=None) -> ModuleSpec | None:
        if fullname == "weft" or fullname.startswith("weft."):
            return self._find_weft(fullname, path)
        weft_name = _weft_name(fullname)
        if weft_name is None or (fullname == "torch_xla" and _asked_by_library()):
            return None
        try:
            module = importlib.import_module(weft_name)
        except ModuleNotFoundError as error:
            if sys._getframe(2).f_code.co_name == "find_spec":  # importlib.util's: a question, not an import
                return None
            if error.name != weft_name:  # weft has it, but something that it needs is not installed
                raise
            from weft.compat.missing import missing_module

            raise missing_module(fullname) from None
        if fullname == "torch.ops":  # the namespace of operators, and not weft's own modules of operations
            module = sys.modules["weft"].ops
        return alias(fullname, module)

    def _find_weft(self, fullname: str, path: Any) -> ModuleSpec | None:
        if fullname == "weft":  # the same weft in every process, also where it is not installed
            path = [os.path.dirname(PACKAGE)]
        for finder in sys.meta_path:
            if finder is not self and (spec := finder.find_spec(fullname, path)) is not None:
                # The module behind an alias has been named when its own file was loaded.
                if spec.loader is not None and not isinstance(spec.loader, _Alias):
                    spec.loader = _Naming(spec.loader)  # type: ignore[assignment]
                return spec
        return None

    def find_distributions(self, context: Any = None) -> list[Any]:
        """What `importlib.metadata` says of the distribution "torch"."""
        if context is not None and context.name not in (None, "torch"):
            return []
        from weft.compat.metadata import TorchDistribution

        return [TorchDistribution()]


def _give_torch_name(module: ModuleType) -> None:
    """Change the root package to "torch" (or "functorch", "torch_xla") in the name of `module` and in `__module__` of its functions and classes.

    Programs ask for these names: `type(model).__module__.startswith("torch")`. `__package__` and `__spec__` keep
    the name under which the module was loaded, because relative imports inside it use them.
    """
    for value in list(vars(module).values()):
        if isinstance(value, (type, FunctionType)):
            _change(value, "__module__")
    _answer_for_declared(module)
    _change(module, "__name__")
    if module.__name__ != "torch.ops":  # PyTorch's is the namespace of operators, which `find_spec` gives
        sys.modules[module.__name__] = module


def _answer_for_declared(module: ModuleType) -> None:
    """Let a module without `__getattr__` look for missing names among those that are declared for it.

    PyTorch's modules have many names only because they import them, and libraries import them from there.
    """
    full_name = module.__name__
    _, _, path = full_name.partition(".")
    if "__getattr__" in vars(module) or path.partition(".")[0] in _INNER:
        return

    def __getattr__(name: str) -> Any:
        from weft.compat.missing import module_getattr

        module.__getattr__ = module_getattr(full_name)  # type: ignore[method-assign]
        return module.__getattr__(name)

    module.__getattr__ = __getattr__  # type: ignore[method-assign]


def _change(value: Any, attribute: str) -> None:
    old = getattr(value, attribute)
    if isinstance(old, str) and (old == "weft" or old.startswith("weft.")):
        new = _torch_name(old)
        try:
            setattr(value, attribute, new)
        except TypeError:  # a class of CPython's own making
            return
        _binding.renamed.append((value, attribute, old))


_binding = _Binding()


def install() -> None:
    """Bind `torch` and everything under it to weft, here and in processes started from now on.

    Modules, functions and classes of weft have names that begin with "torch" from then on, and `importlib.metadata`
    knows a distribution "torch". Modules already imported from PyTorch are put aside until `uninstall`; names that a
    module took from them keep their meaning. Installing twice is the same as installing once. A process that is started with `-E`,
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
    for module in _loaded_modules():
        _give_torch_name(module)
    _set_python_path([STARTUP, *_python_path()])


def uninstall() -> None:
    """Undo `install`: what was imported from PyTorch before it is back, and the rest is found as usual."""
    if _binding not in sys.meta_path:
        return
    sys.meta_path.remove(_binding)
    _take_torch_modules()
    for value, attribute, old in _binding.renamed:
        setattr(value, attribute, old)
    _binding.renamed.clear()
    sys.modules.update(_binding.displaced)
    _binding.displaced = {}
    _set_python_path(_python_path())


def _asked_by_library() -> bool:
    """Whether an installed library imports what is imported now, and not the program.

    Libraries that find PyTorch/XLA compute on it. JAX may be installed for other reasons, so they find it only once the program has imported it.
    """
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(
        (__name__, "importlib")
    ):
        frame = frame.f_back
    path = os.path.normpath(frame.f_code.co_filename)
    is_installed = not {"site-packages", "dist-packages"}.isdisjoint(path.split(os.sep))
    return is_installed and not path.startswith(PACKAGE)


def _weft_name(name: str) -> str | None:
    """The weft module of a module of PyTorch's packages; None for other modules.

    >>> _weft_name("torch.nn"), _weft_name("functorch"), _weft_name("torchish")
    ('weft.nn', 'weft.functorch', None)
    """
    package, dot, rest = name.partition(".")
    own = PACKAGES.get(package)
    return None if own is None else own + dot + rest


def _torch_name(name: str) -> str:
    """The name under which programs know a weft module.

    >>> _torch_name("weft.nn"), _torch_name("weft.functorch.experimental")
    ('torch.nn', 'functorch.experimental')
    """
    for package, own in PACKAGES.items():
        if own != "weft" and (name == own or name.startswith(own + ".")):
            return package + name.removeprefix(own)
    return "torch" + name.removeprefix("weft")


def _take_torch_modules() -> dict[str, ModuleType]:
    return {name: sys.modules.pop(name) for name in list(sys.modules) if _weft_name(name)}


def _loaded_modules() -> list[ModuleType]:
    return [
        module
        for name, module in list(sys.modules.items())
        if (name == "weft" or name.startswith("weft.")) and isinstance(module, ModuleType)
    ]


def _python_path() -> list[str]:
    """The folders of PYTHONPATH, without ours."""
    folders = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    return [folder for folder in folders if folder and folder != STARTUP]


def _set_python_path(folders: list[str]) -> None:
    if folders:
        os.environ["PYTHONPATH"] = os.pathsep.join(folders)
    else:
        os.environ.pop("PYTHONPATH", None)
