"""Reports about errors that end at the user's line: those of pytest, IPython, logging, threads and the interpreter."""

from __future__ import annotations

import sys
import threading
from types import ModuleType, TracebackType
from typing import Any

from ..core.nearest import note_called
from ..core.tracebacks import before_showing, excepthook, hide_in, is_own, shows_all
from ..core.when_imported import when_imported


def short_tracebacks() -> None:
    """Print uncaught errors, in all threads, and errors in the records of `logging` without weft's own frames.

    `weft run` does so, and pytest and IPython always leave weft's frames out. In other programs a traceback has all frames unless
    they call this function. WEFT_TRACEBACK=1 in the environment shows all frames again.
    """
    sys.excepthook = excepthook
    threading.excepthook = _thread_excepthook
    when_imported("logging", _in_logging)


def arrange() -> None:
    """What `import weft` does: pytest and IPython leave weft's frames out, and everything does so under `weft run`.

    Reports about an unknown keyword name the nearest parameter, in all programs.
    """
    before_showing.append(note_called)
    when_imported("_pytest._code.code", _in_pytest)
    if "IPython" in sys.modules:  # a shell imports it before the program imports weft
        _in_ipython(sys.modules["IPython"])
    if sys.excepthook is excepthook:
        short_tracebacks()
    elif sys.excepthook is sys.__excepthook__:
        sys.excepthook = _noting_excepthook


def _noting_excepthook(
    kind: type[BaseException], error: BaseException, traceback: TracebackType | None
) -> None:
    """Print an uncaught exception with its notes, and with all frames."""
    note_called(error)
    sys.__excepthook__(kind, error, traceback)


_print_in_thread = threading.excepthook


def _thread_excepthook(arguments: Any) -> None:
    if arguments.exc_value is not None:
        hide_in(arguments.exc_value)
        kind, value, _, thread = arguments
        arguments = threading.ExceptHookArgs((kind, value, value.__traceback__, thread))
    _print_in_thread(arguments)


def _in_logging(logging: ModuleType) -> None:
    make = logging.getLogRecordFactory()
    if getattr(make, "hides_frames", False):
        return

    def make_record(*args: Any, **kwargs: Any) -> Any:
        record = make(*args, **kwargs)
        if record.exc_info and record.exc_info[1] is not None:
            kind, error, _ = record.exc_info
            hide_in(error)
            record.exc_info = (kind, error, error.__traceback__)
        return record

    make_record.hides_frames = True  # type: ignore[attr-defined]
    logging.setLogRecordFactory(make_record)


def _in_pytest(module: ModuleType) -> None:
    """Let pytest treat weft's frames as if their functions had `__tracebackhide__`, which each of them would have to set in each call."""
    entry = module.TracebackEntry
    ishidden = entry.ishidden

    def is_hidden(self: Any, *args: Any) -> Any:
        return (is_own(self.frame.code.raw) and not shows_all()) or ishidden(self, *args)

    entry.ishidden = is_hidden
    information = module.ExceptionInfo
    getrepr = information.getrepr

    def noted_repr(self: Any, *args: Any, **kwargs: Any) -> Any:
        note_called(self.value)
        return getrepr(self, *args, **kwargs)

    information.getrepr = noted_repr


def _in_ipython(module: ModuleType) -> None:
    """Hide weft's frames before the shell shows an error. Its own `__tracebackhide__` would still show the innermost frame."""
    shell = module.get_ipython()
    if shell is None:  # IPython is imported, but the program is not run by it
        return
    show = shell.showtraceback

    def showtraceback(exc_tuple: Any = None, *args: Any, **kwargs: Any) -> None:
        kind, error, traceback = exc_tuple or sys.exc_info()
        if error is None:  # %tb, which shows the last error again
            return show(exc_tuple, *args, **kwargs)
        hide_in(error)
        return show((kind, error, error.__traceback__), *args, **kwargs)

    shell.showtraceback = showtraceback
