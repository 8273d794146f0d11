"""What public functions do with arguments of the wrong type: PyTorch's TypeError, whatever calls came before."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
import torch

import weft
from weft.core.checking import checked
from weft.core.registry import FUNCTIONS
from weft.core.tensor import Tensor

# Each right call makes the plan that its wrong ones would find.
CALLS = {
    "torch.diag(torch.ones(3, 5), {})": ("2", "2.0", "0.0", "True", "None", "'2'"),
    "torch.diag_embed(torch.ones(3), {})": ("1", "1.0", "True", "None"),
    "torch.diagflat(torch.ones(3), {})": ("1", "1.0", "True", "None"),
    "torch.ones(4, 4).diagonal_scatter(torch.ones(3), {})": ("1", "1.0", "True", "None"),
    "torch.ones(4, 4).select_scatter(torch.ones(4), 0, {})": ("1", "1.0", "True", "None"),
    "torch.ones(4, 4).slice_scatter(torch.ones(3, 4), 0, {})": ("1", "1.0", "True"),
    "torch.nn.functional.group_norm(torch.ones(2, 4, 4), 2, eps={})": ("1.0", "1", "True", "None", "'a'"),
    "torch.nn.functional.instance_norm(torch.ones(2, 4, 4), momentum={})": ("1.0", "1", "None"),
    "torch.native_batch_norm(torch.ones(2, 3), None, None, torch.zeros(3), torch.ones(3), True, {}, 1e-5)": (
        "1.0",
        "1",
        "None",
    ),
    "torch.sum(torch.ones(2, 2), 1, {})": ("True", "0.5", "'a'"),
    "torch.ones(2, 3).unfold(1, {}, 1)": ("2", "2.0", "True", "None"),
    "torch.ones(4).roll({})": ("1", "1.0", "None"),
    "torch.std(torch.ones(3, 2), dim=0, keepdim={})": ("True", "1", "None"),
    "torch.linalg.eigvalsh(torch.eye(2), {})": ("'L'", "1", "None"),
    "torch.mvlgamma(torch.full((2,), 9.0), {})": ("2", "2.0", "2**62", "None"),
    "torch.polygamma({}, torch.ones(2))": ("1", "1.0", "torch.ones(2)", "None"),
    "torch.nn.functional.hardswish({})": ("torch.ones(2)", "1", "2.5", "None"),
    "torch.addcdiv({}, torch.ones(2), torch.ones(2))": ("torch.ones(2)", "1", "None"),
    "torch.lerp({}, torch.ones(2), 0.5)": ("torch.ones(2)", "None"),
    "torch.nn.functional.adaptive_avg_pool2d(torch.ones(1, 2, 4, 4), (2, {}))": (
        "2",
        "2**62",
        "2**31",
        "'a'",
    ),
    "torch.nn.functional.interpolate(torch.ones(1, 2, 4, 4), scale_factor={})": (
        "2.0",
        "float('inf')",
        "2.0**62",
    ),
    "torch.tensordot(torch.ones(2, 2), torch.ones(2, 2), {})": ("1", "'a'", "[[0]]"),
    "torch.trapezoid(torch.ones(2, 3), {})": ("torch.arange(3.0)", "torch.tensor(1.0)"),
    "torch.ones(2, 3).index_put({}, torch.ones(5))": ("()",),
    "torch.cat({})": ("[torch.ones(2)]", "torch.ones(2)", "[None]", "3"),
}


def outcome(library, expression):
    try:
        return eval(expression, {"torch": library}).tolist()
    except Exception as error:
        return type(error)


@pytest.mark.parametrize("call", CALLS)
def test_arguments_of_the_wrong_type_are_refused_though_their_plan_exists(call):
    for argument in CALLS[call]:
        expression = call.format(argument)
        assert outcome(weft, expression) == outcome(torch, expression), expression


def test_numpys_numbers_and_tensors_without_dimensions_are_ints_floats_and_bools():
    x = weft.ones(3, 5)
    for two in (np.int64(2), np.uint8(2), weft.tensor(2)):
        assert weft.diag(x, two).equal(weft.diag(x, 2))
    y = weft.arange(12.0).view(2, 6)
    expected = weft.nn.functional.group_norm(y, 2, eps=0.5)
    for half in (np.float32(0.5), weft.tensor(0.5)):
        assert weft.nn.functional.group_norm(y, 2, eps=half).equal(expected)
    assert weft.sum(x, 1, np.True_).shape == (3, 1)


def test_what_is_put_in_front_has_the_signature_and_the_errors_of_the_function():
    def function(a: int, /, b: float = 0.5, *rest, c: str | None = None, d: Tensor | None = None, **options):
        """What it does."""
        return a, b, rest, c, d, options

    complete = checked(function, "some.name")
    assert inspect.signature(complete) == inspect.signature(function) and complete.__doc__ == "What it does."
    assert complete(1) == (1, 0.5, (), None, None, {})
    assert complete(1, 2, 3, 4, c="x", e=5) == (1, 2, (3, 4), "x", None, {"e": 5})
    for wrong, message in (
        (lambda: complete(1.0), r"some.name\(\): argument 'a' \(position 1\) must be int, not float"),
        (lambda: complete(1, None), r"argument 'b' \(position 2\) must be float, not NoneType"),
        (lambda: complete(1, c=1), "argument 'c' must be str, not int"),
        (lambda: complete(1, d=1), "argument 'd' must be Tensor, not int"),
        (lambda: complete(), "missing 1 required positional argument: 'a'"),
    ):
        with pytest.raises(TypeError, match=message):
            wrong()


def test_a_function_without_annotated_arguments_stays_as_it_is():
    def function(values, *sizes): ...

    assert checked(function, "name") is function


def test_defaults_are_of_the_annotated_types():
    kinds = {"int": int, "bool": bool, "float": (float, int), "str": str}
    for name, function in FUNCTIONS.items():
        if not inspect.isfunction(function):
            continue
        for parameter in inspect.signature(function).parameters.values():
            kind = kinds.get(str(parameter.annotation))
            if kind is not None and parameter.default is not parameter.empty:
                assert isinstance(parameter.default, kind), f"{name}: {parameter}"
