"""Programs with ShardedTensors for several ranks, see several_ranks.py."""

import copy
import importlib
import io
import tempfile
import warnings


def _shard(torch, name=""):
    warnings.simplefilter("ignore", FutureWarning)  # PyTorch prefers DTensors
    return importlib.import_module(f"{torch.__name__}.distributed._shard{name and '.' + name}")


def _spec(torch, dim, size, turned=False):
    """Chunks of a dim, on the processes in their order or from the last to the first."""
    ranks = range(size)[::-1] if turned else range(size)
    return _shard(torch, "sharding_spec").ChunkShardingSpec(dim, [f"rank:{rank}/cpu" for rank in ranks])


def _specs(torch, size):
    return [_spec(torch, dim, size, turned) for dim in (0, 1) for turned in (False, True)]


def _whole(torch, *shape):
    return (torch.arange(float(torch.tensor(shape).prod())) * 7 % 11).reshape(shape)


def _sharded(torch, spec, *shape):
    return _shard(torch)._shard_tensor(_whole(torch, *shape), spec)


def _grid(torch, rank, size, requires_grad=False):
    """A tensor of 4 rows, cut by columns and by rows: an EnumerableShardingSpec, several shards on some ranks."""
    sharded_tensor, whole = _shard(torch, "sharded_tensor"), _whole(torch, 4, 5)
    shards = []
    for place, (row, column, sizes) in enumerate(
        [(0, 0, (1, 2)), (0, 2, (1, 3)), (1, 0, (3, 2)), (1, 2, (3, 3))]
    ):
        if place % size == rank:
            own = (
                whole[row : row + sizes[0], column : column + sizes[1]].clone().requires_grad_(requires_grad)
            )
            shards.append(sharded_tensor.Shard.from_tensor_and_offsets(own, [row, column], rank))
    return sharded_tensor.init_from_local_shards(shards, 4, 5)


def _gathered(torch, sharded, rank, dst=0, **options):
    size = sharded.metadata().size
    out = torch.zeros(size, dtype=sharded.metadata().tensor_properties.dtype) if rank == dst else None
    sharded.gather(dst, out, **options)
    return out


def _said(call):
    """What a call returns, or what it raises."""
    try:
        return call()
    except Exception as error:
        return type(error).__name__, str(error)


def _about(sharded):
    return (
        repr(sharded.metadata()),
        repr(sharded.sharding_spec()),
        [(each.tensor, repr(each.metadata)) for each in sharded.local_shards()],
    )


def shards_of_tensors(torch, rank, size):
    found = []
    for spec in _specs(torch, size):
        for shape in ((5, 4), (2, 7), (6, 6)):
            sharded = _sharded(torch, spec, *shape)
            found += [
                *_about(sharded),
                _gathered(torch, sharded, rank),
                _gathered(torch, sharded, rank, dst=1),
            ]
    source = _shard(torch)._shard_tensor(_whole(torch, 4, 4) + rank, _spec(torch, 0, size), src_rank=1)
    return found, source.local_tensor()


def created_tensors(torch, rank, size):
    sharded_tensor, found = _shard(torch, "sharded_tensor"), []
    for spec in _specs(torch, size):
        torch.manual_seed(rank)
        for name in ("zeros", "ones", "rand", "randn"):
            found.append(_about(getattr(sharded_tensor, name)(spec, 5, 4)))
        found.append(_about(sharded_tensor.full(spec, (3, 4), 2.5, dtype=torch.float64)))
        found.append(_about(sharded_tensor.ones(spec, (3, 4), requires_grad=True)))
        empty = sharded_tensor.empty(spec, [4, 4], dtype=torch.int64)
        found.append((empty.size(), [each.tensor.shape for each in empty.local_shards()]))
    return found


def shards_of_several_dims(torch, rank, size):
    grid = _grid(torch, rank, size)
    return (
        *_about(grid),
        _gathered(torch, grid, rank),
        _gathered(torch, grid, rank, dst=1, dtype=torch.float32),
    )


def unknown_sizes(torch, rank, size):
    """The offsets follow from the sizes of the shards."""
    sharded_tensor = _shard(torch, "sharded_tensor")
    own = sharded_tensor.Shard.from_tensor_and_offsets(torch.ones(rank + 1, 2) * rank, [0, 0], rank)
    return _about(sharded_tensor.init_from_local_shards([own], None, 2))


