"""`torch.jit.load`: the modules of TorchScript files with their weights and attributes, without running their code."""

from __future__ import annotations

import ast
import io
import os
import re
import zipfile
import zlib
from typing import Any, NoReturn

from ..autograd.parameter import Parameter
from ..core.tensor import Tensor
from ..serialization.archive import Reader
from ..serialization.loading import _is_zipfile, _opened, _Storages
from ..serialization.source import source_of
from ..serialization.unpickler import Unpickler
from . import _pickle
from ._script import RecursiveScriptModule

__all__ = ["load", "save"]


def save(m: Any, f: Any, _extra_files: Any = None) -> NoReturn:
    """Raises: NotImplementedError, because weft does not write TorchScript."""
    raise NotImplementedError(
        "torch.jit.save: weft does not write TorchScript. Save the module's state_dict() with torch.save, or export the module "
        "with torch.export or torch.onnx"
    )


def load(
    f: Any,
    map_location: Any = None,
    _extra_files: dict[str, Any] | None = None,
    _restore_shapes: bool = False,
) -> RecursiveScriptModule:
    """The module of a TorchScript file: its parameters, buffers, submodules and attributes.

    `state_dict()`, `named_parameters()` and attributes work. Calling it raises NotImplementedError, because weft does not
    run TorchScript: build the Python class of the module and load this module's `state_dict()` into it.
    f: a path, or a file object that can seek. _extra_files: names of further files, whose contents it gets.
    Raises: ValueError if the file does not exist; RuntimeError if it is not a TorchScript archive.
    """
    if isinstance(f, (str, os.PathLike)):
        if not os.path.exists(f):
            raise ValueError(f"The provided filename {f} does not exist")
        if os.path.isdir(f):
            raise ValueError(f"The provided filename {f} is a directory")
    with _opened(f) as file:
        if not _is_zipfile(file):
            raise RuntimeError(
                "PytorchStreamReader failed reading zip archive: torch.jit.load was given a file that is no zip archive"
            )
        archive = Reader(source_of(file))
        if "constants.pkl" not in archive or "data.pkl" not in archive:
            raise RuntimeError(
                "PytorchStreamReader failed locating file constants.pkl: file not found. The file was not written by "
                "torch.jit.save; use torch.load"
            )
        storages = _Storages(archive, map_location, None, False)
        root = _ScriptUnpickler(io.BytesIO(archive.read("data.pkl")), storages.find).load()
        for name in _extra_files or ():
            if f"extra/{name}" in archive:
                content = archive.read(f"extra/{name}")
                _extra_files[name] = _as_text(content)  # type: ignore[index]
        return _Modules(_Classes(_code(file))).module(root)


# Bytes of the code of a file, uncompressed. The code of a large model has some megabytes; a file could claim any number.
_CODE_LIMIT = 1 << 26


def _code(file: Any) -> dict[str, str]:
    """The texts of the archive's records of code, which are compressed, by their names without the top folder."""
    place = file.tell()
    found: dict[str, str] = {}
    room = _CODE_LIMIT
    try:
        with zipfile.ZipFile(file) as archive:
            for info in archive.infolist():
                name = info.filename.partition("/")[2]
                if name.startswith("code/") and name.endswith(".py"):
                    with archive.open(info) as record:
                        content = record.read(room + 1)
                    room -= len(content)
                    if room < 0:
                        raise RuntimeError(
                            f"torch.jit.load: the file has more than {_CODE_LIMIT} bytes of code"
                        )
                    found[name] = content.decode("utf-8", "replace")
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, EOFError) as error:
        raise RuntimeError(f"PytorchStreamReader failed reading zip archive: {error}") from error
    finally:
        file.seek(place)
    return found


def _as_text(content: bytes) -> str | bytes:
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content


# ---- The pickle ----------------------------------------------------------------------------------------------------------


class _Record:
    """An object of a class that TorchScript compiled: its state."""

    qualname = ""

    def __setstate__(self, state: Any) -> None:
        self.state = state


class _ScriptUnpickler(Unpickler):
    """The restricted unpickler, which makes a `_Record` of each object of a compiled class."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.added = _Compiled(self.called)


class _Compiled(dict[str, Any]):
    """The names that pickles of TorchScript may use besides the usual ones: compiled classes, made when they are named."""

    def __init__(self, called: dict[int, Any]):
        super().__init__(_PICKLE)
        self.called = called
        called.update((id(each), each) for each in _PICKLE.values())

    def get(self, full: str, default: Any = None) -> Any:
        if full not in self and full.startswith("__torch__."):
            self[full] = type(full.rpartition(".")[2], (_Record,), {"qualname": full})
            self.called[id(self[full])] = self[full]
        return super().get(full, default)


_PICKLE = {
    f"torch.jit._pickle.{name}": value
    for name, value in vars(_pickle).items()
    if name.startswith(("build_", "restore_"))
}


# ---- The code ------------------------------------------------------------------------------------------------------------

_LISTED = re.compile(r"  __(parameters|buffers)__ = (\[.*\])$")
_CONSTANT = re.compile(r"  (\w+) : Final\[.*\] = (.*)$")
_METHOD = re.compile(r"  def (\w+)\(")


class _Loaded:
    """The text of a compiled class: which members are parameters and buffers, and its methods."""

    def __init__(self, qualname: str, lines: list[str]):
        self.name = qualname.rpartition(".")[2]
        self.lines = lines
        self.parameters: list[str] = []
        self.buffers: list[str] = []
        self.constants: dict[str, Any] = {}
        self.is_module = bool(lines) and lines[0].endswith("(Module):")
        for line in lines:
            if match := _LISTED.match(line):
                getattr(self, match[1])[:] = ast.literal_eval(match[2])
            elif match := _CONSTANT.match(line):
                try:
                    self.constants[match[1]] = ast.literal_eval(match[2])
                except (ValueError, SyntaxError):  # a device, a dtype, ...
                    continue

    def has_method(self, name: str) -> bool:
        """Whether the class has a method of this name."""
        return any(match[1] == name for line in self.lines if (match := _METHOD.match(line)))

    def method(self, name: str) -> str:
        """The text of a method, "" if there is none, as `code` of PyTorch's modules has it."""
        starts = [place for place, line in enumerate(self.lines) if _METHOD.match(line)] + [len(self.lines)]
        for start, end in zip(starts, starts[1:], strict=False):
            if _METHOD.match(self.lines[start])[1] == name:  # type: ignore[index]
                lines = self.lines[start:end]
                body = next(place for place, line in enumerate(lines, 1) if line.endswith(":"))
                head = re.sub(r"^  (def \w+\(\w+): [\w.]+", r"\1", lines[0])
                return (
                    "\n".join([head, *lines[1:body], *(line[2:] for line in lines[body:])]).rstrip("\n")
                    + "\n"
                )
        return ""


