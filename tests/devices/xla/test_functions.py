"""Functions of XLA are found in expansions of any operand, and only there."""

import pytest

from weft.core.dtype import float32, float64
from weft.devices.xla.functions import with_functions
from weft.engine import approx
from weft.engine.expr import load, postorder


def calls(root):
    return [
        (each.value.__name__, each.args) for each in postorder(with_functions((root,))) if each.op == "call"
    ]


@pytest.mark.parametrize("dtype", [float32, float64])
@pytest.mark.parametrize("name", ["erf", "exp", "expm1", "log", "sigmoid", "tanh"])
def test_a_function_is_found(name, dtype):
    operand = load(0, dtype) * load(1, dtype)
    wanted = "logistic" if name == "sigmoid" else name
    assert calls(getattr(approx, name)(operand) + 1) == [(wanted, (operand,))]


def test_one_function_of_another():
    x = load(0, float32)
    (inner, operand), (outer, result) = calls(approx.log(approx.tanh(x) + 2))
    assert (inner, operand, outer) == ("tanh", (x,), "log") and result[0].op == "add"


def test_other_expressions_stay():
    x = load(0, float32)
    for root in (x + 1, approx.sin(x), approx.pow(x, load(1, float32))):
        assert with_functions((root,)) == (root,)
