"""Programs with models that fully_shard has cut for several ranks, see several_ranks.py."""

import importlib


def fsdp_of(torch):
    return importlib.import_module(f"{torch.__name__}.distributed.fsdp")


def model_of(torch, bias=True):
    class Layer(torch.nn.Module):
        def __init__(self, width):
            super().__init__()
            self.norm = torch.nn.LayerNorm(width)
            self.up, self.down = torch.nn.Linear(width, 10, bias), torch.nn.Linear(10, width, bias)

        def forward(self, x):
            return x + self.down(torch.nn.functional.gelu(self.up(self.norm(x))))

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = torch.nn.Embedding(11, 6)
            self.layers = torch.nn.ModuleList([Layer(6) for _ in range(3)])
            self.out = torch.nn.Linear(6, 11)

        def forward(self, x):
            h = self.embed(x)
            for layer in self.layers:
                h = layer(h)
            return self.out(h)

    torch.manual_seed(3)
    return Net(), Layer


def _batch(torch, rank, step):
    return (torch.arange(8).reshape(2, 4) * 3 + rank * 5 + step) % 11


def loss_of(torch, model, rank, step):
    x = _batch(torch, rank, step)
    return torch.nn.functional.cross_entropy(model(x).flatten(0, 1), (x + 1).flatten() % 11)


def sharded(torch, model):
    for layer in model.layers:
        fsdp_of(torch).fully_shard(layer)
    return fsdp_of(torch).fully_shard(model)


def losses_of(torch, model, optimizer, rank, steps):
    """The loss of each step of training."""
    found = []
    for step in steps:
        optimizer.zero_grad()
        loss = loss_of(torch, model, rank, step)
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


