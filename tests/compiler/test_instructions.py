"""Functions whose bytecode differs between versions of CPython: records have the bits of the functions."""

import copy

import pytest

import weft
from weft.compiler import _compiled
from weft.compiler._interpreter import IS_KNOWN
from weft.engine.memory import FENCE

pytestmark = [
    pytest.mark.skipif(not IS_KNOWN, reason="the bytecode of this Python is not known"),
    pytest.mark.skipif(bool(FENCE), reason="records are counted without the fence only"),
]


def restores_variables(x):
    k, row = 7, "text"
    rows = [row * k for k, row in enumerate(x)]
    return rows, k, row, {n: row + n for n, row in enumerate(rows) if n}, sorted({n % 2 for n in range(5)})


def leaves_no_variable(x):
    rows = [each * 2 for each in x]
    return [each for each in rows]


def nested(x):
    return [[a * b for b in range(2) if b or a.dim()] for a in x], [a for b in ([x], (x, x)) for a in b]


def closures_of_a_comprehension(x):
    functions = [lambda y, k=k: y * k + n + x for n, k in enumerate((2.0, 3.0))]  # noqa: B023 (all see the last n)
    n = 5.0
    return [function(x) for function in functions], [lambda: n for _ in range(2)][1]()


def same_name_in_and_outside(x):
    n = 2.0

    def inner():
        return [n * x for n in range(3)], {n: x for n in "ab"}

    def reader():
        return [n * k for k in x], n

    return inner(), reader(), n


def enclosing_and_own(x):
    each = 3.0

    def inner():
        before = each

        def innermost():
            return [each + 1 for each in x], before

        return innermost()

    return inner(), each


def default_values(x):
    def inner(a, b=2.0, *rest, c: float = 3.0, d, **more) -> float:
        return a * b + sum(rest) + c * d, more

    return (
        inner(x, d=1),
        inner(x, 1.0, 2.0, 3.0, d=2, e="e"),
        inner(*(x, 4), **{"d": 3}),
        inner(x, *[1], d=x, **{"f": 1}),
    )


def texts(x):
    k, form = 2.5, ">8"
    return x, f"{k} {k!r:>6} {k:{form}} {k!s} {'ü'!a} {x.shape}", f"{k}"


def sums_of_floats(x):
    """Since CPython 3.12 `sum` corrects the rounding of floats, up to the first object of another class."""
    tenths = [0.1] * 10
    return (
        x * sum(tenths),
        sum(tenths),
        sum([*tenths, x, *tenths], 0.3),
        sum(tenths, x),
        sum([[1], [2]], []),
        sum(x),
    )


def slices(x):
    a, b = 1, 3
    numbers = [1, 2, 3, 4]
    numbers[a:b] = (7,)
    y = x.clone()
    y[a:b] = 0.5
    y[:, :1] = x[:, 1:2]
    return y, x[a:], x[:b], x[a:b, ::2], numbers, numbers[:-1], "text"[a:b]


def loops(x):
    total, k = x, 0
    while True:
        k += 1
        if k > 6:
            break
        for n in range(k):
            if n == 3:
                break
            total = total + n
        else:
            total = total * 0.5
            continue
        for _, _ in ():
            total = None
    return total, k, [*range(k)], (*x.shape, 1), {**{"k": k}, "total": total}


def conditions(x):
    y = None
    z = y or x
    flag = not x.dim() - 2 and (x.size(0) > 1 or x.size(1) < 0)
    chained = 0 < x.dim() <= 2 < 5
    y = x if y is None else y
    return (
        z,
        flag,
        chained,
        y if y is not None else x,
        x.dim() in (1, 2),
        3 not in [x.dim()],
        not [],
        +x,
        +3,
        -x,
    )


def switches(x):
    with weft.no_grad():
        y = x * 2
        with weft.enable_grad():
            z = x * 3
    with weft.no_grad():
        if x.dim() == 2:
            return y, z
    return x


def unpacks(x):
    a, b, *rest = x
    (c, d), e = (a, b), rest
    c, d = d, c
    a = b = c
    return a, b, c, d, e


def returns_a_constant(x):
    x.mul_(2)
    return 7


def same(a, b):
    if isinstance(a, weft.Tensor):
        return a.shape == b.shape and a.requires_grad == b.requires_grad and (a == b).all()
    if isinstance(a, (tuple, list)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(map(same, a.values(), b.values()))
    return type(a) is type(b) and a == b


@pytest.mark.parametrize(
    "function",
    [restores_variables, leaves_no_variable, nested, closures_of_a_comprehension, same_name_in_and_outside, enclosing_and_own,
     default_values, texts, sums_of_floats, slices, loops, conditions, switches, unpacks, returns_a_constant],
)  # fmt: skip
def test_records_repeat_the_function(function):
    weft.manual_seed(0)
    compiled = weft.compile(function)
    for _ in range(3):
        x = weft.randn(4, 3)
        y = copy.deepcopy(x)
        assert same(compiled(x), function(y)) and same(x, y)
    assert len(compiled.__closure__[0].cell_contents.records) == 1


class Base(weft.nn.Module):
    def forward(self, x):
        return x * 2


class Derived(Base):
    def forward(self, x):
        return super().forward(x) + 1


def test_super_runs_as_it_is(logged):
    model, x = Derived(), weft.ones(2)
    compiled = _compiled.Compiled(model)
    assert compiled(x).tolist() == [3.0, 3.0]
    assert "super() is called" in " ".join(logged) and not compiled.records


def test_wide_instructions():
    """Jumps so wide, and so many constants, that instructions need EXTENDED_ARG."""
    lines = "\n".join(f"            total = total + {k}.5" for k in range(300))
    namespace = {}
    exec(
        f"def wide(x):\n    total = x\n    for k in range(2):\n        if k:\n{lines}\n    return total",
        namespace,
    )
    compiled, x = weft.compile(namespace["wide"]), weft.ones(2)
    assert same(compiled(x), namespace["wide"](x)) and same(compiled(x), namespace["wide"](x))
    assert len(compiled.__closure__[0].cell_contents.records) == 1


def test_many_variables():
    """Pairs of variables in one instruction have four bits each; further variables have instructions of their own."""
    names = [f"v{k}" for k in range(40)]
    body = "".join(f"    {name} = x * {k}.0\n" for k, name in enumerate(names))
    namespace = {}
    exec(f"def many(x):\n{body}    return {' + '.join(names)}, [{', '.join(names)}]", namespace)
    compiled, x = weft.compile(namespace["many"]), weft.ones(2)
    assert same(compiled(x), namespace["many"](x)) and same(compiled(x), namespace["many"](x))
