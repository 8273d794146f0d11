import copy
import pickle

import pytest
import torch
from alike import same

import weft
from weft import nn

PROGRAMS = {
    "printing": lambda lib: lib.nn.Parameter(lib.ones(2)),
    "without gradient": lambda lib: lib.nn.Parameter(lib.ones(2, dtype=lib.int64), requires_grad=False),
    "integers": lambda lib: lib.nn.Parameter(lib.ones(2, dtype=lib.int64)).requires_grad,
    "not a tensor": lambda lib: lib.nn.Parameter([1, 2]),
    "empty": lambda lib: lib.nn.Parameter(),
    "results": lambda lib: [
        type(f(lib.nn.Parameter(lib.ones(2)))) is lib.Tensor
        for f in (
            lambda p: p + 1,
            lambda p: p.data,
            lambda p: p.detach(),
            lambda p: p.clone(),
            lambda p: p[0],
        )
    ],
    "leaf": lambda lib: lib.nn.Parameter(lib.ones(2)).is_leaf,
    "buffer": lambda lib: (lib.nn.Buffer(lib.ones(2)), type(lib.nn.Buffer(lib.ones(2))) is lib.Tensor),
    "kinds": lambda lib: [
        isinstance(each, kind)
        for each in (lib.ones(1), lib.nn.Parameter(lib.ones(1)), lib.nn.Buffer(lib.ones(1)), 3)
        for kind in (lib.nn.Parameter, lib.nn.Buffer, lib.Tensor)
    ],
    "uninitialized": lambda lib: lib.nn.UninitializedParameter(),
    "uninitialized buffer": lambda lib: lib.nn.UninitializedBuffer(dtype=lib.float64).dtype,
    "its shape": lambda lib: lib.nn.UninitializedParameter().shape,
    "its dtype after conversion": lambda lib: lib.nn.UninitializedParameter().half().dtype,
    "sharing it": lambda lib: lib.nn.UninitializedParameter().share_memory_(),
    "a copy of it": lambda lib: (
        copy.deepcopy(lib.nn.UninitializedParameter(requires_grad=False)).requires_grad
    ),
}


@pytest.mark.refuses(["integers", "not a tensor", "its shape", "sharing it"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_parameters_as_in_torch(name):
    same(PROGRAMS[name])


def test_a_parameter_shares_memory_with_its_data():
    data = weft.zeros(2)
    parameter = nn.Parameter(data)
    data.add_(1)
    assert parameter.tolist() == [1, 1] and not data.requires_grad


def test_copies_and_pickles():
    parameter = nn.Parameter(weft.tensor([1.0, 2.0]))
    parameter.note = "mine"
    for copied in (copy.deepcopy(parameter), pickle.loads(pickle.dumps(parameter))):
        assert type(copied) is nn.Parameter and copied.requires_grad and copied.tolist() == [1, 2]
        assert copied.data_ptr() != parameter.data_ptr()
    assert pickle.loads(pickle.dumps(parameter)).note == "mine"


def test_one_parameter_under_two_names_stays_one_in_a_copy():
    module = nn.Module()
    module.a = module.b = nn.Parameter(weft.ones(1))
    copied = copy.deepcopy(module)
    assert copied.a is copied.b and copied.a is not module.a


def test_operations_on_a_parameter_without_shape_raise():
    for library in (torch, weft):
        with pytest.raises(ValueError, match="Attempted to use an uninitialized parameter"):
            library.nn.UninitializedParameter() + 1


def test_materialize_keeps_dtype_and_identity():
    parameter = nn.UninitializedParameter(dtype=weft.float64)
    same_object = parameter
    parameter.materialize((2, 3))
    assert type(parameter) is nn.Parameter and parameter is same_object
    assert parameter.shape == (2, 3) and parameter.dtype is weft.float64 and parameter.requires_grad


def test_pickle_of_a_parameter_without_shape():
    assert pickle.loads(pickle.dumps(nn.UninitializedParameter(dtype=weft.float16))).dtype is weft.float16
