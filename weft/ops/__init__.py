"""Every operation of weft, one folder for each chapter of the public interface.

Importing a module makes its operations public, so this package imports all of its modules. A new file needs no entry in a
list. The files beside the folders (`foreach.py`) are made of public methods, so they come last.
"""

import importlib
import pkgutil

_found = sorted(
    pkgutil.walk_packages(__path__, f"{__name__}."), key=lambda each: each.name.count("."), reverse=True
)
for _each in _found:
    importlib.import_module(_each.name)
