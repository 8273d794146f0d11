"""Programs with pipelines for several ranks, see several_ranks.py. They return what a rank has afterwards."""

import importlib


def _module(torch, name="pipelining"):
    return importlib.import_module(f"{torch.__name__}.distributed.{name}")


def _layers(torch, count):
    """Layers with the same parameters on each rank."""
    layers = [torch.nn.Linear(6, 6) for _ in range(count)]
    for k, layer in enumerate(layers):
        with torch.no_grad():
            for parameter in layer.parameters():
                numbers = torch.arange(parameter.numel()).reshape(parameter.shape)
                parameter.copy_(((numbers * (k + 3)) % 11 - 5) / 8)
    return layers


def _batch(torch, rows=8):
    x = (torch.arange(rows * 6).reshape(rows, 6) % 13 - 6) / 4
    return x, x.flip(0) / 2


def _stages(torch, rank, size, of_rank, in_a_v=False):
    pipelining = _module(torch)

    layers = _layers(torch, size * of_rank)
    modules = [torch.nn.Sequential(layer, torch.nn.Tanh()) for layer in layers]
    indices = [rank, 2 * size - 1 - rank] if in_a_v else range(rank, size * of_rank, size)
    return [pipelining.PipelineStage(modules[k], k, size * of_rank, torch.device("cpu")) for k in indices]


def _gradients(stages):
    return [[parameter.grad for parameter in stage.submod.parameters()] for stage in stages]


def _trained(torch, rank, size, schedule, stages, steps=2, **options):
    """The results of some steps, and the gradients after each."""
    x, target = _batch(torch)
    found = []
    for _ in range(steps):
        losses = []
        arguments = (x,) if rank == 0 else ()
        result = schedule.step(*arguments, target=target, losses=losses, **options)
        found.append([result, losses, _gradients(stages)])
        for stage in stages:
            stage.submod.zero_grad()
    return found


def one_stage_for_each_rank(torch, rank, size):
    pipelining = _module(torch)

    found = []
    for kind in (pipelining.ScheduleGPipe, pipelining.Schedule1F1B):
        for pieces, scale in ((4, True), (8, False), (2 * size, True)):
            if 8 % pieces:
                continue
            stages = _stages(torch, rank, size, 1)
            loss = torch.nn.functional.mse_loss
            schedule = kind(stages[0], pieces, loss_fn=loss, scale_grads=scale)
            found.append(_trained(torch, rank, size, schedule, stages))
    return found


def several_stages_for_each_rank(torch, rank, size):
    pipelining = _module(torch)

    found = []
    for kind in (pipelining.ScheduleLoopedBFS, pipelining.ScheduleInterleaved1F1B):
        for of_rank, pieces in ((2, 2 * size), (3, 2 * size)):
            stages = _stages(torch, rank, size, of_rank)
            schedule = kind(stages, pieces, loss_fn=torch.nn.functional.mse_loss)
            x, target = _batch(torch, 4 * pieces)
            losses = []
            result = schedule.step(*((x,) if rank == 0 else ()), target=target, losses=losses)
            found.append([result, losses, _gradients(stages)])
    return found


def zero_bubbles(torch, rank, size):
    """The last stage of a V is on the first rank, and so are the results and the losses."""
    pipelining = _module(torch)

    found = []
    for kind, of_rank, pieces in (
        (pipelining.ScheduleInterleavedZeroBubble, 1, 2 * size),
        (pipelining.ScheduleInterleavedZeroBubble, 2, size),
        (pipelining.ScheduleZBVZeroBubble, 2, 3),
        (pipelining.ScheduleDualPipeV, 2, 2 * size + 1),
    ):
        in_a_v = kind is not pipelining.ScheduleInterleavedZeroBubble
        stages = _stages(torch, rank, size, of_rank, in_a_v)
        schedule = kind(stages, pieces, loss_fn=torch.nn.functional.mse_loss)
        x, target = _batch(torch, 4 * pieces)
        for _ in range(2):
            losses = []
            result = schedule.step(*((x,) if rank == 0 else ()), target=target, losses=losses)
            found.append([result, losses, _gradients(stages)])
            for stage in stages:
                stage.submod.zero_grad()
    return found


