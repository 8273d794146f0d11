"""`torch.distributed.checkpoint.default_planner`: everything is saved, and everything asked for is loaded."""

from __future__ import annotations

import io
import pickle
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from ...core.tensor import Tensor
from ...serialization import load as load_file
from ...serialization import save as save_file
from ._nested_dict import flatten_state_dict, set_element, walk
from ._parts import size_of
from .metadata import (
    BytesStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorStorageMetadata,
)
from .planner import (
    LoadPlan,
    LoadPlanner,
    ReadItem,
    SavePlan,
    SavePlanner,
    WriteItem,
    WriteItemType,
)
from .planner_helpers import _create_read_items, _create_write_items
from .utils import find_state_dict_object

__all__ = [
    "DefaultSavePlanner",
    "DefaultLoadPlanner",
    "create_default_local_load_plan",
    "create_default_global_load_plan",
    "create_default_local_save_plan",
    "create_default_global_save_plan",
]


class DefaultSavePlanner(SavePlanner):
    """Saves every leaf of a nested state dict under the name of its path."""

    def __init__(
        self,
        flatten_state_dict: bool = True,
        flatten_sharded_tensors: bool = True,
        dedup_replicated_tensors: bool | None = None,
        dedup_save_to_lowest_rank: bool = False,
        enable_plan_caching: bool = False,
    ) -> None:
        self.flatten_state_dict = flatten_state_dict
        self.flatten_sharded_tensors = flatten_sharded_tensors
        self.dedup_save_to_lowest_rank = dedup_save_to_lowest_rank
        self.mappings: dict[str, Any] = {}

    def set_up_planner(
        self,
        state_dict: dict[str, Any],
        storage_meta: StorageMeta | None = None,
        is_coordinator: bool = False,
    ) -> None:
        if self.flatten_state_dict:
            state_dict, self.mappings = flatten_state_dict(state_dict)
        self.state_dict = state_dict
        self.is_coordinator = is_coordinator

    def create_local_plan(self) -> SavePlan:
        plan = create_default_local_save_plan(self.state_dict, self.is_coordinator)
        if self.flatten_state_dict:
            plan = replace(plan, planner_data=self.mappings)
        self.plan = plan
        return plan

    def create_global_plan(self, all_plans: list[SavePlan]) -> tuple[list[SavePlan], Metadata]:
        all_plans = _without_duplicates(all_plans, self.dedup_save_to_lowest_rank)
        plans, metadata = create_default_global_save_plan(all_plans)
        if self.flatten_state_dict:
            merged = {name: path for plan in plans for name, path in (plan.planner_data or {}).items()}
            metadata = replace(metadata, planner_data=merged)
        self.global_plan, self.metadata = plans, metadata
        return plans, metadata

    def finish_plan(self, new_plan: SavePlan) -> SavePlan:
        self.plan = new_plan
        return new_plan

    def resolve_data(self, write_item: WriteItem) -> Tensor | io.BytesIO:
        return self.transform_object(write_item, self.lookup_object(write_item.index))

    def lookup_object(self, index: MetadataIndex) -> Any:
        """The object of the state dict with this index."""
        return find_state_dict_object(self.state_dict, index)

    def transform_object(self, write_item: WriteItem, object: Any) -> Any:
        """What is written for an object: its bytes, if it is not a tensor."""
        if write_item.type is not WriteItemType.BYTE_IO:
            return object
        buffer = io.BytesIO()
        save_file(object, buffer)
        return buffer


class DefaultLoadPlanner(LoadPlanner):
    """Loads every leaf of a nested state dict, tensors in place.

    With `allow_partial_load` leaves that the checkpoint lacks keep their values.
    """

    def __init__(
        self,
        flatten_state_dict: bool = True,
        flatten_sharded_tensors: bool = True,
        allow_partial_load: bool = False,
    ) -> None:
        self.flatten_state_dict = flatten_state_dict
        self.flatten_sharded_tensors = flatten_sharded_tensors
        self.allow_partial_load = allow_partial_load
        self.original_state_dict: dict[str, Any] = {}
        self.mappings: dict[str, Any] = {}

    def set_up_planner(
        self, state_dict: dict[str, Any], metadata: Metadata | None = None, is_coordinator: bool = False
    ) -> None:
        self.original_state_dict = state_dict
        self.metadata = metadata
        self.is_coordinator = is_coordinator
        if self.flatten_state_dict:
            state_dict, _ = flatten_state_dict(state_dict)
            # Where a leaf is written to, with the keys of the dicts as they are (0 and not "0").
            walk(self.original_state_dict, self._keep_keys)
        self.state_dict = state_dict

    def _keep_keys(self, path: tuple, keys: tuple, value: Any) -> None:
        self.mappings[".".join(map(str, path))] = keys

    def create_local_plan(self) -> LoadPlan:
        assert self.metadata is not None, "set_up_planner was not given the metadata of the checkpoint"
        return create_default_local_load_plan(self.state_dict, self.metadata, not self.allow_partial_load)

    def create_global_plan(self, global_plan: list[LoadPlan]) -> list[LoadPlan]:
        return create_default_global_load_plan(global_plan)

    def finish_plan(self, new_plan: LoadPlan) -> LoadPlan:
        return new_plan

    def load_bytes(self, read_item: ReadItem, value: io.BytesIO) -> None:
        name = read_item.dest_index.fqn
        try:
            loaded = load_file(value)
        except pickle.UnpicklingError:  # an object of a class: trusted, as in PyTorch, with a warning
            value.seek(0)
            loaded = load_file(value, weights_only=False)
        self.state_dict[name] = loaded
        if self.flatten_state_dict:
            set_element(self.original_state_dict, self.mappings[name], loaded)

    def resolve_tensor(self, read_item: ReadItem) -> Tensor:
        return self.transform_tensor(read_item, self.lookup_tensor(read_item.dest_index))

    def commit_tensor(self, read_item: ReadItem, tensor: Tensor) -> None:
        """The tensor was written in place."""

    def lookup_tensor(self, index: MetadataIndex) -> Tensor:
        """The tensor of the state dict with this index."""
        return find_state_dict_object(self.state_dict, index)

    def transform_tensor(self, read_item: ReadItem, tensor: Tensor) -> Tensor:
        """The part of the tensor that is read."""
        return _narrowed(tensor, read_item.dest_offsets, read_item.lengths)


