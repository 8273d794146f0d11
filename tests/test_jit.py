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


def test_annotations_and_functions_are_what_they_were():
    from weft.jit.annotations import BroadcastingList2

    def function(a, size: BroadcastingList2[int] = 2):
        return a * size

    assert weft.jit._overload(function) is weft.jit._overload_method(function) is function
    assert weft.jit.script_if_tracing(function)(3) == weft.jit._script_if_tracing(function)(3, size=2) == 6
    assert weft.jit.annotate(list[int], [1]) == [1]
