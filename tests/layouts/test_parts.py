"""What tensors with parts do alike: methods that act on each part."""

import pytest

import weft

LAYOUTS = {
    "COO": lambda: weft.eye(3).to_sparse(),
    "CSR": lambda: weft.eye(3).to_sparse_csr(),
    "strided nested": lambda: weft.nested.nested_tensor([weft.ones(2, 3), weft.ones(1, 3)]),
    "jagged": lambda: weft.nested.nested_tensor([weft.ones(2, 3), weft.ones(1, 3)], layout=weft.jagged),
}


@pytest.fixture(params=LAYOUTS)
def x(request):
    return LAYOUTS[request.param]()


def test_as_subclass(x):
    class Mine(weft.Tensor):
        pass

    got = x.as_subclass(Mine)
    assert type(got) is Mine
    assert type(got * 2) is Mine
    assert got.layout is x.layout
    assert got._values().data_ptr() == x._values().data_ptr() if x.is_sparse else got.shape == x.shape


def test_share_memory(x):
    assert not x.is_shared()
    assert x.share_memory_() is x
    assert x.is_shared()
