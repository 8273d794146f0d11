"""Programs for several ranks with hooks and options of DistributedDataParallel, and averages of models, see several_ranks.py."""

import contextlib
import copy
import functools
import importlib
import pickle
from unittest import mock


def _module(torch, name):
    return importlib.import_module(f"{torch.__name__}.distributed.{name}")


def _hooks(torch, name):
    return _module(torch, f"algorithms.ddp_comm_hooks.{name}")


def _model(torch):
    layers = (torch.nn.Linear(12, 20), torch.nn.Tanh(), torch.nn.Linear(20, 20), torch.nn.Tanh())
    model = torch.nn.Sequential(*layers, torch.nn.Unflatten(1, (4, 5)), torch.nn.Conv1d(4, 6, 3))
    with torch.no_grad():
        for place, each in enumerate(model.parameters()):
            each.copy_(((torch.arange(each.numel()) * 7 + place) % 11 - 5).reshape(each.shape) / 20)
    return model


def _inputs(torch, rank, step):
    return torch.sin(torch.arange(72.0) * (rank + 1) + step).reshape(6, 12)


def _train(torch, rank, model, optimizer, steps):
    losses = []
    for step in range(steps):
        optimizer.zero_grad()
        loss = model(_inputs(torch, rank, step)).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, [each.detach().clone() for each in model.parameters()]


def _registering(state, hook):
    return lambda model: model.register_comm_hook(state, hook)


def _trained(torch, rank, register, steps=6, **options):
    model = _model(torch)
    parallel = torch.nn.parallel.DistributedDataParallel(model, **options)
    register(parallel)
    return _train(torch, rank, parallel, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.5), steps)


def _power_sgd_cases(torch):
    return (
        {},
        {"matrix_approximation_rank": 2, "warm_start": False},
        {"matrix_approximation_rank": 3, "min_compression_rate": 0.5},
        {"use_error_feedback": False, "random_seed": 5},
        {"batch_tensors_with_same_shape": True, "orthogonalization_epsilon": 1e-4},
        {"use_error_feedback": False, "warm_start": False, "start_powerSGD_iter": 1},
    )


def power_sgd(torch, rank, size):
    power, found = _hooks(torch, "powerSGD_hook"), []
    for options in _power_sgd_cases(torch):
        state = power.PowerSGDState(None, **{"start_powerSGD_iter": 2, **options})
        found.append(_trained(torch, rank, _registering(state, power.powerSGD_hook)))
        found += [
            state.compression_stats(),
            state.iter,
            sorted(state.error_dict),
            sorted(state.p_memory_dict),
        ]
    return found


def power_sgd_of_the_whole_bucket(torch, rank, size):
    power, found = _hooks(torch, "powerSGD_hook"), []
    if torch.__name__ == "torch":
        # PyTorch gives its function a matrix where the function asserts that it gets a batch.
        original = power._orthogonalize
        power._orthogonalize = lambda matrices, epsilon=0: original(
            matrices.reshape(-1, *matrices.shape[-2:]), epsilon
        )
    for options in _power_sgd_cases(torch)[:4]:
        state = power.PowerSGDState(None, **{"start_powerSGD_iter": 2, **options})
        register = _registering(state, power.batched_powerSGD_hook)
        found.append(_trained(torch, rank, register, gradient_as_bucket_view=not found))
        found.append(state.compression_stats())
    return found


def saved_power_sgd(torch, rank, size):
    """A state from a file goes on where the saved one was."""
    power = _hooks(torch, "powerSGD_hook")
    state = power.PowerSGDState(None, 1, 2)
    first = _trained(torch, rank, _registering(state, power.powerSGD_hook), steps=4)
    loaded = pickle.loads(pickle.dumps(state))
    second = _trained(torch, rank, _registering(loaded, power.powerSGD_hook), steps=4)
    with contextlib.suppress(ValueError):
        power.PowerSGDState(None, start_powerSGD_iter=1)
        return "no error"
    return first, second, loaded.iter, loaded.process_group is torch.distributed.group.WORLD


def hooks_by_type(torch, rank, size):
    hooks, found = _module(torch, "algorithms.ddp_comm_hooks"), []
    for kind in hooks.DDPCommHookType:
        if kind.name.startswith(("BF16", "QUANTIZE")):  # not with Gloo in PyTorch
            continue
        found.append(
            (kind.name, _trained(torch, rank, functools.partial(hooks.register_ddp_comm_hook, kind), 3))
        )
    return found


