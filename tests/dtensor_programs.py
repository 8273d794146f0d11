"""Programs with DTensors for several ranks, see several_ranks.py. All ranks return the same, because they look at whole tensors."""

import importlib
import itertools


def _names(torch):
    """What the programs use, of either library."""
    tensor = (
        importlib.import_module(f"{torch.__name__}.distributed.tensor.parallel") and torch.distributed.tensor
    )
    mesh = importlib.import_module(f"{torch.__name__}.distributed.device_mesh")
    return tensor.Shard, tensor.Replicate(), tensor.Partial, tensor.distribute_tensor, mesh.init_device_mesh


def _matrix(torch, rows=4, columns=6):
    return torch.arange(float(rows * columns)).reshape(rows, columns) / 7


def _seen(value):
    """A DTensor as its placements, its sizes and its values."""
    if isinstance(value, tuple | list):
        return [_seen(each) for each in value]
    return (str(value.placements), tuple(value.shape), tuple(value.stride()), value.full_tensor().detach())


def elementwise(torch, rank, size):
    Shard, whole, Partial, distribute, mesh_of = _names(torch)
    mesh = mesh_of("cpu", (size,))
    x = _matrix(torch)
    a, b, c = (distribute(x, mesh, [place]) for place in (Shard(0), Shard(1), whole))
    p, q = b.sum(1), a.sum(1)
    found = [
        a + a,
        a + b,
        a + c,
        c + a,
        a + 1,
        a.relu(),
        b.exp() * 2,
        a.lerp(b, 0.5),
        a**2,
        a.clamp(1, 2),
        (a > 1).float(),
    ]
    found += [
        p + p,
        p * 2,
        p / 2,
        -p,
        p.exp(),
        p + 1,
        q * p,
        a.to(torch.float64),
        b.clone(),
        torch.where(a > 1, a, b),
    ]
    found += [a + x[:1, :1].reshape(()), torch.zeros_like(b), a.clone().add_(b), c.clone().mul_(a)]
    return [_seen(each) for each in found]


def reductions(torch, rank, size):
    Shard, whole, Partial, distribute, mesh_of = _names(torch)
    mesh = mesh_of("cpu", (size,))
    x = _matrix(torch, 4, 8)
    found = []
    for place in (Shard(0), Shard(1), whole):
        a = distribute(x, mesh, [place])
        found += [
            a.sum(),
            a.sum(0),
            a.sum(1, keepdim=True),
            a.mean(0),
            a.mean(),
            a.prod(),
            a.var(0),
            a.argmax(0),
        ]
        found += [
            a.cumsum(0),
            a.softmax(-1) if place != Shard(1) else a.sum((0, 1)),
            a.std(1) if place == Shard(0) else a.mean(1),
        ]
    return [_seen(each) for each in found]


def views(torch, rank, size):
    Shard, whole, Partial, distribute, mesh_of = _names(torch)
    mesh = mesh_of("cpu", (size,))
    x = _matrix(torch, 12, 6)
    a, b = distribute(x, mesh, [Shard(0)]), distribute(x, mesh, [Shard(1)])
    found = [
        a.t(),
        a.view(72),
        a.view(12, 2, 3),
        a.unsqueeze(0),
        a.unsqueeze(0).expand(5, 12, 6),
        a[:, 1],
        a.transpose(0, 1).t(),
    ]
    found += [
        *a.chunk(2, 1),
        a.flatten(),
        b.permute(1, 0),
        b.squeeze(),
        a.unflatten(0, (4, 3)),
        b[2],
        b[2:5],
        b.reshape(3, 4, 6),
        a[:, 1:4],
    ]
    return [_seen(each) for each in found]


def products(torch, rank, size):
    Shard, whole, Partial, distribute, mesh_of = _names(torch)
    mesh = mesh_of("cpu", (size,))
    x = _matrix(torch, 6, 6)
    places = (Shard(0), Shard(1), whole)
    found = [
        distribute(x, mesh, [one]) @ distribute(x, mesh, [other])
        for one, other in itertools.product(places, places)
    ]
    stack = distribute(x.reshape(6, 2, 3), mesh, [Shard(0)])
    found += [
        torch.bmm(stack, stack.transpose(1, 2)),
        torch.nn.functional.linear(distribute(x, mesh, [Shard(0)]), distribute(x, mesh, [whole])),
    ]
    return [(str(each.placements), each.full_tensor()) for each in found]


