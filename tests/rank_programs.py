"""Programs for several ranks, see several_ranks.py. They return what a rank has afterwards."""

import copy
import importlib
import io

DTYPES = "float32 float64 float16 bfloat16 int8 uint8 bool int32 int64 complex64 complex128".split()
REDUCTIONS = "SUM AVG PRODUCT MIN MAX BAND BOR BXOR".split()


def _numbers(torch, rank, *shape, dtype="float32"):
    """Small numbers, other ones on each rank."""
    count = int(torch.tensor(shape).prod()) if shape else 1
    return ((torch.arange(count) * (rank + 2) + rank) % 7).reshape(shape).to(getattr(torch, dtype))


def _reductions():
    """The reductions that Gloo has. After one that it has not, another call may raise the error."""
    for op in REDUCTIONS:
        for dtype in DTYPES:
            fractional, complex_ = "float" in dtype or "complex" in dtype, "complex" in dtype
            refused = {"B": fractional, "A": not fractional, "S": False}.get(op[0], complex_)
            if not refused:
                yield op, dtype


def all_reduce(torch, rank, size):
    found = []
    for op, dtype in _reductions():
        tensor = _numbers(torch, rank, 5, dtype=dtype)
        torch.distributed.all_reduce(tensor, op=getattr(torch.distributed.ReduceOp, op))
        found.append(tensor)
    return found


def reduce(torch, rank, size):
    found = []
    for op, dtype in _reductions():
        tensor = _numbers(torch, rank, 5, dtype=dtype)
        torch.distributed.reduce(tensor, dst=1, op=getattr(torch.distributed.ReduceOp, op))
        found.append(tensor if rank == 1 else None)
    return found


def reduce_scatter(torch, rank, size):
    found = []
    for op in ("SUM", "MAX"):
        for dtype in ("float32", "int64"):
            reduction = getattr(torch.distributed.ReduceOp, op)
            tensor = _numbers(torch, rank, 5, dtype=dtype)
            outputs = torch.zeros_like(tensor), torch.zeros_like(tensor)
            torch.distributed.reduce_scatter(
                outputs[0], [tensor + place for place in range(size)], op=reduction
            )
            torch.distributed.reduce_scatter_tensor(outputs[1], torch.cat([tensor] * size), op=reduction)
            found.append(outputs)
    return found


def large_tensors(torch, rank, size):
    found = []
    for count in (8191, 100_003, 1_300_001):
        tensor = _numbers(torch, rank, count, dtype="float64")
        torch.distributed.all_reduce(tensor)
        lists = [torch.zeros(count) for _ in range(size)]
        torch.distributed.all_gather(lists, _numbers(torch, rank, count))
        sent = _numbers(torch, rank, count)
        torch.distributed.broadcast(sent, 1)
        part = torch.zeros(count)
        torch.distributed.reduce_scatter(
            part, [_numbers(torch, rank + place, count) for place in range(size)]
        )
        received = [torch.zeros(count) for _ in range(size)]
        torch.distributed.all_to_all(
            received, [_numbers(torch, rank + 2 * place, count) for place in range(size)]
        )
        weights = torch.arange(count) % 5 + 1.0
        found += [(tensor[::1001], (tensor * weights).sum()), (sent * weights).sum(), (part * weights).sum()]
        found += [(each * weights).sum() for each in (*lists, *received)]
    return found


def the_same_calls_again(torch, rank, size):
    """More sizes than an engine keeps the steps of, and each again with other tensors; some call uses an odd number of phases."""
    dist = torch.distributed
    found = []
    for turn in range(3):
        for count in (*range(1, 150), 20_000):
            a, b = _numbers(torch, rank + turn, count), _numbers(torch, rank, count)
            outputs = [torch.zeros(count) for _ in range(size)]
            dist.all_reduce(a)
            dist.broadcast(b, turn % size)
            dist.all_gather(outputs, b + rank)
            found += [a.sum(), b.sum(), *(each.sum() for each in outputs)]
            if count % 50 == turn:
                work = dist.all_reduce(a, async_op=True)
                dist.all_reduce(b)
                dist.barrier()
                work.wait()
                found += [a[:5], b[:5]]
    return found


