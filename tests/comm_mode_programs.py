"""Programs whose collectives CommDebugMode counts, for several ranks, see several_ranks.py."""

import importlib
import itertools
import json
import types
from pathlib import Path


def _modules(torch):
    """What the programs use, of either library."""
    names = {
        "tensor": "distributed.tensor",
        "parallel": "distributed.tensor.parallel",
        "debug": "distributed.tensor.debug",
        "functional": "distributed._functional_collectives",
        "of_nn": "distributed.nn.functional",
        "fsdp": "distributed.fsdp",
        "device_mesh": "distributed.device_mesh",
        "checkpoint": "utils.checkpoint",
    }
    return types.SimpleNamespace(
        **{key: importlib.import_module(f"{torch.__name__}.{name}") for key, name in names.items()}
    )


def _counted(torch, call):
    """The collectives of a call, by the name of their operator."""
    with _modules(torch).debug.CommDebugMode() as mode:
        call()
    assert mode.get_total_counts() == sum(mode.comm_counts.values())
    return {str(packet): count for packet, count in mode.get_comm_counts().items()}


def _by_module(mode):
    """The collectives of each module that has some, forward and backward."""
    return {
        name: {way: {str(packet): count for packet, count in counts.items()} for way, counts in found.items()}
        for name, found in mode.comm_module_counts.items()
        if any(found.values())
    }


def _redistributions(torch, size):
    """(names of two placements, a call that goes from the one to the other)"""
    m = _modules(torch)
    mesh = m.device_mesh.init_device_mesh("cpu", (size,))
    places = {"R": m.tensor.Replicate(), "S0": m.tensor.Shard(0), "S1": m.tensor.Shard(1)}
    for shape in ((4, 6), (5, 3)):
        x = torch.arange(float(shape[0] * shape[1])).reshape(shape)
        given = {name: m.tensor.distribute_tensor(x, mesh, [place]) for name, place in places.items()}
        given["P"] = m.tensor.DTensor.from_local(x, mesh, [m.tensor.Partial()])
        for old, new in itertools.product(given, places):
            yield (old, new), lambda x=given[old], new=places[new]: x.redistribute(mesh, [new])


def redistribute(torch, rank, size):
    calls = list(_redistributions(torch, size))
    found = [_counted(torch, call) for names, call in calls if set(names) != {"S0", "S1"}]
    return found, [call().to_local() for _, call in calls]


def redistribute_from_one_dim_to_another(torch, rank, size):
    return [
        _counted(torch, call) for names, call in _redistributions(torch, size) if set(names) == {"S0", "S1"}
    ]


def distribute_and_gather(torch, rank, size):
    m, x = _modules(torch), torch.ones(4, 6)
    mesh = m.device_mesh.init_device_mesh("cpu", (size,))
    places = [[m.tensor.Shard(0)], [m.tensor.Replicate()]]
    found = [_counted(torch, lambda p=p: m.tensor.distribute_tensor(x, mesh, p)) for p in places]
    cut = m.tensor.distribute_tensor(x, mesh, places[0])
    sums = (cut + cut).sum()
    return found, _counted(torch, cut.full_tensor), _counted(torch, sums.full_tensor)


