"""Linear algebra of matrices whose rows are cut, for several_ranks.py: how far results and gradients are from those of one process."""

N = 150  # more than a block of each factorization


def _matrices(torch):
    draw = torch.Generator().manual_seed(1)
    square, tall, right = (
        torch.randn(*shape, dtype=torch.float64, generator=draw) for shape in ((N, N), (N, 9), (N, 3))
    )
    positive = square @ square.T + N * torch.eye(N).double()
    return {"A": square, "S": positive, "T": tall, "B": right}


def _calls(torch):
    linalg = torch.linalg
    return {
        "qr": ("T", lambda t: linalg.qr(t)[0] @ linalg.qr(t)[1]),
        "r": ("T", lambda t: linalg.qr(t)[1].abs()),
        "svd": ("T", lambda t: _product(*linalg.svd(t, full_matrices=False))),
        "svdvals": ("T", linalg.svdvals),
        "cholesky": ("S", linalg.cholesky),
        "upper cholesky": ("S", lambda s: linalg.cholesky(s, upper=True)),
        "lower triangle": ("SB", lambda s, b: linalg.solve_triangular(s.tril(), b, upper=False)),
        "upper triangle": ("SB", lambda s, b: linalg.solve_triangular(s.triu(), b, upper=True)),
        "from the right": (
            "SB",
            lambda s, b: linalg.solve_triangular(s.triu(), b.mT, upper=True, left=False),
        ),
        "lu": ("A", lambda a: linalg.lu_factor(a)[0]),
        "solve": ("AB", linalg.solve),
        "solve for a vector": ("AB", lambda a, b: linalg.solve(a, b[:, 0])),
        "inv": ("A", linalg.inv),
        "lstsq": ("TB", lambda t, b: linalg.lstsq(t, b).solution),
        "residuals": ("TB", lambda t, b: linalg.lstsq(t, b, driver="gels").residuals),
    }


def _product(left, values, right):
    return (left * values) @ right


def _with_gradients(torch, function, inputs):
    result = function(*inputs)
    whole = result.full_tensor() if hasattr(result, "full_tensor") else result
    weights = torch.linspace(1, 2, whole.numel(), dtype=torch.float64).reshape(whole.shape)
    (whole * weights).sum().backward()
    found = [whole.detach(), *(each.grad for each in inputs)]
    return [each.full_tensor() if hasattr(each, "full_tensor") else each for each in found], result


def differences(torch, rank, size):
    """For each call the largest error, relative to the largest number, and where the result lies."""
    tensor = torch.distributed.tensor
    mesh, matrices = torch.distributed.init_device_mesh("cpu", (size,)), _matrices(torch)
    found = {}
    for name, (letters, function) in _calls(torch).items():
        plain = [matrices[each].clone().requires_grad_() for each in letters]
        cut = [
            tensor.distribute_tensor(matrices[each], mesh, [tensor.Shard(0)]).requires_grad_()
            for each in letters
        ]
        expected, _ = _with_gradients(torch, function, plain)
        got, result = _with_gradients(torch, function, cut)
        errors = [((a - b).abs().max() / b.abs().max()).item() for a, b in zip(got, expected)]
        found[name] = max(errors), str(result.placements)
    return found


def failures(torch, rank, size):
    """The errors of one process, on each process."""
    tensor, mesh = torch.distributed.tensor, torch.distributed.init_device_mesh("cpu", (size,))
    found = []
    for function in (torch.linalg.cholesky, torch.linalg.inv, torch.linalg.solve):
        matrix = torch.eye(7).double()
        matrix[4, 4] = 0
        cut = tensor.distribute_tensor(matrix, mesh, [tensor.Shard(0)])
        said = []
        for each in (matrix, cut):
            try:
                function(each, each) if function is torch.linalg.solve else function(each)
            except torch.linalg.LinAlgError as error:
                said.append(str(error))
        found.append(said[0] == said[1])
    return found
