"""`torch.distributed.checkpoint.state_dict_saver`: saving."""

from __future__ import annotations

import os
import warnings
from concurrent.futures import Future, ThreadPoolExecutor
from copy import deepcopy
from dataclasses import dataclass
from enum import Enum
from typing import Any

from ...autograd import no_grad
from .._world import check_one_rank
from .api import on_this_rank
from .default_planner import DefaultSavePlanner
from .filesystem import FileSystemWriter
from .metadata import Metadata
from .planner import SavePlanner
from .stateful import Stateful
from .storage import StorageWriter

__all__ = ["save_state_dict", "save", "async_save", "AsyncCheckpointerType", "AsyncSaveResponse"]


class AsyncCheckpointerType(Enum):
    """Who writes while training goes on."""

    THREAD = "thread"
    PROCESS = "process"


@dataclass
class AsyncSaveResponse:
    """When the state dict was copied, and when it was written."""

    staging_completion: Future[None]
    upload_completion: Future[None]


def save(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: str | os.PathLike | None = None,
    storage_writer: StorageWriter | None = None,
    planner: SavePlanner | None = None,
    process_group: Any = None,
    no_dist: bool = False,
    use_collectives: bool = True,
) -> Metadata:
    """Save a nested dict of tensors, modules, optimizers and other objects into the folder `checkpoint_id`.

    PyTorch reads it, and so does weft what PyTorch has saved from one process.

    Raises: CheckpointException for what goes wrong on a rank.

    >>> import tempfile, weft as torch
    >>> import weft.distributed.checkpoint as dcp
    >>> model = torch.nn.Linear(2, 1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     saved = dcp.save({"model": model, "epoch": 3}, checkpoint_id=folder)
    ...     into = {"model": torch.nn.Linear(2, 1), "epoch": 0}
    ...     dcp.load(into, checkpoint_id=folder)
    >>> into["epoch"], into["model"].weight.equal(model.weight)
    (3, True)
    """
    writer = _writer(storage_writer, checkpoint_id)
    return _save_state_dict(_stateful_to_state_dict(state_dict), writer, planner=planner)


def save_state_dict(
    state_dict: dict[str, Any],
    storage_writer: StorageWriter,
    process_group: Any = None,
    coordinator_rank: int = 0,
    no_dist: bool = False,
    planner: SavePlanner | None = None,
) -> Metadata:
    """As `save`, without modules and optimizers; PyTorch has given it up."""
    warnings.warn(
        "'save_state_dict' is deprecated and will be removed in future versions. Please use 'save' instead.",
        FutureWarning,
        stacklevel=2,
    )
    storage_writer.reset()
    return _save_state_dict(state_dict, storage_writer, planner=planner)


def async_save(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: str | os.PathLike | None = None,
    storage_writer: StorageWriter | None = None,
    planner: SavePlanner | None = None,
    process_group: Any = None,
    async_checkpointer_type: AsyncCheckpointerType = AsyncCheckpointerType.THREAD,
    async_stager: Any = None,
    no_dist: bool = False,
    use_collectives: bool = True,
) -> Future:
    """Copy a state dict, and save the copy in a thread while training goes on; the Future of `save`."""
    with no_grad():
        copied = deepcopy(_stateful_to_state_dict(state_dict))
    writer = _writer(storage_writer, checkpoint_id)
    executor = ThreadPoolExecutor(1, "async_save")
    future = executor.submit(_save_state_dict, copied, writer, planner=planner)
    executor.shutdown(wait=False)
    return future


def _writer(writer: StorageWriter | None, checkpoint_id: str | os.PathLike | None) -> StorageWriter:
    if writer is None and not checkpoint_id:
        raise RuntimeError("`checkpoint_id` must be specified if storage_reader/storage_writer is None.")
    writer = writer or FileSystemWriter(checkpoint_id)  # type: ignore[arg-type]
    writer.reset(checkpoint_id)
    return writer


def _stateful_to_state_dict(state_dict: dict[str, Any]) -> dict[str, Any]:
    """The dict with the state dicts of modules, optimizers and the like in their place."""
    return {
        key: value.state_dict() if isinstance(value, Stateful) else value for key, value in state_dict.items()
    }


def _save_state_dict(
    state_dict: dict[str, Any],
    storage_writer: StorageWriter,
    process_group: Any = None,
    coordinator_rank: int = 0,
    no_dist: bool = False,
    planner: SavePlanner | None = None,
    use_collectives: bool = True,
) -> Metadata:
    if not no_dist:
        check_one_rank("checkpoint.save", process_group)
    chosen = DefaultSavePlanner() if planner is None else planner

    def plan() -> tuple[Any, Metadata]:
        chosen.set_up_planner(
            state_dict=state_dict, storage_meta=storage_writer.storage_meta(), is_coordinator=True
        )
        storage_writer.set_up_storage_writer(True)
        own = storage_writer.prepare_local_plan(chosen.create_local_plan())
        plans, metadata = chosen.create_global_plan([own])
        (own,) = storage_writer.prepare_global_plan(plans)
        return own, metadata

    def write() -> Any:
        return storage_writer.write_data(chosen.finish_plan(own), chosen).wait()

    own, metadata = on_this_rank("plan", plan)
    results = on_this_rank("write", write)
    on_this_rank("finish", lambda: storage_writer.finish(metadata=metadata, results=[results]))
    return metadata