def functions(torch, rank, size):
    found = []
    for spec in _specs(torch, size):
        sharded = _sharded(torch, spec, 5, 4)
        copied = copy.deepcopy(sharded)
        like = torch.zeros(1, dtype=torch.float64)
        for each in (
            copied,
            sharded.clone(),
            sharded.detach(),
            sharded.type_as(like),
            sharded.type_as(sharded),
        ):
            found += _about(each)
        for name in ("zeros_like", "ones_like", "empty_like"):
            found.append(repr(getattr(torch, name)(sharded, dtype=torch.float64).metadata()))
        found.append(torch.full_like(sharded, 3).local_tensor())
        found.append(
            (list(sharded.shape), str(sharded.dtype), str(sharded.device), str(sharded.layout), sharded.dim())
        )
        found.append((sharded.ndim, sharded.size(1), sharded.is_contiguous(), sharded.is_floating_point()))
        found.append(
            (sharded.grad, sharded.is_leaf, sharded.requires_grad, sharded.is_meta, sharded.is_pinned())
        )
        torch.nn.init.constant_(copied, 2.0)
        sharded.copy_(copied)
        found += _about(sharded.requires_grad_())
        torch.manual_seed(3)
        found.append(torch.nn.init.normal_(copied, 1.0, 0.5).local_tensor())
        found.append(torch.nn.init.kaiming_uniform_(copied).local_tensor())
    return found


def other_dtypes(torch, rank, size):
    sharded = _sharded(torch, _spec(torch, 0, size), 5, 4)
    moved = [sharded.to(torch.float64), sharded.to("cpu", torch.float16), sharded.to(dtype=torch.int32)]
    same = [sharded.to("cpu") is sharded, sharded.cpu() is sharded, sharded.to(torch.float32) is sharded]
    return [_about(each) for each in (*moved, sharded.to(copy=True))], same


def divided_again(torch, rank, size):
    """Into equal pieces: with others PyTorch's Gloo waits forever."""
    found = []
    for before in _specs(torch, size):
        for after in _specs(torch, size):
            sharded = _sharded(torch, before, 6, 12)
            found += [sharded.reshard(after) is sharded, *_about(sharded)]
    return found


def parameters(torch, rank, size):
    torch.manual_seed(0)
    layer = torch.nn.Linear(3, 5)
    _shard(torch).shard_parameter(layer, "weight", _spec(torch, 0, size, turned=True))
    state = layer.state_dict()
    loaded = layer.load_state_dict({"weight": torch.zeros_like(state["weight"]), "bias": state["bias"] + 1})
    optim = _shard(torch, "sharded_optim")
    named = dict(optim.named_params_with_sharded_tensor(layer))
    optimizer = optim.ShardedOptimizer(named, torch.optim.SGD, lr=0.5)
    (layer.weight.local_tensor() * 2).sum().backward()
    optimizer.step()
    after = layer.weight.local_tensor()
    optimizer.zero_grad()
    return (
        sorted(state),
        sorted(named),
        str(loaded),
        _about(layer.weight),
        after,
        layer.weight.local_tensor().grad,
    )


def modules(torch, rank, size):
    """Results that are divided by hooks, with a function of the program's own."""
    sharded_tensor, plans = _shard(torch, "sharded_tensor"), _shard(torch, "sharding_plan")

    @sharded_tensor.custom_sharded_op_impl(torch.nn.functional.linear)
    def linear(types, args, kwargs, process_group):
        rows = torch.nn.functional.linear(args[0], args[1].local_tensor())
        spec, whole = _spec(torch, 1, size), (args[0].shape[0], args[1].size(0))
        return sharded_tensor.ShardedTensor._init_from_local_tensor(
            rows, spec, whole, process_group=process_group
        )

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 2 * size, bias=False))
    plan = plans.ShardingPlan(
        {"0.weight": _spec(torch, 0, size)}, {"0": _spec(torch, 0, size)}, return_local_tensor=["0"]
    )
    _shard(torch).shard_module(model, plan)
    result = model(_whole(torch, size, 3))
    result.sum().backward()
    return result, model[0].weight.local_tensor().grad


def hooks_of_modules(torch, rank, size):
    sharded_tensor = _shard(torch, "sharded_tensor")

    class Holder(torch.nn.Module):
        def __init__(self, sharded):
            super().__init__()
            self.inner = torch.nn.Module()
            self.own, self.inner.other = sharded, sharded
            self._register_state_dict_hook(sharded_tensor.state_dict_hook)
            self._register_load_state_dict_pre_hook(sharded_tensor.pre_load_state_dict_hook, True)

    spec = _spec(torch, 0, size)
    given, into = Holder(_sharded(torch, spec, 4, 4)), Holder(sharded_tensor.zeros(spec, 4, 4))
    state = given.state_dict()
    into.load_state_dict(state, strict=False)
    return sorted(state), into.own.local_tensor(), into.inner.other.local_tensor()