class _EmptyStateDictLoadPlanner(DefaultLoadPlanner):
    """Loads all of a checkpoint, or the parts whose names are in `keys`, into an empty dict."""

    def __init__(self, keys: set[str] | None = None, *args: Any, **kwargs: Any) -> None:
        self.keys = keys
        super().__init__(*args, **kwargs)

    def set_up_planner(
        self, state_dict: dict[str, Any], metadata: Metadata | None = None, is_coordinator: bool = False
    ) -> None:
        from ...ops.creation.creation import empty

        assert not state_dict, "the state dict must be empty"
        assert metadata is not None, "the metadata of the checkpoint must be given"
        for name, found in metadata.state_dict_metadata.items():
            path = (metadata.planner_data or {}).get(name, (name,))
            if not self._is_wanted(name, path):
                continue
            value = None
            if isinstance(found, TensorStorageMetadata):
                value = empty(found.size, dtype=found.properties.dtype)
            set_element(state_dict, path if self.flatten_state_dict else (name,), value)
        super().set_up_planner(state_dict, metadata, is_coordinator)

    def _is_wanted(self, name: str, path: Iterable[Any]) -> bool:
        if self.keys is None or name in self.keys:
            return True
        parts = list(map(str, path))
        return any(".".join(parts[: count + 1]) in self.keys for count in range(len(parts)))


def _narrowed(tensor: Tensor, offsets: Iterable[int], lengths: Iterable[int]) -> Tensor:
    """A box of a tensor."""
    for dim, (start, length) in enumerate(zip(offsets, lengths)):
        if tensor.dim():
            tensor = tensor.narrow(dim, start, length)
    return tensor


def create_default_local_save_plan(state_dict: Mapping[str, Any], is_coordinator: bool) -> SavePlan:
    """The plan to write all objects of a flat state dict."""
    return SavePlan([item for name, value in state_dict.items() for item in _create_write_items(name, value)])


def _without_duplicates(plans: list[SavePlan], to_lowest_rank: bool) -> list[SavePlan]:
    """The plans such that one rank writes what several have: the one that writes least so far, or the first."""
    holders: dict[MetadataIndex, list[int]] = {}
    for rank, plan in enumerate(plans):
        for item in plan.items:
            holders.setdefault(item.index, []).append(rank)
    loads = [0] * len(plans)
    writers: dict[MetadataIndex, int] = {}
    for plan in plans:
        for item in plan.items:
            if item.index not in writers:
                ranks = holders[item.index]
                writers[item.index] = writer = (
                    ranks[0] if to_lowest_rank else min(ranks, key=loads.__getitem__)
                )
                loads[writer] += item.tensor_storage_size() or 1
    return [
        replace(plan, items=[item for item in plan.items if writers[item.index] == rank])
        for rank, plan in enumerate(plans)
    ]


def create_default_global_save_plan(
    all_plans: list[SavePlan], rewrite_index_hints: bool = True
) -> tuple[list[SavePlan], Metadata]:
    """The plans with hints where parts of tensors are, and what the checkpoint then holds."""
    contents: dict[str, Any] = {}
    plans = []
    for plan in all_plans:
        items = []
        for item in plan.items:
            name = item.index.fqn
            if item.type is not WriteItemType.SHARD:
                assert name not in contents, f"{name} is planned twice"
            if item.tensor_data is None:
                contents[name] = BytesStorageMetadata()
                items.append(item)
                continue
            data = item.tensor_data
            whole = contents.setdefault(name, TensorStorageMetadata(data.properties, data.size, []))
            if rewrite_index_hints:
                item = replace(item, index=replace_hint(item.index, len(whole.chunks)))
            whole.chunks.append(data.chunk)
            items.append(item)
        plans.append(replace(plan, items=items))
    return plans, Metadata(contents)


def replace_hint(index: MetadataIndex, hint: int) -> MetadataIndex:
    return MetadataIndex(index.fqn, index.offset, hint)


def create_default_local_load_plan(
    state_dict: Mapping[str, Any], metadata: Metadata, strict: bool = True
) -> LoadPlan:
    """The plan to read all objects of a flat state dict. Raises: RuntimeError for what the checkpoint lacks."""
    items: list[ReadItem] = []
    for name, value in state_dict.items():
        if name not in metadata.state_dict_metadata:
            if strict:
                raise RuntimeError(f"Missing key in checkpoint state_dict: {name}.")
            continue
        found = metadata.state_dict_metadata[name]
        if (
            isinstance(found, TensorStorageMetadata)
            and isinstance(value, Tensor)
            and found.size != size_of(value)
        ):
            raise ValueError(
                f"Size mismatch between saved {found.size} and current: {size_of(value)} for {name}"
            )
        items += _create_read_items(name, found, value)
    return LoadPlan(items)


def create_default_global_load_plan(all_plans: list[LoadPlan]) -> list[LoadPlan]:
    """The plans as they are: ranks read without each other."""
    return all_plans
