"""`torch._vmap_internals.vmap`: its limits, compared with PyTorch."""

import warnings

import pytest
import torch
import torch._vmap_internals

import weft
import weft._vmap_internals

CALLS = {
    "product": lambda vmap, lib: vmap(lib.mul)(lib.ones(3), lib.ones(3)),
    "dims": lambda vmap, lib: vmap(lib.mul, (0, 1), 1)(lib.ones(2, 3), lib.ones(3, 2)),
    "one dim in a tuple": lambda vmap, lib: vmap(lambda x: x, out_dims=(1,))(lib.ones(2, 3)),
    "two results": lambda vmap, lib: vmap(lambda x: (x, x + 1), out_dims=(0, 1))(lib.ones(2, 3)),
    "nested inputs": lambda vmap, lib: vmap(lambda x: x["a"] + x["b"][0])({"a": lib.ones(2), "b": [lib.ones(2)]}),
    "a list of dims": lambda vmap, lib: vmap(lib.mul, [0, 0])(lib.ones(2), lib.ones(2)),
    "a dim from the end": lambda vmap, lib: vmap(lib.exp, (-1,))(lib.ones(2, 3)),
    "a dim too large": lambda vmap, lib: vmap(lib.exp, (2,))(lib.ones(2, 3)),
    "no dim": lambda vmap, lib: vmap(lib.exp)(lib.ones(())),
    "a number": lambda vmap, lib: vmap(lambda x: 3.0)(lib.ones(2)),
    "a number among tensors": lambda vmap, lib: vmap(lambda x: (x, 3))(lib.ones(2)),
    "a list": lambda vmap, lib: vmap(lambda x: [x])(lib.ones(2)),
    "out_dims as text": lambda vmap, lib: vmap(lambda x: x, out_dims="lol")(lib.ones(2)),
    "no out_dims": lambda vmap, lib: vmap(lambda x: x, out_dims=None)(lib.ones(2)),
    "too many out_dims": lambda vmap, lib: vmap(lambda x: x, out_dims=(0, 0))(lib.ones(2)),
    "too few out_dims": lambda vmap, lib: vmap(lambda x: (x, x), out_dims=(0,))(lib.ones(2)),
}  # fmt: skip


def outcome(call, lib):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = call(lib._vmap_internals.vmap, lib)
        except ValueError as error:
            return str(error).partition(": ")[2].partition("must")[0]
        assert [each.category for each in caught] == [FutureWarning]
    return [each.tolist() for each in (result if isinstance(result, tuple) else (result,))]


@pytest.mark.parametrize("name", CALLS)
def test_as_in_pytorch(name):
    assert outcome(CALLS[name], weft) == outcome(CALLS[name], torch)
