"""Programs for several ranks with ZeroRedundancyOptimizer, Join and DistributedSampler, see several_ranks.py."""

import importlib


def _optimizers(torch):
    return importlib.import_module(f"{torch.__name__}.distributed.optim")


def _model(torch):
    layers = (
        torch.nn.Linear(5, 7),
        torch.nn.Tanh(),
        torch.nn.Linear(7, 4),
        torch.nn.Tanh(),
        torch.nn.Linear(4, 2),
    )
    model = torch.nn.Sequential(*layers)
    with torch.no_grad():
        for place, each in enumerate(model.parameters()):
            each.copy_(((torch.arange(each.numel()) * 7 + place) % 11 - 5).reshape(each.shape) / 10)
    return model


def _loss(torch, model, rank, step):
    return model(torch.sin(torch.arange(15.0) * (rank + 1) + step).reshape(3, 5)).square().mean()


def _step(torch, model, optimizer, rank, step):
    optimizer.zero_grad()
    loss = _loss(torch, model, rank, step)
    loss.backward()
    optimizer.step()
    return loss.item()


def zero_redundancy(torch, rank, size):
    """Groups of parameters, one of which comes later, and a schedule of the rate."""
    found = []
    for kind, settings in (
        ("Adam", {"lr": 0.1}),
        ("SGD", {"lr": 0.1, "momentum": 0.9}),
        ("AdamW", {"lr": 0.05}),
    ):
        for as_views in (False, True):
            model = torch.nn.parallel.DistributedDataParallel(_model(torch))
            inner = model.module
            groups = [
                {"params": list(inner[0].parameters())},
                {"params": list(inner[2].parameters()), "lr": 0.02},
            ]
            optimizer = _optimizers(torch).ZeroRedundancyOptimizer(
                groups,
                optimizer_class=getattr(torch.optim, kind),
                parameters_as_bucket_view=as_views,
                **settings,
            )
            schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2, gamma=0.5)
            for step in range(5):
                if step == 2:
                    optimizer.add_param_group({"params": list(inner[4].parameters()), "lr": 0.3})
                found.append(_step(torch, model, optimizer, rank, step))
                schedule.step()
            found += [each.detach().clone() for each in model.parameters()]
            found.append([group["lr"] for group in optimizer.param_groups])
            found += [len(group["params"]) for group in optimizer.optim.param_groups]
    return found


def states_of_all_ranks(torch, rank, size):
    """Collected on one rank, and loaded by all."""
    found = []

    def made():
        model = torch.nn.parallel.DistributedDataParallel(_model(torch))
        kind = torch.optim.AdamW
        return model, _optimizers(torch).ZeroRedundancyOptimizer(
            model.parameters(), optimizer_class=kind, lr=0.1
        )

    model, optimizer = made()
    found += [_step(torch, model, optimizer, rank, step) for step in range(3)]
    optimizer.consolidate_state_dict(to=1)
    try:
        state = [optimizer.state_dict()]
    except RuntimeError:
        found.append("not here")
        state = [None]
    torch.distributed.broadcast_object_list(state, src=1)
    numbers = {
        place: {name: each for name, each in value.items()} for place, value in state[0]["state"].items()
    }
    found += [sorted(state[0]), sorted(numbers), [sorted(each) for each in numbers.values()]]
    found += [numbers[place]["exp_avg"] for place in sorted(numbers)]
    found.append([group["params"] for group in state[0]["param_groups"]])
    other, of_other = made()
    other.load_state_dict(model.state_dict())
    of_other.load_state_dict(state[0])
    found += [_step(torch, other, of_other, rank, step) for step in range(3, 5)]
    return found + [each.detach().clone() for each in other.parameters()]


def uneven_inputs_of_an_optimizer(torch, rank, size):
    found = []
    for by_initial in (True, False):
        model = torch.nn.parallel.DistributedDataParallel(_model(torch))
        optimizer = _optimizers(torch).ZeroRedundancyOptimizer(model.parameters(), torch.optim.SGD, lr=0.1)
        join = torch.distributed.algorithms.join.Join
        with join([model, optimizer], divide_by_initial_world_size=by_initial):
            for step in range(2 + 2 * rank):
                found.append(_step(torch, model, optimizer, rank, step))
        found += [each.detach().clone() for each in model.parameters()]
    return found


def samplers(torch, rank, size):
    data = list(range(11))
    kind, found = torch.utils.data.distributed.DistributedSampler, []
    for options in ({}, {"shuffle": False}, {"drop_last": True}, {"seed": 3, "shuffle": True}):
        sampler = kind(data, **options)
        for epoch in range(2):
            sampler.set_epoch(epoch)
            found.append(list(sampler))
        found.append(len(sampler))
        loader = torch.utils.data.DataLoader(data, batch_size=2, sampler=sampler)
        found += [batch.tolist() for batch in loader]
    for wrong in ({"rank": size}, {"num_replicas": 2, "rank": -1}):
        try:
            kind(data, **wrong)
        except ValueError as error:
            found.append(str(error))
    return found


def data_parallel_on_the_cpu(torch, rank, size):
    model = torch.nn.DataParallel(_model(torch))
    loss = _loss(torch, model, rank, 0)
    loss.backward()
    return loss.item(), list(model.state_dict()), [each.grad for each in model.parameters()], model.device_ids