def functional(torch, rank, size):
    f, x = _modules(torch).functional, torch.arange(24.0).reshape(4, 6)
    group, even = torch.distributed.group.WORLD, [2] * size
    leaf = lambda: x.clone().requires_grad_()  # noqa: E731
    calls = [
        lambda: f.all_reduce(x, "sum", group),
        lambda: f.all_gather_tensor(x, 0, group),
        lambda: f.all_gather_tensor(x, 1, group),
        lambda: f.reduce_scatter_tensor(x, "sum", 0, group),
        lambda: f.reduce_scatter_tensor(x, "sum", 1, group),
        lambda: f.all_to_all_single(x, None, None, group),
        lambda: f.broadcast(x, 0, group),
        lambda: f.permute_tensor(x.flatten(), [1, 0], group),
        lambda: f.all_reduce_coalesced([x, x], "sum", group),
        lambda: f.all_gather_into_tensor_coalesced([x, x], group),
        lambda: f.reduce_scatter_tensor_coalesced([x, x], "sum", [0, 0], group),
        lambda: f.all_reduce(leaf(), "sum", group).sum().backward(),
        lambda: f.all_gather_tensor_autograd(leaf(), 0, group).sum().backward(),
        lambda: f.reduce_scatter_tensor_autograd(leaf(), "sum", 0, group).sum().backward(),
        lambda: f.all_to_all_single_autograd(leaf(), even, even, group).sum().backward(),
    ]
    return [_counted(torch, call) for call in calls]


def operators(torch, rank, size):
    """Calls of the operators themselves, and what they give."""
    ops, x = torch.ops, torch.arange(12.0).reshape(4, 3) + rank
    name = torch.distributed.group.WORLD.group_name
    ranks = ["", list(range(size)), size]
    found = []

    def call():
        found[:] = [
            ops._c10d_functional.all_reduce(x, "sum", name),
            *ops._c10d_functional.all_reduce_coalesced([x, x], "max", name),
            ops._c10d_functional.all_gather_into_tensor(x, size, name),
            *ops._c10d_functional.all_gather_into_tensor_coalesced([x, x], size, name),
            ops._c10d_functional.reduce_scatter_tensor(x, "sum", size, name),
            *ops._c10d_functional.reduce_scatter_tensor_coalesced([x], "sum", size, name),
            ops._c10d_functional.all_to_all_single(x, [2] * size, [2] * size, name),
            ops._c10d_functional.broadcast(x, 1, name),
            ops.c10d_functional.all_reduce(x, "sum", *ranks),
            ops.c10d_functional.all_gather_into_tensor(x, *ranks),
            ops.c10d_functional.reduce_scatter_tensor(x, "sum", *ranks),
        ]
        found[:] = [ops._c10d_functional.wait_tensor(each) for each in found]

    call()
    _counted(torch, call)
    return found


def of_c10d(torch, rank, size):
    dist, x = torch.distributed, torch.ones(4, 6)
    several = lambda: [x.clone() for _ in range(size)]  # noqa: E731
    first = rank == 0
    calls = [
        lambda: dist.all_reduce(x.clone()),
        lambda: [dist.all_reduce(each) for each in several()],  # the second one finds its arguments checked
        lambda: dist.all_reduce(x.clone(), async_op=True).wait(),
        lambda: dist.all_reduce_coalesced(several()),
        lambda: dist.broadcast(x.clone(), 0),
        lambda: dist.reduce(x.clone(), 0),
        lambda: [dist.all_gather(several(), x) for _ in range(2)],
        lambda: dist.all_gather_into_tensor(torch.zeros(4 * size, 6), x),
        lambda: dist.all_gather_coalesced([[each] for each in several()], [x]),
        lambda: dist.gather(x, several() if first else None),
        lambda: dist.scatter(x.clone(), several() if first else None),
        lambda: dist.reduce_scatter(x.clone(), several()),
        lambda: dist.reduce_scatter_tensor(torch.zeros(2, 6), torch.ones(2 * size, 6)),
        lambda: dist.all_to_all(several(), several()),
        lambda: dist.all_to_all_single(x.clone(), x),
        lambda: dist.barrier(),
        lambda: dist.send(x, 1) if first else dist.recv(x.clone(), 0),
        lambda: dist.all_gather_object([None] * size, 3),
        lambda: dist.broadcast_object_list([3], 0),
        lambda: _modules(torch).of_nn.all_reduce(x.clone().requires_grad_()).sum().backward(),
    ]
    return [_counted(torch, call) for call in calls]