def checks_of_calls_again(torch, rank, size):
    """What was right once may be wrong the next time."""
    dist = torch.distributed
    leaves = [torch.zeros(3, requires_grad=True) for _ in range(size)]
    found = []
    for outputs in ([torch.zeros(3) for _ in range(size)], leaves, [torch.zeros(3)], (), None):
        try:
            dist.all_gather(outputs, torch.ones(3))
            found.append("done")
        except Exception as error:
            found.append(type(error).__name__)
    for op in (dist.ReduceOp.SUM, dist.ReduceOp.AVG, dist.ReduceOp.SUM, [], "sum"):
        try:
            x = torch.ones(3)
            dist.all_reduce(x, op=op)
            found.append(x)
        except Exception as error:
            found.append(type(error).__name__)
    return found, x._version


def memory_that_is_not_contiguous(torch, rank, size):
    dist = torch.distributed
    a, c = (_numbers(torch, rank, 4, 6) for _ in range(2))
    dist.all_reduce(a.t())
    outputs = [torch.zeros(6, 4).t() for _ in range(size)]
    dist.all_gather(outputs, c)
    return a, outputs


def all_gather(torch, rank, size):
    dist = torch.distributed
    found = []
    for dtype in DTYPES:
        outputs = [torch.zeros(2, 3).to(getattr(torch, dtype)) for _ in range(size)]
        dist.all_gather(outputs, _numbers(torch, rank, 2, 3, dtype=dtype))
        found.append(outputs)
    whole = torch.zeros(2 * size, 3)
    dist.all_gather_into_tensor(whole, _numbers(torch, rank, 2, 3))
    lists = [[torch.zeros(3), torch.zeros(2)] for _ in range(size)]
    dist.all_gather_coalesced(lists, [_numbers(torch, rank, 3), _numbers(torch, rank, 2)])
    return found, whole, lists


def gather_and_scatter(torch, rank, size):
    dist = torch.distributed
    found = []
    for root in range(size):
        outputs = [torch.zeros(3) for _ in range(size)] if rank == root else None
        dist.gather(_numbers(torch, rank, 3), outputs, dst=root)
        output = torch.zeros(4, dtype=torch.int64)
        inputs = [_numbers(torch, place, 4, dtype="int64") for place in range(size)] if rank == root else None
        dist.scatter(output, inputs, src=root)
        found += [outputs, output]
    return found


def all_to_all(torch, rank, size):
    dist = torch.distributed
    outputs = [torch.zeros(3) for _ in range(size)]
    dist.all_to_all(outputs, [_numbers(torch, rank + 3 * place, 3) for place in range(size)])
    even = torch.zeros(2 * size, 2)
    dist.all_to_all_single(even, _numbers(torch, rank, 2 * size, 2))
    sent, received = [place + 1 for place in range(size)], [rank + 1] * size
    split = torch.zeros(sum(received), 2)
    dist.all_to_all_single(split, _numbers(torch, rank, sum(sent), 2), received, sent)
    return outputs, even, split


def coalesced(torch, rank, size):
    tensors = [_numbers(torch, rank, 3), _numbers(torch, rank, 2, 2)]
    tensors.append(torch.ones(2, dtype=torch.complex64) * rank)
    torch.distributed.all_reduce_coalesced(tensors)
    return tensors


def objects(torch, rank, size):
    dist = torch.distributed
    everywhere = [None] * size
    dist.all_gather_object(everywhere, {"rank": rank, "text": "x" * 100 * rank})
    gathered = [None] * size if rank == 1 else None
    dist.gather_object((rank, "a"), gathered, dst=1)
    sent = [rank, {"a": [rank]}]
    dist.broadcast_object_list(sent, src=1)
    own = [None]
    dist.scatter_object_list(own, [f"for {place}" for place in range(size)] if rank == 0 else None, src=0)
    return everywhere, gathered, sent, own


