"""The schemas and signatures of functions, and calls normalized by them, beside PyTorch."""

import importlib
import math
import operator

import pytest
import torch
import torch.fx.operator_schemas
from torch.jit._builtins import _find_builtin as find_in_torch

import weft
from weft.core.registry import FUNCTIONS
from weft.jit._builtins import _find_builtin


def schemas(library):
    return importlib.import_module(f"{library.__name__}.fx.operator_schemas")


def both(program):
    return program(weft), program(torch)


def found(path, library):
    for part in path.split("."):
        library = getattr(library, part, None)
    return library


# In PyTorch: one function of two names, and two packets of operators.
OTHERS = {"sym_sqrt", "_sym_sqrt", "quantized_gru", "quantized_lstm"}
NAMES = [name for name in FUNCTIONS if found(name, torch) is not None and name not in OTHERS]


def test_functions_are_operators():
    """Where there are schemas. PyTorch makes its table while it is imported, so for some functions it knows no name."""

    def operator_of(name):
        operator = find_in_torch(found(name, torch))
        return operator if operator and torch._C._jit_get_schemas_for_operator(operator) else None

    wanted = {name: operator_of(name) for name in NAMES}
    mine = {name: _find_builtin(FUNCTIONS[name]) for name in NAMES}
    assert {name: mine[name] for name in NAMES if wanted[name]} == {k: v for k, v in wanted.items() if v}
    assert not any(
        weft._C._jit_get_schemas_for_operator(mine[name]) for name in NAMES if mine[name] and not wanted[name]
    )
    assert wanted["add"] == "aten::add" and mine["nn.functional.relu"] is None


@pytest.mark.parametrize("function", [math.ceil, math.remainder, math.gcd, dict, operator.add, len, int])
def test_functions_of_python(function):
    assert _find_builtin(function) == find_in_torch(function)


def test_methods_and_functions_of_others_are_no_operators():
    assert _find_builtin(weft.Tensor.add) is find_in_torch(torch.Tensor.add) is None
    assert schemas(weft).get_signature_for_torch_op(test_functions_are_operators) is None
    assert _find_builtin(weft.ops.aten.add) is find_in_torch(torch.ops.aten.add) is None


def test_programs_may_register_their_own():
    def mine():
        pass

    weft.jit._builtins._register_builtin(mine, "aten::relu")
    assert len(schemas(weft).get_signature_for_torch_op(mine)) == 2


def test_schemas_are_those_of_pytorch():
    names = sorted({_find_builtin(function) for function in FUNCTIONS.values()} - {None})
    different = {}
    for name in names:
        mine, theirs = both(lambda library: list(map(str, library._C._jit_get_schemas_for_operator(name))))  # noqa: B023
        if mine != theirs:
            different[name] = (mine, theirs)
    assert different == {}
    assert weft._C._jit_get_schemas_for_operator("aten::nope") == []


def shown(signatures, library):
    """The signatures as text; the names of both libraries are made one."""
    return signatures and [str(each).replace(f"{library.__name__}.", "") for each in signatures]


def test_signatures_are_those_of_pytorch():
    different = {}
    for name in NAMES:
        mine = shown(schemas(weft).get_signature_for_torch_op(FUNCTIONS[name]), weft)
        theirs = shown(schemas(torch).get_signature_for_torch_op(found(name, torch)), torch)
        if (mine or None) != (theirs or None):
            different[name] = (mine, theirs)
    assert different == {}


def test_signatures_with_schemas():
    def answered(library):
        get = schemas(library).get_signature_for_torch_op
        functional = library.nn.functional
        functions = [library.add, functional.linear, functional.relu, library.nonzero, library.ops.aten.add]
        functions += [library.ops.aten.add.Tensor, len]
        answers = [get(each, return_schemas=True) for each in functions]
        return [
            (shown(signatures, library), found and list(map(str, found))) for signatures, found in answers
        ]

    mine, theirs = both(answered)
    assert mine == theirs
    assert mine[2] == (None, None) and len(mine[0][0]) == 16


