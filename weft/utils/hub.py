"""`torch.hub`: models that a folder describes in its `hubconf.py`, and files kept in a cache.

Folders and files that are there already are used; what has to be fetched is fetched with Python's `urllib`. weft does not fetch
repositories from GitHub: clone them and use `source="local"`.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.util
import os
import re
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any
from urllib.parse import urlparse
from urllib.request import Request, urlopen

from tqdm import tqdm

__all__ = ["download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url", "set_dir"]

ENV_TORCH_HOME = "TORCH_HOME"
ENV_XDG_CACHE_HOME = "XDG_CACHE_HOME"
DEFAULT_CACHE_DIR = "~/.cache"
VAR_DEPENDENCY = "dependencies"
MODULE_HUBCONF = "hubconf.py"
READ_DATA_CHUNK = 128 * 1024  # bytes
HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")  # of names such as resnet18-f37072fd.pth

_hub_dir: str | None = None


def _get_torch_home() -> str:
    cache = os.path.join(os.getenv(ENV_XDG_CACHE_HOME, DEFAULT_CACHE_DIR), "torch")
    return os.path.expanduser(os.getenv(ENV_TORCH_HOME, cache))


def get_dir() -> str:
    """The folder in which repositories and files are kept: of `set_dir`, else `$TORCH_HOME/hub`."""
    return os.path.join(_get_torch_home(), "hub") if _hub_dir is None else _hub_dir


def set_dir(d: str | os.PathLike) -> None:
    """Keep repositories and files in another folder."""
    global _hub_dir
    _hub_dir = os.path.expanduser(d)


# ---- Models of repositories -------------------------------------------------------------------------------------------------


def list(
    github: str,
    force_reload: bool = False,
    skip_validation: bool = False,
    trust_repo: Any = None,
    verbose: bool = True,
) -> Any:
    """The names of the functions that the `hubconf.py` of a repository offers."""
    with _hubconf(_kept(github, force_reload)) as module:
        return [name for name, value in vars(module).items() if callable(value) and not name.startswith("_")]


def help(
    github: str, model: str, force_reload: bool = False, skip_validation: bool = False, trust_repo: Any = None
) -> str | None:
    """The docstring of a function of a repository's `hubconf.py`."""
    with _hubconf(_kept(github, force_reload)) as module:
        return _entry(module, model).__doc__


def load(
    repo_or_dir: str,
    model: str,
    *args: Any,
    source: str = "github",
    trust_repo: Any = None,
    force_reload: bool = False,
    verbose: bool = True,
    skip_validation: bool = False,
    **kwargs: Any,
) -> Any:
    """What the function `model` of a folder's `hubconf.py` returns.

    source: "local" for a folder, "github" for a repository "owner/name:branch" that `get_dir()` has already.
    Raises: NotImplementedError for a repository that would have to be fetched.
    """
    source = source.lower()
    if source not in ("github", "local"):
        raise ValueError(f'Unknown source: "{source}". Allowed values: "github" | "local".')
    folder = _kept(repo_or_dir, force_reload) if source == "github" else repo_or_dir
    with _hubconf(folder) as module:
        return _entry(module, model)(*args, **kwargs)


def _kept(repository: str, force_reload: bool) -> str:
    """The folder of a repository "owner/name" or "owner/name:branch" that was fetched before."""
    name, _, branch = repository.partition(":")
    owner, slash, short = name.partition("/")
    if not slash:
        raise ValueError(f"expected a repository 'owner/name' or 'owner/name:branch', but got {repository!r}")
    for each in [branch] if branch else ["main", "master"]:
        folder = os.path.join(get_dir(), "_".join([owner, short, each.replace("/", "_")]))
        if os.path.exists(folder) and not force_reload:
            return folder
    raise NotImplementedError(
        f"torch.hub: weft does not fetch repositories. Clone https://github.com/{name} and call "
        "torch.hub.load(folder, model, source='local')"
    )


@contextlib.contextmanager
def _hubconf(folder: str) -> Iterator[ModuleType]:
    """The module `hubconf` of a folder, whose other modules can be imported meanwhile."""
    path = os.path.join(folder, MODULE_HUBCONF)
    sys.path.insert(0, str(folder))
    try:
        spec = importlib.util.spec_from_file_location(MODULE_HUBCONF, path)
        if spec is None or spec.loader is None:
            raise ImportError(f"{path} cannot be imported")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        yield module
    finally:
        with contextlib.suppress(ValueError):
            sys.path.remove(str(folder))


def _entry(module: ModuleType, name: str) -> Callable:
    if not isinstance(name, str):
        raise ValueError("Invalid input: model should be a string of function name")
    needed = getattr(module, VAR_DEPENDENCY, None) or []
    missing = [each for each in needed if not _can_import(each)]
    if missing:
        raise RuntimeError(f"Missing dependencies: {', '.join(missing)}")
    found = getattr(module, name, None)
    if not callable(found):
        raise RuntimeError(f"Cannot find callable {name} in hubconf")
    return found


def _can_import(name: str) -> bool:
    return name in sys.modules or importlib.util.find_spec(name) is not None


# ---- Files -------------------------------------------------------------------------------------------------------------------


def download_url_to_file(url: str, dst: str, hash_prefix: str | None = None, progress: bool = True) -> None:
    """Fetch a file. It is at `dst` when it is complete, and not before.

    hash_prefix: what its SHA-256 must begin with. Raises: RuntimeError if it begins otherwise.
    """
    digest = hashlib.sha256()
    folder = os.path.dirname(os.path.expanduser(dst)) or "."
    part = tempfile.NamedTemporaryFile(dir=folder, suffix=".partial", delete=False)  # noqa: SIM115 (closed below)
    try:
        with part, urlopen(Request(url, headers={"User-Agent": "torch.hub"})) as answer:
            length = answer.headers.get("Content-Length")
            bar = tqdm(
                total=int(length) if length else None,
                disable=not progress,
                unit="B",
                unit_scale=True,
                unit_divisor=1024,
            )
            with bar:
                while chunk := answer.read(READ_DATA_CHUNK):
                    part.write(chunk)
                    digest.update(chunk)
                    bar.update(len(chunk))
        if hash_prefix is not None and not digest.hexdigest().startswith(hash_prefix):
            raise RuntimeError(f'invalid hash value (expected "{hash_prefix}", got "{digest.hexdigest()}")')
        shutil.move(part.name, os.path.expanduser(dst))
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.remove(part.name)


def load_state_dict_from_url(
    url: str,
    model_dir: str | None = None,
    map_location: Any = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = False,
) -> Any:
    """What `torch.load` reads from the file of an address; the file is fetched once and kept.

    model_dir: where it is kept, by default `checkpoints` in `get_dir()`. check_hash: the file's name ends in the first digits of
    its SHA-256.
    """
    folder = os.path.join(get_dir(), "checkpoints") if model_dir is None else model_dir
    os.makedirs(folder, exist_ok=True)
    name = file_name if file_name is not None else os.path.basename(urlparse(url).path)
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        sys.stderr.write(f'Downloading: "{url}" to {path}\n')
        found = HASH_REGEX.search(name) if check_hash else None
        download_url_to_file(url, path, found.group(1) if found else None, progress)
    from ..serialization import load as read

    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            members = [each for each in archive.namelist() if not each.endswith("/")]
            if len(members) == 1 and not members[0].endswith("data.pkl"):  # a file that was zipped once more
                extracted = archive.extract(members[0], folder)
                return read(extracted, map_location=map_location, weights_only=weights_only)
    return read(path, map_location=map_location, weights_only=weights_only)
