"""`torch.distributed.checkpoint.filesystem`: a checkpoint in a folder, in PyTorch's layout.

The folder has the file `.metadata`, a pickle of what the checkpoint holds, and files `__RANK_NUMBER.distcp`, in which
objects lie one after the other, each as `torch.save` writes it.

A checkpoint that is written over another takes new files. The metadata are written last, under another name first. So until this moment
the folder has the checkpoint before, whole, and from then on the new one. The files of the former are removed after it.
"""

from __future__ import annotations

import io
import itertools
import os
import pickle
import re
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any, NoReturn

from ...autograd import no_grad
from ...core.futures import Future
from ...core.tensor import Tensor
from ...serialization import load as load_file
from ...serialization import save as save_file
from ...serialization.names import find_torch
from ...serialization.pickler import dumps
from ..tensor import DTensor
from .default_planner import _narrowed
from .metadata import Metadata, MetadataIndex, StorageMeta
from .planner import LoadItemType, LoadPlan, LoadPlanner, SavePlan, SavePlanner, WriteItem, WriteItemType
from .storage import StorageReader, StorageWriter, WriteResult

__all__ = ["FileSystemWriter", "FileSystemReader", "FileSystem", "FileSystemBase", "SerializationFormat"]

VERSION = "1.0.0"  # of the layout, as PyTorch writes it
_SUFFIX = ".distcp"
_NAME = re.compile(r"__\d+_\d+" + re.escape(_SUFFIX))


@dataclass
class _StorageInfo:
    """Where an object lies in the files of a checkpoint; lengths are in bytes."""

    relative_path: str
    offset: int
    length: int
    transform_descriptors: Sequence[str] | None = None


@dataclass
class _StoragePrefix:
    """How the files of a rank begin."""

    prefix: str


class SerializationFormat(Enum):
    """How an object lies in a file."""

    TORCH_SAVE = "torch_save"
    SAFETENSORS = "safetensors"


class FileSystemBase(ABC):
    """What checkpoints need of a file system."""

    @contextmanager
    @abstractmethod
    def create_stream(self, path: str | os.PathLike, mode: str) -> Iterator[io.IOBase]:
        """An open file."""

    @abstractmethod
    def concat_path(self, path: str | os.PathLike, suffix: str) -> str | os.PathLike:
        """The path of a file in a folder."""

    @abstractmethod
    def rename(self, path: str | os.PathLike, new_path: str | os.PathLike) -> None:
        """Give a file another name."""

    @abstractmethod
    def init_path(self, path: str | os.PathLike) -> str | os.PathLike:
        """A path in the form that this file system uses."""

    @abstractmethod
    def mkdir(self, path: str | os.PathLike) -> None:
        """Make a folder and those above it."""

    @classmethod
    @abstractmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike) -> bool:
        """Whether a checkpoint can have this name."""

    @abstractmethod
    def exists(self, path: str | os.PathLike) -> bool:
        """Whether there is such a file or folder."""

    @abstractmethod
    def rm_file(self, path: str | os.PathLike) -> None:
        """Remove a file."""


class FileSystem(FileSystemBase):
    """The file system of the operating system."""

    @contextmanager
    def create_stream(self, path: str | os.PathLike, mode: str) -> Iterator[io.IOBase]:
        with open(path, mode) as stream:
            yield stream  # type: ignore[misc]

    def concat_path(self, path: str | os.PathLike, suffix: str) -> str | os.PathLike:
        return Path(path) / suffix

    def init_path(self, path: str | os.PathLike) -> str | os.PathLike:
        return Path(path)

    def rename(self, path: str | os.PathLike, new_path: str | os.PathLike) -> None:
        os.replace(path, new_path)

    def mkdir(self, path: str | os.PathLike) -> None:
        Path(path).mkdir(parents=True, exist_ok=True)

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike) -> bool:
        if isinstance(checkpoint_id, Path):
            return True
        if "://" in os.fspath(checkpoint_id):
            return False
        return any(os.access(each, os.W_OK) for each in Path(checkpoint_id).absolute().parents)

    def exists(self, path: str | os.PathLike) -> bool:
        return Path(path).exists()

    def rm_file(self, path: str | os.PathLike) -> None:
        Path(path).unlink()

    def ls(self, path: str | os.PathLike) -> list[str]:
        """The paths of what is in a folder."""
        return [str(each) for each in Path(path).iterdir()]


