"""Tracing programs whose statements tracing would not see."""

from __future__ import annotations

import ast
import copy
import functools
import inspect
import textwrap
from collections.abc import Callable
from types import FunctionType
from typing import Any, cast

import weft

from ...nn import Module
from .._symbolic_trace import Tracer
from ..graph import Graph


class AST_Rewriter(ast.NodeTransformer):  # noqa: N801 (PyTorch's name)
    """Writes `assert condition` as `torch._assert(condition, message)`, which can be traced, and keeps annotations."""

    def rewrite(self, fn: FunctionType) -> Callable:
        """The function with its statements rewritten."""
        source = textwrap.dedent("".join(inspect.getsourcelines(fn)[0]))
        tree = ast.fix_missing_locations(self.visit(ast.parse(source)))
        code = compile(tree, "", "exec")
        # The function keeps its own globals if it can, because tracing replaces functions that are wrapped there.
        is_own = fn.__globals__.get("torch") is weft
        scope = fn.__globals__ if is_own else {**fn.__globals__, "torch": weft}
        defined: dict[str, Any] = {}
        exec(code, scope, defined)
        (made,) = defined.values()

        def scoped(f: FunctionType) -> Callable:
            g = FunctionType(f.__code__, scope, f.__name__, f.__defaults__, f.__closure__)
            g = cast(FunctionType, functools.update_wrapper(g, f))
            g.__kwdefaults__ = copy.copy(f.__kwdefaults__)
            return g

        return scoped(made)

    def visit_Assert(self, node: ast.Assert) -> ast.AST:  # noqa: N802 (ast's name)
        """`assert a, b` becomes `torch._assert(a, b)`."""
        function = ast.parse("torch._assert()", mode="eval").body
        assert isinstance(function, ast.Call)
        message = node.msg if node.msg is not None else ast.Constant(value="")
        call = ast.Expr(value=ast.Call(func=function.func, args=[node.test, message], keywords=[]))
        return ast.copy_location(call, node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:  # noqa: N802 (ast's name)
        """`a: int = b` becomes `a = annotate(b, int)`."""
        if node.value is None:
            return node
        function = ast.parse("torch.fx.annotate.annotate()", mode="eval").body
        assert isinstance(function, ast.Call)
        value = ast.Call(func=function.func, args=[node.value, node.annotation], keywords=[])
        return ast.copy_location(ast.Assign(targets=[node.target], value=value), node)


class RewritingTracer(Tracer):
    """A Tracer that sees asserts and annotations of variables."""

    def trace(self, root: Module | Callable, concrete_args: dict[str, Any] | None = None) -> Graph:
        return super().trace(_rewrite(root), concrete_args)


def _rewrite(fn: Module | Callable) -> Module | Callable:
    if not isinstance(fn, Module):
        return AST_Rewriter().rewrite(cast(FunctionType, fn))

    def rewritten(module: Module) -> Module:
        made = copy.copy(module)
        kind = type(made)
        if kind.__module__.partition(".")[0] not in ("weft", "torch"):
            # A class of its own, because Tracer takes forward from the class.
            made.__class__ = type(kind.__name__, (kind,), {"forward": AST_Rewriter().rewrite(kind.forward)})  # type: ignore[arg-type, assignment]
        for name, child in list(made.named_children()):
            made._modules = {**made._modules, name: rewritten(child)}
        return made

    return rewritten(fn)