def messages(torch, rank, size):
    dist = torch.distributed
    after, before = (rank + 1) % size, (rank - 1) % size
    received = torch.zeros(3)
    if rank % 2 == 0:
        dist.send(_numbers(torch, rank, 3), after)
        dist.recv(received, before)
    else:
        dist.recv(received, before)
        dist.send(_numbers(torch, rank, 3), after)
    large = torch.zeros(300_000)
    requests = [dist.isend(_numbers(torch, rank, 300_000), after), dist.irecv(large, before)]
    for request in requests:
        request.wait()
    batch = torch.zeros(4)
    works = dist.batch_isend_irecv(
        [dist.P2POp(dist.isend, _numbers(torch, rank, 4), after), dist.P2POp(dist.irecv, batch, before)]
    )
    for work in works:
        work.wait()
    return received, large.sum(), batch


def tags_and_any_source(torch, rank, size):
    dist = torch.distributed
    if rank:
        first, second = (dist.isend(_numbers(torch, rank, 2) + tag, 0, tag=tag) for tag in (1, 2))
        first.wait(), second.wait()
        return None
    found = []
    for tag in (2, 1):
        sources = {}
        for _ in range(size - 1):
            tensor = torch.zeros(2)
            sources[dist.recv(tensor, tag=tag)] = tensor.tolist()
        found.append(sorted(sources.items()))
    return found


def work_that_is_begun(torch, rank, size):
    dist = torch.distributed
    tensors = [_numbers(torch, rank, count) for count in (3, 20_000, 5)]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    between = torch.ones(2)
    dist.all_reduce(between)
    outcomes = [(work.wait(), work.is_completed(), work.is_success()) for work in works]
    lists = [torch.zeros(2) for _ in range(size)]
    future = dist.all_gather(lists, _numbers(torch, rank, 2), async_op=True).get_future()
    later = future.then(lambda done: lists[-1] + 1).wait()
    return outcomes, [tensor.sum() for tensor in tensors], between, later


def groups(torch, rank, size):
    dist = torch.distributed
    pair = dist.new_group([0, size - 1])
    alone = [dist.new_group([each]) for each in range(size)][rank]
    found = []
    if rank in (0, size - 1):
        tensor = _numbers(torch, rank, 3)
        dist.all_reduce(tensor, group=pair)
        other = _numbers(torch, rank, 3)
        dist.broadcast(other, size - 1, group=pair)
        found = [
            tensor,
            other,
            dist.get_rank(pair),
            dist.get_world_size(pair),
            dist.get_process_group_ranks(pair),
        ]
        found += [dist.get_group_rank(pair, size - 1), dist.get_global_rank(pair, 1)]
    else:
        found = [dist.get_rank(pair), dist.get_world_size(pair), pair == dist.GroupMember.NON_GROUP_MEMBER]
    own = _numbers(torch, rank, 2)
    dist.all_reduce(own, group=alone)
    halves, everything = dist.new_subgroups_by_enumeration([[each] for each in range(size)])
    found += [own, dist.get_rank(halves), len(everything)]
    dist.barrier()
    dist.destroy_process_group(alone)
    return found


def collectives_with_gradients(torch, rank, size):
    functional = importlib.import_module(f"{torch.__name__}.distributed.nn.functional")
    calls = [
        lambda f, x, zeros: f.all_reduce(x),
        lambda f, x, zeros: f.all_gather(x),
        lambda f, x, zeros: f.broadcast(x, 1),
        lambda f, x, zeros: f.gather(x, 1),
        lambda f, x, zeros: f.scatter([x * place for place in range(size)], 1),
        lambda f, x, zeros: f.reduce(x, 1) * (rank == 1),
        lambda f, x, zeros: f.reduce_scatter(zeros(), [x * place for place in range(size)]),
        lambda f, x, zeros: f.all_to_all(
            [zeros() for _ in range(size)], [x * place for place in range(size)]
        ),
        lambda f, x, zeros: f.all_to_all_single(
            torch.zeros(3 * size), torch.cat([x * place for place in range(size)])
        ),
    ]
    found = []
    for call in calls:
        x = _numbers(torch, rank, 3).requires_grad_()
        result = call(functional, x, lambda: torch.zeros(3))
        results = result if isinstance(result, tuple) else (result,)
        weights = torch.arange(1.0, results[0].numel() + 1)
        sum((each * weights).sum() * (place + rank + 1) for place, each in enumerate(results)).backward()
        found.append((results, x.grad))
    return found


