"""What rules share: names of nodes, and gradients that may be written into."""

import pytest
import torch

import weft


def _names(make) -> list[str]:
    found = []
    for module in (torch, weft):
        module.manual_seed(0)
        found.append(type(make(module).grad_fn).__name__)
    return found


def _leaf(module, *sizes):
    return module.rand(*sizes).requires_grad_()


def _bag(module, **options):
    input = module.tensor([0, 1, 2, 2])
    return module.nn.functional.embedding_bag(input, _leaf(module, 4, 3), module.tensor([0, 2]), **options)


def _loss(name, **options):
    def make(module):
        x, target = _leaf(module, 3, 4), module.zeros(3, 4)
        weights = {key: module.ones(3, 4) for key, value in options.items() if value is True}
        return getattr(module.nn.functional, name)(x, target, **{**options, **weights})

    return make


_POOLINGS = [
    (f"{kind}{n}d", n, argument)
    for n in (1, 2, 3)
    for kind, argument in (
        ("avg_pool", 2),
        ("max_pool", 2),
        ("adaptive_avg_pool", 3),
        ("adaptive_max_pool", 3),
    )
]


@pytest.mark.parametrize(
    "name, n, argument", [*_POOLINGS, ("adaptive_avg_pool2d", 2, 1), ("max_pool3d", 3, 3)]
)
def test_poolings_are_one_node(name, n, argument):
    actual = _names(lambda m: getattr(m.nn.functional, name)(_leaf(m, 1, 2, *[6] * n), argument))
    assert actual[1] == actual[0]


@pytest.mark.parametrize(
    "make",
    [
        lambda m: m.nn.functional.fractional_max_pool2d(_leaf(m, 1, 1, 6, 6), 2, output_size=3),
        lambda m: m.nn.functional.max_unpool2d(_leaf(m, 1, 1, 1, 1), m.zeros(1, 1, 1, 1).long(), 2),
        lambda m: m.nn.functional.interpolate(_leaf(m, 1, 1, 3), scale_factor=2),
        lambda m: m.nn.functional.interpolate(_leaf(m, 1, 1, 3, 3), size=5, mode="nearest-exact"),
        lambda m: m.nn.functional.interpolate(_leaf(m, 1, 1, 3, 3), size=5, mode="bilinear"),
        lambda m: m.nn.functional.interpolate(_leaf(m, 1, 1, 3, 3), size=2, mode="bicubic", antialias=True),
        lambda m: m.nn.functional.grid_sample(_leaf(m, 1, 1, 3, 3), m.zeros(1, 2, 2, 2), align_corners=False),
        lambda m: m.nn.functional.unfold(_leaf(m, 1, 1, 3, 3), 2),
        lambda m: m.nn.functional.pdist(_leaf(m, 3, 3)),
        lambda m: m.nn.functional.rrelu(_leaf(m, 3, 3)),
        lambda m: m.nn.functional.rrelu(_leaf(m, 3, 3), training=True),
        lambda m: m.renorm(_leaf(m, 3, 3), 2, 0, 1),
        lambda m: m.block_diag(_leaf(m, 3, 3), _leaf(m, 1)),
        lambda m: m.cholesky(m.eye(3).requires_grad_()),
        lambda m: m.copysign(_leaf(m, 3), m.ones(3)),
        lambda m: m.copysign(_leaf(m, 3), 1.0),
        lambda m: _leaf(m, 2, 3).sum_to_size(1, 3),
        lambda m: _leaf(m, 2, 3).sum_to_size(3),
        lambda m: _leaf(m, 2, 3).sum_to_size(()),
        lambda m: m.unbind_copy(_leaf(m, 3, 3))[0],
        lambda m: m.nn.functional.nll_loss(_leaf(m, 2, 3, 4), m.zeros(2, 4).long()),
        lambda m: m.nn.functional.cross_entropy(_leaf(m, 2, 3), m.zeros(2).long()),
        lambda m: m.nn.functional.multi_margin_loss(_leaf(m, 2, 3), m.zeros(2).long()),
        lambda m: m.nn.functional.multilabel_margin_loss(_leaf(m, 2, 3), m.zeros(2, 3).long()),
        _bag,
        lambda m: _bag(m, mode="sum"),
        lambda m: _bag(m, mode="max"),
        lambda m: _bag(m, padding_idx=2),
        *(_loss(name) for name in ("smooth_l1_loss", "huber_loss", "soft_margin_loss", "mse_loss")),
        *(_loss(f"binary_cross_entropy{kind}") for kind in ("", "_with_logits")),
        *(_loss(f"binary_cross_entropy{kind}", weight=True) for kind in ("", "_with_logits")),
        *(_loss(f"binary_cross_entropy{kind}", reduction="none") for kind in ("", "_with_logits")),
    ],
)
def test_functions_of_several_steps_are_shown_as_one(make):
    actual = _names(make)
    assert actual[1] == actual[0]


def test_what_is_shown_as_one_step_is_no_view():
    x = weft.rand(1, 1, 6, 6).requires_grad_()
    y = weft.nn.functional.interpolate(x, scale_factor=2)
    assert not y._is_view()
    y.mul_(3)
    y.sum().backward()
    assert x.grad.tolist() == [[[[12.0] * 6] * 6]]


@pytest.mark.parametrize("options", [{}, {"dim": 1}, {"dim": (0, 1), "keepdim": True}])
def test_gradient_of_mean_may_be_written_into(options):
    x = weft.ones(3, 4, requires_grad=True)
    (found,) = weft.autograd.grad(x.mean(**options).sum(), x)
    assert found.stride() == (4, 1)
    found.add_(1)
    assert found.unique().numel() == 1
