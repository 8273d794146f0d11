"""The error of a worker, raised in the process of the loader."""

from __future__ import annotations

import sys
import traceback
from typing import Any, NoReturn

from ....core.names import ROOT, set_name


class KeyErrorMessage(str):
    """Text that a KeyError prints as it is, where it would print any other as a quoted key."""

    def __repr__(self) -> str:
        return str(self)


class ExceptionWrapper:
    """The exception that is being handled, to be raised in another thread or process.

    >>> from weft._utils import ExceptionWrapper
    >>> try:
    ...     [][0]
    ... except IndexError:
    ...     wrapper = ExceptionWrapper(where="in a worker")
    >>> try:
    ...     wrapper.reraise()
    ... except IndexError as error:
    ...     print(str(error).splitlines()[0])
    Caught IndexError in a worker.
    """

    def __init__(self, exc_info: Any = None, where: str = "in background"):
        # Texts only: a traceback would keep alive what its frames hold, and cannot be pickled.
        exc_info = sys.exc_info() if exc_info is None else exc_info
        self.exc_type = exc_info[0]
        self.exc_msg = "".join(traceback.format_exception(*exc_info))
        self.where = where

    def reraise(self) -> NoReturn:
        """Raise an exception of the type that was caught, whose message has the original traceback."""
        message = f"Caught {self.exc_type.__name__} {self.where}.\nOriginal {self.exc_msg}"
        if self.exc_type is KeyError:
            message = KeyErrorMessage(message)
        try:
            if getattr(self.exc_type, "message", None):  # classes whose constructor asks for it by name
                error = self.exc_type(message=message)
            else:
                error = self.exc_type(message)
        except Exception:  # a constructor that asks for more
            error = RuntimeError(message)
        raise error from None


for _class in (KeyErrorMessage, ExceptionWrapper):
    set_name(_class, f"{ROOT}._utils", _class.__name__)
