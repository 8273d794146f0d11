"""CommDebugMode counts the collectives that PyTorch's counts, in the same modules."""

import threading

import pytest
from several_ranks import assert_same_on_every_rank, outcomes, programs

import weft
from weft.distributed.tensor import Replicate, Shard, distribute_tensor
from weft.distributed.tensor.debug import CommDebugMode
from weft.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from weft.distributed.traffic import traffic

MODULE = "comm_mode_programs"
# Programs in which weft communicates in another way, and what it calls.
OWN = {
    "redistribute_from_one_dim_to_another": [{"_dtensor.shard_dim_alltoall": 1}] * 4,
    "data_parallel_orders_buckets": [
        {"c10d.allgather_": 2, "c10d.broadcast_": 1},
        {
            "Global": {"forward": {"c10d.broadcast_": 1}, "backward": {"c10d.allreduce_": 1}},
            "DistributedDataParallel": {
                "forward": {"c10d.broadcast_": 1},
                "backward": {"c10d.allreduce_": 1},
            },
            "DistributedDataParallel.module": {"forward": {}, "backward": {"c10d.allreduce_": 1}},
            "DistributedDataParallel.module.up": {"forward": {}, "backward": {"c10d.allreduce_": 1}},
        },
    ],
}


@pytest.mark.parametrize("name", [name for name in programs(MODULE) if name not in OWN])
def test_counts_are_those_of_pytorch(name):
    assert_same_on_every_rank(2, MODULE, name)


@pytest.mark.parametrize("name", OWN)
def test_counts_are_those_of_the_calls(name):
    for found in outcomes("weft", 2, MODULE):
        assert found[name] == OWN[name]


@pytest.fixture
def mesh():
    """A mesh of processes that do not exist."""
    weft.distributed.init_process_group("fake", rank=0, world_size=4)
    yield weft.distributed.init_device_mesh("cpu", (4,))
    weft.distributed.destroy_process_group()


def cut(mesh):
    return distribute_tensor(weft.ones(4, 8), mesh, [Shard(0)])


def names(mode, module="Global"):
    return [each["name"] for each in mode.comm_module_operation_counts[module]["operations_list"]]


def test_operations_of_dtensors_and_on_parts(mesh):
    x = cut(mesh)
    with CommDebugMode() as mode:
        x.exp()
    both = mode.comm_module_operation_counts["Global"]["operations_list"]
    assert [(each["name"], each["input_shape"]) for each in both] == [
        ("aten.exp", [(4, 8)]),
        ("aten.exp", []),
    ]
    assert both[0]["input_sharding"] == [(Shard(0),)] and both[0]["device_mesh"] == str(mesh)


def test_noise_levels(mesh):
    x = cut(mesh)
    with CommDebugMode() as mode:
        (x.t().exp() + 1).redistribute(mesh, [Replicate()])
        weft.ones(3).exp()
    tables = [mode.generate_comm_debug_tracing_table(level) for level in range(4)]
    assert [table.count("aten.exp") for table in tables] == [0, 1, 3, 3]
    assert [table.count("aten.t\033") for table in tables] == [0, 0, 0, 1]
    assert [table.count("*c10d_functional.all_gather_into_tensor: 1") for table in tables] == [1] * 4
    assert [table.count("_c10d_functional.all_gather_into_tensor\033") for table in tables] == [0, 0, 1, 1]


def test_dtensors_that_begin_within_the_context_are_seen(mesh):
    with CommDebugMode() as mode:
        cut(mesh).exp()
    assert names(mode).count("aten.exp") == 2


def test_contexts_within_each_other(mesh):
    with CommDebugMode() as outer:
        weft.distributed.all_reduce(weft.ones(1))
        with pytest.raises(ZeroDivisionError), CommDebugMode() as inner:
            weft.distributed.all_reduce(weft.ones(1))
            1 / 0  # noqa: B018
        weft.distributed.all_reduce(weft.ones(1))
    weft.distributed.all_reduce(weft.ones(1))
    assert (outer.get_total_counts(), inner.get_total_counts()) == (3, 1)
    assert outer.get_comm_counts()[weft.ops.c10d.allreduce_] == 3
    assert outer.get_comm_counts()[weft.ops.c10d.broadcast_] == 0


def test_a_call_that_fails_does_not_count(mesh):
    with CommDebugMode() as mode, pytest.raises(RuntimeError):
        weft.distributed.all_gather([weft.ones(1)], weft.ones(1))
    assert mode.get_total_counts() == 0


def test_other_threads_do_not_count(mesh):
    with CommDebugMode() as mode:
        thread = threading.Thread(target=lambda: weft.distributed.all_reduce(weft.ones(1).exp()))
        thread.start()
        thread.join()
    assert mode.get_total_counts() == 0 and not mode.comm_module_operation_counts


def test_a_module_that_fails_and_one_that_is_called_again(mesh):
    class Fails(weft.nn.Module):
        def forward(self, x):
            weft.distributed.all_reduce(x)
            if x.sum() > 100:
                raise ValueError
            return x

    model = weft.nn.Sequential(Fails())
    with CommDebugMode() as mode:
        model(weft.ones(1))
        with pytest.raises(ValueError):
            model(weft.full((1,), 101.0))
        weft.distributed.all_reduce(weft.ones(1))
    counts = {name: sum(found["forward"].values()) for name, found in mode.comm_module_counts.items()}
    assert counts == {"Global": 3, "Sequential": 2, "Sequential.0": 2}


def test_operators_of_c10d_name_calls_but_cannot_be_called(mesh):
    schema = weft.ops.c10d.allreduce_.default._schema
    assert [each.name for each in schema.arguments][:3] == ["tensors", "process_group", "reduce_op"]
    with pytest.raises(RuntimeError, match="process_group"):
        weft.ops.c10d.allreduce_(
            [weft.ones(1)], weft.distributed.group.WORLD, weft.distributed.ReduceOp.SUM, None
        )


def test_programs_send_the_same_while_they_are_watched(mesh):
    model = weft.nn.Sequential(weft.nn.Linear(8, 8), weft.nn.Tanh(), weft.nn.Linear(8, 8))
    parallelize_module(
        model,
        mesh,
        {"0": ColwiseParallel(input_layouts=Shard(0)), "2": RowwiseParallel(output_layouts=Shard(0))},
    )

    def step():
        with traffic() as found:
            model(weft.ones(3, 8, requires_grad=True)).square().sum().backward()
            (cut(mesh).t() @ cut(mesh)).full_tensor()
        return found.calls

    with CommDebugMode():
        watched = step()
    assert watched == step() and len(watched) > 3
