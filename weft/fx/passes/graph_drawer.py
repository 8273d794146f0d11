"""Pictures of graphs, drawn by graphviz through the package `pydot`."""

from __future__ import annotations

import hashlib
from typing import Any

from .._codegen import _parse_stack_trace
from .._compatibility import compatibility
from ..graph_module import GraphModule
from ..node import Node, _format_arg, _get_qualified_name
from .shape_prop import TensorMetadata

try:
    import pydot

    HAS_PYDOT = True
except ImportError:
    HAS_PYDOT = False
    pydot = None

__all__ = ["FxGraphDrawer"]

_COLOR_MAP = {
    "placeholder": '"AliceBlue"',
    "call_module": "LemonChiffon1",
    "get_param": "Yellow2",
    "get_attr": "LightGrey",
    "output": "PowderBlue",
}
_HASH_COLOR_MAP = [
    "CadetBlue1", "Coral", "DarkOliveGreen1", "DarkSeaGreen1", "GhostWhite", "Khaki1", "LavenderBlush1",
    "LightSkyBlue", "MistyRose1", "MistyRose2", "PaleTurquoise2", "PeachPuff1", "Salmon", "Thistle1",
    "Thistle3", "Wheat1",
]  # fmt: skip
_WEIGHT_TEMPLATE = {"fillcolor": "Salmon", "style": '"filled,rounded"', "fontcolor": "#000000"}


@compatibility(is_backward_compatible=False)
class FxGraphDrawer:
    """Draws a GraphModule: `FxGraphDrawer(module, "name").get_dot_graph().write_svg("name.svg")`.

    Raises: RuntimeError if `pydot` is not installed.
    """

    def __init__(
        self,
        graph_module: GraphModule,
        name: str,
        ignore_getattr: bool = False,
        ignore_parameters_and_buffers: bool = False,
        skip_node_names_in_args: bool = True,
        parse_stack_trace: bool = False,
        dot_graph_shape: str | None = None,
        normalize_args: bool = False,
    ) -> None:
        if not HAS_PYDOT:
            raise RuntimeError(
                "FXGraphDrawer requires the pydot package to be installed. Please install pydot through your favorite "
                "Python package manager."
            )
        self._name = name
        self.dot_graph_shape = dot_graph_shape if dot_graph_shape is not None else "record"
        self.normalize_args = normalize_args
        self.skip_node_names_in_args = skip_node_names_in_args
        self.parse_stack_trace = parse_stack_trace
        self._dot_graphs = {
            name: self._to_dot(graph_module, name, ignore_getattr, ignore_parameters_and_buffers)
        }
        for path, child in graph_module.named_modules():
            if path and isinstance(child, GraphModule):
                full = f"{name}_{path}"
                self._dot_graphs[full] = self._to_dot(
                    child, full, ignore_getattr, ignore_parameters_and_buffers
                )

    def get_dot_graph(self, submod_name: str | None = None) -> Any:
        """The picture of the module, or of the GraphModule at a path in it, as `pydot.Dot`."""
        return self._dot_graphs[self._name if submod_name is None else f"{self._name}_{submod_name}"]

    def get_main_dot_graph(self) -> Any:
        """The picture of the module."""
        return self._dot_graphs[self._name]

    def get_submod_dot_graph(self, submod_name: str) -> Any:
        """The picture of the GraphModule at a path in it."""
        return self._dot_graphs[f"{self._name}_{submod_name}"]

    def get_all_dot_graphs(self) -> dict[str, Any]:
        """All pictures by their names."""
        return self._dot_graphs

    def _to_dot(self, module: GraphModule, name: str, ignore_getattr: bool, ignore_parameters: bool) -> Any:
        assert pydot is not None
        dot = pydot.Dot(name, rankdir="TB")
        for node in module.graph.nodes:
            if ignore_getattr and node.op == "get_attr":
                continue
            dot.add_node(pydot.Node(node.name, label=self._label(module, node), **self._style(node)))
            if node.op == "call_module" and not ignore_parameters:
                self._add_parameters(dot, module, node)
        for node in module.graph.nodes:
            if ignore_getattr and node.op == "get_attr":
                continue
            for user in node.users:
                dot.add_edge(pydot.Edge(node.name, user.name))
        return dot

    def _add_parameters(self, dot: Any, module: GraphModule, node: Node) -> None:
        assert pydot is not None
        layer = module.get_submodule(str(node.target))
        for name, value in [*layer.named_parameters(recurse=False), *layer.named_buffers(recurse=False)]:
            kind = "get_parameter" if name in layer._parameters else "get_buffer"
            label = f'"{{{node.name}.{name}|op_code={kind}\\l|{self._tensor_label(value)}}}"'
            style = {**_WEIGHT_TEMPLATE, "shape": self.dot_graph_shape}
            dot.add_node(pydot.Node(f"{node.name}.{name}", label=label, **style))
            dot.add_edge(pydot.Edge(f"{node.name}.{name}", node.name))

    def _style(self, node: Node) -> dict[str, str]:
        style = {
            "shape": self.dot_graph_shape,
            "fillcolor": "#CAFFE3",
            "style": '"filled,rounded"',
            "fontcolor": "#000000",
        }
        if node.op in _COLOR_MAP:
            style["fillcolor"] = _COLOR_MAP[node.op]
        else:
            # The same color for the same function in all pictures.
            digest = hashlib.md5(
                str(node._pretty_print_target(node.target)).encode(), usedforsecurity=False
            ).hexdigest()
            style["fillcolor"] = _HASH_COLOR_MAP[int(digest, 16) % len(_HASH_COLOR_MAP)]
        return style

    def _label(self, module: GraphModule, node: Node) -> str:
        parts = [f"name=%{node.name}", f"op_code={node.op}\\n"]
        if node.op == "call_module":
            layer = module.get_submodule(str(node.target))
            extra = layer.extra_repr().replace("<", "\\<").replace(">", "\\>")
            parts.append(f"{type(layer).__name__}\\n{extra}")
        elif callable(node.target):
            parts.append(f"target={_get_qualified_name(node.target)}\\n")
        else:
            parts.append(f"target={node.target}\\n")
        if node.args and node.op != "output":
            parts.append(self._arguments("args", node.args))
        if node.kwargs:
            parts.append(self._arguments("kwargs", node.kwargs))
        parts.append(f"num_users={len(node.users)}\\n")
        if (meta := node.meta.get("tensor_meta")) is not None:
            parts.append(self._tensor_label(meta))
        trace = _parse_stack_trace(node.stack_trace) if self.parse_stack_trace and node.stack_trace else None
        if trace is not None:
            parts.append(
                f"file={trace.file}:{trace.lineno} {trace.code}".replace("{", "\\{").replace("}", "\\}")
            )
        return '"{' + "|".join(parts) + '}"'

    def _arguments(self, name: str, values: Any) -> str:
        text = _format_arg(values, max_list_len=10)
        for sign in "{}<>|":
            text = text.replace(sign, "\\" + sign)
        return f"|{name}={text}\\l"

    @staticmethod
    def _tensor_label(value: Any) -> str:
        if isinstance(value, (tuple, list)) and not isinstance(value, TensorMetadata):
            return "".join(map(FxGraphDrawer._tensor_label, value))
        return f"dtype={value.dtype}\\nshape={tuple(value.shape)}\\n"
