"""Simplification of ONNX graphs."""

from __future__ import annotations

from typing import Any


def optimized(graph: Any) -> None:
    """Take out `Identity` operators, and operators and tensors whose values nobody uses."""
    outputs = {each.name for each in graph.output}
    inputs = {each.name for each in graph.input} | {each.name for each in graph.initializer}
    renamed: dict[str, str] = {}
    kept = []
    for node in graph.node:
        for place, name in enumerate(node.input):
            node.input[place] = renamed.get(name, name)
        if node.op_type == "Identity" and node.domain == "" and node.output[0] not in outputs:
            renamed[node.output[0]] = node.input[0]
        else:
            kept.append(node)
    kept = _outputs_named(kept, outputs, inputs)
    kept, used = _used(kept, outputs)
    tensors = [each for each in graph.initializer if each.name in used]
    nodes = [type(each).FromString(each.SerializeToString()) for each in kept]
    del graph.node[:], graph.initializer[:]
    graph.node.extend(nodes)
    graph.initializer.extend(tensors)


def _outputs_named(nodes: list[Any], outputs: set[str], inputs: set[str]) -> list[Any]:
    """Let operators write to the outputs themselves, where an `Identity` after them did."""
    makers = {name: node for node in nodes for name in node.output}
    renamed: dict[str, str] = {}
    kept = []
    for node in nodes:
        source = str(node.input[0]) if node.op_type == "Identity" and node.domain == "" else ""
        if source in makers and source not in inputs | outputs and source not in renamed:
            renamed[source] = node.output[0]
        else:
            kept.append(node)
    for node in kept:
        for names in (node.input, node.output):
            for place, name in enumerate(names):
                names[place] = renamed.get(name, name)
    return kept


def _used(nodes: list[Any], outputs: set[str]) -> tuple[list[Any], set[str]]:
    """The operators that the outputs need, in order, and the names of all values that these take."""
    used, kept = set(outputs), []
    for node in reversed(nodes):
        if any(name in used for name in node.output):
            used.update(node.input)
            kept.append(node)
    return kept[::-1], used