class _Classes:
    """The compiled classes of an archive, by their qualified names."""

    def __init__(self, texts: dict[str, str]):
        self.texts = texts
        self.files: dict[str, dict[str, list[str]]] = {}

    def find(self, qualname: str) -> _Loaded:
        """The class of this name."""
        module, _, name = qualname.rpartition(".")
        if module not in self.files:
            self.files[module] = self._read(f"code/{module.replace('.', '/')}.py")
        return _Loaded(qualname, self.files[module].get(name, []))

    def _read(self, record: str) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        lines: list[str] = []
        for line in self.texts.get(record, "").splitlines():
            if line.startswith("class "):
                lines = found.setdefault(re.split(r"[(:]", line[6:])[0].strip(), [])
            elif line and not line.startswith(" "):
                lines = []
            lines.append(line)
        return found


class _Modules:
    """Makes modules of the records of a pickle, each once."""

    def __init__(self, classes: _Classes):
        self.classes = classes
        self.made: dict[int, tuple[Any, Any]] = {}
        self.parameters: dict[tuple, Parameter] = {}  # by where they lie in memory: modules can share them

    def module(self, record: Any) -> Any:
        """The module of a record. Other objects stay unchanged, except that modules replace the records in them.

        Raises: RuntimeError if the file holds no module.
        """
        found = self.value(record)
        if not isinstance(found, RecursiveScriptModule):
            raise RuntimeError(
                f"torch.jit.load: the file holds no module, but an object of type {type(found).__name__}"
            )
        return found

    def value(self, value: Any) -> Any:
        if type(value) in (list, tuple):
            return type(value)(self.value(each) for each in value)
        if type(value) is dict:
            return {key: self.value(each) for key, each in value.items()}
        if not isinstance(value, _Record):
            return value
        if id(value) in self.made:
            return self.made[id(value)][0]
        read = self.classes.find(value.qualname)
        state = getattr(value, "state", {})
        if not read.is_module or type(state) is not dict:
            self.made[id(value)] = value, value
            if type(state) is dict:
                vars(value).update({name: self.value(each) for name, each in state.items()})
            return value
        module = RecursiveScriptModule(read)
        self.made[id(value)] = module, value
        self._fill(module, read, state)
        return module

    def parameter(self, found: Tensor | None) -> Parameter | None:
        if found is None:
            return None
        place = id(found._storage), found._byte_offset, found.spec
        if place not in self.parameters:
            self.parameters[place] = Parameter(found.detach(), requires_grad=found.requires_grad)
        return self.parameters[place]

    def _fill(self, module: RecursiveScriptModule, read: _Loaded, state: dict[str, Any]) -> None:
        own = module.__dict__
        own.update(read.constants)
        for name, each in state.items():
            if name == "_is_full_backward_hook":
                continue
            found = self.value(each)
            if isinstance(found, RecursiveScriptModule):
                module._modules[name] = found
            elif name in read.parameters and (found is None or isinstance(found, Tensor)):
                module._parameters[name] = self.parameter(found)
            elif name in read.buffers and (found is None or isinstance(found, Tensor)):
                module._buffers[name] = found
            else:
                own[name] = found


# ---- The other format ----------------------------------------------------------------------------------------------------


def save_jit_module_to_flatbuffer(m: Any, f: Any, _extra_files: Any = None) -> NoReturn:
    """Raises: NotImplementedError, because weft does not write TorchScript."""
    save(m, f)


def jit_module_from_flatbuffer(f: Any) -> NoReturn:
    """Raises: NotImplementedError."""
    raise NotImplementedError(
        "torch.jit.jit_module_from_flatbuffer: weft reads TorchScript's zip archives only; save the module with torch.jit.save"
    )


def validate_map_location(map_location: Any = None) -> Any:
    """`map_location` as a device.

    Raises: ValueError if it is neither a device nor its name.
    """
    from ..core.device import device

    if isinstance(map_location, str):
        return device(map_location)
    if not (map_location is None or isinstance(map_location, device)):
        raise ValueError(
            f"map_location should be either None, string or torch.device, but got type: {type(map_location)}"
        )
    return map_location