def _quantizing_hook(torch, channels):
    """PyTorch's hooks of quantization fail with Gloo. This one rounds the gradients that all ranks send whole, each with its own scale."""
    observers = importlib.import_module("torch.ao.quantization")

    def rounded(row):
        if not channels:
            observer = observers.MinMaxObserver()
            observer(row)
            scale, zero_point = observer.calculate_qparams()
            return torch.quantize_per_tensor(row, float(scale), int(zero_point), torch.quint8).dequantize()
        rows = torch.nn.functional.pad(row, (0, -len(row) % channels)).view(-1, channels)
        observer = observers.PerChannelMinMaxObserver()
        observer(rows)
        found = torch.quantize_per_channel(rows, *observer.calculate_qparams(), 0, torch.quint8).dequantize()
        return found.flatten()[: len(row)]

    def hook(state, bucket):
        rows = [torch.empty_like(bucket.buffer()) for _ in range(torch.distributed.get_world_size())]
        torch.distributed.all_gather(rows, bucket.buffer())
        found = torch.futures.Future()
        found.set_result(sum(map(rounded, rows)) / len(rows))
        return found

    return hook


def quantized(torch, rank, size):
    hooks, found = _hooks(torch, "quantization_hooks"), []
    cases = ((hooks.quantization_pertensor_hook, None), (hooks.quantization_perchannel_hook, 512))
    for hook, channels in cases:
        if torch.__name__ == "torch":
            hook = _quantizing_hook(torch, channels)
        found.append(_trained(torch, rank, _registering(None, hook), 3))
    return found


def local_sgd(torch, rank, size):
    """Gradients of all ranks for two steps, then of pairs or of one rank, and averages of parameters of all ranks."""
    post, averagers = (
        _hooks(torch, "post_localSGD_hook"),
        _module(torch, "algorithms.model_averaging.averagers"),
    )
    optimizers = _module(torch, "optim")
    alone, _ = torch.distributed.new_subgroups(group_size=1)
    found = []
    for subgroup, averages in ((alone, True), (None, False), (torch.distributed.group.WORLD, True)):
        model = torch.nn.parallel.DistributedDataParallel(_model(torch))
        state = post.PostLocalSGDState(None, subgroup, 2, averages)
        model.register_comm_hook(state, post.post_localSGD_hook)
        local = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.5)
        optimizer = optimizers.PostLocalSGDOptimizer(
            local, averagers.PeriodicModelAverager(3, warmup_steps=2)
        )
        found.append(_train(torch, rank, model, optimizer, 7))
        state_dict = optimizer.state_dict()
        optimizer.averager.step = 0
        optimizer.load_state_dict(state_dict)
        found += [sorted(state_dict), optimizer.averager.step, state.iter]
    return found


def averages_in_a_hierarchy(torch, rank, size):
    hierarchy = _module(torch, "algorithms.model_averaging.hierarchical_model_averager")
    found = []
    for periods in ({2: 1, 4: size}, {3: size}):
        model = _model(torch)
        averager = hierarchy.HierarchicalModelAverager(periods, warmup_steps=1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(6):
            optimizer.zero_grad()
            model(_inputs(torch, rank, step)).square().mean().backward()
            optimizer.step()
            averager.average_parameters(optimizer.param_groups if step % 2 else model.parameters())
            found.append([each.sum() for each in model.parameters()])
        found += [averager.step, [group.size() for group in averager.period_process_group_dict.values()]]
    for wrong in ({}, {0: size}, {2: size + 1}):
        try:
            hierarchy.HierarchicalModelAverager(wrong)
        except ValueError as error:
            found.append(str(error))
    return found


def buckets_that_hooks_see(torch, rank, size):
    """One bucket at first, then those in the order of the gradients."""
    found = []
    cases = ({}, {"bucket_cap_mb": 0.001}, {"bucket_cap_mb_list": [0.0005, 0.002]})
    for options in (*cases, {"find_unused_parameters": True, "bucket_cap_mb": 0.001}):
        seen = []

        def note(state, bucket, seen=seen):
            shapes = [tuple(each.shape) for each in bucket.parameters()]
            seen.append((bucket.index(), bucket.is_last(), shapes, bucket.buffer().numel()))
            work = torch.distributed.all_reduce(bucket.buffer(), async_op=True)
            return work.get_future().then(lambda done: done.value()[0] / size)

        found.append(_trained(torch, rank, _registering(None, note), 3, **options))
        found.append(seen)
    return found


def collectives_in_callbacks(torch, rank, size):
    """A hook whose callbacks begin other collectives and wait for them."""

    def hook(state, bucket):
        dist = torch.distributed
        largest = bucket.buffer().abs().max().reshape(1)
        work = dist.all_reduce(largest, op=dist.ReduceOp.MAX, async_op=True)

        def scaled(done):
            row = bucket.buffer() / done.value()[0]
            return dist.all_reduce(row, async_op=True).get_future().wait()[0]

        def averaged(done):
            return done.value() * largest / size

        return work.get_future().then(scaled).then(averaged)

    return _trained(torch, rank, _registering(None, hook))


class _ByHand:
    """What mixed precision computes. PyTorch has it on devices with streams and events only, not on the CPU."""

    def __init__(self, torch, model, param_dtype, reduce_dtype, buffer_dtype):
        self.torch, self.model, self.dtype = torch, model, param_dtype
        self.reduce_dtype = reduce_dtype or param_dtype
        if buffer_dtype is not None:
            model.scale.data = model.scale.to(buffer_dtype)

    def __call__(self, x):
        self.narrow = copy.deepcopy(self.model).to(self.dtype)
        return self.narrow(x.to(self.dtype))

    def average(self):
        for parameter, narrow in zip(self.model.parameters(), self.narrow.parameters(), strict=True):
            total = narrow.grad.to(self.reduce_dtype)
            self.torch.distributed.all_reduce(total)
            parameter.grad = total.div_(self.torch.distributed.get_world_size()).to(parameter.dtype)


def _noting_inputs(found):
    """A function, which copies of a module share."""

    def note(module, args):
        found.append((args[0], module.weight.detach().clone()))

    return note


def mixed_precision(torch, rank, size):
    found = []
    cases = (
        ("bfloat16", "float32", None),
        ("bfloat16", None, "float32"),
        ("bfloat16", "bfloat16", "float64"),
    )
    for dtypes in cases:
        settings = [name and getattr(torch, name) for name in dtypes]
        model = _model(torch)
        model.register_buffer("scale", torch.ones(2))
        model[0].register_forward_pre_hook(_noting_inputs(found))
        if torch.__name__ == "torch":
            averaged = _ByHand(torch, model, *settings)
        else:
            averaged = torch.nn.parallel.DistributedDataParallel(
                model,
                mixed_precision=torch.nn.parallel.distributed._MixedPrecision(*settings),
                gradient_as_bucket_view=not found,
            )
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.5)
        for step in range(3):
            optimizer.zero_grad()
            output = averaged(_inputs(torch, rank, step))
            output.float().square().mean().backward()
            if torch.__name__ == "torch":
                averaged.average()
            optimizer.step()
            found += [output, *[(each.detach().clone(), each.grad.clone()) for each in model.parameters()]]
        found.append(model.scale)
    return found


