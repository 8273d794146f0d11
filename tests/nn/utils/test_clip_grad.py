import math

import pytest
from alike import same

import weft
from weft.nn import utils


def parameters(lib):
    """Two with gradients, one without."""
    result = [lib.zeros(n, requires_grad=True) for n in (2, 1, 1)]
    result[0].grad = lib.tensor([3.0, 4.0])
    result[1].grad = lib.tensor([-12.0])
    return result


def clipped(lib, clip):
    listed = parameters(lib)
    return clip(lib.nn.utils, listed), [parameter.grad for parameter in listed]


PROGRAMS = {
    "less": lambda u, p: u.clip_grad_norm_(p, 1.0),
    "enough": lambda u, p: u.clip_grad_norm_(p, 100.0),
    "generator": lambda u, p: u.clip_grad_norm_((each for each in p), 1.0),
    "one": lambda u, p: u.clip_grad_norm_(p[0], 1.0),
    "none": lambda u, p: [u.clip_grad_norm_([], 1.0), u.clip_grad_norm_(iter([]), 1.0)],
    "without gradients": lambda u, p: u.clip_grad_norm_(p[2:], 1.0),
    "foreach": lambda u, p: u.clip_grad_norm_(p, 1.0, foreach=True),
    "by value": lambda u, p: u.clip_grad_value_(p, 3.5),
    "one by value": lambda u, p: u.clip_grad_value_(p[0], 3.5),
    "with a norm": lambda u, p: u.clip_grads_with_norm_(p, 1.0, p[0].grad.norm()),
    "old name": lambda u, p: u.clip_grad_norm(p, 1.0),
    "infinite": lambda u, p: [p[0].grad.fill_(math.inf), u.clip_grad_norm_(p, 1.0)],
    "infinite is an error": lambda u, p: [
        p[0].grad.fill_(math.inf), u.clip_grad_norm_(p, 1.0, error_if_nonfinite=True)
    ],
}  # fmt: skip


@pytest.mark.refuses(["infinite is an error"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_clipping_as_in_torch(name):
    same(lambda lib: clipped(lib, PROGRAMS[name]))


@pytest.mark.parametrize("norm_type", [2, 1, 0.5, 3, 0, math.inf, -math.inf, "inf"])
def test_norms_as_in_torch(norm_type):
    same(lambda lib: clipped(lib, lambda u, p: u.clip_grad_norm_(p, 1.0, norm_type)))


def test_total_norm_as_in_torch():
    same(lambda lib: lib.nn.utils.get_total_norm([]))
    same(lambda lib: lib.nn.utils.get_total_norm(lib.ones(4)))
    same(lambda lib: lib.nn.utils.get_total_norm([lib.ones(4, dtype=lib.float64), lib.ones(2)]))


def test_an_empty_generator_warns():
    with pytest.warns(UserWarning, match="empty generator"):
        utils.clip_grad_norm_((p for p in []), 1.0)


def test_nothing_is_recorded():
    x = weft.ones(2, requires_grad=True)
    x.grad = (x * 2).detach().requires_grad_()
    assert not utils.clip_grad_norm_(x, 1.0).requires_grad
