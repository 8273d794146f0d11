"""Attention of sequences that are cut among processes, for several_ranks.py: how far it is from the attention of whole sequences in one process."""

import importlib

LENGTH = 24  # positions; 2, 3 and 4 processes may have two pieces each


def _names(torch):
    experimental = importlib.import_module(f"{torch.__name__}.distributed.tensor.experimental")
    private = importlib.import_module(f"{torch.__name__}.distributed.tensor.experimental._attention")
    return experimental.context_parallel, private, torch.distributed.device_mesh.init_device_mesh


def _drawn(torch, *shapes):
    draw = torch.Generator().manual_seed(1)
    return [torch.randn(*shape, dtype=torch.float64, generator=draw) for shape in shapes]


def buffers(torch, rank, size):
    """The parts of sequences, and the whole ones again."""
    context_parallel, private, mesh_of = _names(torch)
    mesh, found = mesh_of("cpu", (size,)), []
    for length in (LENGTH, size * 3):
        x, positions = torch.arange(2.0 * length).reshape(1, 2, length, 1), torch.arange(length).unsqueeze(0)
        for kept in (set(), {x}):
            options = {"buffers": [x, positions], "buffer_seq_dims": [2, 1], "no_restore_buffers": kept}
            with context_parallel(mesh, **options):
                found += [x.clone(), positions.clone()]
                found += private.context_parallel_unshard(mesh, [x, positions], [2, 1])
            found += [x.clone(), positions.clone()]
    for balance in (True, False):
        x = torch.arange(2 * LENGTH).reshape(2, LENGTH)
        balancer = private._HeadTailLoadBalancer(LENGTH, size, "cpu") if balance else None
        (part,) = private._context_parallel_shard(mesh, [x], [1], balancer)
        found += [part, *private.context_parallel_unshard(mesh, [part], [1], balancer)]
    private._cp_options.enable_load_balance = True
    return found


def refusals(torch, rank, size):
    context_parallel, private, mesh_of = _names(torch)
    mesh, x, found = mesh_of("cpu", (size,)), torch.ones(1, 2, LENGTH, 4), []
    calls = [
        lambda: context_parallel(mesh, buffers=[x], buffer_seq_dims=[2, 2]).__enter__(),
        lambda: context_parallel(
            mesh, buffers=[x], buffer_seq_dims=[2], no_restore_buffers={x + 1}
        ).__enter__(),
        lambda: private.set_rotate_method("pigeon"),
    ]
    for call in calls:
        try:
            found.append(call())
        except Exception as error:
            found.append(type(error).__name__)
    return found


# ---- With weft only: PyTorch has no such attention on the CPU -------------------------------------------------------------


