"""`torch.distributed.checkpoint.state_dict_loader`: loading."""

from __future__ import annotations

import os
import warnings
from typing import Any

from ...core.warn import user_level
from .api import Ranks
from .default_planner import DefaultLoadPlanner, _EmptyStateDictLoadPlanner
from .filesystem import FileSystemReader
from .planner import LoadPlanner
from .state_dict_saver import _stateful_to_state_dict
from .stateful import Stateful
from .storage import StorageReader

__all__ = ["load_state_dict", "load"]


def load(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: str | os.PathLike | None = None,
    storage_reader: StorageReader | None = None,
    planner: LoadPlanner | None = None,
    process_group: Any = None,
    no_dist: bool = False,
) -> None:
    """Load a checkpoint into a nested dict: tensors, modules and optimizers in place, and other objects anew.

    Raises: CheckpointException, also for names that the checkpoint lacks.
    """
    reader = _reader(storage_reader, checkpoint_id)
    states = _stateful_to_state_dict(state_dict)
    _load_state_dict(states, reader, process_group, no_dist=no_dist, planner=planner)
    for key, value in state_dict.items():
        if isinstance(value, Stateful):
            value.load_state_dict(states[key])
        else:
            state_dict[key] = states[key]


def load_state_dict(
    state_dict: dict[str, Any],
    storage_reader: StorageReader,
    process_group: Any = None,
    coordinator_rank: int = 0,
    no_dist: bool = False,
    planner: LoadPlanner | None = None,
) -> None:
    """As `load`, without modules and optimizers; PyTorch has given it up."""
    warnings.warn(
        "'load_state_dict' is deprecated and will be removed in future versions. Please use 'load' instead.",
        FutureWarning,
        stacklevel=user_level(),
    )
    storage_reader.reset()
    _load_state_dict(state_dict, storage_reader, process_group, coordinator_rank, no_dist, planner)


def _reader(reader: StorageReader | None, checkpoint_id: str | os.PathLike | None) -> StorageReader:
    if reader is None and not checkpoint_id:
        raise RuntimeError("`checkpoint_id` must be specified if storage_reader/storage_writer is None.")
    reader = reader or FileSystemReader(checkpoint_id)  # type: ignore[arg-type]
    reader.reset(checkpoint_id)
    return reader


def _load_state_dict(
    state_dict: dict[str, Any],
    storage_reader: StorageReader,
    process_group: Any = None,
    coordinator_rank: int = 0,
    no_dist: bool = False,
    planner: LoadPlanner | None = None,
) -> None:
    chosen = DefaultLoadPlanner() if planner is None else planner
    ranks = Ranks(process_group, coordinator_rank, no_dist)

    def plan() -> Any:
        metadata = storage_reader.read_metadata()
        chosen.set_up_planner(state_dict, metadata, ranks.is_coordinator)
        storage_reader.set_up_storage_reader(metadata, ranks.is_coordinator)
        return storage_reader.prepare_local_plan(chosen.create_local_plan())

    def plan_together() -> Any:
        return storage_reader.prepare_global_plan(chosen.create_global_plan(own_plans))

    def read() -> None:
        storage_reader.read_data(chosen.finish_plan(plans[ranks.rank]), chosen).wait()

    own_plans = ranks.on_each("plan", plan)
    plans = ranks.on_coordinator("plan", plan_together)
    ranks.on_each("read", read)


def _load_state_dict_from_keys(
    keys: set[str] | str | None = None,
    *,
    checkpoint_id: str | os.PathLike | None = None,
    storage_reader: StorageReader | None = None,
    process_group: Any = None,
) -> dict[str, Any]:
    """All of a checkpoint, or the parts of these names, as a new dict."""
    wanted = {keys} if isinstance(keys, str) else keys
    state_dict: dict[str, Any] = {}
    planner = _EmptyStateDictLoadPlanner(wanted or None)
    _load_state_dict(state_dict, _reader(storage_reader, checkpoint_id), process_group, planner=planner)
    return state_dict
