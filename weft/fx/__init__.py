"""Programs as graphs: trace a module, change the graph, and run it as Python again. `torch.fx`.

>>> import weft as torch
>>> traced = torch.fx.symbolic_trace(lambda x, y: torch.relu(x) + y)
>>> for node in traced.graph.nodes:
...     if node.target is torch.relu:
...         node.target = torch.tanh
>>> _ = traced.recompile()
>>> print(traced.code.strip())
def forward(self, x, y):
    relu = torch.tanh(x);  x = None
    add = relu + y;  relu = y = None
    return add
"""

from ..compat.missing import module_getattr
from . import graph, immutable_collections, node, proxy
from ._symbolic_trace import PH, ProxyableClassMeta, Tracer, symbolic_trace, wrap
from .graph import CodeGen, Graph
from .graph_module import GraphModule
from .interpreter import Interpreter, Transformer
from .node import Node, has_side_effect, map_arg
from .proxy import Proxy
from .subgraph_rewriter import replace_pattern

__all__ = [
    "Graph", "GraphModule", "Interpreter", "Node", "Proxy", "Tracer", "Transformer", "has_side_effect",
    "map_arg", "replace_pattern", "symbolic_trace", "wrap",
]  # fmt: skip

# `typing.get_type_hints` looks for these classes in modules that are imported before the classes exist.
for _module in (node, proxy, graph):
    vars(_module).update(Graph=Graph, GraphModule=GraphModule, Tracer=Tracer)

__getattr__ = module_getattr(
    __name__,
    (
        "_lazy_graph_module", "annotate", "config", "experimental", "operator_schemas", "passes",
        "tensor_type", "traceback",
    ),
)  # fmt: skip