def one_hook_at_most(torch, rank, size):
    """Mixed precision has a hook of its own."""
    settings = importlib.import_module(f"{torch.__name__}.nn.parallel.distributed")._MixedPrecision(
        torch.bfloat16
    )
    averaged = torch.nn.parallel.DistributedDataParallel(_model(torch), mixed_precision=settings)
    averaged.register_comm_hook(None, _hooks(torch, "debugging_hooks").noop_hook)


def delayed_averages(torch, rank, size):
    """Some gradients are averaged when the one of the first layer is there, which is computed last."""
    found = []
    for options in ({}, {"gradient_as_bucket_view": True}):
        model = _model(torch)
        with torch.no_grad():
            model[2].weight += rank
        delayed = [(f"2.{name}", each) for name, each in model[2].named_parameters()]
        averaged = torch.nn.parallel.DistributedDataParallel(
            model,
            delay_all_reduce_named_params=delayed,
            param_to_hook_all_reduce=model[0].weight,
            **options,
        )
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(3):
            optimizer.zero_grad(set_to_none=step != 2)
            averaged(_inputs(torch, rank, step)).square().mean().backward()
            torch.distributed.barrier()  # PyTorch does not wait for the average
            found += [each.grad.clone() for each in model.parameters()]
            optimizer.step()
    try:
        torch.nn.parallel.DistributedDataParallel(_model(torch), delay_all_reduce_named_params=delayed)
    except ValueError as error:
        found.append(str(error))
    return found


def unused_parameters_that_all_ranks_skip(torch, rank, size):
    class Half(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.used, self.unused = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)

        def forward(self, x):
            return self.used(x)

    model = Half()
    with torch.no_grad():
        for each in model.parameters():
            each.fill_(0.5)
    averaged = torch.nn.parallel.DistributedDataParallel(
        model, find_unused_parameters=True, skip_all_reduce_unused_params=True, batched_grad_copy=True
    )
    found = []
    for step in range(3):
        averaged(_inputs(torch, rank, step)[:, :3]).square().sum().backward()
        found += [None if each.grad is None else each.grad.clone() for each in model.parameters()]
    return found


def _train_in_backward(torch, rank, model, steps=6):
    """The losses and the parameters of a model whose parameters hooks update."""
    losses = []
    for step in range(steps):
        model.zero_grad()
        loss = model(_inputs(torch, rank, step)).square().mean()
        loss.backward()
        losses.append(loss.item())
    return losses, [each.detach().clone() for each in model.parameters()]


SMALL = {"bucket_cap_mb": 1e-3}  # so that there are several buckets


