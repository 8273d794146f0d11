"""`torch.masked` with sparse inputs and sparse masks, against PyTorch."""

import pytest
import torch

import weft

REDUCTIONS = ("sum", "prod", "amax", "amin", "mean")
OTHERS = "argmax argmin logsumexp norm std var".split()
DATA = [[[1, 0, 3], [0, -2, 0]], [[0, 0, 2], [4, 0, 0]]]
MASK = [[[1, 1, 0], [0, 1, 0]], [[0, 0, 1], [0, 1, 0]]]


def given(lib, layout, dtype="float64", dims=3):
    """Input and mask, both in the layout, and the mask as a dense tensor."""
    data, mask = lib.tensor(DATA), lib.tensor(MASK)
    if dims < 3:
        data, mask = data[0], mask[0]
    if dims == 0:
        data, mask = data[0, 0], mask[0, 0]
    data, mask = data.to(getattr(lib, dtype)), mask.bool()
    to = {
        "strided": lambda x: x,
        "coo": lambda x: x.to_sparse(),
        "hybrid": lambda x: x.to_sparse(1),
        "csr": lambda x: x.to_sparse_csr(),
    }[layout]
    return to(data), to(mask), mask


def described(value):
    if value.layout in (torch.strided, weft.strided):
        return [str(value.dtype).split(".")[1], list(value.shape), approximate(value)]
    found = value.to_sparse_coo().coalesce()
    about = [str(value.layout), str(value.dtype).split(".")[1], list(value.shape), found.sparse_dim()]
    return [*about, found.indices().tolist(), approximate(found.values())]


def approximate(value):
    return [f"{each:.6f}" for each in value.double().flatten().tolist()]


def compare(function, *settings):
    try:
        expected = function(torch, *given(torch, *settings))
    except Exception as error:
        expected = error
    if isinstance(expected, Exception | type(NotImplemented)):
        function(weft, *given(weft, *settings))  # weft has no such limits
    else:
        assert described(function(weft, *given(weft, *settings))) == described(expected)


@pytest.mark.parametrize("dtype", ["float64", "int32", "bfloat16"])
@pytest.mark.parametrize("dim", [None, 0, 1, 2, (0, 2), (0, 1, 2), -1])
@pytest.mark.parametrize("layout", ["coo", "hybrid"])
@pytest.mark.parametrize("name", REDUCTIONS[:4])
def test_reductions_of_coo(name, layout, dim, dtype):
    for keepdim in (False, True):
        for form in (1, 2):

            def call(lib, x, *masks, form=form, keepdim=keepdim):
                return getattr(lib.masked, name)(x, dim, keepdim=keepdim, mask=masks[form - 1])

            compare(call, layout, dtype)


@pytest.mark.parametrize("dim", [0, 1, (0, 1), None])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_of_csr(name, dim):
    for form in (0, 1):

        def call(lib, x, *masks, form=form):
            return getattr(lib.masked, name)(x, dim, keepdim=True, mask=masks[form])

        compare(call, "csr", "float64", 2)


@pytest.mark.parametrize("name", REDUCTIONS)
def test_a_compressed_tensor_without_kept_dims(name):
    x, mask, dense_mask = given(weft, "csr", dims=2)
    found = getattr(weft.masked, name)(x, 1, mask=mask)
    expected = getattr(weft.masked, name)(x.to_sparse_coo(), 1, mask=dense_mask)
    assert found.to_dense().tolist() == expected.to_dense().tolist()


@pytest.mark.parametrize("name", REDUCTIONS[:4])
def test_without_dims(name):
    compare(lambda lib, x, mask, dense: getattr(lib.masked, name)(x, mask=mask), "coo", "float64", 0)


@pytest.mark.parametrize("name", REDUCTIONS[:4])
def test_nothing_is_selected(name):
    def call(lib, x, mask, dense):
        return getattr(lib.masked, name)(x, mask=mask.to_dense().logical_not().to_sparse() * mask)

    compare(call, "coo")


@pytest.mark.parametrize("layout", ["coo", "csr"])
@pytest.mark.parametrize("name", [*REDUCTIONS, *OTHERS])
def test_a_sparse_mask_of_a_dense_tensor(name, layout):
    def call(lib, x, mask, dense):
        arguments = (2.0, 1) if name == "norm" else (1,)
        return getattr(lib.masked, name)(x.to_dense(), *arguments, mask=mask)

    compare(call, layout, "float64", 2)


@pytest.mark.parametrize("name", [*REDUCTIONS, *OTHERS])
def test_without_a_mask_all_elements_count(name):
    x = given(weft, "csr", dims=2)[0]
    found = getattr(weft.masked, name)(x, dim=1)
    expected = getattr(weft.masked, name)(x.to_dense(), dim=1)
    assert described(found.to_dense()) == described(expected)


@pytest.mark.parametrize("layout", ["coo", "hybrid"])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_gradients(name, layout):
    x, mask, dense = given(weft, layout)
    for dim in (0, 2, None):

        def call(values, dim=dim):
            like = weft.sparse_coo_tensor(x.indices(), values, x.shape, is_coalesced=True)
            return getattr(weft.masked, name)(like, dim, mask=mask).to_dense().clamp(-100, 100)

        values = x.values() + 0.5  # a sum of 0 would have no entry, and so no gradient
        assert weft.autograd.gradcheck(call, values.requires_grad_())


def test_a_mask_with_too_many_dims():
    x, mask, dense = given(weft, "coo", dims=2)
    with pytest.raises(IndexError, match="higher than of the input"):
        weft.masked.sum(x, mask=mask.unsqueeze(0))


def test_a_mask_is_broadcast():
    def call(lib, x, mask, dense):
        return lib.masked.sum(x, 1, mask=lib.tensor([True, False, True]))

    compare(call, "coo")
    x, mask = given(weft, "coo")[0], given(weft, "csr", dims=2)[1]
    assert weft.masked.sum(x, mask=mask).to_dense() == (x.to_dense() * mask.to_dense()).sum()
