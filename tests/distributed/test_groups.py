import datetime
import pickle
import sys

import pytest
import torch
from one_rank import groups, same

import weft

VARIABLES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


def test_without_a_group():
    for name in (
        "get_rank",
        "get_world_size",
        "get_backend",
        "barrier",
        "new_group",
        "destroy_process_group",
    ):
        same(lambda library, name=name: getattr(library.distributed, name)())
    same(lambda library: library.distributed.all_reduce(library.ones(2)))
    same(lambda library: (library.distributed.is_initialized(), library.distributed.group.WORLD))


@pytest.fixture
def without_mpi(monkeypatch):
    """PyTorch's wheels are built without it."""
    monkeypatch.setitem(sys.modules, "mpi4py", None)


def test_what_is_available(without_mpi):
    for name in ("available", "gloo_available", "nccl_available", "mpi_available", "torchelastic_launched"):
        same(lambda library, name=name: getattr(library.distributed, f"is_{name}")())


@pytest.mark.parametrize("present", range(len(VARIABLES)))
def test_missing_environment_variables(monkeypatch, present):
    for place, name in enumerate(VARIABLES):
        if place < present:
            monkeypatch.setenv(name, ("0", "1", "127.0.0.1", "0")[place])
        else:
            monkeypatch.delenv(name, raising=False)
    with pytest.raises(ValueError, match=f"environment variable {VARIABLES[present]} expected, but not set"):
        weft.distributed.init_process_group("gloo")


def test_group_from_the_environment(monkeypatch):
    for name, value in zip(VARIABLES, ("0", "1", "127.0.0.1", "0"), strict=True):
        monkeypatch.setenv(name, value)
    dist = weft.distributed
    dist.init_process_group()
    assert (dist.get_rank(), dist.get_world_size(), dist.get_backend()) == (0, 1, "undefined")
    assert dist.get_backend_config() == "cpu:gloo"
    dist.destroy_process_group()


@pytest.mark.parametrize(
    "arguments",
    [
        {"backend": "foo"},
        {"backend": "nccl"},
        {"backend": "mpi"},
        {"backend": "cpu:gloo,cuda:nccl"},
        {"init_method": "foo://x"},
        {"rank": -1},
        {"world_size": -1},
        {"timeout": 5},
        {"init_method": "file://"},
        {"init_method": "tcp://127.0.0.1"},
    ],
)
def test_wrong_arguments(arguments, tmp_path, without_mpi):
    def program(library):
        given = {
            "backend": "gloo",
            "init_method": f"file://{tmp_path}/{library.__name__}",
            "rank": 0,
            "world_size": 1,
        }
        return library.distributed.init_process_group(**given | arguments)

    same(program)
    assert not torch.distributed.is_initialized() and not weft.distributed.is_initialized()


def test_ranks_that_do_not_come_are_named():
    store = weft.distributed.HashStore()
    arguments = {"store": store, "rank": 1, "world_size": 3, "timeout": datetime.timedelta(seconds=0.1)}
    with pytest.raises(weft.distributed.DistStoreError, match="not joined the group of 3: 0, 2"):
        weft.distributed.init_process_group("gloo", **arguments)
    assert not weft.distributed.is_initialized()


def test_file_as_meeting_place(tmp_path):
    dist = weft.distributed
    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    with pytest.raises(ValueError, match="twice"):
        dist.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    dist.destroy_process_group()
    assert not dist.is_initialized()


def test_new_groups():
    with groups():
        for ranks in ([0], [0, 1], [0, 0], [1], None):
            same(lambda library, ranks=ranks: library.distributed.new_group(ranks).size())
        for size in (1, 2, 0, None):
            same(lambda library, size=size: len(library.distributed.new_subgroups(size)))
        same(lambda library: library.distributed.split_group(split_ranks=[[0]]))
        same(lambda library: library.distributed.shrink_group([0]))


