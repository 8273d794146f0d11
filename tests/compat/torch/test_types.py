import typing

import torch
import torch.nn.common_types
import torch.types

import weft
import weft.nn.common_types
import weft.types


def test_annotations_accept_what_pytorchs_accept():
    for name in ("Number", "_int", "_float", "_bool"):
        assert getattr(weft.types, name) == getattr(torch.types, name)
    assert set(typing.get_args(weft.types.Device)) == {weft.device, str, int, type(None)}
    assert weft.Size in typing.get_args(weft.types._size)
    assert (weft.types._dtype, weft.types._layout) == (type(weft.float32), type(weft.strided))
    assert (weft.types._device, weft.types.Tensor) == (weft.device, weft.Tensor)


def test_classes_print_as_pytorchs():
    for name in ("Tensor", "dtype", "layout", "memory_format", "device", "Size"):
        assert repr(getattr(weft, name)).replace("weft", "torch") == repr(getattr(torch, name))


def test_types_of_layers():
    for name, expected in vars(torch.nn.common_types).items():
        if name.startswith(("_size", "_ratio")):
            assert getattr(weft.nn.common_types, name) == expected
    assert typing.get_args(weft.nn.common_types._tensor_list_t)[0] is weft.Tensor


def test_modules_are_found_where_pytorch_has_them():
    from weft.nn.modules import Module, ModuleDict, Sequential
    from weft.nn.modules.module import _IncompatibleKeys

    assert (Module, ModuleDict, Sequential) == (weft.nn.Module, weft.nn.ModuleDict, weft.nn.Sequential)
    assert isinstance(weft.nn.ReLU().load_state_dict({}), _IncompatibleKeys)