def lookups(torch, rank, size):
    """Embeddings whose weight is cut by rows or columns; each process has other indices."""
    f, found = torch.nn.functional, []
    for spec in _specs(torch, size):
        indices = (torch.arange(6) * (rank + 3)).remainder(7).reshape(2, 3)
        for options in ({}, {"padding_idx": 2}, {"max_norm": 9.0}, {"max_norm": 9.0, "norm_type": 1.0}):
            weight = _sharded(torch, spec, 7, 4).requires_grad_("max_norm" not in options)
            result = f.embedding(indices, weight, **options)
            found += [result, weight.local_tensor().detach()]
            if weight.requires_grad:
                (result * (1 + indices.unsqueeze(-1))).sum().backward()
                found.append(weight.local_tensor().grad)
    return found


def bags(torch, rank, size):
    f, found = torch.nn.functional, []
    for spec in _specs(torch, size):
        indices = (torch.arange(6) * (rank + 3)).remainder(7)
        pairs, offsets = indices.reshape(3, 2), torch.tensor([0, 1, 4])
        for mode in ("sum", "mean", "max"):
            weight = _sharded(torch, spec, 7, 4).requires_grad_()
            results = [
                f.embedding_bag(pairs, weight, mode=mode),
                f.embedding_bag(indices, weight, offsets=offsets, mode=mode),
            ]
            ends = torch.cat([offsets, torch.tensor([6])])
            results.append(
                f.embedding_bag(indices, weight, offsets=ends, mode=mode, include_last_offset=True)
            )
            results.append(f.embedding_bag(pairs, weight, mode=mode, padding_idx=3))
            found += results
            if mode != "max":
                sum(each.sum() for each in results).backward()
                found.append(weight.local_tensor().grad)
        weight = _sharded(torch, spec, 7, 4)
        found.append(f.embedding_bag(pairs, weight, mode="sum", per_sample_weights=pairs / 2.0))
        found.append(f.embedding_bag(pairs, weight, mode="sum", max_norm=9.0))
    return found


def pickles(torch, rank, size):
    sharded_tensor, found = _shard(torch, "sharded_tensor"), []
    for sharded in (_sharded(torch, _spec(torch, 1, size), 5, 4), _grid(torch, rank, size)):
        buffer = io.BytesIO()
        torch.save(sharded, buffer)
        buffer.seek(0)
        with _shard(torch).load_with_process_group(torch.distributed.group.WORLD):
            loaded = torch.load(buffer, weights_only=False)
        found += [type(loaded) is sharded_tensor.ShardedTensor, *_about(loaded)]
    return found


def checkpoints(torch, rank, size):
    """One layout is saved and others are loaded."""
    dcp = importlib.import_module(f"{torch.__name__}.distributed.checkpoint")
    folder = [tempfile.mkdtemp() if rank == 0 else None]
    torch.distributed.broadcast_object_list(folder)
    grid = _grid(torch, rank, size, requires_grad=True)
    rows = _sharded(torch, _spec(torch, 0, size), 5, 4)
    dcp.save({"grid": grid, "rows": rows}, checkpoint_id=folder[0])
    sharded_tensor, found = _shard(torch, "sharded_tensor"), []
    for spec in _specs(torch, size):
        into = {
            "grid": sharded_tensor.zeros(spec, 4, 5),
            "rows": sharded_tensor.zeros(spec, 5, 4, requires_grad=True),
        }
        dcp.load(into, checkpoint_id=folder[0])
        found += [each.local_tensor() for each in into.values()]
    plain = {"grid": torch.zeros(4, 5)}
    dcp.load(plain, checkpoint_id=folder[0])
    return found, plain["grid"]