def redistributions(torch, rank, size):
    Shard, whole, Partial, distribute, mesh_of = _names(torch)
    mesh = mesh_of("cpu", (size,))
    found = []
    for rows, columns in ((4, 6), (1, 5), (7, 2)):  # also where some ranks have nothing
        for old, new in itertools.product((Shard(0), Shard(1), whole), repeat=2):
            laid_out = distribute(_matrix(torch, rows, columns), mesh, [old]).redistribute(mesh, [new])
            found.append((*_seen(laid_out), tuple(laid_out.to_local().shape)))
    part = torch.ones(3) * (rank + 1)
    for reduction in ("sum", "avg", "max"):
        partial = torch.distributed.tensor.DTensor.from_local(part, mesh, [Partial(reduction)])
        found += [partial.redistribute(mesh, [place]).full_tensor() for place in (whole, Shard(0))]
    return found


def gradients(torch, rank, size):
    Shard, whole, Partial, distribute, mesh_of = _names(torch)
    mesh, F = mesh_of("cpu", (size,)), torch.nn.functional
    x, found = _matrix(torch), []
    for of_input, of_weight in itertools.product((Shard(0), Shard(1), whole), (Shard(0), whole)):
        a = distribute(x, mesh, [of_input]).requires_grad_()
        w = distribute(_matrix(torch, 3, 6), mesh, [of_weight]).requires_grad_()
        loss = (F.linear(a, w).tanh() * a.sum(1, keepdim=True)).square().mean()
        loss.backward()
        found += [loss.full_tensor().detach(), a.grad.full_tensor(), w.grad.full_tensor()]
    local = (torch.ones(2, 3) * (rank + 1)).requires_grad_()
    laid_out = torch.distributed.tensor.DTensor.from_local(local, mesh, [Shard(0)])
    (laid_out.to_local() * 2).sum().backward()
    found.append(local.grad.tolist())
    local = torch.ones(2, 3).requires_grad_()
    torch.distributed.tensor.DTensor.from_local(local, mesh, [Partial()]).full_tensor().sum().backward()
    return [*found, local.grad.tolist()]


class _Model:
    """Makes a model in either library."""

    def __new__(cls, torch):
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.embed, self.norm = torch.nn.Embedding(11, 8), torch.nn.LayerNorm(8)
                self.up, self.down = torch.nn.Linear(8, 12), torch.nn.Linear(12, 8)

            def forward(self, x):
                h = self.norm(self.embed(x))
                return h + self.down(torch.nn.functional.gelu(self.up(h)))

        torch.manual_seed(3)
        return Net()


def tensor_parallel_training(torch, rank, size):
    _, _, _, _, mesh_of = _names(torch)
    parallel = torch.distributed.tensor.parallel
    model = _Model(torch)
    plan = {"up": parallel.ColwiseParallel(), "down": parallel.RowwiseParallel()}
    model = parallel.parallelize_module(model, mesh_of("cpu", (size,)), plan)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.05, foreach=False)
    found = [str(model.up.weight.placements), str(model.down.weight.placements)]
    for step in range(4):
        optimizer.zero_grad()
        loss = model(torch.arange(6).reshape(2, 3) + step).square().mean()
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return [*found, model.up.weight.full_tensor().detach(), model.down.bias.full_tensor().detach()]


def _fully_sharded(torch, model, **options):
    fsdp = importlib.import_module(f"{torch.__name__}.distributed.fsdp")
    for each in (model.up, model.down):
        fsdp.fully_shard(each, **options)
    return fsdp.fully_shard(model, **options), fsdp


def fully_sharded_training(torch, rank, size):
    """Each rank has another batch; twice the gradients of two batches are added up before they are sent."""
    model, fsdp = _fully_sharded(torch, _Model(torch))
    found = [type(model).__name__, isinstance(model.up, fsdp.FSDPModule), str(model.up.weight.placements)]
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.05, foreach=False)
    for step in range(6):
        model.set_requires_gradient_sync(step not in (1, 3))
        loss = model((torch.arange(6).reshape(2, 3) + step + rank) % 11).square().mean()
        loss.backward()
        if step not in (1, 3):
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5, foreach=False)
            optimizer.step()
            optimizer.zero_grad()
            found.append(norm.full_tensor().item())
        found.append(loss.item())
    model.eval()
    with torch.no_grad():
        found.append(model(torch.tensor([[1, 2]])))
    state = model.state_dict()
    return [*found, *[(name, tuple(each.shape), each.full_tensor()) for name, each in state.items()]]


