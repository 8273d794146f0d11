"""The groups of this process, and the questions about them."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from typing import Any

from ..core.warn import user_level
from ._backends import Backend
from ._group import ProcessGroup


class _World:
    """All groups of this process."""

    def __init__(self) -> None:
        self.default_pg: ProcessGroup | None = None
        self.pg_map: dict[ProcessGroup, tuple[str, Any]] = {}  # backend and store
        self.pg_names: dict[ProcessGroup, str] = {}
        self.pg_group_ranks: dict[ProcessGroup, dict[int, int]] = {}  # global rank -> rank in the group
        self.pg_backend_config: dict[ProcessGroup, str] = {}
        self.pg_to_tag: dict[ProcessGroup, str] = {}
        self.tags_to_pg: dict[str, list[ProcessGroup]] = {}
        self.pg_coalesce_state: dict[ProcessGroup, list[Any]] = {}
        self.group_count = 0
        self.is_on_mpi = False  # whether the ranks are MPI's
        self.made_before: Counter[tuple[int, ...]] = (
            Counter()
        )  # how many groups of these ranks this process has made

    @property
    def pg_config_info(self) -> list[dict[str, Any]]:
        """What each group is, as plain values."""
        return [
            {
                "pg_name": name,
                "pg_desc": group.group_desc,
                "backend_config": self.pg_backend_config[group],
                "pg_size": len(self.pg_group_ranks[group]),
                "ranks": list(self.pg_group_ranks[group]),
            }
            for group, name in self.pg_names.items()
        ]

    def add(
        self, group: ProcessGroup, backend: str, store: Any, ranks: dict[int, int], config: str, tag: str
    ) -> None:
        self.pg_map[group] = (backend, store)
        self.pg_names[group] = group.group_name
        self.pg_group_ranks[group] = ranks
        self.pg_backend_config[group] = config
        self.pg_to_tag[group] = tag
        self.tags_to_pg.setdefault(tag, []).append(group)

    def remove(self, group: ProcessGroup) -> None:
        for table in (
            self.pg_map,
            self.pg_names,
            self.pg_group_ranks,
            self.pg_backend_config,
            self.pg_coalesce_state,
        ):
            table.pop(group, None)  # type: ignore[attr-defined]
        tag = self.pg_to_tag.pop(group, None)
        if tag is not None:
            self.tags_to_pg[tag].remove(group)


_world = _World()


class _WorldMeta(type):
    """Gives a class the attribute WORLD, which is the default group of the moment."""

    @property
    def WORLD(cls) -> ProcessGroup | None:  # noqa: N802 (PyTorch's name)
        return _world.default_pg

    @WORLD.setter
    def WORLD(cls, group: ProcessGroup | None) -> None:  # noqa: N802
        _world.default_pg = group


class group(metaclass=_WorldMeta):  # noqa: N801 (PyTorch's name)
    """`group.WORLD` is the group of all processes, None before `init_process_group`."""


class GroupMember(metaclass=_WorldMeta):
    """`NON_GROUP_MEMBER` stands for a group that this process is not in."""

    NON_GROUP_MEMBER = -100


def is_initialized() -> bool:
    """Whether `init_process_group` was called.

    >>> import weft as torch
    >>> torch.distributed.is_initialized()
    False
    """
    return _world.default_pg is not None


def _get_default_group() -> ProcessGroup:
    """The group of all processes. Raises: ValueError before `init_process_group`."""
    if _world.default_pg is None:
        raise ValueError(
            "Default process group has not been initialized, please make sure to call init_process_group."
        )
    return _world.default_pg


def _get_default_store() -> Any:
    return _world.pg_map[_get_default_group()][1]


def _update_default_pg(pg: ProcessGroup | None) -> None:
    _world.default_pg = pg


def _group_or_default_group(group: ProcessGroup | None = None) -> ProcessGroup:
    return _get_default_group() if group is None or group is _world.default_pg else group


def _rank_not_in_group(group: ProcessGroup | None) -> bool:
    return group is not None and group == GroupMember.NON_GROUP_MEMBER


def _warn_not_in_group(op_name: str) -> None:
    rank = -1 if _world.default_pg is None else _world.default_pg.rank()
    warnings.warn(
        f"Running {op_name} on global rank {rank} which does not belong to the given group.",
        stacklevel=user_level(),
    )


def _member_group(group: ProcessGroup | None, op_name: str) -> ProcessGroup | None:
    """The group, or None with a warning if this process is not in it."""
    if _rank_not_in_group(group):
        _warn_not_in_group(op_name)
        return None
    return _group_or_default_group(group)


def _known_group(group: ProcessGroup | None) -> ProcessGroup:
    if _rank_not_in_group(group):
        raise ValueError("Invalid process group specified")
    found = _group_or_default_group(group)
    if found not in _world.pg_map:
        raise ValueError("Invalid process group specified")
    return found


def get_rank(group: ProcessGroup | None = None) -> int:
    """The number of this process in a group, -1 if it is not in it."""
    if _rank_not_in_group(group):
        return -1
    default = _get_default_group()
    if group is None or group is default:
        return default.rank()
    return get_group_rank(group, default.rank())


def get_world_size(group: ProcessGroup | None = None) -> int:
    """The number of processes in a group, -1 if this process is not in it."""
    return -1 if _rank_not_in_group(group) else _get_group_size(group)


def _get_group_size(group: ProcessGroup | None) -> int:
    return _group_or_default_group(group).size()


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """The number of this process on its machine: the environment variable LOCAL_RANK, else `fallback_rank`."""
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if fallback_rank is not None:
        return int(fallback_rank)
    raise RuntimeError(
        "LOCAL_RANK is not in the environment: start the program with torchrun, or give `fallback_rank`."
    )


def get_backend(group: ProcessGroup | None = None) -> Backend:
    """The name of the backend of a group."""
    return Backend(_world.pg_map[_known_group(group)][0])


def get_backend_config(group: ProcessGroup | None = None) -> str:
    """The backends of a group and their devices, as text."""
    return _world.pg_backend_config[_known_group(group)]


def get_pg_count() -> int:
    """How many groups this process has made."""
    return _world.group_count


def get_process_group_ranks(group: ProcessGroup | None) -> list[int]:
    """The global ranks of a group, in the order of the group."""
    return list(_world.pg_group_ranks[group or _get_default_group()])


def _ranks_of(group: ProcessGroup) -> dict[int, int]:
    if group not in _world.pg_group_ranks:
        raise ValueError(
            f"Group {group} is not registered, please create group with torch.distributed.new_group API"
        )
    return _world.pg_group_ranks[group]


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    """The rank in `group` of the process with the global rank `global_rank`."""
    if group is _world.default_pg:
        return global_rank
    ranks = _ranks_of(group)
    if global_rank not in ranks:
        raise ValueError(f"Global rank {global_rank} is not part of group {group}")
    return ranks[global_rank]


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    """The global rank of the process with the rank `group_rank` in `group`."""
    if group is _world.default_pg:
        return group_rank
    for global_rank, rank in _ranks_of(group).items():
        if rank == group_rank:
            return global_rank
    raise ValueError(f"Group rank {group_rank} is not part of group {group}")


def _get_global_rank(group: ProcessGroup, rank: int) -> int:
    return get_global_rank(group, rank)


def _canonicalize_group_rank(
    group: ProcessGroup,
    global_rank: int | None = None,
    group_rank: int | None = None,
    return_global: bool = False,
) -> int:
    """The rank in the group, or the global rank, of a process that is given by one of the two."""
    if group_rank is not None:
        if global_rank is not None:
            raise ValueError("Can't specify both group_rank and global_rank")
        return get_global_rank(group, group_rank) if return_global else group_rank
    if global_rank is None:
        raise ValueError("Must specify global_rank or group_rank")
    return global_rank if return_global else get_group_rank(group, global_rank)


def _get_process_group_name(pg: ProcessGroup) -> str:
    return _world.pg_names.get(pg, "None")


def _get_process_group_store(pg: ProcessGroup) -> Any:
    return _world.pg_map[pg][1]


def _get_group_tag(pg: ProcessGroup) -> str:
    return _world.pg_to_tag[pg].removeprefix("user:")


def _get_pg_config(group: ProcessGroup | None = None) -> dict[str, Any]:
    found = _group_or_default_group(group)
    return next(info for info in _world.pg_config_info if info["pg_name"] == _world.pg_names[found])


def _get_all_pg_configs() -> list[dict[str, Any]]:
    return _world.pg_config_info


def _get_pg_default_device(group: ProcessGroup | None = None) -> Any:
    from ..core.device import device

    _group_or_default_group(group)
    return device("cpu")


def _get_object_coll_device(group: ProcessGroup | None = None) -> str:
    return _get_pg_default_device(group).type


def _device_capability(group: ProcessGroup | None = None) -> list[str]:
    return [each.type for each in _group_or_default_group(group)._device_types]


def _resolve_process_group(group_name: str) -> ProcessGroup:
    """The group of this name. Raises: RuntimeError if there is none."""
    for found, name in _world.pg_names.items():
        if name == group_name:
            return found
    raise RuntimeError(f"Could not resolve the process group registered under the name {group_name}")


def _find_pg_by_ranks_and_tag(tag: str, ranks: list[int]) -> ProcessGroup | None:
    if tag and not tag.startswith(("ptd:", "user:")):
        tag = f"user:{tag}"
    for found in _world.tags_to_pg.get(tag, ()):
        if list(_world.pg_group_ranks[found]) == ranks:
            return found
    return None
