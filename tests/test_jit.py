import pytest

import weft
import weft.jit


@pytest.mark.parametrize("name", ["script", "trace", "save"])
def test_what_is_missing_says_so(name):
    with pytest.raises(NotImplementedError, match=f"torch.jit.{name}: weft does not have it"):
        getattr(weft.jit, name)(lambda a: a)


def test_marks_leave_functions_as_they_are():
    def function(a):
        return a

    assert weft.jit.ignore(function) is weft.jit.ignore(drop=True)(function) is function
    assert weft.jit.unused(function) is weft.jit.export(function) is function
    assert not weft.jit.is_scripting() and not weft.jit.is_tracing()
    assert not isinstance(weft.nn.Linear(1, 1), weft.jit.ScriptModule)
