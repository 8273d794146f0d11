"""`Lines`: a script whose statements tell when they begin and end, and the time that each line takes itself.

Statements are changed in the syntax tree, not observed by a trace function, so that code outside the script runs at full speed.
"""

from __future__ import annotations

import ast
import threading
from collections.abc import Callable, Iterable, Iterator
from time import perf_counter
from types import CodeType
from typing import Any

# The name by which the script's code reaches its `Lines`. No script has it.
_NAME = "__weft_bench__"
_SIMPLE = (
    ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Return, ast.Assert, ast.Delete, ast.Raise, ast.Import, ast.ImportFrom,
)  # fmt: skip
_SUSPENDING = (ast.Yield, ast.YieldFrom, ast.Await)


class _Thread(threading.local):
    def __init__(self) -> None:
        # For each statement under way: its line, when it began, the seconds of statements inside.
        self.open: list[list] = []


class Lines:
    """The calls and seconds of each line of a script. A line's seconds are its own: those of lines of functions that it calls are theirs."""

    def __init__(self, source: str, path: str) -> None:
        tree = _Marking().visit(ast.parse(source, path))
        self.code: CodeType = compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True)
        self.calls: dict[int, int] = {}
        self.seconds: dict[int, float] = {}
        self._thread = _Thread()

    def run(self, names: dict[str, Any]) -> float:
        """Run the script with these global names, and return its seconds."""
        names[_NAME] = self
        start = perf_counter()
        try:
            exec(self.code, names)
        finally:
            del self._thread.open[:]
        return perf_counter() - start

    def clear(self) -> None:
        """Forget all calls and seconds."""
        self.calls.clear()
        self.seconds.clear()

    @property
    def current(self) -> int | None:
        """The line that this thread is in."""
        return next((each[0] for each in reversed(self._thread.open) if each[0] > 0), None)

    # -- called by the script's code ---------------------------------------------------------------------------------------

    def begin(self, line: int) -> None:
        """A statement or a part of one begins."""
        self.calls[line] = self.calls.get(line, 0) + 1
        self._thread.open.append([line, perf_counter(), 0.0])

    def end(self, line: int, value: Any = None) -> Any:
        """The statement of a line, or a part of it, ends; returns `value`.

        What an error has left is still open inside of it, and ends as well.
        """
        now, open_ = perf_counter(), self._thread.open
        ended = None
        while ended != line:
            ended = self._close(open_, now)
        return value

    def _close(self, open_: list[list], now: float) -> int:
        line, start, inside = open_.pop()
        elapsed = now - start
        if line > 0:
            self.seconds[line] = self.seconds.get(line, 0.0) + elapsed - inside
        if open_:
            open_[-1][2] += elapsed if line > 0 else inside
        return line

    def begin_try(self, line: int) -> None:
        """A block begins whose errors are caught. Until it ends, an entry with the negative line marks where it began."""
        self._thread.open.append([-line, perf_counter(), 0.0])

    def caught(self, line: int) -> None:
        """An error has left the block. What it has left open ends."""
        now, open_ = perf_counter(), self._thread.open
        while open_[-1][0] != -line:
            self._close(open_, now)

    def part(self, line: int, function: Callable[[], Any]) -> Any:
        """What `function` returns, as a part of a line that is not counted as a call."""
        self._thread.open.append([line, perf_counter(), 0.0])
        try:
            return function()
        finally:
            self.end(line)

    def each(self, line: int, values: Iterable) -> Iterator:
        """The values of a loop, whose time is that of the line of `for`."""
        iterator = self.part(line, lambda: iter(values))
        while True:
            self.begin(line)
            try:
                value = next(iterator)
            except StopIteration:
                self.calls[line] -= 1
                return
            finally:
                self.end(line)
            yield value

    def within(self, line: int, suspends: bool, context: Any) -> _Within:
        """The context of a `with` statement, whose entry and exit are parts of its line. `suspends`: its block is left and resumed."""
        return _Within(self, line, suspends, context)


