import pytest

import weft
from weft._subclasses.fake_tensor import FakeTensor, FakeTensorMode, is_fake, unset_fake_temporarily
from weft.utils import _python_dispatch as dispatch


def test_no_mode_is_ever_on():
    assert dispatch._get_current_dispatch_mode() is None and dispatch._get_current_dispatch_mode_stack() == []
    assert not dispatch.is_in_torch_dispatch_mode()
    with dispatch._disable_current_modes(), unset_fake_temporarily():
        pass

    class Mode(dispatch.TorchDispatchMode):
        pass

    for mode in (Mode(), FakeTensorMode()):
        with pytest.raises(NotImplementedError, match=type(mode).__name__), mode:
            pass


def test_classes_can_be_asked_about():
    x = weft.ones(1)
    assert not is_fake(x) and not isinstance(x, FakeTensor)
    assert not dispatch.is_traceable_wrapper_subclass(x)
    with pytest.raises(NotImplementedError, match="meta"):
        FakeTensor(x)
    assert type(weft.ones(1) + 1) is weft.Tensor