def _attention_differences(torch, rank, size, dtype, length, **options):
    """Of results and gradients of the parts of this process, relative to the largest number."""
    context_parallel, private, mesh_of = _names(torch)
    heads = 2 if options.get("enable_gqa") else 4
    wholes = [each.to(dtype) for each in _drawn(torch, (2, 4, length, 8), *[(2, heads, length, 8)] * 2)]
    (weights,) = _drawn(torch, (2, 4, length, 8))
    attend = torch.nn.functional.scaled_dot_product_attention

    def results(inputs, weights):
        out = torch.nn.functional.scaled_dot_product_attention(*inputs, **options)
        (out * weights).sum().backward()
        return [out.detach(), *[each.grad for each in inputs]]

    expected = results([each.clone().requires_grad_() for each in wholes], weights)
    mesh = mesh_of("cpu", (size,))
    cut = [each.clone() for each in (*wholes, weights)]
    with context_parallel(mesh, buffers=cut, buffer_seq_dims=[2] * 4, no_restore_buffers=set(cut)):
        *inputs, weights = cut
        found = results([each.requires_grad_() for each in inputs], weights)
        if length % size == 0:
            found = private.context_parallel_unshard(mesh, found, [2] * 4)
        else:
            piece = -(-length // size)
            expected = [each[:, :, rank * piece : (rank + 1) * piece] for each in expected]
    assert torch.nn.functional.scaled_dot_product_attention is attend
    return max(((a - b).abs().max() / b.abs().max()).item() for a, b in zip(found, expected))


def attention(torch, rank, size):
    if torch.__name__ == "torch":
        return None
    cases = {
        "causal": (torch.float64, LENGTH, {"is_causal": True}),
        "full": (torch.float64, LENGTH, {}),
        "not balanced": (torch.float64, 3 * size, {"is_causal": True, "scale": 0.7}),
        "pieces of several sizes": (torch.float64, 3 * size + 1, {"is_causal": True}),
        "few keys": (torch.float64, LENGTH, {"is_causal": True, "enable_gqa": True}),
        "narrow": (torch.bfloat16, LENGTH, {"is_causal": True}),
    }
    return {
        name: _attention_differences(torch, rank, size, dtype, length, **options)
        for name, (dtype, length, options) in cases.items()
    }


def layer(torch, rank, size):
    """The way by `parallelize_module`: how far the attention is from that of one process."""
    if torch.__name__ == "torch":
        return None
    _, private, mesh_of = _names(torch)
    mesh = mesh_of("cpu", (size,))

    class Attention(torch.nn.Module):
        def forward(self, q, k, v):
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)

    wholes = _drawn(torch, *[(1, 2, LENGTH, 4)] * 3)
    balancer = private._HeadTailLoadBalancer(LENGTH, size, "cpu")
    parts = private._context_parallel_shard(mesh, wholes, [2] * 3, balancer)
    style = private._ContextParallel(2, private._ContextParallel.AttentionType.SDPA)
    module = importlib.import_module(f"{torch.__name__}.distributed.tensor.parallel").parallelize_module(
        Attention(), mesh, style
    )
    (found,) = private.context_parallel_unshard(mesh, [module(*parts)], [2], balancer)
    private._cp_options.enable_load_balance = True
    return (found - Attention()(*wholes)).abs().max().item()


def _transformer(torch):
    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.places = torch.nn.Embedding(11, 16), torch.nn.Embedding(LENGTH, 16)
            self.norm, self.qkv = torch.nn.LayerNorm(16), torch.nn.Linear(16, 48)
            self.out = torch.nn.Linear(16, 11)

        def forward(self, ids, positions):
            x = self.tokens(ids) + self.places(positions)
            q, k, v = (
                each.unflatten(-1, (4, 4)).transpose(1, 2) for each in self.qkv(self.norm(x)).chunk(3, -1)
            )
            found = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.out(x + found.transpose(1, 2).flatten(2))

    torch.manual_seed(2)
    return Block().double()


def curves(torch, rank, size):
    """The losses of a model in one process, and with its sequences cut."""
    if torch.__name__ == "torch":
        return None
    context_parallel, _, mesh_of = _names(torch)
    mesh, found = mesh_of("cpu", (size,)), []
    ids = (torch.arange(2 * (LENGTH + 1)) * 7 % 11).reshape(2, LENGTH + 1)
    for is_cut in (False, True):
        model, losses = _transformer(torch), []
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
        for _ in range(4):
            batch = [ids[:, :-1].clone(), ids[:, 1:].clone(), torch.arange(LENGTH)]
            if is_cut:
                with context_parallel(mesh, buffers=batch, buffer_seq_dims=[1, 1, 0]):
                    loss = _backward(torch, model, *batch)
                for each in model.parameters():
                    torch.distributed.all_reduce(each.grad, torch.distributed.ReduceOp.AVG)
                torch.distributed.all_reduce(loss, torch.distributed.ReduceOp.AVG)
            else:
                loss = _backward(torch, model, *batch)
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item())
        found.append(losses)
    return found


def _backward(torch, model, given, wanted, positions):
    loss = torch.nn.functional.cross_entropy(model(given, positions).flatten(0, 1), wanted.flatten())
    loss.backward()
    return loss.detach()