def test_questions_about_groups():
    def program(library):
        dist = library.distributed
        made = dist.new_group([0], group_desc="mine")
        answers = [
            dist.get_process_group_ranks(made),
            dist.get_group_rank(made, 0),
            dist.get_global_rank(made, 0),
            dist.get_backend(made),
            dist.get_backend_config(made),
            made.group_desc,
            made.size(),
            made.rank(),
            made.name(),
            dist.group.WORLD.group_name,
            dist.group.WORLD.group_desc,
            dist.distributed_c10d._get_pg_config(),
            dist.distributed_c10d._rank_not_in_group(made),
        ]
        dist.destroy_process_group(made)
        return answers

    with groups():
        same(program)
        same(lambda library: library.distributed.get_group_rank(library.distributed.new_group(), 1))
        same(lambda library: library.distributed.get_global_rank(library.distributed.new_group(), 1))


def test_backend_of_the_users_own():
    dist = weft.distributed
    made = []

    class Loud(dist.ProcessGroup):
        def allreduce(self, tensors, options=None):
            made.append(tensors)
            tensors[0].mul_(2)
            return dist.Work(tensors)

    dist.Backend.register_backend(
        "loud", lambda store, rank, size, timeout: Loud(rank, size), devices=["cpu"]
    )
    assert dist.Backend.LOUD == "loud" and dist.is_backend_available("loud")
    dist.init_process_group("loud", store=dist.HashStore(), rank=0, world_size=1)
    x = weft.ones(2)
    dist.all_reduce(x)
    assert x.tolist() == [2, 2] and made and dist.get_backend() == "loud"
    dist.destroy_process_group()


def test_reductions_as_values():
    for program in (
        lambda library: (library.distributed.ReduceOp.SUM, str(library.distributed.ReduceOp.MAX)),
        lambda library: isinstance(library.distributed.ReduceOp.SUM, library.distributed.ReduceOp),
        lambda library: list(library.distributed.ReduceOp.RedOpType.__members__),
        lambda library: pickle.loads(pickle.dumps(library.distributed.ReduceOp.MAX)),
        lambda library: library.distributed.ReduceOp(library.distributed.ReduceOp.MAX).op,
        lambda library: int(library.distributed.ReduceOp.AVG),
        lambda library: library.distributed.Backend("GLOO"),
        lambda library: library.distributed.BackendConfig(library.distributed.Backend("gloo")),
        lambda library: library.distributed.BackendConfig(library.distributed.Backend("cpu:gloo,cuda")),
        lambda library: library.distributed.Backend(3),
        lambda library: library.distributed.get_default_backend_for_device("cpu"),
        lambda library: list(library.distributed.DebugLevel.__members__),
    ):
        same(program)


def test_sampler_asks_the_group():
    from weft.utils.data import DistributedSampler

    with groups():
        sampler = DistributedSampler(range(5), shuffle=False)
        assert (sampler.rank, sampler.num_replicas, list(sampler)) == (0, 1, [0, 1, 2, 3, 4])
    with pytest.raises(ValueError):
        DistributedSampler(range(5))


def test_rendezvous_hands_out_a_store(tmp_path):
    store, rank, world_size = next(weft.distributed.rendezvous(f"file://{tmp_path}/x?rank=0&world_size=1"))
    assert isinstance(store, weft.distributed.FileStore) and (rank, world_size) == (0, 1)
    with pytest.raises(RuntimeError, match="already registered"):
        weft.distributed.register_rendezvous_handler("tcp", None)
    assert weft.distributed.distributed_c10d.default_pg_timeout == datetime.timedelta(minutes=30)


def test_public_names():
    from weft._C._distributed_c10d import ProcessGroup, Work

    dist = weft.distributed
    assert ProcessGroup is dist.ProcessGroup and Work is dist.Work
    for name in ("all_reduce", "ReduceOp", "HashStore", "TCPStore", "GradBucket", "DistError", "P2POp"):
        value = getattr(dist, name)
        assert pickle.loads(pickle.dumps(value)) is value and "._" not in value.__module__
