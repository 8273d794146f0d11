"""Making and ending groups."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from ._backends import Backend, BackendConfig, is_mpi_available, is_nccl_available
from ._gloo import ProcessGroupFake, ProcessGroupGloo, ProcessGroupMPI, ProcessGroupNCCL
from ._group import ProcessGroup
from ._store import HashStore, PrefixStore, Store
from ._world import (
    GroupMember,
    _get_default_group,
    _get_default_store,
    _rank_not_in_group,
    _world,
    get_process_group_ranks,
)
from .constants import default_pg_timeout
from .rendezvous import rendezvous

# Variables that tell a process its rank: of MPICH and Slurm, of Open MPI, and of both with PMIx.
_OF_MPI = ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK")


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: Store | None = None,
    group_name: str = "",
    pg_options: Any | None = None,
    device_id: Any | None = None,
    _ranks: list[int] | None = None,
) -> None:
    """Make the default group, which collectives use: of one process, of several processes of one machine, with the backend
    "mpi" of those that mpiexec has started, or with "fake" of `world_size` processes of which only this one exists.

    The process gets its rank and the number of processes from the arguments, from the URL `init_method`, or, without
    one, from the environment variables RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT. Where mpiexec or srun has started it, and RANK is
    not set, MPI knows both, and the backend "gloo" is as "mpi".

    Raises: ValueError if a group is there already or a value is missing, NotImplementedError for processes on several machines.

    >>> import weft as torch
    >>> torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    >>> torch.distributed.get_rank(), torch.distributed.get_world_size(), torch.distributed.get_backend()
    (0, 1, 'gloo')
    >>> torch.distributed.destroy_process_group()
    """
    if _world.default_pg is not None:
        raise ValueError("trying to initialize the default process group twice!")
    assert store is None or init_method is None, "Cannot specify both init_method and store."
    timeout = default_pg_timeout if timeout is None else timeout
    _check_valid_timeout(timeout)
    name = Backend("undefined" if backend is None else backend)
    if store is not None:
        assert world_size > 0, "world_size must be positive if using store"
        assert rank >= 0, "rank must be non-negative if using store"
    elif name == Backend.MPI or (
        name in (Backend.UNDEFINED, Backend.GLOO) and _mpi_knows(init_method, rank, world_size)
    ):
        _check_backend(Backend(Backend.MPI))
        from .engine.mpi import world  # loaded when first used

        store = HashStore()
        rank, world_size = world()
        _world.is_on_mpi = True
    elif name == Backend.FAKE:
        store = HashStore()
    else:
        url = init_method or "env://"
        store, rank, world_size = next(iter(rendezvous(url, rank, world_size, timeout=timeout)))
        store.set_timeout(timeout)
    _check_rank(rank, world_size)
    ranks = list(range(world_size))
    group = _new_group(name, PrefixStore("default_pg", store), rank, ranks, timeout, "default_pg", pg_options)
    group.bound_device_id = device_id
    _world.default_pg = group


def _mpi_knows(init_method: str | None, rank: int, world_size: int) -> bool:
    """Whether the process was started by mpiexec or srun, and nothing else says which rank it is."""
    return (
        init_method in (None, "env://")
        and (rank, world_size) == (-1, -1)
        and "RANK" not in os.environ
        and not os.environ.keys().isdisjoint(_OF_MPI)
        and is_mpi_available()
    )


def _check_rank(rank: int, world_size: int) -> None:
    if not 0 <= rank < world_size:
        raise ValueError(f"Invalid rank {rank}: the group has {world_size} process(es), ranks begin at 0")


def _check_valid_timeout(timeout: Any) -> None:
    if not isinstance(timeout, timedelta):
        raise TypeError(f"Expected timeout argument to be of type datetime.timedelta, got {timeout}")


def _check_backend(name: str) -> None:
    """Raise unless the backend `name` can be used."""
    if (
        name in (Backend.GLOO, Backend.FAKE)
        or name.upper() in Backend._plugins
        or (name == Backend.MPI and is_mpi_available())
        or (name == Backend.NCCL and is_nccl_available())
    ):
        return
    if name == Backend.NCCL:
        raise RuntimeError(
            "Distributed package doesn't have NCCL built in: the library libnccl.so.2 is not installed. Install NVIDIA's package "
            "(pip install nvidia-nccl-cu12), or use the backend gloo, which copies CUDA tensors through the host's memory"
        )
    if name in (Backend.MPI, Backend.UCC, Backend.XCCL):
        raise RuntimeError(f"Distributed package doesn't have {name.upper()} built in")
    raise AssertionError(f"Unknown backend type {name}")


def _new_group(
    backend: Backend,
    store: Store,
    rank: int,
    ranks: Sequence[int],
    timeout: timedelta,
    desc: str | None,
    options: Any = None,
) -> ProcessGroup:
    """Make a group of the global ranks `ranks`, in which this process is number `rank`, and register it."""
    config = BackendConfig(backend)
    name = str(_world.group_count)
    _world.group_count += 1
    group = ProcessGroup(store, rank, len(ranks))
    made_for: dict[str, Any] = {}
    for device, served_by in config.get_device_backend_map().items():
        if served_by not in made_for:
            prefixed = PrefixStore(f"{device}/", store)
            made_for[served_by] = _make_backend(
                served_by, prefixed, rank, len(ranks), timeout, list(ranks), name, options
            )
        made = made_for[served_by]
        if isinstance(made, ProcessGroup):  # a backend of the user's own that is a whole group
            group = made
            break
        group._register_backend(device, Backend.backend_type_map.get(served_by), made)
    group._set_group_name(name)
    group._set_group_desc(desc or "undefined")
    places = {rank: place for place, rank in enumerate(ranks)}
    _world.add(group, str(backend), store, places, repr(config), f"ptd:{name}")
    return group


def _make_backend(
    name: str,
    store: Store,
    rank: int,
    size: int,
    timeout: timedelta,
    ranks: list[int],
    group_name: str,
    options: Any,
) -> Any:
    _check_backend(name)
    plugin = Backend._plugins.get(name.upper())
    if name == Backend.MPI or (name == Backend.GLOO and _world.is_on_mpi):
        return ProcessGroupMPI(ranks, timeout, name)
    if name == Backend.NCCL:
        return ProcessGroupNCCL(store, rank, size, timeout)
    if name == Backend.FAKE:
        return ProcessGroupFake(rank, size)
    if plugin is None:
        return ProcessGroupGloo(store, rank, size, timeout)
    if not plugin.extended_api:
        return plugin.creator_fn(store, rank, size, timeout)
    details = _DistributedBackendOptions()
    details.store, details.group_rank, details.group_size, details.timeout = store, rank, size, timeout
    details.group_id, details.global_ranks_in_group = group_name, ranks
    return plugin.creator_fn(details, options)


class _DistributedBackendOptions:
    """What a backend with the extended interface is told of its group."""

    store: Any
    group_rank: int
    group_size: int
    timeout: timedelta
    group_id: str
    global_ranks_in_group: list[int]


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """End a group, or without an argument all groups."""
    if _rank_not_in_group(group):
        return
    found = _world.default_pg if group is None else group
    assert found is not None, "Process group cannot be None"
    if found not in _world.pg_map:
        raise ValueError("Invalid process group specified")
    for each in list(_world.pg_map) if found is _world.default_pg else [found]:
        each.shutdown()
        _world.remove(each)
    if found is not _world.default_pg:
        return
    _world.tags_to_pg.clear()
    _world.default_pg = None
    _world.group_count = 0
    _world.is_on_mpi = False
    _world.made_before.clear()


def new_group(
    ranks: Sequence[int] | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: Any = None,
    sort_ranks: bool = True,
) -> Any:
    """A group of some of the processes; all by default. For a process outside it `GroupMember.NON_GROUP_MEMBER`."""
    default = _get_default_group()
    size = default.size()
    timeout = default_pg_timeout if timeout is None else timeout
    _check_valid_timeout(timeout)
    chosen = list(range(size)) if ranks is None else list(ranks)
    if len(set(chosen)) != len(chosen):
        raise ValueError(f"ranks list must not contain duplicate entries, got {chosen}")
    if len(chosen) > size:
        raise ValueError(
            "the new group's world size should be less or equal to the world size set by init_process_group"
        )
    for rank in chosen:
        if not 0 <= rank < size:
            raise ValueError(
                f"Rank {rank} is out of range. Valid ranks are 0 to {size - 1} (world_size={size})"
            )
    if not chosen:
        return GroupMember.NON_GROUP_MEMBER
    if sort_ranks:
        chosen.sort()
    name = Backend(_world.pg_map[default][0] if backend is None else backend)
    if default.rank() not in chosen:
        _world.group_count += not use_local_synchronization  # all processes number the groups alike
        return GroupMember.NON_GROUP_MEMBER
    # Where the ranks meet in the store must not depend on groups that only some of them have made.
    number = _world.made_before[tuple(chosen)]
    _world.made_before[tuple(chosen)] += 1
    store = PrefixStore(f"{'_'.join(map(str, chosen))}:{number}/", _get_default_store())
    rank = chosen.index(default.rank())
    group = _new_group(name, store, rank, chosen, timeout, group_desc, pg_options)
    group.bound_device_id = device_id
    return group


def new_subgroups(
    group_size: int | None = None,
    group: ProcessGroup | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """Groups of `group_size` processes each: the one of this process, and all."""
    if group_size is None:
        raise ValueError(
            "new_subgroups takes the number of accelerators as `group_size`; there is none: give it"
        )
    if group_size <= 0:
        raise ValueError(f"The arg 'group_size' ({group_size}) must be positive")
    ranks = get_process_group_ranks(group)
    if group_size > len(ranks):
        raise ValueError(f"The arg 'group_size' ({group_size}) must not exceed the world size ({len(ranks)})")
    if len(ranks) % group_size:
        raise ValueError(f"The world size ({len(ranks)}) must be divisible by '{group_size=}'")
    parts = [ranks[start : start + group_size] for start in range(0, len(ranks), group_size)]
    return new_subgroups_by_enumeration(parts, timeout, backend, pg_options, group_desc)


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: Sequence[Sequence[int]],
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """Groups of the given ranks: the one of this process, and all."""
    if not ranks_per_subgroup_list:
        raise ValueError("The arg 'ranks_per_subgroup_list' cannot be empty")
    taken: set[int] = set()
    own = None
    groups = []
    rank = _get_default_group().rank()
    for ranks in ranks_per_subgroup_list:
        if taken & set(ranks):
            raise ValueError(f"Rank {min(taken & set(ranks))} has appeared in more than one subgroup")
        taken |= set(ranks)
        groups.append(new_group(ranks, timeout, backend, pg_options, group_desc=group_desc))
        if rank in ranks:
            own = groups[-1]
    return own, groups


def split_group(
    parent_pg: ProcessGroup | None = None,
    split_ranks: Sequence[Sequence[int]] | None = None,
    timeout: timedelta | None = None,
    pg_options: Any | None = None,
    group_desc: str | None = None,
    backend: str | Backend | None = None,
) -> ProcessGroup | None:
    """The group of this process among the parts of a group, of which `split_ranks` lists the ranks in it.

    Raises: RuntimeError unless `init_process_group` was given a `device_id`.
    """
    if not split_ranks:
        raise ValueError("split_ranks cannot be None or empty")
    default = _get_default_group()
    if default.bound_device_id is None:
        raise RuntimeError("No device associated with the default pg, not safe to split any process groups")
    parent = parent_pg or default
    own = parent.rank()
    ranks = get_process_group_ranks(parent)
    for part in split_ranks:
        if own in part:
            return new_group(
                [ranks[place] for place in part], timeout, backend, pg_options, group_desc=group_desc
            )
    return None


def shrink_group(
    ranks_to_exclude: list[int],
    group: ProcessGroup | None = None,
    shrink_flags: int = 0,
    pg_options: Any | None = None,
) -> ProcessGroup:
    """A group without some ranks. Raises: ValueError for a group of one rank, NotImplementedError for others."""
    found = _get_default_group() if group is None else group
    if found.size() > 1:
        raise NotImplementedError(
            f"shrink_group: the backend {found.name()} cannot take ranks out of a group: make another one with new_group"
        )
    raise ValueError(
        f"Cannot shrink a process group with size {found.size()}. Group must have at least 2 ranks to support shrinking."
    )
