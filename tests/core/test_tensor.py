import pytest
import torch

import weft


@pytest.mark.parametrize("method", ["size", "stride"])
@pytest.mark.parametrize("sizes", [(), (3,), (2, 3)])
@pytest.mark.parametrize("dim", [0, 1, -1, 5, -3, 1.5, "0", True])
def test_one_size_or_stride(method, sizes, dim):
    try:
        wanted = getattr(torch.zeros(sizes), method)(dim)
    except (IndexError, TypeError) as error:
        with pytest.raises(type(error)) as raised:
            getattr(weft.zeros(sizes), method)(dim)
        if isinstance(error, IndexError):
            assert str(raised.value) == str(error)
    else:
        assert getattr(weft.zeros(sizes), method)(dim) == wanted
