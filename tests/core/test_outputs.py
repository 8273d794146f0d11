import pytest

import weft

CALLS = [
    lambda x, dim: x.sum(dim),
    lambda x, dim: x.mean((dim,)),
    lambda x, dim: x.sum((dim, 0)),
    lambda x, dim: x.prod(dim),
    lambda x, dim: x.amax(dim),
    lambda x, dim: x.max(dim),
    lambda x, dim: x.argmax(dim),
    lambda x, dim: x.count_nonzero(dim),
    lambda x, dim: x.cumsum(dim),
    lambda x, dim: x.logsumexp(dim),
    lambda x, dim: x.softmax(dim),
    lambda x, dim: weft.nn.functional.log_softmax(x, dim),
    lambda x, dim: x.sort(dim),
    lambda x, dim: x.median(dim),
    lambda x, dim: x.topk(dim),
    lambda x, dim: x.index_select(dim, weft.tensor([0])),
    lambda x, dim: x.gather(dim, weft.zeros(1, 1, dtype=weft.int64)),
    lambda x, dim: x.select(dim, 0),
    lambda x, dim: x.select(0, dim),
    lambda x, dim: x.transpose(0, dim),
    lambda x, dim: x.unsqueeze(dim),
    lambda x, dim: weft.cat((x, x), dim),
    lambda x, dim: weft.zeros(dim),
    lambda x, dim: weft.eye(dim),
]


@pytest.mark.parametrize("call", CALLS)
def test_the_plan_of_an_int_serves_no_float_and_no_bool(call):
    x = weft.randn(2, 3)
    call(x, 1)
    for twin in (1.0, True):
        with pytest.raises((TypeError, RuntimeError)):
            call(x, twin)
