"""Objects of classes that PyTorch has in C++, such as the prepared weights of quantized layers, and their form in files."""

from __future__ import annotations

from typing import Any

from ...core.names import ROOT, set_name
from ...core.overrides import note_class


class ScriptObject:
    """An instance of a class that PyTorch has in C++. Its classes in weft are derived from this one.

    A file of PyTorch holds an empty ScriptObject, then its state and the name of its class in PyTorch.
    """

    _script_name: str  # the name of the class in PyTorch

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        note_class(cls)  # a call with an object of a class that is known costs less

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise TypeError("torch.ScriptObject: No constructor defined!")

    def _type(self) -> str:
        """Return the name of the class in PyTorch."""
        return self._script_name

    def __str__(self) -> str:
        return f"ScriptObject <{self._type()}>"

    def _state(self) -> tuple:
        """What a file holds of this object."""
        raise NotImplementedError

    def __getstate__(self) -> tuple[tuple, str]:
        return self._state(), self._script_name

    def __setstate__(self, content: Any) -> None:
        from .states import restored  # most files have no such object

        made = restored(content)
        self.__class__ = type(made)
        vars(self).update(vars(made))

    def __reduce__(self) -> tuple:
        return rebuilt_object, (self.__getstate__(),)


def rebuilt_object(content: tuple[tuple, str]) -> ScriptObject:
    """Return the object of a state and the name of a class."""
    made = ScriptObject.__new__(ScriptObject)
    made.__setstate__(content)
    return made


set_name(ScriptObject, ROOT, "ScriptObject")
