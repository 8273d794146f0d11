"""Every operation of weft, one folder for each chapter of the public interface.

Importing a module makes its operations public, so this package imports all of its modules. A new file needs no entry in a
list. The files beside the folders (`foreach.py`) are made of public methods, so they come last.
"""

import gc
import importlib
import pkgutil


def _import_all() -> None:
    """Import every module of this package without collections of garbage.

    While modules load, a collection walks all objects and finds next to none to free. This took a sixth of the time of `import weft`
    (AMD Zen 4). Afterwards all objects belong to the oldest generation, so that the next collections do not walk them either:
    one of them took half of the time of `import weft.nn`.
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
        if not gc.get_freeze_count():  # else the program froze objects, which stay frozen
            gc.freeze()
            gc.unfreeze()  # into the oldest generation
        if collects:
            gc.enable()


_import_all()