def checkpoints_and_dtensors(torch, rank, size):
    """Each kind of tensor is loaded from what the other kind has saved."""
    dcp = importlib.import_module(f"{torch.__name__}.distributed.checkpoint")
    tensor = importlib.import_module(f"{torch.__name__}.distributed.tensor")
    mesh = torch.distributed.device_mesh.init_device_mesh("cpu", (size,))
    folders = [tempfile.mkdtemp() if rank == 0 else None for _ in range(2)]
    torch.distributed.broadcast_object_list(folders)
    grid, cut = (
        _grid(torch, rank, size),
        tensor.distribute_tensor(_whole(torch, 4, 5), mesh, [tensor.Shard(1)]),
    )
    into = {"x": tensor.distribute_tensor(torch.zeros(4, 5), mesh, [tensor.Shard(0)])}
    dcp.save({"x": grid}, checkpoint_id=folders[0])
    dcp.save({"x": cut}, checkpoint_id=folders[1])
    dcp.load(into, checkpoint_id=folders[0])
    others = {"x": _shard(torch, "sharded_tensor").zeros(_spec(torch, 0, size, turned=True), 4, 5)}
    dcp.load(others, checkpoint_id=folders[1])
    return into["x"].full_tensor(), others["x"].local_tensor()


def refusals(torch, rank, size):
    """Types and texts of errors."""
    sharded_tensor, specs = _shard(torch, "sharded_tensor"), _shard(torch, "sharding_spec")
    metadata, spec = specs.ShardMetadata, _spec(torch, 0, size)
    sharded = _sharded(torch, spec, 4, 4)
    one, other = torch.ones(2, 2), rank % 2

    def made(*shards, sizes=(4, 4)):
        own = [sharded_tensor.Shard(*shard) for shard in shards]
        return sharded_tensor.init_from_local_shards(own, *sizes)

    here = f"rank:{rank}/cpu"
    calls = [
        lambda: metadata([0], [1, 2]),
        lambda: metadata([-1], [1]),
        lambda: metadata([0], [-1]),
        lambda: metadata([0], [1], "rank:x/cpu"),
        lambda: specs.EnumerableShardingSpec([]),
        lambda: specs.EnumerableShardingSpec([metadata([0], [1]), metadata([0, 0], [1, 1])]),
        lambda: specs.EnumerableShardingSpec([metadata([0, 0], [2, 2]), metadata([1, 1], [2, 2])]),
        lambda: specs.EnumerableShardingSpec([metadata([0], [2]), metadata([1], [2])]),
        lambda: specs.ChunkShardingSpec("N", []),
        lambda: specs.ChunkShardingSpec(None, []),
        lambda: sharded_tensor.zeros(_spec(torch, 2, size), 2, 2),
        lambda: sharded_tensor.zeros(3, 2, 2),
        lambda: sharded_tensor.zeros(spec, 2, 2.5),
        lambda: sharded_tensor.zeros(specs.ChunkShardingSpec(0, ["rank:7/cpu"]), 2, 2),
        lambda: sharded_tensor.zeros(specs.ChunkShardingSpec(0, ["worker/cpu"]), 2, 2),
        lambda: sharded_tensor.zeros(spec, 2, 2, memory_format=torch.channels_last),
        lambda: sharded_tensor.Shard(one, metadata([0, 0], [2, 3], here)),
        lambda: made((one, metadata([2 * rank, 0], [2, 2], here))),
        lambda: made((one, metadata([rank, 0], [2, 2], here)), sizes=(size + 1, 2)),
        lambda: made((one, metadata([0, 0], [2, 2], f"rank:{(rank + 1) % size}/cpu"))),
        lambda: made((one.t().repeat(1, 2)[:, ::2], metadata([0, 0], [2, 2], here))),
        lambda: made(
            (one.to(torch.float64 if other else torch.float32), metadata([2 * rank, 0], [2, 2], here))
        ),
        lambda: made((one.clone().requires_grad_(bool(other)), metadata([2 * rank, 0], [2, 2], here))),
        lambda: made((one, metadata([2 * rank, 0], [2, 2], here)), sizes=(2 * size, 2 + other)),
        lambda: made(),
        lambda: _shard(torch)._shard_tensor(torch.ones(4, 4).t()[1:], spec),
        lambda: _shard(torch)._shard_tensor(torch.ones(4, 4), spec, src_rank=rank),
        lambda: _shard(torch)._shard_tensor(torch.ones(4, 4), _spec(torch, other, size)),
        lambda: _shard(torch).shard_parameter(torch.nn.Linear(2, 2), "none", spec),
        lambda: sharded.to([]),
        lambda: sharded.remote_shards(),
        lambda: sharded.reshard(specs.EnumerableShardingSpec([metadata([0, 0], [4, 4], here)])),
        lambda: sharded + 1,
        lambda: torch.numel(sharded),
        lambda: sharded.clone(memory_format=torch.contiguous_format),
    ]
    return [_said(call) for call in calls]