def _model(torch, seed=0):
    torch.manual_seed(seed)
    layers = (
        torch.nn.Linear(4, 8),
        torch.nn.BatchNorm1d(8),
        torch.nn.ReLU(),
        torch.nn.Linear(8, 600),
        torch.nn.Linear(600, 3),
    )
    return torch.nn.Sequential(*layers).double()


def _set_parameters(torch, model):
    """Parameters that do not depend on a generator of random numbers."""
    with torch.no_grad():
        for place, each in enumerate(model.parameters()):
            each.copy_(((torch.arange(each.numel()) * 7 + place) % 11 - 5).reshape(each.shape) / 40)


def _trained(torch, rank, size, steps=4, hook=None, accumulate=False, **options):
    model = _model(torch, rank)  # the ranks begin with different parameters
    if rank == 0:
        _set_parameters(torch, model)
    model = torch.nn.parallel.DistributedDataParallel(model, **options)
    if hook is not None:
        model.register_comm_hook(None, hook)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    losses = []
    for step in range(steps):
        x = _numbers(torch, rank + step, 6, 4, dtype="float64") / 7
        if accumulate and step % 2 == 0:
            with model.no_sync():
                model(x).square().mean().backward()
            continue
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss)
    return losses, [each.sum() for each in model.parameters()], [each.clone() for each in model.buffers()]


def data_parallel_training(torch, rank, size):
    return _trained(torch, rank, size)


def data_parallel_with_several_buckets(torch, rank, size):
    return _trained(torch, rank, size, bucket_cap_mb=0.005), _trained(
        torch, rank, size, gradient_as_bucket_view=True
    )


def data_parallel_accumulation(torch, rank, size):
    return _trained(torch, rank, size, accumulate=True), _trained(
        torch, rank, size, forward_sync_buffers=False
    )


def data_parallel_buffers(torch, rank, size):
    """Which buffers come from rank 0, in the constructor and with a call."""
    found = []
    for options in ({}, {"forward_sync_buffers": False}, {"broadcast_buffers": False}):
        module = torch.nn.BatchNorm1d(2)
        module.running_mean.fill_(rank + 1)
        model = torch.nn.parallel.DistributedDataParallel(module, **options)
        found.append(module.running_mean.clone())
        model(_numbers(torch, rank, 3, 2)).sum().backward()
        found += [module.running_mean.clone(), model.broadcast_buffers]
    return found


def data_parallel_copies(torch, rank, size):
    """Copies and loaded files average gradients as the original does."""
    original = torch.nn.parallel.DistributedDataParallel(_model(torch), forward_sync_buffers=False)
    file = io.BytesIO()
    torch.save(original, file)
    file.seek(0)
    found = []
    for model in (copy.deepcopy(original), torch.load(file, weights_only=False)):
        _set_parameters(torch, model.module)
        model(_numbers(torch, rank, 6, 4, dtype="float64")).square().mean().backward()
        found.append([each.grad for each in model.parameters()])
    return found


def replicated_module(torch, rank, size):
    composable = importlib.import_module(f"{torch.__name__}.distributed._composable")
    module = _model(torch)
    _set_parameters(torch, module)
    module[0].weight.data += rank
    found = [composable.replicate(module, ignored_modules=[module[-1]]) is module, type(module).__name__]
    x = _numbers(torch, rank, 6, 4, dtype="float64")
    for syncs in (False, True):
        module.set_requires_gradient_sync(syncs)
        module(x).square().mean().backward()
        found.append([each.grad.clone() for each in module.parameters()])
    return found


