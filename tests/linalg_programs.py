"""Linear algebra of matrices whose rows are cut, for several_ranks.py: how far results and gradients are from those of one process."""

N = 150  # more than a block of each factorization


def _matrices(torch):
    draw = torch.Generator().manual_seed(1)
    square, tall, right, many = (
        torch.randn(*shape, dtype=torch.float64, generator=draw)
        for shape in ((N, N), (N, 9), (N, 3), (N, 80))
    )
    positive = square @ square.T + N * torch.eye(N).double()
    return {"A": square, "S": positive, "T": tall, "B": right, "L": many, "W": many.T}


def _calls(torch):
    linalg = torch.linalg
    return {
        "qr": ("T", lambda t: linalg.qr(t)[0] @ linalg.qr(t)[1]),
        "r": ("T", lambda t: linalg.qr(t)[1].abs()),
        "svd": ("T", lambda t: _product(*linalg.svd(t, full_matrices=False))),
        "svd_lowrank": ("T", lambda t: _lowrank(torch, t)),
        "svdvals": ("T", linalg.svdvals),
        "qr of a square matrix": ("A", lambda a: linalg.qr(a)[0].square() @ linalg.qr(a)[1].abs()),
        "r of a wide matrix": ("W", lambda w: linalg.qr(w)[1].abs()),
        "svd of a square matrix": ("A", lambda a: _without_signs(*linalg.svd(a))),
        "svd of a wide matrix": ("W", lambda w: _without_signs(*linalg.svd(w, full_matrices=False))),
        "svdvals of a square matrix": ("A", linalg.svdvals),
        "lstsq of many columns": ("LB", lambda t, b: linalg.lstsq(t, b).solution),
        "residuals of many columns": ("LB", lambda t, b: linalg.lstsq(t, b, driver="gels").residuals),
        "eigh": ("S", lambda s: _without_signs(*linalg.eigh(s)[::-1])),
        "eigh of an indefinite matrix": (
            "A",
            lambda a: (lambda values, vectors: vectors.square() * values)(*linalg.eigh(a + a.mT)),
        ),
        "eigh of the upper triangle": ("A", lambda a: linalg.eigh(a, UPLO="U")[0]),
        "eigvalsh": ("A", linalg.eigvalsh),
        "det": ("A", lambda a: linalg.det(a / 10)),
        "slogdet": ("A", lambda a: linalg.slogdet(a)[1]),
        "logdet": ("S", lambda s: s.logdet()),
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


def _without_signs(*factors):
    """Depends on values and on vectors, but not on the signs of vectors, which are not determined."""
    of_left = factors[0].square() * factors[1].sqrt()
    return of_left if len(factors) == 2 else of_left @ factors[2].square()


def _lowrank(torch, matrix):
    left, values, right = torch.svd_lowrank(matrix, q=matrix.shape[1])
    return _product(left, values, right.mT)


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


def kinds(torch, rank, size):
    """Of complex matrices, singular ones and those with equal eigenvalues: how far products of factors are from the matrix, and from unitary."""
    tensor, mesh, linalg = (
        torch.distributed.tensor,
        torch.distributed.init_device_mesh("cpu", (size,)),
        torch.linalg,
    )
    draw = torch.Generator().manual_seed(2)
    plain, thin = (torch.randn(*each, dtype=torch.complex128, generator=draw) for each in ((70, 70), (70, 3)))
    found = {}

    def factors(function, matrix):
        cut = tensor.distribute_tensor(matrix, mesh, [tensor.Shard(0)])
        return [each.full_tensor() for each in function(cut)]

    def distance(a, b):
        return (a - b).abs().max().item() / max(b.abs().max().item(), 1)

    one = torch.eye(70, dtype=torch.complex128)
    matrices = {
        "complex": plain,
        "of rank 3": thin @ thin.mH,
        "zero": plain * 0,
        "one": one,
        "flipped": one.flip(0),
    }
    for name, matrix in matrices.items():
        hermitian = matrix + matrix.mH
        q, r = factors(linalg.qr, matrix)
        left, values, right = factors(linalg.svd, matrix)
        eigenvalues, vectors = factors(linalg.eigh, hermitian)
        found[name] = max(
            *[distance(each @ each.mH, one) for each in (q, left, right, vectors)],
            distance(q @ r, matrix),
            distance(left * values @ right, matrix),
            distance(vectors * eigenvalues @ vectors.mH, hermitian),
            distance(eigenvalues, linalg.eigvalsh(hermitian)),
            distance(values, linalg.svdvals(matrix)),
        )
    return found


def failures(torch, rank, size):
    """The errors of one process, on each process."""
    tensor, mesh = torch.distributed.tensor, torch.distributed.init_device_mesh("cpu", (size,))
    found = []
    spoiled = torch.eye(70).double()
    spoiled[4, 4] = float("nan")
    for function in (
        torch.linalg.cholesky,
        torch.linalg.inv,
        torch.linalg.solve,
        torch.linalg.eigh,
        torch.linalg.svd,
    ):
        matrix = torch.eye(7).double()
        matrix[4, 4] = 0
        if function in (torch.linalg.eigh, torch.linalg.svd):
            matrix = spoiled
        cut = tensor.distribute_tensor(matrix, mesh, [tensor.Shard(0)])
        said = []
        for each in (matrix, cut):
            try:
                function(each, each) if function is torch.linalg.solve else function(each)
            except torch.linalg.LinAlgError as error:
                said.append(str(error))
        found.append(said)
    return found