TENSOR = "library.Tensor"
# Function, arguments, keywords, types of the arguments.
CALLS = [
    ("add", "(x, 1)", "{}", "(library.Tensor, int)"),
    ("add", "(x, x)", "{'alpha': 2}", "(library.Tensor, library.Tensor), {'alpha': int}"),
    ("add", "(x, 1)", "{}", "None"),
    ("relu", "(x,)", "{}", "None"),
    ("relu", "()", "{'input': x}", "None"),
    ("relu", "(x, x, x)", "{}", "None"),
    ("sum", "(x, [0], True)", "{}", "None"),
    ("sum", "(x, 0)", "{}", "(library.Tensor, int)"),
    ("cat", "([x, x], 1)", "{}", "(list[library.Tensor], int)"),
    ("cat", "((x, x), 1)", "{}", "(tuple[library.Tensor, ...], int)"),
    ("clamp", "(x, 0)", "{'max': 1}", "(library.Tensor, int), {'max': int}"),
    ("ones", "([2, 3],)", "{'dtype': library.float64}", "(list[int],), {'dtype': library.dtype}"),
    ("nonzero", "(x,)", "{'as_tuple': True}", "None"),
    ("from_numpy", "(1,)", "{}", "None"),
    ("_assert", "(x, 'no')", "{}", "None"),
    ("sparse.mm", "(x, x)", "{}", "(library.Tensor, library.Tensor)"),
    ("linalg.norm", "(x, 2)", "{}", "(library.Tensor, int)"),
    ("fft.rfft", "(x,)", "{'dim': 0}", "None"),
    ("special.expit", "(x,)", "{}", "None"),
    ("nn.functional.linear", "(x, x)", "{}", "None"),
    ("nn.functional.gelu", "(x,)", "{'approximate': 'tanh'}", "None"),
    ("nn.functional.relu", "(x, True)", "{}", "None"),
    ("nn.functional.relu", "(x, True, 1)", "{}", "None"),
    ("nn.functional.max_pool2d", "(x, 2)", "{'stride': 1}", "None"),
    ("einsum", "('ij->i', x)", "{}", "None"),
    ("cdist", "(x, x)", "{'p': 1}", "None"),
    ("ops.aten.add", "(x, 1)", "{}", "(library.Tensor, int)"),
    ("ops.aten.add.Tensor", "(x, 1)", "{}", "None"),
    ("ops.aten.uniform_.default", "(x, 0, 1)", "{}", "None"),
]


@pytest.mark.parametrize("only_kwargs", [False, True])
@pytest.mark.parametrize("call", CALLS, ids=lambda call: f"{call[0]}{call[1]}{call[3]}")
def test_calls(call, only_kwargs):
    def normalized(library):
        name, args, kwargs, given = call
        names = {"library": library, "x": "x"}
        given = eval(f"({given},)", names)
        types = given if isinstance(given[-1], dict) else (*given, None)
        try:
            pair = schemas(library).normalize_function(
                found(name, library), eval(args, names), eval(kwargs, names), *types, only_kwargs
            )
        except (RuntimeError, TypeError) as error:
            return type(error).__name__
        return repr(pair).replace("torch.", "").replace("weft.", "")

    mine, theirs = both(normalized)
    assert mine == theirs


def test_an_ambiguous_call_names_the_signatures():
    with pytest.raises(RuntimeError, match=r"(?s)ambiguous.*\(input: .*Tensor.*, other: "):
        schemas(weft).normalize_function(weft.add, (1, 2))


def test_functions_of_programs_have_their_own_signature():
    def own(a, b=2, *, c=3):
        pass

    def many(*args):
        pass

    for program in (own, many, operator.add):
        mine, theirs = both(lambda library: schemas(library).normalize_function(program, (1,) * 2))  # noqa: B023
        assert repr(mine) == repr(theirs)


MUTABLE = [
    ("relu_", "(x,)", "{}"),
    ("relu", "(x,)", "{}"),
    ("sigmoid", "(x,)", "{'out': x}"),
    ("add", "(x, x)", "{'out': x}"),
    ("nn.functional.hardtanh_", "(x,)", "{}"),
    ("nn.functional.threshold_", "(x, 1, 2)", "{}"),
    ("nn.init.zeros_", "(x,)", "{}"),
]


@pytest.mark.parametrize("call", MUTABLE, ids=lambda call: f"{call[0]}{call[2]}")
def test_calls_that_write(call):
    def checked(library):
        name, args, kwargs = call
        try:
            schemas(library).check_for_mutable_operation(
                found(name, library), eval(args, {"x": "x"}), eval(kwargs, {"x": "x"})
            )
        except RuntimeError as error:
            return str(error)

    mine, theirs = both(checked)
    assert mine == theirs


TYPES = """
int, int
int, float
float, int
t.List[int], int
t.List[int], list[int]
t.List[int], tuple[int, ...]
t.List[int], tuple[int, float]
t.List[torch.Tensor], list[torch.nn.Parameter]
t.List[torch.Tensor], torch.Tensor
t.Optional[int], int
t.Optional[int], type(None)
t.Optional[t.List[int]], int
n.Number, int
n.Number, float
n.Number, bool
n.Number, complex
int, torch.dtype
torch.Tensor, torch.nn.Parameter
t.Any, int
str, 3
"""


@pytest.mark.parametrize("pair", TYPES.strip().splitlines())
def test_types(pair):
    import numbers
    import typing

    def matches(library):
        names = {"t": typing, "n": numbers, "torch": library}
        return schemas(library).type_matches(*eval(pair, names))

    mine, theirs = both(matches)
    assert mine == theirs


@pytest.mark.parametrize(
    "given", ["[int, int]", "(int, bool)", "[]", "()", "[int, str]", "[bool, int]", "3", "int"]
)
def test_hints(given):
    mine, theirs = both(lambda library: repr(schemas(library).create_type_hint(eval(given))))
    assert mine == theirs


def test_hints_of_what_are_no_types():
    for library in (weft, torch):
        with pytest.warns(UserWarning, match="not able to successfully create type hint"):
            assert schemas(library).create_type_hint([int, 3]) == [int, 3]
