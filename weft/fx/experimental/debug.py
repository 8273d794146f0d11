"""A debugger in the generated code."""

from __future__ import annotations

from ..graph_module import GraphModule

__all__ = ["set_trace"]


def set_trace(gm: GraphModule) -> GraphModule:
    """Let the generated forward start the debugger before its first line."""

    def insert_pdb(body: list[str]) -> list[str]:
        return ["import pdb; pdb.set_trace()\n", *body]

    with gm.graph.on_generate_code(
        make_transformer=lambda current: lambda body: insert_pdb(current(body) if current else body)
    ):
        gm.recompile()
    return gm
