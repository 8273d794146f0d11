"""Random histories of tensors: what each step does and raises, and all that can be seen of autograd after it."""

import random

import numpy as np
import pytest
import torch

import weft

READS = "exp sigmoid sin square relu clone neg sum contiguous detach abs".split()
VIEWS = {
    "transpose": lambda x: x.transpose(0, -1),
    "select": lambda x: x.select(-1, 0),
    "narrow": lambda x: x.narrow(0, 0, 1),
    "view": lambda x: x.view(-1),
    "expand": lambda x: x.expand(2, *x.shape),
    "unsqueeze": lambda x: x.unsqueeze(0),
    "squeeze": lambda x: x.squeeze(),
    "split": lambda x: x.split(1)[0],
    "unbind": lambda x: x.unbind(0)[-1],
    "diagonal": lambda x: x.diagonal(),
    "as_strided": lambda x: x.as_strided((2,), (1,)),
    "alias": lambda x: x[...],
    "unflatten": lambda x: x.unflatten(0, (1, -1)),
}
WRITES = {
    "add_": lambda x, y: x.add_(y),
    "mul_ number": lambda x, y: x.mul_(2.0),
    "copy_": lambda x, y: x.copy_(y),
    "zero_": lambda x, y: x.zero_(),
    "sigmoid_": lambda x, y: x.sigmoid_(),
    "x[0] =": lambda x, y: x.__setitem__(0, 0.5),
    "x[0] = y": lambda x, y: x.__setitem__(0, y),
    "masked_fill_": lambda x, y: x.masked_fill_(x > 0, 0.5),
    "clamp_": lambda x, y: x.clamp_(-1, 1),
    "fill_": lambda x, y: x.fill_(y.sum()),
    "t_": lambda x, y: x.t_() if x.dim() < 3 else x,
    "unsqueeze_": lambda x, y: x.unsqueeze_(0),
    "squeeze_": lambda x, y: x.squeeze_(),
    "transpose_": lambda x, y: x.transpose_(0, -1),
}
OTHERS = {
    "retain_grad": lambda x, y: x.retain_grad(),
    "hook": lambda x, y: hook(x),
    "no grad": lambda x, y: setattr(x, "grad", None),
}
# What PyTorch refuses as ambiguous or destroyed, and weft, which keeps what it needs, does: docs/differences.md.
ALLOWED = (
    "one of the variables needed for gradient computation",
    "Trying to backward through the graph a second time",
    "A view was created in",
    "unsupported operation",  # writes to memory that overlaps
    "and its base or another view of its base",
    "a view of a view which was created in",
)


def hook(x):
    if not (x._is_view() and x.is_leaf):  # PyTorch crashes for views made without grad
        x.register_hook(lambda ct: ct * 2)


def steps(seed, length=16):
    """What happens: names, and functions of (library, tensors) that return a new tensor or None."""
    rng = random.Random(seed)
    for k in range(length):
        one, other, kind = rng.random(), rng.random(), rng.random()
        no_grad = rng.random() < 0.15
        if k < 2 or kind < 0.1:
            shape = rng.choice([(2, 3), (3,), (2, 2), (1, 3), (2, 1, 3)])
            made = np.array(rng.choices([-2.0, -1.0, 0.5, 1.0, 3.0], k=int(np.prod(shape)))).reshape(shape)
            wanted = rng.random() < 0.7
            yield f"leaf {shape} {wanted}", lambda lib, ts, v=made, r=wanted: lib.tensor(v, requires_grad=r)
            continue
        if kind < 0.3:
            name = rng.choice([*READS, "mul"])
            act = (lambda x, y: x * y) if name == "mul" else (lambda x, y, n=name: getattr(x, n)())
        elif kind < 0.5:
            name = rng.choice(sorted(VIEWS))
            act = lambda x, y, view=VIEWS[name]: view(x)  # noqa: E731
        else:
            table = WRITES if kind < 0.75 else OTHERS if kind < 0.85 else None
            name = rng.choice(["backward", "inputs", "grad", "graph"] if table is None else sorted(table))
            act = backward(name) if table is None else table[name]

        if name in ("t_", "squeeze_", "unsqueeze_", "transpose_"):
            no_grad = False  # of a leaf whose shape changed PyTorch refuses the gradient

        def step(lib, ts, act=act, one=one, other=other, no_grad=no_grad):
            x, y = ts[int(one * len(ts))], ts[int(other * len(ts))]
            with lib.set_grad_enabled(not no_grad):
                result = act(x, y)
            return None if any(result is each for each in ts) else result

        yield f"{name} {one:.2f} {other:.2f} {no_grad}", step


def backward(how):
    def act(x, y):
        lib = torch if isinstance(x, torch.Tensor) else weft
        ct = lib.ones_like(x)
        if how in ("backward", "inputs"):
            x.backward(ct, retain_graph=True, inputs=[y] if how == "inputs" else None)
            return None
        return lib.autograd.grad(x, y, ct, retain_graph=True, create_graph=how == "graph", allow_unused=True)[
            0
        ]

    return act


def attempt(step, lib, tensors):
    try:
        result = step(lib, tensors)
    except (RuntimeError, IndexError, ValueError) as error:
        return error
    if result is not None:
        tensors.append(result)
    return None


def values(tensor):
    return None if tensor is None else np.array(tensor.detach().numpy())


def compare(ours, theirs):
    np.testing.assert_equal(values(ours).shape, tuple(theirs.shape))
    np.testing.assert_allclose(values(ours), values(theirs), rtol=1e-12)
    grads = values(ours.grad), values(theirs.grad)
    assert (grads[0] is None) == (grads[1] is None)
    if grads[0] is not None:
        np.testing.assert_allclose(*grads, rtol=1e-12)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seeds", range(0, 200, 50))
def test_random_histories(seeds):
    for seed in range(seeds, seeds + 50):
        ours, theirs = [], []
        for name, step in steps(seed):
            error, wanted = attempt(step, weft, ours), attempt(step, torch, theirs)
            if error is None and "in-place" in str(wanted) or "inplace" in str(wanted):
                break  # PyTorch refuses more, such as views made before their base took part in autograd
            if any(each in f"{error} {wanted}" for each in ALLOWED):
                break
            assert (error is None) == (wanted is None), (seed, name, error, wanted)
            assert wanted is None or isinstance(error, type(wanted)), (seed, name, error, wanted)
            assert len(ours) == len(theirs), (seed, name)
            for a, b in zip(ours, theirs, strict=True):
                compare(a, b)