def _no_storage(storage: Any) -> NoReturn:
    raise pickle.PicklingError("the metadata of a checkpoint cannot hold tensors")


class FileSystemWriter(StorageWriter):
    """Writes checkpoints into the folder `path`.

    >>> import tempfile, weft as torch
    >>> import weft.distributed.checkpoint as dcp
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     saved = dcp.save({"x": torch.ones(2)}, storage_writer=dcp.FileSystemWriter(folder))
    ...     into = {"x": torch.zeros(2)}
    ...     dcp.load(into, storage_reader=dcp.FileSystemReader(folder))
    >>> into["x"]
    tensor([1., 1.])
    """

    def __init__(
        self,
        path: str | os.PathLike,
        single_file_per_rank: bool = True,
        sync_files: bool = True,
        thread_count: int = 1,
        per_thread_copy_ahead: int = 10_000_000,
        cache_staged_state_dict: bool = False,
        overwrite: bool = True,
        _extensions: Any = None,
        serialization_format: SerializationFormat = SerializationFormat.TORCH_SAVE,
    ) -> None:
        self.fs = FileSystem()
        self.path = self.fs.init_path(path)
        self.single_file_per_rank = single_file_per_rank
        self.sync_files = sync_files
        self.thread_count = thread_count
        self.per_thread_copy_ahead = per_thread_copy_ahead
        self.overwrite = overwrite
        self.save_id = str(uuid.uuid4())
        if serialization_format is not SerializationFormat.TORCH_SAVE:
            raise NotImplementedError("FileSystemWriter: weft writes SerializationFormat.TORCH_SAVE only")

    def reset(self, checkpoint_id: str | os.PathLike | None = None) -> None:
        if checkpoint_id:
            self.path = self.fs.init_path(checkpoint_id)
        self.save_id = str(uuid.uuid4())

    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        self.rank = kwargs.get("rank", 0)

    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        self.fs.mkdir(self.path)
        if not self.overwrite and self.fs.exists(self._metadata_path()):
            raise RuntimeError(f"Checkpoint already exists and {self.overwrite=}.")
        return plan

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        return [replace(plan, storage_data=_StoragePrefix(f"__{rank}_")) for rank, plan in enumerate(plans)]

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[WriteResult]]:
        # PyTorch writes the objects that are not tensors first.
        items = sorted(plan.items, key=lambda item: item.type is not WriteItemType.BYTE_IO)
        files = [items] if self.single_file_per_rank else [[item] for item in items]
        results = []
        free = (
            name
            for name in (f"{plan.storage_data.prefix}{number}{_SUFFIX}" for number in itertools.count())
            if not self.fs.exists(self.fs.concat_path(self.path, name))
        )
        for name, contents in zip(free, files, strict=False):
            with self.fs.create_stream(self.fs.concat_path(self.path, name), "wb") as stream:
                results += [_write_item(stream, planner.resolve_data(item), item, name) for item in contents]
                self._sync(stream)
        future: Future[list[WriteResult]] = Future()
        future.set_result(results)
        return future

    def _sync(self, stream: Any) -> None:
        """Have the bytes of a file on the disk before the checkpoint is called complete."""
        if self.sync_files:
            stream.flush()
            os.fsync(stream.fileno())

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        places = {result.index: result.storage_data for part in results for result in part}
        metadata = replace(metadata, version=VERSION, storage_data=places, storage_meta=self.storage_meta())
        temporary = self.fs.concat_path(self.path, ".metadata.tmp")
        with self.fs.create_stream(temporary, "wb") as stream:
            stream.write(dumps(metadata, 4, _no_storage))  # type: ignore[attr-defined]
            self._sync(stream)
        self.fs.rename(temporary, self._metadata_path())
        self._remove_others({place.relative_path for place in places.values()})

    def _remove_others(self, names: set[str]) -> None:
        """Remove what former checkpoints have left in the folder, and ones that were never completed."""
        for path in map(Path, self.fs.ls(self.path)):
            if _NAME.fullmatch(path.name) and path.name not in names:
                self.fs.rm_file(path)

    def storage_meta(self) -> StorageMeta | None:
        return StorageMeta(checkpoint_id=self.checkpoint_id, save_id=self.save_id)

    def _metadata_path(self) -> str | os.PathLike:
        return self.fs.concat_path(self.path, ".metadata")

    @property
    def checkpoint_id(self) -> str | os.PathLike:
        """The folder."""
        return self.path

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike) -> bool:
        return FileSystem.validate_checkpoint_id(checkpoint_id)

    def stage(self, state_dict: dict[str, Any]) -> dict[str, Any]:
        """A copy of a state dict, which can be written while training goes on."""
        from copy import deepcopy

        with no_grad():
            return deepcopy(state_dict)


