"""Outputs of other dtypes, empty lists of dims, infinite complex numbers and warnings of reductions, beside PyTorch's."""

import warnings

import pytest
import torch

import weft

INF, NAN = float("inf"), float("nan")
DTYPES = ("bool", "uint8", "int32", "int64", "float32")


def outcome(library, call):
    """The result as text or the type of the error, and how many warnings there were."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = repr(call(library))
        except Exception as error:
            result = type(error)
    messages = [str(each.message).partition(" (Triggered")[0] for each in caught]
    return result, [each for each in messages if "resized" not in each]


def same(call):
    assert outcome(weft, call) == outcome(torch, call)


@pytest.mark.parametrize("name", ["all", "any"])
@pytest.mark.parametrize("own", DTYPES)
def test_flags_are_written_into_bools_and_bytes_only(name, own):
    for wanted in DTYPES:

        def call(library, wanted=wanted):
            x = library.tensor([[0, 1], [1, 1]]).to(getattr(library, own))
            return getattr(library, name)(x, 0, out=library.empty(2, dtype=getattr(library, wanted)))

        same(call)


@pytest.mark.parametrize("name", ["sum", "prod", "cumsum", "cumprod", "nansum"])
def test_a_dtype_and_an_output_of_another_one(name):
    for wanted in DTYPES[1:]:

        def call(library, wanted=wanted):
            x, out = (
                library.ones(3),
                library.empty(3 if "cum" in name else (), dtype=getattr(library, wanted)),
            )
            return getattr(library, name)(x, 0, dtype=library.float32, out=out)

        same(call)


@pytest.mark.parametrize("dim", [None, (), [], 0, (0, 1), [1]])
def test_products_over_dims(dim):
    for keepdim in (False, True):
        same(
            lambda library, keepdim=keepdim: (
                library.masked.prod(library.ones(2, 3), dim, keepdim=keepdim).shape
            )
        )
        if dim != []:
            same(lambda library, keepdim=keepdim: refs(library).prod(library.ones(2, 3), dim, keepdim).shape)
    same(lambda library: refs(library).prod(library.tensor(3)))
    same(lambda library: refs(library).prod(library.ones(2, 3), (0, 0)))


def refs(library):
    if library is torch:
        import torch._refs as found
    else:
        import weft._refs as found
    return found


@pytest.mark.parametrize("name", ["var", "std", "var_mean", "std_mean"])
def test_too_few_degrees_of_freedom(name):
    def call(*sizes, **arguments):
        same(lambda library: getattr(library, name)(library.ones(sizes), **arguments))

    call(1)
    call(3)
    call(1, dim=0)
    call(2, 3, dim=0, correction=2)
    call(2, 3, dim=0, correction=1)
    call(2, 0, dim=1)
    call(2, 3, correction=7)
    call(1, 2, dim=0, correction=0)
    call(0, correction=0)


def test_infinite_complex_numbers():
    parts = [complex(a, b) for a in (-INF, 0, 1, INF, NAN) for b in (-1, 0, 2, INF, NAN)]

    def values(tensor):
        return torch.view_as_real(torch.tensor(tensor.tolist(), dtype=torch.complex128))

    for a in parts:
        for b in parts:
            ours, theirs = (
                values(library.logcumsumexp(library.tensor([a, b], dtype=library.complex128), 0))
                for library in (weft, torch)
            )
            torch.testing.assert_close(
                ours, theirs, equal_nan=True, msg=lambda text, a=a, b=b: f"{a}, {b}: {text}"
            )
            ours, theirs = (
                values(
                    library.logaddexp(*(library.tensor([each], dtype=library.complex128) for each in (a, b)))
                )
                for library in (weft, torch)
            )
            torch.testing.assert_close(
                ours, theirs, equal_nan=True, msg=lambda text, a=a, b=b: f"{a} + {b}: {text}"
            )


def test_numbers_of_one_value():
    same(
        lambda library: library.testing.make_tensor(
            (2, 3), dtype=library.float32, device="cpu", low=2.0, high=2.0
        )
    )
    same(
        lambda library: library.testing.make_tensor((2, 3), dtype=library.int64, device="cpu", low=2, high=2)
    )
    same(lambda library: library.histc(library.tensor([1.0, INF])))