def fused_optimizers(torch, rank, size):
    cases = [
        ("SGD", (0.1,), {"momentum": 0.5, "nesterov": True, "weight_decay": 0.1}, SMALL),
        ("SGD", (), {"lr": 0.1, "maximize": True}, {}),
        ("Adam", (0.01, (0.8, 0.9)), {"amsgrad": True}, {**SMALL, "gradient_as_bucket_view": True}),
        ("AdamW", (0.01,), {}, {**SMALL, "static_graph": True}),
    ]
    found = []
    for name, args, settings, options in cases:
        model = torch.nn.parallel.DistributedDataParallel(_model(torch), **options)
        model._register_fused_optim(getattr(torch.optim, name), *args, **settings)
        found.append(_train_in_backward(torch, rank, model))
    model = torch.nn.parallel.DistributedDataParallel(_model(torch), **SMALL)
    model._register_fused_optim(torch.optim.SGD, 0.1, optim_params=list(model.parameters())[:3])
    return found, _train_in_backward(torch, rank, model)


def _with_zero(torch, rank, hook_name, optimizer, options, shards, **settings):
    """Training with ZeroRedundancyOptimizer in a hook."""
    model = torch.nn.parallel.DistributedDataParallel(_model(torch), **options)
    zero = _module(torch, "optim").ZeroRedundancyOptimizer(
        model.parameters(), getattr(torch.optim, optimizer), overlap_with_ddp=True, **settings
    )
    # PyTorch refuses Gloo for these hooks, of which one works with it.
    with mock.patch.object(torch.distributed, "get_backend", lambda group: "nccl"):
        wrap = getattr(_hooks(torch, "ddp_zero_hook"), hook_name)
        hook = wrap(_hooks(torch, "default_hooks").allreduce_hook, model, zero, shards)
    model.register_comm_hook(None, hook)
    return _train_in_backward(torch, rank, model)


def zero_steps_of_optimizers(torch, rank, size):
    cases = {
        "SGD": {"momentum": 0.5},
        "Adam": {"lr": 0.01, "amsgrad": True},
        "AdamW": {},
        "Adagrad": {"initial_accumulator_value": 0.1, "lr_decay": 0.1},
        "Adamax": {"weight_decay": 0.1},
        "Adadelta": {"rho": 0.8},
        "RMSprop": {"momentum": 0.3, "centered": True},
        "Rprop": {"etas": (0.4, 1.3)},
    }
    return [
        _with_zero(torch, rank, "hook_with_zero_step", name, SMALL, False, **settings)
        for name, settings in cases.items()
    ]


def _zero_steps(torch, rank, hook_name):
    """PyTorch cannot divide one large bucket among few ranks. The results do not depend on who updates what."""
    divides_all = torch.__name__ == "weft"
    return [
        _with_zero(
            torch,
            rank,
            hook_name,
            "Adam",
            {**options, "static_graph": static},
            shards and (divides_all or options is SMALL),
            lr=0.01,
        )
        for options in ({}, SMALL)
        for static in (False, True)
        for shards in (False, True)
    ]


def zero_steps(torch, rank, size):
    return _zero_steps(torch, rank, "hook_with_zero_step")


def zero_steps_within_the_backward_pass(torch, rank, size):
    """The other hook, with which PyTorch's Gloo waits for ever, gives the same."""
    is_weft = torch.__name__ == "weft"
    return _zero_steps(torch, rank, "hook_with_zero_step_interleaved" if is_weft else "hook_with_zero_step")


def optimizers_of_parameters(torch, rank, size):
    """Optimizers that wait for the averages of DistributedDataParallel; PyTorch has them on GPUs, so its ordinary training is beside them."""
    model = torch.nn.parallel.DistributedDataParallel(_model(torch), **SMALL)
    settings = {"lr": 0.1, "momentum": 0.5}
    own, rest = list(model.parameters())[:3], list(model.parameters())[3:]
    with_none = [True] * 3 + [False] * len(rest)
    if torch.__name__ == "torch":
        optimizer = torch.optim.SGD(own, **settings)
        return _train(torch, rank, model, optimizer, 6), with_none
    optim = _module(torch, "optim")
    optim._apply_optimizer_in_backward(torch.optim.SGD, own, settings)
    found = _train_in_backward(torch, rank, model)
    assert len(optim._get_in_backward_optimizers(model)) == 3
    hooked = torch.nn.parallel.DistributedDataParallel(model.module)
    hooked.register_comm_hook(None, _hooks(torch, "default_hooks").allreduce_hook)
    with contextlib.suppress(RuntimeError):
        hooked(_inputs(torch, rank, 0))
        raise AssertionError("optimizers would not wait for the averages of this hook")
    return found, [each.grad is None for each in model.parameters()]
