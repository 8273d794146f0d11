"""Files and functions of data pipes."""

from __future__ import annotations

import fnmatch
import inspect
import io
import os
import pickle
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from .....core.warn import user_level

__all__ = [
    "StreamWrapper", "get_file_binaries_from_pathnames", "get_file_pathnames_from_root", "match_masks",
    "validate_input_col", "validate_pathname_binary_tuple",
]  # fmt: skip


def validate_input_col(fn: Callable, input_col: int | tuple | list | None) -> None:
    """Check that `fn` takes as many arguments as `input_col` names.

    Raises: ValueError if it does not.
    """
    try:
        parameters = inspect.signature(fn).parameters.values()
    except (ValueError, TypeError):  # a builtin
        return
    count = len(input_col) if isinstance(input_col, (list, tuple)) else 1

    def refused(reason: str) -> ValueError:
        return ValueError(f"The function {getattr(fn, '__name__', None) or repr(fn)} takes {reason}")

    positional, needed = 0, 0
    for each in parameters:
        if each.kind is each.VAR_POSITIONAL:
            positional = count
        elif each.kind is each.KEYWORD_ONLY:
            if each.default is each.empty:
                raise refused(f"keyword-only parameter {each.name}, which is not allowed.")
        elif each.kind is not each.VAR_KEYWORD:
            positional += 1
            needed += each.default is each.empty
    if needed > count:
        raise refused(f"{needed} parameters, but {count} are required.")
    if positional < count:
        raise refused(f"{positional} parameters, but {count} are required.")


def check_unpickable_fn(fn: Callable) -> None:
    """Warn if workers could not get the function.

    Raises: TypeError if it cannot be called.
    """
    if not callable(fn):
        raise TypeError(f"A callable function is expected, but {type(fn)} is provided.")
    qualname = getattr(fn, "__qualname__", "")
    if "<lambda>" in qualname or "<locals>" in qualname:
        kind = "Lambda" if "<lambda>" in qualname else "Local"
        try:
            pickle.dumps(fn)
        except Exception:
            warnings.warn(
                f"{kind} function is not supported by pickle, please use regular python function or functools.partial "
                "instead.",
                stacklevel=user_level(),
            )


_check_unpickable_fn = check_unpickable_fn


def match_masks(name: str, masks: str | list[str]) -> bool:
    """Return whether a file name fits one of the patterns; it does if there are none."""
    if not masks:
        return True
    return any(fnmatch.fnmatch(name, mask) for mask in ([masks] if isinstance(masks, str) else masks))


def get_file_pathnames_from_root(
    root: str,
    masks: str | list[str],
    recursive: bool = False,
    abspath: bool = False,
    non_deterministic: bool = False,
) -> Iterable[str]:
    """The files of a folder whose names fit, in order unless `non_deterministic`; `root` itself if it is a file."""

    def failed(error: OSError) -> None:
        warnings.warn(f"{error.filename} : {error.strerror}", stacklevel=user_level())
        raise error

    if os.path.isfile(root):
        path = os.path.abspath(root) if abspath else root
        if match_masks(os.path.basename(path), masks):
            yield path
        return
    for folder, folders, names in os.walk(root, onerror=failed):
        folder = os.path.abspath(folder) if abspath else folder
        if not non_deterministic:
            names.sort()
            folders.sort()
        for name in names:
            if match_masks(name, masks):
                yield os.path.join(folder, name)
        if not recursive:
            break


def get_file_binaries_from_pathnames(
    pathnames: Iterable, mode: str, encoding: str | None = None
) -> Iterator[tuple[str, StreamWrapper]]:
    """(path, open file) for each path."""
    names = (pathnames,) if isinstance(pathnames, str) else pathnames
    mode = f"r{mode}" if mode in ("b", "t") else mode
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"Expected string type for pathname, but got {type(name)}")
        yield name, StreamWrapper(open(name, mode, encoding=encoding))


def validate_pathname_binary_tuple(data: tuple[str, io.IOBase]) -> None:
    """Check that this is a path and an open file.

    Raises: TypeError if it is something else.
    """
    if not isinstance(data, tuple) or len(data) != 2:
        raise TypeError(f"pathname binary data should be tuple of 2 elements, but it is type {type(data)}")
    if not isinstance(data[0], str):
        raise TypeError(
            f"pathname within the tuple should have string type pathname, but it is type {type(data[0])}"
        )
    if not isinstance(data[1], (io.IOBase, StreamWrapper)):
        raise TypeError(
            f"binary stream within the tuple should have IOBase or StreamWrapper, not {type(data[1])}"
        )


class StreamWrapper:
    """A file that is closed when nobody has it any more."""

    session_streams: dict[Any, int] = {}
    debug_unclosed_streams: bool = False

    def __init__(self, file_obj: Any, parent_stream: Any = None, name: str | None = None) -> None:
        self.file_obj = file_obj
        self.name = name
        self.closed = False
        self.parent_stream = parent_stream

    @classmethod
    def close_streams(cls, v: Any, depth: int = 0) -> None:
        """Close the files among the elements of nested lists, tuples and dicts."""
        if depth > 10:
            return
        if isinstance(v, StreamWrapper):
            v.close()
        elif isinstance(v, dict):
            for each in v.values():
                cls.close_streams(each, depth + 1)
        elif isinstance(v, (list, tuple)):
            for each in v:
                cls.close_streams(each, depth + 1)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["file_obj"], name)

    def close(self) -> None:
        """Close the file."""
        if not self.closed:
            self.file_obj.close()
            self.closed = True

    def autoclose(self) -> None:
        """Close the file when it has been read."""
        self.close()

    def __iter__(self) -> Iterator:
        yield from self.file_obj

    def __next__(self) -> Any:
        return next(self.file_obj)

    def __dir__(self) -> list[str]:
        return [*object.__dir__(self), *dir(self.file_obj)]

    def __del__(self) -> None:
        if not self.__dict__.get("closed", True):
            self.close()

    def __repr__(self) -> str:
        return (
            f"StreamWrapper<{self.file_obj!r}>"
            if self.name is None
            else f"StreamWrapper<{self.name},{self.file_obj!r}>"
        )

    def __getstate__(self) -> Any:
        return self.file_obj

    def __setstate__(self, obj: Any) -> None:
        self.__init__(obj)  # type: ignore[misc]
