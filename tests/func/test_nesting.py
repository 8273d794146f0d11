"""Transforms within transforms, three deep, against PyTorch."""

import itertools
import random

import numpy as np
import pytest
import torch

import weft

POINT = np.array([[0.5, -1.0], [1.5, 0.3]])


def transforms(lib):
    func = lib.func
    return {
        "grad": lambda f: func.grad(lambda x: f(x).sum()),
        "grad aux": lambda f: lambda x: func.grad(lambda x: (f(x).sum(), {"at": x}), has_aux=True)(x)[0],
        "vjp": lambda f: lambda x: _pulled(lib, *func.vjp(f, x)),
        "jvp": lambda f: lambda x: func.jvp(f, (x,), (lib.ones_like(x),))[1],
        "jacrev": func.jacrev,
        "jacrev chunks": lambda f: func.jacrev(f, chunk_size=2),
        "jacfwd": func.jacfwd,
        "hessian": lambda f: func.hessian(lambda x: f(x).sum()),
        "vmap": func.vmap,
        "vmap last": lambda f: func.vmap(f, in_dims=-1, out_dims=-1),
        "vmap chunks": lambda f: func.vmap(f, chunk_size=1),
    }


def _pulled(lib, out, pull):
    return pull(lib.ones_like(out))[0]


FUNCTIONS = {
    "product": lambda x: x.sin() * x,
    "in place": lambda x: (x * 1).mul_(x).add_(1),
    "softmax": lambda x: x.softmax(-1) if x.dim() else x.tanh(),
    "outer": lambda x: x.unsqueeze(-1) * x.unsqueeze(-2) if x.dim() else x * x,
}
# What PyTorch's own forward mode cannot do.
UNSUPPORTED = "ZeroTensor"


def result(lib, names, function):
    for name in reversed(names):
        function = transforms(lib)[name](function)
    try:
        return function(lib.tensor(POINT)).detach().numpy()
    except (RuntimeError, ValueError, IndexError) as error:
        return error


def nestings(count):
    rng = random.Random(0)
    every = [*itertools.product(transforms(torch), repeat=2), *itertools.product(transforms(torch), repeat=3)]
    return rng.sample(every, count)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("names", nestings(40), ids=" of ".join)
def test_transforms_nest(names):
    function = FUNCTIONS[random.Random(str(names)).choice(sorted(FUNCTIONS))]
    found, wanted = result(weft, names, function), result(torch, names, function)
    if isinstance(wanted, Exception):
        assert UNSUPPORTED in str(wanted) or isinstance(found, type(wanted))
    else:
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)
