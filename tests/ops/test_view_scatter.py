import pytest
import torch
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
