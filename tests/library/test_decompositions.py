"""Decompositions give what their operators give."""

import pytest
import torch
import torch._decomp

import weft
import weft._decomp
from weft import randn
from weft.library.decompositions import core_aten_decompositions, decomposition_table, get_decompositions

aten = weft.ops.aten


def x(*shape):
    return randn(*(shape or (3, 4)))


def p(*shape):
    return weft.rand(*(shape or (3, 4))) * 0.8 + 0.1


# Arguments of the operators; those that are not listed take one matrix.
ARGUMENTS = {
    "silu_backward": lambda: (x(), x()), "gelu_backward": lambda: (x(), x()), "tanh_backward": lambda: (x(), p()),
    "sigmoid_backward": lambda: (x(), p()), "threshold_backward": lambda: (x(), x(), 0.1),
    "leaky_relu_backward": lambda: (x(), x(), 0.1, False), "threshold": lambda: (x(), 0.1, 2.0), "elu": lambda: (x(), 1.5, 2.0, 0.5),
    "addcmul": lambda: (x(), x(), x()), "addcdiv": lambda: (x(), x(), p()), "lerp.Scalar": lambda: (x(), x(), 0.3),
    "lerp.Tensor": lambda: (x(), x(), p()), "rsub.Tensor": lambda: (x(), x()), "rsub.Scalar": lambda: (x(), 2.0),
    "xlogy.Tensor": lambda: (x().clamp_min(0), p()), "masked_fill.Scalar": lambda: (x(), x() > 0, 2.0),
    "masked_fill.Tensor": lambda: (x(), x() > 0, weft.tensor(2.0)), "heaviside": lambda: (x().round(), x()),
    "addmm": lambda: (x(3, 5), x(3, 4), x(4, 5)), "addmv": lambda: (x(3), x(3, 4), x(4)), "addr": lambda: (x(3, 4), x(3), x(4)),
    "baddbmm": lambda: (x(2, 3, 5), x(2, 3, 4), x(2, 4, 5)), "mv": lambda: (x(3, 4), x(4)), "dot": lambda: (x(4), x(4)),
    "transpose.int": lambda: (x(2, 3, 4), 0, -1), "stack": lambda: ([x(), x()], -1), "split.Tensor": lambda: (x(), 3, 1),
    "select_backward": lambda: (x(3), [3, 4], 1, 2), "slice_backward": lambda: (x(3, 2), [3, 4], 1, 0, 4, 2),
    "roll": lambda: (x(), [1, -2], [0, 1]), "_unsafe_view": lambda: (x(), [4, 3]), "new_zeros": lambda: (x(), [2]),
    "new_ones": lambda: (x(), [2]), "zeros": lambda: ([2, 3],), "ones": lambda: ([2, 3],), "_softmax": lambda: (x(), 1, False),
    "_log_softmax": lambda: (x(), 0, False), "_softmax_backward_data": lambda: (x(), x().softmax(1), 1, weft.float32),
    "_log_softmax_backward_data": lambda: (x(), x().log_softmax(1), 1, weft.float32),
    "native_layer_norm": lambda: (x(), [4], x(4), x(4), 1e-5), "logsumexp": lambda: (x(), [1]), "mse_loss": lambda: (x(), x()),
    "mse_loss_backward": lambda: (weft.tensor(2.0), x(), x(), 1), "smooth_l1_loss": lambda: (x(), x(), 2), "huber_loss": lambda: (x(), x(), 0),
    "binary_cross_entropy": lambda: (p(), p(), p()),
}  # fmt: skip
NAMES = [f"{op._opname}.{op._overloadname}".removesuffix(".default") for op in decomposition_table]


@pytest.mark.parametrize("name", NAMES)
def test_decompositions(name):
    weft.manual_seed(0)
    operator, _, overload = name.partition(".")
    op = getattr(getattr(aten, operator), overload or "default")
    args = ARGUMENTS.get(name, lambda: (x(4, 4),))()
    expected, found = op(*args), decomposition_table[op](*args)
    several = isinstance(expected, (tuple, list))
    for one, other in zip(expected if several else [expected], found if several else [found], strict=True):
        weft.testing.assert_close(one, other)


def test_the_tables_are_parts_of_pytorchs():
    theirs = {str(op) for op in torch._decomp.decomposition_table}
    assert {str(op) for op in decomposition_table} - theirs <= {"aten.t.default"}
    core = {str(op) for op in torch._decomp.core_aten_decompositions()}
    assert {str(op) for op in core_aten_decompositions()} - core <= {"aten.addmv.default"}


def test_choosing_decompositions():
    assert list(get_decompositions([aten.silu, aten.sin])) == [aten.silu.default]
    table = {}

    @weft._decomp.register_decomposition([aten.sin, aten.lerp], table)
    def nothing(*args):
        return NotImplemented

    assert set(table) >= {aten.sin.default, aten.lerp.Scalar, aten.lerp.Tensor}
    assert aten.sin.default not in decomposition_table
    with pytest.raises(NotImplementedError):
        weft._decomp.register_decomposition(aten.sin, type="meta")