def tensor_parallel_and_sharded(torch, rank, size):
    """A mesh of two dims: layers are cut by tensor parallelism first, then all parameters once more."""
    if size % 2:
        return None
    fsdp, parallel = fsdp_of(torch), importlib.import_module(f"{torch.__name__}.distributed.tensor.parallel")
    mesh = torch.distributed.device_mesh.init_device_mesh("cpu", (size // 2, 2), mesh_dim_names=("dp", "tp"))
    model, _ = model_of(torch, bias=False)
    plan = {"up": parallel.ColwiseParallel(), "down": parallel.RowwiseParallel()}
    for layer in model.layers:
        parallel.parallelize_module(layer, mesh["tp"], plan)
        fsdp.fully_shard(layer, mesh=mesh["dp"])
    fsdp.fully_shard(model, mesh=mesh["dp"])
    found = [
        (name, str(each.placements), tuple(each.shape), tuple(each.to_local().shape))
        for name, each in model.named_parameters()
    ]
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.05, foreach=False)
    for step in range(3):
        loss = loss_of(torch, model, rank // 2, step)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        found.append(loss.item())
    state = model.state_dict()
    return [*found, *[(name, each.full_tensor()) for name, each in state.items()]]


def prefetching(torch, rank, size):
    """Modules gather the parameters of others in advance, also such as are changed or not used meanwhile."""
    model = sharded(torch, model_of(torch)[0])
    layers = list(model.layers)
    for layer, following in zip(layers, layers[1:]):
        layer.set_modules_to_forward_prefetch([following])
        following.set_modules_to_backward_prefetch([layer])
    layers[-1].set_modules_to_forward_prefetch([layers[0]])  # whose parameters the optimizer changes
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    found = []
    for step in range(4):
        handle = model.unshard(async_op=True)
        handle.wait()
        loss = loss_of(torch, model, rank, step)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        found.append(loss.item())
    return found


def whole_state_dicts(torch, rank, size):
    """Whole tensors on the first process, and back to all."""
    states = importlib.import_module(f"{torch.__name__}.distributed.checkpoint.state_dict")

    def made():
        model = sharded(torch, model_of(torch)[0])
        return model, torch.optim.Adam(model.parameters(), lr=0.1)

    model, optimizer = made()
    loss_of(torch, model, rank, 0).backward()
    optimizer.step()
    whole = states.StateDictOptions(full_state_dict=True, cpu_offload=True)
    of_model = states.get_model_state_dict(model, options=whole)
    of_optimizer = states.get_optimizer_state_dict(model, optimizer, options=whole)
    found = [list(of_model), list(of_optimizer)]
    if rank == 0:
        own = of_optimizer["state"]["out.weight"]
        found += [list(of_model.values()), [(key, each.clone()) for key, each in own.items()]]
    taken = states.StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
    model, optimizer = made()
    with torch.no_grad():
        for each in model.parameters():
            each.zero_()
    states.set_model_state_dict(model, of_model, options=taken)
    states.set_optimizer_state_dict(model, optimizer, of_optimizer, options=taken)
    return found + losses_of(torch, model, optimizer, rank, (1, 2))


def from_meta(torch, rank, size):
    """A model that is cut before it has memory, and gets it by `to_empty`, by new parameters or by a whole state dict."""
    states = importlib.import_module(f"{torch.__name__}.distributed.checkpoint.state_dict")
    tensor = importlib.import_module(f"{torch.__name__}.distributed.tensor")
    full = {name: each.detach() for name, each in model_of(torch)[0].state_dict().items()}

    def cut():
        with torch.device("meta"):
            model, _ = model_of(torch)
        return sharded(torch, model)

    def laid_out(model):
        return {
            name: tensor.distribute_tensor(full[name], each.device_mesh, each.placements)
            for name, each in model.state_dict().items()
        }

    def empty(model):
        model.to_empty(device="cpu").load_state_dict(laid_out(model))

    def assigned(model):
        model.load_state_dict(laid_out(model), assign=True)

    def whole(model):
        options = states.StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
        states.set_model_state_dict(model, full if rank == 0 else {}, options=options)

    found = []
    for get_memory in (empty, assigned, whole):
        model = cut()
        found.append([each.is_meta for each in model.parameters()])
        get_memory(model)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
        for step in range(2):
            optimizer.zero_grad()
            loss = loss_of(torch, model, rank, step)
            loss.backward()
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            found += [loss.item(), norm.full_tensor().item()]
    return found


class _Gather:
    """A collective of the program's own, which counts its calls."""

    def __init__(self, torch):
        self.torch, self.calls = torch, 0

    def allocate(self, size, *, dtype, device):
        return self.torch.empty(*size, dtype=dtype, device=device)

    def __call__(self, output_tensor, input_tensor, group, async_op=False):
        self.calls += 1
        return self.torch.distributed.all_gather_into_tensor(
            output_tensor, input_tensor, group=group, async_op=async_op
        )


class _Scatter(_Gather):
    def __call__(self, output_tensor, input_tensor, group, op, async_op=False):
        self.calls += 1
        return self.torch.distributed.reduce_scatter_tensor(
            output_tensor, input_tensor, op=op, group=group, async_op=async_op
        )


def _all(model, name, *arguments):
    for each in (*model.layers, model.embed, model):
        getattr(each, name)(*arguments)


def _model_with_embedding(torch, **options):
    model, _ = model_of(torch)
    fsdp_of(torch).fully_shard(model.embed, **options)
    for layer in model.layers:
        fsdp_of(torch).fully_shard(layer, **options)
    return fsdp_of(torch).fully_shard(model, **options)


def settings_of_communication(torch, rank, size):
    found = []

    def trained(**settings):
        model = _model_with_embedding(torch)
        for name, value in settings.items():
            _all(model, name, value)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
        found.append(losses_of(torch, model, optimizer, rank, range(3)))
        found.append([each.grad.to_local().clone() for each in model.parameters()])

    trained(set_force_sum_reduction_for_comms=True, set_gradient_divide_factor=0.5)
    trained(set_gradient_divide_factor=float(size))
    trained(set_all_reduce_hook=lambda row: row.mul_(2))
    trained(set_reduce_scatter_max_input_buffers=3, set_reshard_after_forward=True)
    gather, scatter = _Gather(torch), _Scatter(torch)
    trained(set_custom_all_gather=gather, set_custom_reduce_scatter=scatter)
    found += [gather.calls > 0, scatter.calls]
    model = _model_with_embedding(torch)
    model.embed.set_unshard_in_backward(False)
    model.set_reshard_after_forward(True)
    found.append(losses_of(torch, model, torch.optim.SGD(model.parameters(), lr=0.2), rank, range(3)))
    for name, wrong in (("reshard_after_forward", 1), ("reduce_scatter_max_input_buffers", 0)):
        try:
            getattr(model, f"set_{name}")(wrong)
        except ValueError as error:
            found.append(str(error))
    return found


def parameters_that_stay_whole(torch, rank, size):
    """The passes of an accumulation need not gather them again, but those after an update do."""
    model = _model_with_embedding(torch)
    model.set_reshard_after_backward(False)
    model.set_requires_gradient_sync(False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    found = []
    for step in range(6):
        model.set_requires_gradient_sync(step % 3 == 2)
        loss = loss_of(torch, model, rank, step)
        loss.backward()
        found.append(loss.item())
        if step % 3 == 2:
            optimizer.step()
            optimizer.zero_grad()
            for each in model.modules():
                if isinstance(each, fsdp_of(torch).FSDPModule):
                    each.reshard()
    return found


def accumulation_in_two_dims(torch, rank, size):
    """Gradients are added up among the processes that share parts in some passes only."""
    mesh = torch.distributed.init_device_mesh("cpu", (size, 1), mesh_dim_names=("copies", "parts"))
    model = _model_with_embedding(torch, mesh=mesh)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    found = []
    for step in range(4):
        model.set_requires_all_reduce(step % 2 == 1)
        loss = loss_of(torch, model, rank, step)
        loss.backward()
        found += [loss.item(), [each.grad is None for each in model.parameters()]]
        if step % 2 == 1:
            found += [each.grad.to_local().clone() for each in model.parameters()]
            optimizer.step()
            optimizer.zero_grad()
    return found


def passes_after_an_error(torch, rank, size):
    model = _model_with_embedding(torch)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    found = losses_of(torch, model, optimizer, rank, range(1))

    def fail(module, args):
        raise KeyError("fails")

    handle = model.layers[1].norm.register_forward_pre_hook(fail)
    try:
        losses_of(torch, model, optimizer, rank, range(1))
    except KeyError:
        handle.remove()
    try:
        model.layers[0].reset_iter_state()
    except RuntimeError as error:
        found.append(str(error))
    model.reset_iter_state()
    return found + losses_of(torch, model, optimizer, rank, range(3))