def _write_item(stream: Any, data: Any, item: WriteItem, name: str) -> WriteResult:
    """Write one object at the end of a file."""
    offset = stream.tell()
    if isinstance(data, Tensor):
        buffer = io.BytesIO()  # torch.save needs a file that begins with it
        # A view would bring all of its storage along.
        save_file(_local(data).detach().cpu().clone(), buffer)
        data = buffer
    stream.write(data.getbuffer())
    length = stream.tell() - offset
    return WriteResult(item.index, length, _StorageInfo(name, offset, length))


def _local(tensor: Tensor) -> Tensor:
    """The part of a DTensor that this process has; other tensors as they are."""
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


class _MetadataUnpickler(pickle.Unpickler):
    """Reads `.metadata`. It makes nothing but the classes of such files, so that no file can run code."""

    _ALLOWED = frozenset(
        {
            ("torch", "Size"),
            ("torch.serialization", "_get_layout"),
            ("collections", "OrderedDict"),
            ("builtins", "set"),
        }
    )

    def find_class(self, module: str, name: str) -> Any:
        if module in ("torch.distributed.checkpoint.metadata", "torch.distributed.checkpoint.filesystem"):
            return find_torch(module, name)
        if module.startswith("pathlib") and name in (
            "PosixPath",
            "WindowsPath",
            "PurePosixPath",
            "PureWindowsPath",
        ):
            return Path
        if (module, name) in self._ALLOWED or module == "torch":
            return (
                find_torch(module, name) if module.startswith("torch") else super().find_class(module, name)
            )
        raise pickle.UnpicklingError(
            f"the metadata of a checkpoint names {module}.{name}, which it should not need"
        )


class FileSystemReader(StorageReader):
    """Reads checkpoints from the folder `path`."""

    def __init__(self, path: str | os.PathLike, _extension_registry: Any = None) -> None:
        self.fs = FileSystem()
        self.path = self.fs.init_path(path)
        self.storage_data: dict[MetadataIndex, _StorageInfo] = {}
        self.load_id = str(uuid.uuid4())

    def reset(self, checkpoint_id: str | os.PathLike | None = None) -> None:
        self.storage_data = {}
        if checkpoint_id:
            self.path = self.fs.init_path(checkpoint_id)
        self.load_id = str(uuid.uuid4())

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        with self.fs.create_stream(self.fs.concat_path(self.path, ".metadata"), "rb") as stream:
            metadata = _MetadataUnpickler(stream).load()  # type: ignore[arg-type]
        if metadata.storage_meta is None:
            metadata.storage_meta = StorageMeta()
        metadata.storage_meta.load_id = self.load_id
        return metadata

    def set_up_storage_reader(
        self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any
    ) -> None:
        assert metadata.storage_data is not None, (
            f"the checkpoint {self.path} does not say where its objects lie"
        )
        self.storage_data = metadata.storage_data

    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        return plan

    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        return plans

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        files: dict[str, list[Any]] = {}
        for item in plan.items:
            files.setdefault(self.storage_data[item.storage_index].relative_path, []).append(item)
        for name, items in files.items():
            with self.fs.create_stream(self.fs.concat_path(self.path, name), "rb") as stream:
                for item in items:
                    self._read_item(stream, item, planner)
        future: Future[None] = Future()
        future.set_result(None)
        return future

    def _read_item(self, stream: Any, item: Any, planner: LoadPlanner) -> None:
        place = self.storage_data[item.storage_index]
        stream.seek(place.offset)
        content = io.BytesIO(stream.read(place.length))
        if item.type is LoadItemType.BYTE_IO:
            planner.load_bytes(item, content)
            return
        saved = _narrowed(load_file(content, map_location="cpu"), item.storage_offsets, item.lengths)
        target = _local(planner.resolve_tensor(item)).detach()
        assert target.size() == saved.size(), (
            f"req {item.storage_index} mismatch sizes {target.size()} vs {saved.size()}"
        )
        target.copy_(saved)
        planner.commit_tensor(item, target)

    @property
    def checkpoint_id(self) -> str | os.PathLike:
        """The folder."""
        return self.path

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike) -> bool:
        return FileSystem.validate_checkpoint_id(checkpoint_id)
