"""Environment variables with values that weft does not know."""

import sys
from types import TracebackType
from typing import NoReturn


def refuse_setting(message: str) -> NoReturn:
    """Raise ValueError while weft is imported.

    If the program does not catch the error, Python prints the message without the traceback, which would show weft's modules only.
    """
    error, print_error = ValueError(message), sys.excepthook

    def print_message(
        kind: type[BaseException], value: BaseException, traceback: TracebackType | None
    ) -> None:
        if value is error:
            value, traceback = error.with_traceback(None), None
        print_error(kind, value, traceback)

    sys.excepthook = print_message
    raise error
