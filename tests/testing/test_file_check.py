"""FileCheck beside PyTorch's: which texts pass, and what is said of the others."""

import pytest
import torch

import weft

CODE = "x = relu(a)\ny = relu(x)\nreturn y\n"
# The checks as an expression of `F`, and the text. PyTorch decides whether they pass.
CASES = [
    ("F.check('x =').check('y =')", CODE),
    ("F.check('y =').check('x =')", CODE),
    ("F.check('missing')", CODE),
    ("F.check_not('missing')", CODE),
    ("F.check_not('relu')", CODE),
    ("F.check('x').check_not('relu').check('y')", CODE),
    ("F.check('return').check_not('relu')", CODE),
    ("F.check_not('return').check('x =')", CODE),
    ("F.check_next('y =')", CODE),
    ("F.check('x =').check_next('y =')", CODE),
    ("F.check('x =').check_next('return')", CODE),
    ("F.check('x =').check_next('relu')", CODE),
    ("F.check('x =').check_same('relu')", CODE),
    ("F.check('x =').check_same('y')", CODE),
    ("F.check_dag('y =').check_dag('x =').check('return')", CODE),
    ("F.check_dag('y =').check_dag('x =').check('relu(a)')", CODE),
    ("F.check_dag('y =').check_dag('missing')", CODE),
    ("F.check_dag('y =').check_not('return').check_dag('x =')", CODE),
    ("F.check_count('relu', 2)", CODE),
    ("F.check_count('relu', 2, exactly=True)", CODE),
    ("F.check_count('relu', 1, exactly=True)", CODE),
    ("F.check_count('relu', 1, True).check('return')", CODE),
    ("F.check_count('relu', 3)", CODE),
    ("F.check_count('missing', 0, exactly=True)", CODE),
    ("F.check_regex('x = .*a')", CODE),
    ("F.check_regex('x = .*b')", CODE),
    ("F.check_source_highlighted('relu')", "a relu\n  ~~~~\n"),
    ("F.check_source_highlighted('relu')", "a relu\n  ~~~\n"),
    ("F.check_source_highlighted('relu')", "relu\n\na relu\n  ~~~~\n"),
    ("F", CODE),
]


def outcome(library, expression, *given):
    try:
        return eval(expression, {"F": library.testing.FileCheck()}).run(*given)
    except Exception as error:
        return type(error), str(error).splitlines()[0].lower().replace("offilecheck", "of filecheck")


@pytest.mark.parametrize("expression, text", CASES)
def test_checks(expression, text):
    assert outcome(weft, expression, text) == outcome(torch, expression, text)


@pytest.mark.parametrize(
    "checks",
    [
        "# CHECK: x =\n# CHECK-NEXT: y\n",
        "# CHECK: y =\n  # CHECK: x =",
        "# CHECK-COUNT-2: relu\n",
        "# CHECK-COUNT-3: relu\n",
        "# CHECK-COUNT-EXACTLY-1: relu\n",
        "# CHECK-NOT: return\n",
        "# CHECK: x\n# CHECK-SAME: relu\n",
        "# CHECK-DAG: y =\n# CHECK-DAG: x =\n",
        "no checks",
    ],
)
def test_checks_of_a_text(checks):
    assert outcome(weft, "F", checks, CODE) == outcome(torch, "F", checks, CODE)


def test_wrong_arguments():
    for call in (lambda check: check.run(5), lambda check: check.run()):
        for library in (torch, weft):
            with pytest.raises(TypeError, match="incompatible function arguments"):
                call(library.testing.FileCheck())
    for library in (torch, weft):
        with pytest.raises(RuntimeError):
            library.testing.FileCheck().check_count("x", 0)
