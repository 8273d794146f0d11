"""The placeholder: a distribution "torch" without files, so that installers take PyTorch for installed.

Libraries require torch, and pip would download it (gigabytes) beside weft. A distribution is a folder of metadata in
site-packages; this one says "torch" and the version that weft follows, and its Summary says what it is. `pip uninstall
torch` removes it. The version ends in "+weft", which no index has, so a frozen list of packages never asks for PyTorch by it.
"""

import os
import shutil
import sys
import sysconfig
import tempfile
from importlib.machinery import PathFinder
from importlib.metadata import Distribution, MetadataPathFinder
from pathlib import Path

from weft.compat.version import PYTORCH

INSTALLER = "weft"  # written to the file INSTALLER, by which a placeholder is told from PyTorch

_METADATA = """\
Metadata-Version: 2.1
Name: torch
Version: {version}
Summary: A placeholder, not PyTorch: weft provides torch in this environment (weft run script.py)

Written by `weft placeholder add`, so that installers do not download PyTorch for packages that require it.
Remove it with `weft placeholder remove` or `pip uninstall torch`.
"""


class PlaceholderError(RuntimeError):
    """The placeholder cannot be written or removed, and the message says why."""


def site_packages() -> Path:
    """The folder in which the running interpreter's installers put pure-Python packages."""
    return Path(sysconfig.get_path("purelib"))


def find(folder: Path) -> Path | None:
    """The metadata folder of the placeholder in `folder`, or None."""
    for found in _distributions([str(folder)]):
        if _is_placeholder(found):
            return _folder(found)
    return None


def add(folder: Path, path: list[str]) -> str:
    """Write the placeholder into `folder` and return a sentence that says what was done.

    `path` is the module search path of the environment. If PyTorch is on it, nothing is written.
    Raises: PlaceholderError if PyTorch is installed, or if `folder` cannot be written.
    """
    _refuse_beside_pytorch([str(folder), *path])
    old = find(folder)
    target = folder / f"torch-{PYTORCH}.dist-info"
    if old == target:
        return f"There is a placeholder for torch {PYTORCH} already: {target}"
    # The folder is complete before it gets its name, so an installer never sees half of it.
    try:
        draft = Path(tempfile.mkdtemp(prefix="~torch-", dir=folder))
        try:
            _write(draft, target.name)
            draft.chmod(0o755)
            draft.rename(target)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
        if old is not None:  # of an earlier version of weft
            shutil.rmtree(old)
    except OSError as error:
        raise PlaceholderError(f"cannot write to {folder}: {error}") from error
    return f"Wrote a placeholder for torch {PYTORCH}: {target}"


def remove(folder: Path) -> str:
    """Remove the placeholder from `folder` and return a sentence that says what was done. PyTorch stays."""
    old = find(folder)
    if old is None:
        return f"There is no placeholder for torch in {folder}"
    try:
        shutil.rmtree(old)
    except OSError as error:
        raise PlaceholderError(f"cannot remove {old}: {error}") from error
    return f"Removed the placeholder for torch: {old}"


def _write(draft: Path, name: str) -> None:
    (draft / "METADATA").write_text(_METADATA.format(version=PYTORCH), encoding="utf-8")
    (draft / "INSTALLER").write_text(INSTALLER + "\n", encoding="utf-8")
    # RECORD lists the files that `pip uninstall torch` removes. Hash and size may be left empty.
    files = ("METADATA", "INSTALLER", "RECORD")
    (draft / "RECORD").write_text("".join(f"{name}/{file},,\n" for file in files), encoding="utf-8")


def _refuse_beside_pytorch(path: list[str]) -> None:
    for found in _distributions(path):
        if not _is_placeholder(found):
            raise PlaceholderError(
                f"PyTorch {found.version} is installed here ({_folder(found)}), so no placeholder is needed; "
                "`weft run` uses weft all the same"
            )
    spec = PathFinder.find_spec("torch", path)
    if spec is not None and spec.origin is not None:  # without origin: a folder named torch, no package
        raise PlaceholderError(f"a package torch is on the path without metadata: {spec.origin}")


def _distributions(path: list[str]) -> list[Distribution]:
    # Distribution.discover would also ask the finder of `weft run`, which answers for torch without any file.
    return list(MetadataPathFinder.find_distributions(MetadataPathFinder.Context(name="torch", path=path)))


def _is_placeholder(found: Distribution) -> bool:
    return (found.read_text("INSTALLER") or "").strip() == INSTALLER


def _folder(found: Distribution) -> Path:
    return Path(os.path.abspath(found._path))  # type: ignore[attr-defined]


def main(arguments: list[str]) -> int:
    """Carry out `weft placeholder arguments...`, print what was done, and return the exit status."""
    folder = site_packages()
    try:
        match arguments:
            case ["add"]:
                # The folder of a script or the current one may hold a torch that no installer asks about.
                print(add(folder, [entry for entry in sys.path if "site-packages" in entry]))
            case ["remove"]:
                print(remove(folder))
            case []:
                found = find(folder)
                print(found if found else f"There is no placeholder for torch in {folder}")
    except PlaceholderError as error:
        print(f"weft: {error}", file=sys.stderr)
        return 1
    return 0
