"""Functions of one sparse tensor that keep zeros, compared with PyTorch's."""

import pytest
import torch
from sparse_expressions import LAYOUTS, compare, compare_gradients, evaluated, like_dense

import weft

NAMES = (
    "abs asin asinh atan atanh ceil conj conj_physical deg2rad erf erfinv expm1 floor frac isinf isnan isneginf isposinf log1p neg "
    "positive rad2deg real relu round sgn sign signbit sin sinh sqrt tan tanh trunc"
).split()
BOOLS_REFUSED = ("abs", "ceil", "floor", "frac", "positive", "round", "trunc")


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", NAMES)
def test_it_has_the_indices_of_the_tensor(layout, name):
    compare(layout, f"torch.{name}(x)")
    compare(layout, f"torch.{name}(ints)")


@pytest.mark.parametrize("name", [*NAMES, "square", "nan_to_num"])
def test_coordinates_that_occur_twice(name):
    compare("sparse_coo", f"torch.{name}(u)")
    compare("sparse_coo", f"torch.{name}(hybrid)")


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", "abs angle sgn neg sqrt sin conj_physical isnan".split())
def test_complex_values(layout, name):
    if layout == "sparse_coo" and name == "angle":
        like_dense(layout, "torch.angle(z)")
    else:
        compare(layout, f"torch.{name}(z)")


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("text", ["torch.real(z)", "torch.imag(z)", "torch.nan_to_num(x)", "torch.square(x)"])
def test_functions_that_pytorch_has_for_coordinates_only(layout, text):
    like_dense(layout, text)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", "abs neg sin sqrt relu round sgn conj_physical".split())
def test_in_place(layout, name):
    if name == "round" and layout not in ("sparse_coo", "sparse_csr"):  # PyTorch fails an assertion
        like_dense(layout, "x.round_()")
        return
    compare(layout, f"x.{name}_(); x")
    compare(layout, f"ints.{name}_(); ints")


@pytest.mark.parametrize("name", "abs neg sin relu round".split())
def test_coordinates_that_occur_twice_in_place(name):
    compare("sparse_coo", f"u.{name}_(); u")


def test_a_dense_tensor_and_a_sparse_one_to_write_into():
    compare("sparse_coo", "torch.sin(d, out=x)")
    compare("sparse_coo", "torch.sin(x, out=d)")


@pytest.mark.parametrize("out", ["torch.empty((4, 4), layout=torch.sparse_coo)", "y"])
@pytest.mark.parametrize("name", ["neg", "sin"])
def test_out(name, out):
    compare("sparse_coo", f"torch.{name}(u, out={out})")
    compare("sparse_coo", "torch.sin(u, out=ints)")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_leaves_and_recorded_tensors_are_not_written(layout):
    compare(layout, "g.neg_()")
    assert type(evaluated(weft, layout, "torch.neg(g, out=y)")) is RuntimeError


@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr"])
@pytest.mark.parametrize("name", "neg abs relu floor positive".split())
def test_gradients(layout, name):
    compare_gradients(layout, f"torch.{name}(g).to_dense().sum()", "g")


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", "sin tanh asinh expm1 erf square log1p atan deg2rad frac".split())
def test_gradients_that_pytorch_lacks(layout, name):
    text = "x = t.detach().requires_grad_(); torch.{}(x).to_dense().sum().backward(); x.grad.to_dense()"
    text = text.format(name).replace("t.detach()", "x.abs()")
    got = evaluated(weft, layout, text)
    x = torch.tensor(weft_dense(layout), dtype=torch.float64, requires_grad=True)
    getattr(torch, name)(x).sum().backward()
    kept = torch.tensor(weft_kept(layout))
    torch.testing.assert_close(torch.tensor(got.tolist(), dtype=torch.float64), x.grad.where(kept, 0))


def weft_dense(layout):
    return evaluated(weft, layout, "x.abs().to_dense()").tolist()


def weft_kept(layout):
    """Where the tensor has entries."""
    return evaluated(weft, layout, "x.clone().fill_(1).to_dense() != 0").tolist()


def test_values_change_in_their_memory_for_compressed_tensors():
    x = weft.eye(3).to_sparse_csr()
    values = x.values()
    x.neg_()
    assert values.tolist() == [-1, -1, -1]


@pytest.mark.parametrize("name", ["exp", "cos", "sigmoid", "logical_not"])
def test_functions_that_keep_no_zeros_say_what_to_write(name):
    with pytest.raises(
        NotImplementedError, match=rf"torch.{name} is not implemented for sparse tensors: .*to_dense"
    ):
        getattr(weft, name)(weft.eye(3).to_sparse())