class _Within:
    def __init__(self, lines: Lines, line: int, suspends: bool, context: Any) -> None:
        self.lines, self.line, self.suspends, self.context = lines, line, suspends, context

    def __enter__(self) -> Any:
        entered = self.lines.part(self.line, self.context.__enter__)
        if not self.suspends:
            self.lines.begin_try(self.line)
        return entered

    def __exit__(self, *exception: Any) -> Any:
        if not self.suspends:
            self.lines.end(-self.line)  # the context may catch an error
        return self.lines.part(self.line, lambda: self.context.__exit__(*exception))


class _Marking(ast.NodeTransformer):
    """Puts calls of `begin` and `end` around statements, and around the expressions in the heads of blocks."""

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, _SIMPLE):
            return self._statement(node)
        for name in ("body", "orelse", "finalbody"):
            if isinstance(block := getattr(node, name, None), list) and not isinstance(node, ast.Lambda):
                setattr(node, name, self._block(block))
        for inner in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
            self.visit(inner)
        if isinstance(node, (ast.If, ast.While)):
            node.test = self._head(node.test)
        elif isinstance(node, ast.Match):
            node.subject = self._head(node.subject)
        elif isinstance(node, (ast.Try, ast.TryStar)) and not _suspends(node):
            return self._catching(node)
        elif isinstance(node, ast.For) and not _suspends(node.iter):
            node.iter = _call("each", ast.Constant(node.lineno), node.iter, at=node.iter)
        elif isinstance(node, ast.With):
            suspends = _suspends(node)
            for item in node.items:
                line = item.context_expr.lineno
                inner = self._head(item.context_expr)
                item.context_expr = _call(
                    "within", ast.Constant(line), ast.Constant(suspends), inner, at=item.context_expr
                )
        return node

    def _block(self, statements: list) -> list:
        found = []
        for each in statements:
            is_text = isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant)
            is_first = isinstance(each, ast.ImportFrom) and each.module == "__future__"
            changed = each if is_text or is_first else self.visit(each)
            found += changed if isinstance(changed, list) else [changed]
        return found

    def _statement(self, node: ast.stmt) -> Any:
        if _suspends(node):  # the statement does not run from its beginning to its end
            return node
        begin, end = (ast.Expr(_call(name, ast.Constant(node.lineno), at=node)) for name in ("begin", "end"))
        return [
            ast.copy_location(begin, node),
            ast.copy_location(ast.Try([node], [], [], [ast.copy_location(end, node)]), node),
        ]

    def _catching(self, node: Any) -> Any:
        """A `try` statement whose handlers end what the error has left."""
        line = ast.Constant(node.lineno)
        for handler in node.handlers:
            handler.body.insert(0, ast.copy_location(ast.Expr(_call("caught", line, at=handler)), handler))
        begin = ast.copy_location(ast.Expr(_call("begin_try", line, at=node)), node)
        end = ast.copy_location(ast.Expr(_call("end", ast.Constant(-node.lineno), at=node)), node)
        return [begin, ast.copy_location(ast.Try([node], [], [], [end]), node)]

    def _head(self, expression: ast.expr) -> ast.expr:
        """The expression between `begin` and `end`."""
        if _suspends(expression):
            return expression
        begin = _call("begin", ast.Constant(expression.lineno), at=expression)
        both = ast.Tuple([begin, expression], ast.Load())
        value = ast.Subscript(both, ast.Constant(1), ast.Load())
        return _call("end", ast.Constant(expression.lineno), value, at=expression)


def _suspends(node: ast.AST) -> bool:
    """Whether a generator or a coroutine may be left and resumed in the middle of a node."""
    waiting = [node]
    while waiting:
        each = waiting.pop()
        if isinstance(each, _SUSPENDING) or isinstance(each, ast.comprehension) and each.is_async:
            return True
        if (
            not isinstance(each, (ast.Lambda, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
            or each is node
        ):
            waiting.extend(ast.iter_child_nodes(each))
    return False


def _call(name: str, *arguments: ast.expr, at: ast.AST) -> ast.expr:
    method = ast.Attribute(ast.Name(_NAME, ast.Load()), name, ast.Load())
    call = ast.Call(method, list(arguments), [])
    for each in ast.walk(call):
        if not hasattr(each, "lineno"):
            ast.copy_location(each, at)
    return call