def communication_hooks(torch, rank, size):
    hooks = importlib.import_module(f"{torch.__name__}.distributed.algorithms.ddp_comm_hooks.default_hooks")
    return _trained(torch, rank, size, hook=hooks.allreduce_hook)


class _Branches:
    """A module whose second branch is used by odd ranks only, and whose third by none."""

    @staticmethod
    def made(torch):
        class Branches(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.first, self.second, self.third = (torch.nn.Linear(3, 3) for _ in range(3))

            def forward(self, x, both):
                return self.second(self.first(x)) if both else self.first(x)

        module = Branches()
        _set_parameters(torch, module)
        return module


def unused_parameters(torch, rank, size):
    model = torch.nn.parallel.DistributedDataParallel(_Branches.made(torch), find_unused_parameters=True)
    found = []
    for _ in range(2):
        model(_numbers(torch, rank, 2, 3), rank % 2 == 1).square().sum().backward()
        found.append([None if each.grad is None else each.grad.clone() for each in model.parameters()])
    return found


def unused_parameters_after_accumulation(torch, rank, size):
    """A parameter that was used in a pass without average only is averaged by the next one."""
    model = torch.nn.parallel.DistributedDataParallel(_Branches.made(torch), find_unused_parameters=True)
    x = _numbers(torch, rank, 2, 3)
    found = []
    for both in (True, False):
        with model.no_sync():
            model(x, both).square().sum().backward()
        model(x, False).square().sum().backward()
        found.append([None if each.grad is None else each.grad.clone() for each in model.parameters()])
        model.zero_grad()
    return found


def parameters_that_are_unused_by_mistake(torch, rank, size):
    model = torch.nn.parallel.DistributedDataParallel(_Branches.made(torch))
    model(_numbers(torch, rank, 2, 3), True).sum().backward()
    try:
        model(_numbers(torch, rank, 2, 3), True)
    except RuntimeError as error:
        return "find_unused_parameters" in str(error), f"for rank {rank}: 4 5" in str(error)


def uneven_inputs(torch, rank, size):
    found = []
    for by_initial in (True, False):
        model = _model(torch)
        _set_parameters(torch, model)
        model = torch.nn.parallel.DistributedDataParallel(model)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        with model.join(divide_by_initial_world_size=by_initial):
            for step in range(2 + rank):
                model(_numbers(torch, rank + step, 6, 4, dtype="float64") / 7).square().mean().backward()
                optimizer.step()
                optimizer.zero_grad()
        found.append(
            ([each.sum() for each in model.parameters()], [each.clone() for each in model.buffers()])
        )
    return found


def early_termination(torch, rank, size):
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 2))
    try:
        with model.join(throw_on_early_termination=True):
            for _ in range(2 + rank):
                model(_numbers(torch, rank, 3, 4)).sum().backward()
    except RuntimeError as error:
        return str(error)


def meshes(torch, rank, size):
    dist = torch.distributed
    found = []
    for shape, names in (((size,), None), ((size, 1), ("a", "b")), ((1, size), ("a", "b"))):
        mesh = dist.init_device_mesh("cpu", shape, mesh_dim_names=names)
        found += [
            repr(mesh),
            mesh.get_coordinate(),
            mesh.shape,
            [group.size() for group in mesh.get_all_groups()],
        ]
        for name in names or ():
            part = mesh[name]
            value = torch.ones(1) * rank
            dist.all_reduce(value, group=mesh.get_group(name))
            found += [repr(part), part.mesh, part.get_local_rank(), value]
        if names:
            flat = mesh._flatten("flat")
            found += [
                repr(flat),
                mesh["flat"].mesh,
                flat.get_group().size(),
                repr(mesh._unflatten(0, (1, shape[0]), "xy")),
            ]
    part = dist.DeviceMesh("cpu", [0, 1])
    return found, repr(part), part.get_coordinate()