def narrow_and_mixed(torch, rank, size):
    """Computed in bfloat16; and on a mesh whose first dimension has copies."""
    _, _, _, _, mesh_of = _names(torch)
    fsdp = importlib.import_module(f"{torch.__name__}.distributed.fsdp")
    policy = fsdp.MixedPrecisionPolicy(param_dtype=torch.bfloat16, output_dtype=torch.float32)
    found = []
    layer = torch.nn.Linear(4, 4)
    for each in layer.parameters():
        torch.nn.init.constant_(each, 0.25)
    layer = fsdp.fully_shard(layer, mp_policy=policy)
    result = layer(torch.ones(2, 4) * (rank + 1))
    result.sum().backward()
    found += [result.detach(), str(result.dtype).rpartition(".")[2], layer.weight.grad.full_tensor()]
    if size % 2 == 0:
        layer = torch.nn.Linear(4, 4)
        for each in layer.parameters():
            torch.nn.init.constant_(each, 0.5)
        layer = fsdp.fully_shard(
            layer, mesh=mesh_of("cpu", (size // 2, 2), mesh_dim_names=("copies", "parts"))
        )
        layer(torch.ones(2, 4) * (rank + 1)).square().sum().backward()
        found += [
            str(layer.weight.placements),
            layer.weight.grad.full_tensor(),
            tuple(layer.weight.to_local().shape),
        ]
    return found


def classes_in_parts(torch, rank, size):
    Shard, whole, Partial, distribute, mesh_of = _names(torch)
    loss_parallel = importlib.import_module(f"{torch.__name__}.distributed.tensor.parallel").loss_parallel
    mesh, found = mesh_of("cpu", (size,)), []
    target = torch.tensor([3, 0, 7, 3, 1, 5])
    weight = distribute(torch.arange(1.0, 9.0), mesh, [whole])
    losses = [{"reduction": each} for each in ("none", "sum", "mean")]
    for options in [*losses, {"weight": weight}, {"ignore_index": 3}]:
        scores = distribute((_matrix(torch, 6, 8) * 9).sin(), mesh, [Shard(1)]).requires_grad_()
        with loss_parallel():
            loss = torch.nn.functional.cross_entropy(scores, target, **options)
            loss.backward(torch.ones_like(loss))
        found += [loss.full_tensor().detach(), _seen(scores.grad)]
    return found


def distributed_module(torch, rank, size):
    Shard, whole, Partial, distribute, mesh_of = _names(torch)
    tensor, mesh = torch.distributed.tensor, mesh_of("cpu", (size,))
    torch.manual_seed(0)

    def cut(name, layer, mesh):
        for key, value in list(layer._parameters.items()):
            layer.register_parameter(key, torch.nn.Parameter(distribute(value.detach(), mesh, [Shard(0)])))

    layer = tensor.distribute_module(torch.nn.Linear(6, 12), mesh, cut)
    optimizer = torch.optim.SGD(layer.parameters(), 0.1, momentum=0.9)
    found = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = layer(distribute(_matrix(torch), mesh, [whole])).square().sum()
        loss.backward()
        optimizer.step()
        found.append(loss.full_tensor().item())
    return [*found, layer.weight.full_tensor().detach(), str(layer.weight.placements)]


def two_dimensions(torch, rank, size):
    """A mesh of two dimensions, where there are enough ranks for one."""
    Shard, whole, Partial, distribute, mesh_of = _names(torch)
    if size % 2:
        return None
    mesh = mesh_of("cpu", (size // 2, 2), mesh_dim_names=("dp", "tp"))
    places = (Shard(0), Shard(1), whole)
    found = [str(mesh), mesh.mesh.tolist(), mesh["tp"].size(), mesh["dp"].size(), str(mesh["tp"])]
    for old in itertools.product(places, repeat=2):
        laid_out = distribute(_matrix(torch, 8, 8), mesh, old)
        found.append(
            (laid_out.sum().full_tensor(), (laid_out @ laid_out).full_tensor(), laid_out.t().full_tensor())
        )
        for new in itertools.product(places, repeat=2):
            again = laid_out.redistribute(mesh, new)
            found.append((str(again.placements), tuple(again.to_local().shape), again.full_tensor()))
    return found


def meshes(torch, rank, size):
    _, _, _, _, mesh_of = _names(torch)
    mesh = mesh_of("cpu", (size, 1), mesh_dim_names=("a", "b"))
    flat = mesh._flatten("all")
    found = [
        str(mesh),
        str(mesh["a"]),
        str(mesh["b"]),
        mesh["a"].mesh.tolist(),
        str(flat),
        flat.mesh.tolist(),
        flat.size(),
    ]
    groups = [torch.distributed.get_process_group_ranks(mesh.get_group(each)) for each in ("a",)]
    return [*found, groups, mesh.get_local_rank("a") == rank, mesh.get_coordinate() == (rank, 0)]
