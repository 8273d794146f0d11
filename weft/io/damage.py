"""Defines errors for damaged files."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any


def damaged(path: Any, reason: Any) -> RuntimeError:
    return RuntimeError(f"{path}: {reason}")


@contextlib.contextmanager
def reading(path: Any) -> Iterator[None]:
    """A context for code that reads a file with a library. Errors become RuntimeError and name the file.

    Libraries raise many types of errors for damaged files (zlib.error, struct.error, SyntaxError, ...). TypeError stays
    TypeError, because it means that a tensor cannot represent the content.
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
