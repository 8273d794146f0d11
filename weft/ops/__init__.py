"""Defines every operation of weft, one folder for each chapter of the public interface.

Importing a module makes its operations public, so this package imports all of its modules. A new file needs no entry in a
list. The files beside the folders (`foreach.py`) are made of public methods, so they come last.
"""

import gc
import importlib
import pkgutil


def _import_all() -> None:
    """Import every module of this package without collections of garbage, and hide what was imported from later ones.

    While modules load, a collection walks all objects and finds next to none to free. This took a sixth of the time of `import weft`
    (AMD Zen 4). Afterwards collections pass over these 75,000 objects, which live as long as the process (`gc.freeze`): the first
    full collection would come after some ten thousand calls and take 50 ms more (AMD Zen 3). `gc.unfreeze()` undoes it.
    """
    modules = sorted(
        pkgutil.walk_packages(__path__, f"{__name__}."),
        key=lambda module: module.name.count("."),
        reverse=True,
    )
    collects = gc.isenabled()
    gc.disable()
    try:
        for module in modules:
            importlib.import_module(module.name)
    finally:
        gc.freeze()
        if collects:
            gc.enable()


_import_all()
