"""Writes in place, through bases and views: random programs must do in weft what they do in PyTorch."""

import random

import numpy as np
import pytest
import torch

import weft

# Views that both libraries let us write through; the name and what it takes.
VIEWS = {
    "t": (2, lambda x: x.t()),
    "transpose": (2, lambda x: x.transpose(0, 1)),
    "select": (1, lambda x: x[-1]),
    "slice": (1, lambda x: x[1:]),
    "steps": (1, lambda x: x[::2]),
    "unsqueeze": (0, lambda x: x.unsqueeze(-1)),
    "flat": (0, lambda x: x.view(-1)),
    "diagonal": (2, lambda x: x.diagonal()),
    "alias": (0, lambda x: x[...]),
    "real": (0, lambda x: x.real if x.is_complex() else x[...]),
    "as real": (0, lambda x: x.real.unsqueeze(0) if x.is_complex() else x[...]),
    "imag": (0, lambda x: x.imag if x.is_complex() else x[...]),
    "conj": (0, lambda x: x.conj() if x.is_complex() else x[...]),
    "expand": (0, lambda x: x.expand(2, *x.shape)),
}
# In place: the target and another tensor, whose shape may or may not fit.
WRITES = {
    "mul_": lambda x, other: x.mul_(other),
    "add_": lambda x, other: x.add_(other),
    "mul_ number": lambda x, other: x.mul_(1.5),
    "copy_": lambda x, other: x.copy_(other),
    "zero_": lambda x, other: x.zero_(),
    "fill_": lambda x, other: x.fill_(0.5),
    "sigmoid_": lambda x, other: x.sigmoid_(),
    "square_": lambda x, other: x.square_(),
    "neg_": lambda x, other: x.neg_(),
    "x[0] =": lambda x, other: x.__setitem__(0, other),
    "x[1:] =": lambda x, other: x.__setitem__(slice(1, None), 0.25),
    "x[...] =": lambda x, other: x.__setitem__(..., other),
}
READS = {
    "sin": lambda x, other: x.sin(),
    "square": lambda x, other: x * x,
    "product": lambda x, other: x * other,
    "clone": lambda x, other: x.clone(),
}


def programs(seed, length=12):
    """Steps as (kind, name, index of a tensor, index of another)."""
    rng = random.Random(seed)
    kinds = [("view", VIEWS), ("write", WRITES), ("write", WRITES), ("read", READS)]
    for _ in range(length):
        kind, table = rng.choice(kinds)
        yield kind, rng.choice(sorted(table)), rng.random(), rng.random()


def start(lib, seed):
    """Leaves, and tensors to write into."""
    rng = np.random.default_rng(seed)
    dtype = "complex128" if seed % 4 == 3 else "float64"

    def tensor(*shape):
        values = rng.normal(size=shape) + (1j * rng.normal(size=shape) if dtype == "complex128" else 0)
        return lib.from_numpy(np.asarray(values, dtype))

    leaves = [tensor(3, 3).requires_grad_(), tensor(3).requires_grad_()]
    buffer = tensor(3, 3) if seed % 2 else leaves[0].clone()
    return leaves, [buffer, leaves[1].clone(), *leaves]


def facts(tensor, first):
    values = tensor.detach().resolve_conj().resolve_neg()
    return {
        "values": np.array(values.numpy()),
        "requires_grad": tensor.requires_grad,
        "is_leaf": tensor.is_leaf,
        "is_view": tensor._is_view(),
        "version": tensor._version - first,
    }


def name(tensor):
    node = tensor.grad_fn
    return None if node is None else type(node).__name__


def root(tensor):
    return tensor if tensor._base is None else tensor._base


class Run:
    """A program in one of the libraries."""

    def __init__(self, lib, seed):
        self.lib = lib
        self.leaves, self.tensors = start(lib, seed)
        self.versions = [each._version for each in self.tensors]  # when they were made

    def step(self, kind, what, one, other):
        tensors = self.tensors
        x, y = tensors[int(one * len(tensors))], tensors[int(other * len(tensors))]
        if kind == "view":
            dims, view = VIEWS[what]
            if x.dim() >= dims:
                tensors.append(view(x))
        elif kind == "read":
            tensors.append(READS[what](x, y))
        else:
            if root(x) is not root(y):  # PyTorch destroys what x.mul_(x) needs
                WRITES[what](x, y)
        self.versions += [each._version for each in tensors[len(self.versions) :]]

    def gradients(self):
        roots = [each for each in self.tensors if each.requires_grad]
        ones = [self.lib.ones_like(each) for each in roots]
        return self.lib.autograd.grad(roots, self.leaves, ones, allow_unused=True)


def attempt(function, *args):
    try:
        return function(*args)
    except Exception as error:
        return type(error)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(200))
def test_random_programs(seed):
    ours, theirs = Run(weft, seed), Run(torch, seed)
    story = []
    for step in programs(seed):
        story.append(step)
        expected, got = attempt(theirs.step, *step), attempt(ours.step, *step)
        assert got == expected, story
        for k, (one, other) in enumerate(zip(ours.tensors, theirs.tensors, strict=True)):
            mine, wanted = facts(one, ours.versions[k]), facts(other, theirs.versions[k])
            np.testing.assert_allclose(mine.pop("values"), wanted.pop("values"), 1e-9, err_msg=str(story))
            assert mine == wanted, story
            if not other.is_complex() and not (other._is_view() and other._base.is_complex()):
                assert name(one) == name(other), story
            bases = [
                next((k for k, each in enumerate(run.tensors) if each is t._base), None)
                for run, t in ((ours, one), (theirs, other))
            ]
            assert bases[0] == bases[1], story
    expected, got = attempt(theirs.gradients), attempt(ours.gradients)
    assert isinstance(got, tuple) == isinstance(expected, tuple), (got, expected, story)
    if not isinstance(expected, tuple):
        assert got is expected
        return
    for one, other in zip(got, expected, strict=True):
        assert (one is None) == (other is None), story
        if other is not None:
            np.testing.assert_allclose(
                one.resolve_conj().numpy(),
                other.resolve_conj().resolve_neg().numpy(),
                1e-8,
                1e-12,
                err_msg=str(story),
            )