def evaluation(torch, rank, size):
    pipelining = _module(torch)

    x, target = _batch(torch)
    found = []
    stages = _stages(torch, rank, size, 1)
    schedule = pipelining.ScheduleGPipe(stages[0], 4)
    with torch.no_grad():
        found.append(schedule.step(*((x,) if rank == 0 else ())))
    stages = _stages(torch, rank, size, 1)
    schedule = pipelining.ScheduleGPipe(stages[0], 4, loss_fn=torch.nn.functional.mse_loss)
    losses = []
    found.append(schedule.eval(*((x,) if rank == 0 else ()), target=target, losses=losses))
    found += [losses, _gradients(stages)]
    stages = _stages(torch, rank, size, 2)
    schedule = pipelining.ScheduleInterleaved1F1B(stages, 2 * size, loss_fn=torch.nn.functional.mse_loss)
    losses = []
    x, target = _batch(torch, 4 * size)
    found.append(schedule.eval(*((x,) if rank == 0 else ()), target=target, losses=losses))
    return [*found, losses, _gradients(stages)]


def several_values_between_stages(torch, rank, size):
    """Two tensors go from stage to stage, one of integers; another argument is given to each stage by name."""
    pipelining = _module(torch)

    class Stage(torch.nn.Module):
        def __init__(self, layer):
            super().__init__()
            self.layer = layer

        def forward(self, x, count, scale):
            x = torch.tanh(self.layer(x)) * scale
            return (x, count + 1) if rank < size - 1 else x * count[:, None]

    layers = _layers(torch, size)
    stage = pipelining.PipelineStage(Stage(layers[rank]), rank, size, torch.device("cpu"))
    schedule = pipelining.Schedule1F1B(
        stage, 4, loss_fn=lambda output, target: (output - target).square().mean()
    )
    x, target = _batch(torch)
    count = torch.arange(8)
    scale = torch.linspace(0.5, 1.5, 8)[:, None]
    losses = []
    arguments = (x, count) if rank == 0 else ()
    result = schedule.step(*arguments, scale=scale, target=target, losses=losses)
    return [result, losses, _gradients([stage])]


def chunks(torch, rank, size):
    microbatch = _module(torch, "pipelining.microbatch")
    spec = microbatch.TensorChunkSpec

    x = torch.arange(24).reshape(4, 6)
    found = []
    args, kwargs = microbatch.split_args_kwargs_into_chunks((x, [x + 1, 3]), {"a": x}, 2)
    found += [args, kwargs]
    args, kwargs = microbatch.split_args_kwargs_into_chunks(
        (x, x), {"b": x}, 3, spec.from_tuple((0, 1)), spec.from_dict({"b": 1})
    )
    found += [args, kwargs, str(spec(0))]
    found.append(microbatch.merge_chunks([x[:1], x[1:]], spec(0)))
    found.append(microbatch.merge_chunks([(x, x), (x, x)], None))
    return found


def a_model_that_is_cut(torch, rank, size):
    """The result of the first layer is used again by the last one."""
    pipelining = _module(torch)

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.ModuleList(_layers(torch, size + 1))

        def forward(self, x):
            first = torch.tanh(self.layers[0](x))
            x = first
            for layer in self.layers[1:]:
                x = torch.tanh(layer(x))
            return x + first

    x, target = _batch(torch)
    spec = {f"layers.{k}": pipelining.SplitPoint.BEGINNING for k in range(2, size + 1)}
    pipe = pipelining.pipeline(Model(), (x[:2],), split_spec=spec)
    stage = pipe.build_stage(rank, torch.device("cpu"))
    schedule = pipelining.Schedule1F1B(stage, 4, loss_fn=torch.nn.functional.mse_loss)
    losses = []
    result = schedule.step(*((x,) if rank == 0 else ()), target=target, losses=losses)
    names = [name for name, _ in pipe.get_stage_module(rank).named_parameters()]
    return [pipe.num_stages, names, result, losses, _gradients([stage])]


def data_parallel_stages(torch, rank, size):
    """One stage, which all ranks have: gradients are averaged once, after all microbatches. PyTorch does not take the model, so it averages here."""
    pipelining = _module(torch)
    group = [torch.distributed.new_group([each]) for each in range(size)][rank]
    model = torch.nn.Sequential(*_layers(torch, 2))
    takes_it = torch.__name__ == "weft"
    module = torch.nn.parallel.DistributedDataParallel(model) if takes_it else model
    stage = pipelining.PipelineStage(module, 0, 1, torch.device("cpu"), group=group)
    schedule = pipelining.ScheduleGPipe(stage, 2, loss_fn=torch.nn.functional.mse_loss)
    x, target = _batch(torch)
    found = []
    for _ in range(2):
        losses = []
        result = schedule.step(x + rank, target=target, losses=losses)
        for parameter in () if takes_it else model.parameters():
            torch.distributed.all_reduce(parameter.grad)
            parameter.grad /= size
        found.append([result, losses, [each.grad.clone() for each in model.parameters()]])
        model.zero_grad()
    return found
