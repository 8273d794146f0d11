import pytest
import torch

import weft


@pytest.mark.parametrize("lib", [weft, torch], ids=["weft", "torch"])
def test_results_and_writes_are_those_of_the_function(lib):
    def function(x, y):
        y.mul_(2)
        return x.clone().add_(1), y[0]

    x, y = lib.ones(2), lib.ones(2)
    for remove in ("mutations", "mutations_and_views"):
        a, b = lib.func.functionalize(function, remove=remove)(x, y)
    assert (a.tolist(), b.tolist(), y.tolist()) == ([2, 2], 4, [4, 4])
    with pytest.raises(RuntimeError, match="functionalize"):
        lib.func.functionalize(function, remove="nothing")(x, y)
    assert lib.func.debug_unwrap(x) is x


@pytest.mark.parametrize("lib", [weft, torch], ids=["weft", "torch"])
def test_the_batch_of_a_sample(lib):
    seen = []

    def function(x):
        seen.extend(lib.func.debug_unwrap(x, recurse=recurse).shape for recurse in (True, False))
        return x

    lib.vmap(lib.vmap(function))(lib.zeros(2, 3, 4))
    assert seen == [(2, 3, 4), (3, 4)]
