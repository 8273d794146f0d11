"""Exchanging tensors of modules by name, side by side with PyTorch."""

import pytest
import torch
import torch.nn.utils._named_member_accessor

import weft
import weft.nn.utils._named_member_accessor

LIBRARIES = pytest.mark.parametrize("lib", [weft, torch], ids=["weft", "torch"])


@LIBRARIES
def test_tensors_are_exchanged(lib):
    accessors = lib.nn.utils._named_member_accessor
    linear = lib.nn.Linear(2, 2)
    old, new = linear.weight, lib.ones(1)
    assert accessors.swap_tensor(linear, "weight", new) is old
    assert linear._parameters["weight"] is new and type(linear.weight) is lib.Tensor
    mark = accessors.swap_tensor(linear, "extra", new, allow_missing=True)
    assert linear.extra is new
    accessors.swap_tensor(linear, "extra", mark)
    assert not hasattr(linear, "extra")
    for name, error in (
        ("nope", AttributeError),
        ("a.b", KeyError),
        ("in_features", TypeError),
        ("", KeyError),
    ):
        with pytest.raises(error):
            accessors.swap_tensor(linear, name, new)
    accessors.set_tensor(linear, "bias", new)
    assert linear._parameters["bias"] is new


@LIBRARIES
def test_dotted_names(lib):
    model = lib.nn.Sequential(lib.nn.Linear(2, 1), lib.nn.BatchNorm1d(1))
    accessor = lib.nn.utils._named_member_accessor.NamedMemberAccessor(model)
    names = [name for name, _ in accessor.named_tensors()]
    assert names[0] == "0.weight" and "1.running_mean" in names
    before, missing = accessor.swap_tensors_dict({"0.bias": lib.ones(1), "1.running_mean": lib.zeros(1)})
    assert list(before) == ["0.bias", "1.running_mean"] and missing == []
    assert accessor.get_tensors(["0.bias"])[0].tolist() == [1]
    with pytest.raises(RuntimeError, match="Missing key"):
        accessor.swap_tensors_dict({"0.bias": lib.zeros(1), "0.other": lib.zeros(1)})
    assert accessor.get_tensor("0.bias").tolist() == [1]
    missing, unexpected = accessor.check_keys(["0.weight", "9.weight"])
    assert "0.bias" in missing and unexpected == ["9.weight"]
