from weft.core.dtype import bfloat16, float32
from weft.engine.expr import cast, load, param
from weft.viz.formulas import Formula, infix, letter, of_number, of_step

A, B, C = map(Formula, "abc")


def test_parentheses_stand_where_the_order_of_operations_needs_them():
    difference = infix("sub", [A, infix("sub", [B, C])])
    assert difference.text == "a - (b - c)"
    assert infix("sub", [infix("sub", [A, B]), C]).text == "a - b - c"
    assert infix("mul", [infix("add", [A, B]), C]).text == "(a + b) * c"
    assert infix("add", [infix("mul", [A, B]), C]).text == "a * b + c"
    assert infix("exp", [infix("add", [A, B])]).text == "exp(a + b)"
    assert infix("neg", [infix("add", [A, B])]).text == "-(a + b)"
    assert infix("div", [A, infix("neg", [B])]).text == "a / (-b)"


def test_operands_of_an_operation_are_in_its_order():
    x, number = load(0, float32), param(0, float32)

    def leaf(expr):
        return Formula("x" if expr.op == "load" else "2")

    assert of_step("sub", (number - x,), leaf).text == "2 - x"
    assert of_step("sub", (x - number,), leaf).text == "x - 2"
    narrow = cast(load(0, bfloat16), float32)
    assert of_step("sub", (cast(number - narrow, bfloat16),), leaf).text == "2 - x"
    assert of_step("square", (x * x,), leaf).text == "square(x)"
    assert of_step("mul", (x * x,), leaf).text == "x * x"
    assert of_step("softplus", (number * x + x,), leaf).text == "softplus(x, 2)"


def test_numbers_and_letters():
    assert infix("mul", [A, of_number(-0.5)]).text == "a * (-0.5)"
    assert [of_number(each).text for each in (2.0, 3, 0.70710678, True)] == ["2", "3", "0.7071", "True"]
    assert [letter(k) for k in (0, 25, 26)] == ["a", "z", "a1"]