def _dtensors(torch):
    return importlib.import_module(f"{torch.__name__}.distributed.tensor")


def distributed_tensors(torch, rank, size):
    """Made, redistributed and put together, also of uneven shards."""
    module, mesh = _dtensors(torch), torch.distributed.init_device_mesh("cpu", (size,))
    whole = torch.arange(35.0).reshape(5, 7)
    found = []
    for place in (module.Shard(0), module.Shard(1), module.Replicate()):
        d = module.distribute_tensor(whole + rank, mesh, [place])
        found += [
            d.to_local(),
            d.shape,
            d.size(1),
            d.numel(),
            d.stride(),
            d.placements == (place,),
            d.full_tensor(),
        ]
        for other in (module.Shard(0), module.Shard(-1), module.Replicate()):
            found.append(d.redistribute(placements=[other]).to_local())
    partial = module.DTensor.from_local(whole + rank, mesh, [module.Partial()])
    found += [partial.full_tensor(), partial.redistribute(placements=[module.Shard(0)]).to_local()]
    parts = module.DTensor.from_local(whole + rank, mesh, [module.Shard(1)])
    return [*found, parts.shape, parts.full_tensor()]


def functional_collectives(torch, rank, size):
    f = importlib.import_module(f"{torch.__name__}.distributed._functional_collectives")
    world = torch.distributed.group.WORLD
    mesh = torch.distributed.init_device_mesh("cpu", (size,))
    x = _numbers(torch, rank, 2 * size, 3)
    splits = [place + 1 for place in range(size)]
    found = [
        f.all_reduce(x, "sum", world),
        f.all_reduce(x, "max", mesh),
        f.all_gather_tensor(x, 0, list(range(size))),
        f.all_gather_tensor(x, 1, (mesh, 0)),
        f.reduce_scatter_tensor(x, "sum", 0, world),
        f.reduce_scatter_tensor(x.t().contiguous(), "sum", 1, world),
        f.all_to_all_single(x, None, None, world),
        f.all_to_all_single(
            x[: sum(splits)].contiguous() if size < 3 else x, [rank + 1] * size, splits, world
        ),
        f.broadcast(x, 1, world),
        f.permute_tensor(x.flatten(), [(place + 1) % size for place in range(size)], world),
        f.all_reduce_coalesced([x, x[0]], "sum", world),
    ]
    found = [
        f.wait_tensor(each) if not isinstance(each, list) else [f.wait_tensor(item) for item in each]
        for each in found
    ]
    y = x.clone().requires_grad_()
    weights = torch.arange(1.0, 6 * size * size + 1).reshape(2 * size * size, 3) * (rank + 1)
    (f.all_gather_tensor_autograd(y, 0, world) * weights).sum().backward()
    return found, y.grad


def zero_redundancy_optimizer(torch, rank, size):
    optim = importlib.import_module(f"{torch.__name__}.distributed.optim")
    model = _model(torch)
    _set_parameters(torch, model)
    first, *others = model.parameters()
    groups = [{"params": [first], "lr": 0.02}, {"params": others}]
    optimizer = optim.ZeroRedundancyOptimizer(groups, torch.optim.Adam, lr=0.05)
    model = torch.nn.parallel.DistributedDataParallel(model)
    for step in range(4):
        if step == 2:
            optimizer.consolidate_state_dict(to=1)
            states = [optimizer.state_dict() if rank == 1 else None]
            torch.distributed.broadcast_object_list(states, src=1)
            optimizer.load_state_dict(states[0])
            optimizer.param_groups[1]["lr"] = 0.01
        model(_numbers(torch, rank + step, 6, 4, dtype="float64") / 7).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    (state,) = states
    kept = sorted(state["state"]), [(group["lr"], group["params"]) for group in state["param_groups"]]
    return [each.sum() for each in model.parameters()], kept, len(optimizer.optim.state) < len(others)
