import pytest
import torch
from expressions import check as check_expression
from expressions import lines
from twins import check, counting

import weft


@pytest.mark.refuses(1)
def test_scatter_into_views():
    base = counting((4, 5))
    check(lambda lib, b: b.select_scatter(b[0] * 2, 0, 2), base)
    check(lambda lib, b: b.slice_scatter(b[:2], 0, 1, 3), base)
    check(lambda lib, b: b.slice_scatter(b[:, :2], 1, 0, 4, 2), base.t().contiguous().t())
    check(lambda lib, b: b.diagonal_scatter(b[0, :4], 1), base)
    check(lambda lib, b: b.as_strided_scatter(b[0], (5,), (3,), 2), base)
    check(lambda lib, b: b.select_scatter(b[0, :3], 0, 0), base)
    check(lambda lib, b: b[:, ::2].select_scatter(b[0, :3], 0, 0), base)


@pytest.mark.parametrize("offset", [-1, -(2**31), 2, 2**31])
def test_as_strided_scatter_refuses_places_outside_of_the_storage(offset):
    for library in (weft, torch):
        x, value = library.ones(2), library.full((), 7.0)
        with pytest.raises(RuntimeError):
            library.as_strided_scatter(x, value, (), (), offset)


STORAGE_OF_THE_COPY = """
torch.arange(3).hsplit(3)[1].slice_scatter(torch.tensor([7]), 0, 0, 1).storage_offset()
torch.arange(6).reshape(2, 3)[:, 1:].slice_scatter(torch.tensor([[7], [8]]), 1, 0, 1).storage_offset()
torch.arange(6).reshape(2, 3)[:, 1].slice_scatter(torch.tensor([7]), 0, 0, 1).storage_offset()
torch.arange(6).reshape(2, 3)[1].select_scatter(torch.tensor(7), 0, 0).storage_offset()
torch.arange(6).reshape(2, 3)[1:].diagonal_scatter(torch.tensor([7])).storage_offset()
torch.arange(6).reshape(2, 3)[1].as_strided_scatter(torch.tensor([7]), (1,), (1,)).storage_offset()
torch.arange(6).reshape(2, 3)[1].expand(2, 3).slice_scatter(torch.ones(1, 3).long(), 0, 0, 1).storage_offset()
torch.arange(6).reshape(2, 3)[1, :0].slice_scatter(torch.ones(0).long(), 0, 0, 1).storage_offset()
torch.arange(6).reshape(2, 3)[1].slice_scatter(torch.tensor([7]), 0, 0, 1).untyped_storage().nbytes()
torch.arange(6).reshape(2, 3)[0].slice_scatter(torch.tensor([7]), 0, 0, 1).untyped_storage().nbytes()
torch.arange(6).reshape(2, 3)[1].as_strided_scatter(torch.tensor([7]), (1,), (1,), 0)
torch.arange(6).reshape(2, 3)[1].as_strided_scatter(torch.tensor([7]), (1,), (1,), 4)
torch.arange(6).reshape(2, 3)[1].as_strided_scatter(torch.tensor([7]), (1,), (1,), 7)  # raises
torch.arange(6).reshape(2, 3)[1].as_strided_scatter(torch.tensor([7]), (1,), (1,))
"""


@pytest.mark.parametrize("expression", lines(STORAGE_OF_THE_COPY))
def test_storage_of_the_copy(expression):
    """The copy has the offset of the input, and a storage as large."""
    check_expression(expression)


@pytest.mark.parametrize("strides", [(3, 1), (1, 3), (6, 2)])
def test_the_gradient_of_as_strided_scatter_for_cotangents_of_any_strides(strides):
    input = weft.ones(3, 6)[:, ::2] if strides == (6, 2) else weft.empty_strided((3, 3), strides)
    input, src = input.requires_grad_(), weft.ones(2, 2, requires_grad=True)
    out = input.as_strided_scatter(src, (2, 2), (2 * strides[0], 2 * strides[1]))  # the four corners
    ct = weft.arange(9.0).view(3, 3)
    for laid_out in (ct, ct.t().contiguous().t(), weft.stack([ct, -ct], -1)[..., 0]):
        to_input, to_src = weft.autograd.grad(out, (input, src), laid_out, retain_graph=True)
        assert to_input.tolist() == [[0.0, 1.0, 0.0], [3.0, 4.0, 5.0], [0.0, 7.0, 0.0]]
        assert to_src.tolist() == [[0.0, 2.0], [6.0, 8.0]]
