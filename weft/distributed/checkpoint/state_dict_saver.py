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
from ...core.warn import user_level
from .._groups import destroy_process_group, new_group
from .._world import get_process_group_ranks
from .api import Ranks
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
    return _save_state_dict(
        _stateful_to_state_dict(state_dict), writer, process_group, no_dist=no_dist, planner=planner
    )


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
        stacklevel=user_level(),
    )
    storage_writer.reset()
    return _save_state_dict(state_dict, storage_writer, process_group, coordinator_rank, no_dist, planner)


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
    """Copy a state dict, and save the copy in a thread while training goes on; the Future of `save`.

    All ranks have to call it. The thread has a group of its own, so that its collectives do not mix with those of training.
    """
    with no_grad():
        copied = deepcopy(_stateful_to_state_dict(state_dict))
    writer = _writer(storage_writer, checkpoint_id)
    several = not no_dist and Ranks(process_group, 0, False).size > 1
    group = new_group(get_process_group_ranks(process_group)) if several else None

    def save_copy() -> Metadata:
        saved = _save_state_dict(copied, writer, group, no_dist=not several, planner=planner)
        if group is not None:
            destroy_process_group(group)
        return saved

    executor = ThreadPoolExecutor(1, "async_save")
    future = executor.submit(save_copy)
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
    chosen = DefaultSavePlanner() if planner is None else planner
    ranks = Ranks(process_group, coordinator_rank, no_dist)

    def plan() -> Any:
        chosen.set_up_planner(
            state_dict=state_dict,
            storage_meta=storage_writer.storage_meta(),
            is_coordinator=ranks.is_coordinator,
        )
        storage_writer.set_up_storage_writer(ranks.is_coordinator, rank=ranks.rank)
        return storage_writer.prepare_local_plan(chosen.create_local_plan())

    def plan_together() -> tuple[list[Any], Metadata]:
        plans, metadata = chosen.create_global_plan(own_plans)
        return storage_writer.prepare_global_plan(plans), metadata

    def write() -> Any:
        return storage_writer.write_data(chosen.finish_plan(plans[ranks.rank]), chosen).wait()

    own_plans = ranks.on_each("plan", plan)
    plans, metadata = ranks.on_coordinator("plan", plan_together)
    results = ranks.on_each("write", write)
    ranks.on_coordinator("finish", lambda: storage_writer.finish(metadata=metadata, results=results))
    return metadata