def _mlp(torch):
    class MLP(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.up, self.relu, self.down = torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 4)

        def forward(self, x):
            return self.down(self.relu(self.up(x)))

    return MLP()


def _tensor_parallel(torch, size, of_sequences):
    m = _modules(torch)
    mesh = m.device_mesh.init_device_mesh("cpu", (size,))
    cut = m.tensor.Shard(0) if of_sequences else m.tensor.Replicate()
    plan = {
        "up": m.parallel.ColwiseParallel(input_layouts=cut),
        "down": m.parallel.RowwiseParallel(output_layouts=cut),
    }
    return m.parallel.parallelize_module(_mlp(torch), mesh, plan)


def tensor_parallel(torch, rank, size):
    found = []
    for of_sequences in (False, True):
        model = _tensor_parallel(torch, size, of_sequences)
        mode = _modules(torch).debug.CommDebugMode()
        for _ in range(2):  # each time it counts anew
            with mode:
                model(torch.ones(2, 6, requires_grad=True)).sum().backward()
        tracker, file = mode.advanced_module_tracker, Path(f"rank{rank}.json")
        mode.generate_json_dump(str(file), 0)
        mode.log_comm_debug_tracing_table_to_file(f"rank{rank}.txt", 0)
        found += [
            _by_module(mode),
            {name: str(places) for name, places in mode.get_sharding_info().items()},
            {module: list(own) for module, own in mode.get_parameter_info().items()},
            {name: each["depth"] for name, each in tracker.module_helper_dict.items()},
            {name: each.get("parameters") for name, each in tracker.module_helper_dict.items()},
            {name: sorted(each) for name, each in tracker.module_parents_dict.items()},
            tracker.parent_dict,
            repr(mode),
            mode.generate_comm_debug_tracing_table(0),
            Path(f"rank{rank}.txt").read_text(),
            json.loads(file.read_text()),
        ]
    return found


def with_checkpoints(torch, rank, size):
    """Collectives of a module that the backward pass computes again."""
    m, model = _modules(torch), _tensor_parallel(torch, size, True)
    with m.debug.CommDebugMode() as mode:
        x = torch.ones(2, 6, requires_grad=True)
        m.checkpoint.checkpoint(model, x, use_reentrant=False).sum().backward()
    operations = {
        name: any(each["is_activation_checkpointing"] for each in found["operations_list"])
        for name, found in mode.comm_module_operation_counts.items()
        if name == "MLP.up"
    }
    return _by_module(mode), operations


def _passes(torch, model, passes):
    found = []
    for _ in range(passes):
        with _modules(torch).debug.CommDebugMode() as mode:
            model(torch.ones(2, 6)).sum().backward()
        found.append(_by_module(mode))
    return found


def data_parallel(torch, rank, size):
    first, _, third = _passes(torch, torch.nn.parallel.DistributedDataParallel(_mlp(torch)), 3)
    return first, third


def data_parallel_orders_buckets(torch, rank, size):
    start = _counted(torch, lambda: torch.nn.parallel.DistributedDataParallel(_mlp(torch)))
    return start, _passes(torch, torch.nn.parallel.DistributedDataParallel(_mlp(torch)), 2)[1]


def fully_sharded(torch, rank, size):
    m = _modules(torch)
    mesh, found = m.device_mesh.init_device_mesh("cpu", (size,)), []
    for by_layer, reshards in ((False, True), (False, False), (True, False), (True, True)):
        model = _mlp(torch)
        for each in [model.up, model.down] * by_layer + [model]:
            m.fsdp.fully_shard(each, mesh=mesh, reshard_after_forward=reshards)
        found += _passes(torch, model, 2)
        parameters = list(model.parameters())
        found.append(_counted(torch, lambda own=parameters: torch.nn.utils.clip_grad_norm_(own, 1.0)))
    for each in found[-3:-1]:  # the module from which the parameters of the next one are gathered
        del each["FSDPMLP.down"]
    return found
