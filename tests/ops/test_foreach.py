"""`torch._foreach_*` in both libraries."""

import pytest
import torch
from alike import same

import weft

NAMES = sorted(name.removeprefix("_foreach_") for name in dir(torch) if name.startswith("_foreach_"))
NUMBERS = {"add", "sub", "mul", "div", "clamp_min", "clamp_max", "maximum", "minimum", "pow"}
LISTS = NUMBERS | {"copy"}


def _tensors(lib, seed=0):
    lib.manual_seed(seed)
    return [lib.rand(3) + 0.25, lib.rand(2, 2) + 0.25]


def _rounded(found):
    return [[round(x, 5) for x in each.flatten().tolist()] for each in found]


def _calls(name):
    """Functions of a library that return the operands of calls of `_foreach_name`, without the first."""
    base = name.removesuffix("_")
    if base in ("addcmul", "addcdiv"):
        others = lambda lib: (_tensors(lib, 1), _tensors(lib, 2))  # noqa: E731
        return [lambda lib, value=value: (*others(lib), *value(lib)) for value in (
            lambda lib: (), lambda lib: (2,), lambda lib: ([2, 0.5],), lambda lib: (lib.tensor([2.0, 3.0]),),
        )]  # fmt: skip
    if base == "lerp":
        return [
            lambda lib: (_tensors(lib, 1), 0.3),
            lambda lib: (_tensors(lib, 1), [0.3, 0.7]),
            lambda lib: (_tensors(lib, 1), _tensors(lib, 2)),
        ]
    if base == "mm":
        return []
    found = [lambda lib: (_tensors(lib, 1),)] if base in LISTS else []
    if base in NUMBERS:
        found += [lambda lib: (2,), lambda lib: ([2, 0.5],)]
    if base in ("add", "mul", "div"):
        found += [lambda lib: (lib.tensor(2.0),)]
    return found or [lambda lib: ()]


@pytest.mark.parametrize("name", NAMES)
def test_every_form(name):
    function = f"_foreach_{name}"
    for arguments in _calls(name):

        def program(lib, arguments=arguments):
            tensors = _tensors(lib)
            found = getattr(lib, function)(tensors, *arguments(lib))
            return type(found).__name__, found is tensors, _rounded(found), _rounded(tensors)

        same(program)


CALLS = {
    "no tensors": lambda lib: lib._foreach_add([], 1),
    "too few": lambda lib: lib._foreach_add(_tensors(lib), _tensors(lib)[:1]),
    "too few numbers": lambda lib: lib._foreach_add(_tensors(lib), [1]),
    "too few to copy": lambda lib: lib._foreach_copy_(_tensors(lib), _tensors(lib)[:1]),
    "a vector": lambda lib: lib._foreach_add(_tensors(lib), lib.ones(2)),
    "nothing to be the largest": lambda lib: lib._foreach_max([lib.ones(0)]),
    "too few factors": lambda lib: lib._foreach_addcmul(*[_tensors(lib)] * 3, lib.tensor([2.0])),
    "alpha": lambda lib: _rounded(lib._foreach_sub(_tensors(lib), _tensors(lib, 1), alpha=3)),
    "by name": lambda lib: _rounded(lib._foreach_mul(_tensors(lib), scalars=[2, 3])),
    "value by name": lambda lib: _rounded(lib._foreach_addcmul(*[_tensors(lib)] * 3, value=2)),
    "norm of order 1": lambda lib: _rounded(lib._foreach_norm(_tensors(lib), 1)),
    "norm in float64": lambda lib: str(lib._foreach_norm(_tensors(lib), dtype=lib.float64)[0].dtype),
    "norm of integers": lambda lib: lib._foreach_norm([lib.ones(2, dtype=lib.int64)]),
    "a power of a number": lambda lib: _rounded(lib._foreach_pow(2.0, _tensors(lib))),
    "products": lambda lib: _rounded(lib._foreach_mm([lib.ones(2, 2)], [lib.ones(2, 3)])),
    "integers in place": lambda lib: lib._foreach_sqrt_([lib.ones(2, dtype=lib.int64)]),
}


@pytest.mark.refuses(
    [
        "no tensors", "too few", "too few numbers", "too few to copy", "a vector",
        "nothing to be the largest", "too few factors", "norm of integers", "integers in place",
    ]
)  # fmt: skip
@pytest.mark.parametrize("name", CALLS)
def test_arguments(name):
    same(CALLS[name])


@pytest.mark.parametrize("number", [2.5, 1, True, 0.1])
@pytest.mark.parametrize("name", ["_foreach_maximum", "_foreach_minimum"])
def test_the_larger_of_tensors_and_a_number(name, number):
    """The number takes part in promotion as a number, and equal values share the gradient."""

    def program(lib):
        tensors = [
            lib.tensor([1.0, 0.1, 3.0], dtype=dtype) for dtype in (lib.float32, lib.float64, lib.int64)
        ]
        found = getattr(lib, name)(tensors, number)
        x = lib.tensor([1.0, 0.1, 2.5], dtype=lib.float64, requires_grad=True)
        getattr(lib, name)([x], number)[0].sum().backward()
        return [(str(each.dtype), each.tolist()) for each in found], x.grad.tolist()

    same(program)


@pytest.mark.parametrize("wrong", [1, weft.ones(1), [1]])
def test_what_is_no_list_of_tensors_is_refused(wrong):
    with pytest.raises(TypeError):
        weft._foreach_add(wrong, 1)


def test_gradients_pass():
    a, b = weft.ones(2, requires_grad=True), weft.ones(3, requires_grad=True)
    sum(each.sum() for each in weft._foreach_mul([a, b], [2.0, 3.0])).backward()
    assert a.grad.tolist() == [2.0, 2.0] and b.grad.tolist() == [3.0, 3.0, 3.0]
