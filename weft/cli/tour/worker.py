"""The process in which the cells of one reader run: lines of JSON in, lines of JSON out.

A line on standard input is `{"code": ...}`. The answers are events: `{"text": ...}` for what the cell prints and for the value of its last
expression, `{"svg": ...}` for a picture, `{"error": ...}` for a traceback, and `{"done": true}` at the end. SIGINT stops the cell that runs.
"""

from __future__ import annotations

import ast
import io
import itertools
import json
import linecache
import os
import queue
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from types import CodeType, ModuleType
from typing import Any

from ...engine.explain import is_ours

MOST_OUTPUT = 100_000  # characters of a cell; a browser shows more than this slowly
_numbers = itertools.count(1)


class _Output(io.TextIOBase):
    """`sys.stdout` and `sys.stderr` of cells."""

    def __init__(self, tell: Callable[[dict[str, Any]], None]) -> None:
        self._tell = tell
        self.left = MOST_OUTPUT

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if self.left > 0:
            self._tell({"text": text[: self.left]})
            if len(text) >= self.left:
                self._tell({"text": f"\n… only the first {MOST_OUTPUT:,} characters are shown\n"})
        self.left -= len(text)
        return len(text)


class Worker:
    """Runs cells in one namespace."""

    def __init__(self, tell: Callable[[dict[str, Any]], None]) -> None:
        self._tell = tell
        self._output = _Output(tell)
        # A module, so that functions and classes of cells pickle: `torch.save` of a model names the module of its class.
        module = ModuleType("__main__")
        sys.modules["__main__"] = module
        self.namespace = module.__dict__
        self.is_running = False

    def interrupt(self, *_: Any) -> None:
        """Handler of SIGINT: stop the cell, if one runs."""
        if self.is_running:
            self.is_running = False
            raise KeyboardInterrupt

    def run(self, code: str) -> None:
        """Run a cell, and tell what it prints, its value, and that it has ended."""
        before = sys.stdout, sys.stderr
        sys.stdout = sys.stderr = self._output  # type: ignore[assignment]
        self._output.left = MOST_OUTPUT
        try:
            self.is_running = True
            self._show(self._value(code))
            self.is_running = False
        except KeyboardInterrupt:
            self._tell({"error": "The cell was stopped. Its variables are still there."})
        except BaseException as error:  # SystemExit, too: the namespace lives on
            self._tell({"error": _traceback(error)})
        finally:
            self.is_running = False
            sys.stdout, sys.stderr = before
        self._tell({"done": True})

    def _value(self, code: str) -> Any:
        """Execute the cell. Returns the value of its last line if that is an expression, else None."""
        name = f"<cell {next(_numbers)}>"
        # Tracebacks and pictures quote lines of cells.
        linecache.cache[name] = len(code), None, code.splitlines(keepends=True), name
        tree = ast.parse(code, name)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, name, "exec"), self.namespace)
        if last is None:
            return None
        expression: CodeType = compile(ast.Expression(last.value), name, "eval")  # type: ignore[attr-defined]
        return eval(expression, self.namespace)

    def _show(self, value: Any) -> None:
        if value is None:
            return
        if hasattr(value, "_repr_svg_"):
            self._tell({"svg": value._repr_svg_()})
        else:
            print(repr(value))


def _traceback(error: BaseException) -> str:
    """The traceback with the lines of cells and of the libraries that they call, without those of weft."""
    found = traceback.TracebackException.from_exception(error)
    pending: list[Any] = [found]
    while pending:
        part = pending.pop()
        part.stack[:] = [frame for frame in part.stack if not is_ours(frame.filename)]
        pending += [each for each in (part.__cause__, part.__context__) if each is not None]
    return "".join(found.format()).rstrip()


def main() -> None:
    """Run cells until standard input ends, also if one of them runs then."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries write to file descriptor 1 is not an event
    cells: queue.SimpleQueue[str] = queue.SimpleQueue()

    def tell(event: dict[str, Any]) -> None:
        answers.write(json.dumps(event) + "\n")
        answers.flush()

    def read() -> None:
        for line in os.fdopen(os.dup(0), encoding="utf-8"):
            cells.put(json.loads(line)["code"])
        os._exit(0)

    worker = Worker(tell)
    signal.signal(signal.SIGINT, worker.interrupt)
    threading.Thread(target=read, daemon=True).start()
    sys.stdin = open(os.devnull)  # input() raises EOFError at once
    while True:
        worker.run(cells.get())


if __name__ == "__main__":
    main()
