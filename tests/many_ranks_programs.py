"""Programs for many ranks, for several_ranks.py, that need no other library: how far the results are from what one process computes."""


def _numbers(torch, rank, count):
    return torch.randn(count, dtype=torch.float64, generator=torch.Generator().manual_seed(rank))


def collectives(torch, rank, size):
    """For sizes of one phase, of several, and of less than an element for each rank."""
    dist = torch.distributed
    errors = []
    for count in (3, 20_000, 300_001):
        inputs = [_numbers(torch, each, count) for each in range(size)]
        summed, own = sum(inputs), inputs[rank]
        reduced = own.clone()
        dist.all_reduce(reduced)
        errors.append((reduced - summed).abs().max())
        gathered = [torch.empty_like(own) for _ in range(size)]
        dist.all_gather(gathered, own)
        errors.append((torch.stack(gathered) - torch.stack(inputs)).abs().max())
        received = own.clone()
        dist.broadcast(received, size - 1)
        errors.append((received - inputs[-1]).abs().max())
        part = torch.empty_like(own)
        dist.reduce_scatter(part, [own * (each + 1) for each in range(size)])
        errors.append((part - summed * (rank + 1)).abs().max())
        dist.all_to_all(gathered, [own * (each + 1) for each in range(size)])
        errors.append((torch.stack(gathered) - torch.stack(inputs) * (rank + 1)).abs().max())
        dist.scatter(part, [own * each for each in range(size)] if rank == 2 else None, src=2)
        errors.append((part - inputs[2] * rank).abs().max())
        request = dist.isend(own, (rank + 1) % size)
        dist.recv(part, (rank - 1) % size)
        request.wait()
        errors.append((part - inputs[rank - 1]).abs().max())
    return errors


def data_parallel_training(torch, rank, size):
    """Some steps on parts of a batch, beside the steps of one process on the whole batch."""
    nn = torch.nn
    models = []
    for _ in range(2):
        torch.manual_seed(0)
        models.append(nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 2)).double())
    cut = nn.parallel.DistributedDataParallel(models[1])
    x, y = _numbers(torch, 0, 6 * 4 * size).view(-1, 6), _numbers(torch, 1, 2 * 4 * size).view(-1, 2)
    rows = slice(4 * rank, 4 * rank + 4)
    for model, batch, wanted in ((models[0], x, y), (cut, x[rows], y[rows])):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            nn.functional.mse_loss(model(batch), wanted).backward()
            optimizer.step()
    pairs = zip(models[0].parameters(), models[1].parameters(), strict=True)
    return [(ours - theirs).abs().max() for ours, theirs in pairs]


def linear_algebra(torch, rank, size):
    """Solutions and gradients of matrices whose rows are cut unevenly."""
    from importlib import import_module

    tensor = import_module(f"{torch.__name__}.distributed.tensor")
    mesh = torch.distributed.init_device_mesh("cpu", (size,))
    n = 45
    square = _numbers(torch, 0, n * n).view(n, n) + n * torch.eye(n)
    right, tall = _numbers(torch, 1, n * 2).view(n, 2), _numbers(torch, 2, n * 3).view(n, 3)
    errors = []
    for operands, call in (
        ((square, right), torch.linalg.solve),
        ((square @ square.T,), torch.linalg.cholesky),
        ((tall,), lambda t: torch.linalg.qr(t)[1].abs()),
        ((square, square), torch.matmul),
    ):
        plain = [each.clone().requires_grad_() for each in operands]
        cut = [tensor.distribute_tensor(each, mesh, [tensor.Shard(0)]).requires_grad_() for each in operands]
        expected, found = call(*plain), call(*cut)
        expected.square().sum().backward()
        found.square().sum().backward()
        errors.append((found.full_tensor() - expected).abs().max() / expected.abs().max())
        for ours, theirs in zip(cut, plain, strict=True):
            errors.append((ours.grad.full_tensor() - theirs.grad).abs().max() / theirs.grad.abs().max())
    return errors
