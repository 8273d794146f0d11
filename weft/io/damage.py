"""What damaged files raise."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any


def damaged(path: Any, reason: Any) -> RuntimeError:
    return RuntimeError(f"{path}: {reason}")


@contextlib.contextmanager
def reading(path: Any) -> Iterator[None]:
    """Code that reads a file with the help of a library.

    Libraries raise nearly anything over a damaged file (zlib.error, struct.error, SyntaxError, ...): all of it becomes
    RuntimeError, but for TypeError, which says that the content is none for a tensor. The file is named.
    """
    try:
        yield
    except (RuntimeError, TypeError) as error:
        if str(path) in str(error):
            raise
        kind = TypeError if isinstance(error, TypeError) else RuntimeError
        raise kind(f"{path}: {error}") from error
    except Exception as error:
        raise damaged(path, f"{type(error).__name__}: {error}") from error
