import pytest
from expressions import check as check_expression
from expressions import lines
from hypothesis import given, settings
from hypothesis import strategies as st
from twins import DTYPES, check, counting, tensors

offsets = st.integers(-4, 4)


@settings(max_examples=150, deadline=None)
@given(tensors(min_dims=2, dtypes=DTYPES), offsets)
def test_triangles(base, offset):
    check(lambda lib, b: (b.tril(offset), lib.triu(b, offset)), base)
    check(lambda lib, b: (b.clone().tril_(offset), b.clone().triu_(diagonal=offset)), base)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 5), st.integers(0, 5), offsets, st.sampled_from(("int64", "int32")))
def test_indices_of_triangles(rows, columns, offset, dtype):
    def indices(lib):
        kind = getattr(lib, dtype)
        return lib.tril_indices(rows, columns, offset, dtype=kind), lib.triu_indices(
            rows, columns, offset=offset, dtype=kind
        )

    check(indices)


@settings(max_examples=100, deadline=None)
@given(tensors(min_dims=1, max_dims=2, dtypes=DTYPES), offsets)
def test_diag_and_diagflat(base, offset):
    in_range = base.ndim == 1 or -base.shape[0] <= offset <= base.shape[1]
    if in_range:
        check(lambda lib, b: lib.diag(b, offset), base)
    check(lambda lib, b: b.diagflat(offset), base)


@pytest.mark.may_raise(least=0.5)
@settings(max_examples=100, deadline=None)
@given(st.data(), tensors(min_dims=1, dtypes=DTYPES), offsets)
def test_diag_embed(data, base, offset):
    dims = st.integers(-base.ndim - 1, base.ndim)
    first, second = data.draw(dims), data.draw(dims)
    check(lambda lib, b: b.diag_embed(offset, first, second), base)


@pytest.mark.refuses(["False-shape5", "False-shape6", "True-shape5", "True-shape6"])
@pytest.mark.parametrize("shape", [(3, 3), (2, 5), (5, 2), (9, 2), (3, 3, 3), (2, 3, 3), (4,), (0, 3)])
@pytest.mark.parametrize("wrap", [False, True])
def test_fill_diagonal(shape, wrap):
    check(lambda lib, b: b.fill_diagonal_(7, wrap=wrap), counting(shape))


@pytest.mark.refuses(["bool"])
@pytest.mark.parametrize("dtype", ["float32", "int8", "complex64", "bool"])
def test_trace(dtype):
    check(lambda lib, b: b.trace(), counting((3, 4), dtype))


@pytest.mark.refuses("all")
def test_errors():
    base = counting((3,))
    check(lambda lib, b: b.tril(), base)
    check(lambda lib, b: b.trace(), base)
    check(lambda lib, b: lib.diag(b.reshape(1, 1, 3)), base)
    check(lambda lib, b: b.diag_embed(0, 1, -1), base)
    check(lambda lib: lib.tril_indices(-1, 2))
    check(lambda lib: lib.tril_indices(2, 2, dtype=lib.int16))
    check(lambda lib: lib.triu_indices(1, 2, dtype=lib.float32))
    check(lambda lib, b: lib.tril(b.reshape(1, 3), out=lib.empty(0, dtype=lib.float64)), base)


TRACE_OF_BOOL = """
torch.tensor(True).trace()  # raises
"""


@pytest.mark.parametrize("expression", lines(TRACE_OF_BOOL))
def test_trace_of_bool(expression):
    """The dtype is looked at before the dims."""
    check_expression(expression)
