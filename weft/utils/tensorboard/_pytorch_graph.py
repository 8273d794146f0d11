"""The graph of a module for TensorBoard, from what `torch.export` records."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator
from typing import Any

from tensorboard.compat.proto.config_pb2 import RunMetadata
from tensorboard.compat.proto.graph_pb2 import GraphDef
from tensorboard.compat.proto.node_def_pb2 import NodeDef
from tensorboard.compat.proto.step_stats_pb2 import DeviceStepStats, StepStats
from tensorboard.compat.proto.versions_pb2 import VersionDef

from ...core.tensor import Tensor
from ._proto_graph import node_proto


def graph(
    model: Any, args: Any, verbose: bool = False, use_strict_trace: bool = True
) -> tuple[GraphDef, RunMetadata]:
    """Return the graph of `model(*args)` in its mode of evaluation, and the device that it runs on.

    `args` is a tensor, or a tuple or list of arguments. `use_strict_trace` is for results in dicts and lists, which
    weft's graphs may always have.
    """
    from ...export import export  # loaded when a graph is made, because most logs have none

    if args is None:
        raise RuntimeError(
            "the graph of a model is recorded from a call: pass input_to_model, the model's arguments"
        )
    args = tuple(args) if isinstance(args, (tuple, list)) else (args,)
    with _set_model_to_eval(model):
        program = export(model, args)
    if verbose:
        print(program.graph)
    # TensorBoard shows a device only if there are its statistics.
    stats = RunMetadata(step_stats=StepStats(dev_stats=[DeviceStepStats(device="/device:CPU:0")]))
    return GraphDef(node=_nodes(model, program), versions=VersionDef(producer=22)), stats


@contextlib.contextmanager
def _set_model_to_eval(model: Any) -> Iterator[None]:
    """The mode of evaluation, in which dropout and its relatives record the same graph each time."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training


def _nodes(model: Any, program: Any) -> list[NodeDef]:
    signature = program.graph_signature
    stored = {
        **signature.inputs_to_parameters,
        **signature.inputs_to_buffers,
        **signature.inputs_to_lifted_tensor_constants,
    }
    scopes = _Scopes(model)
    names: dict[Any, str] = {}  # the full name of each node of the program
    inputs, outputs, operations = [], [], []
    for node in program.graph.nodes:
        if node.op == "placeholder" and node.name in stored:
            module, _, attribute = stored[node.name].rpartition(".")
            names[node] = f"{scopes.name(module)}/{attribute}"
            operations.append(_proto(node, names, "prim::GetAttr", f"{{ name :  {attribute} }}"))
        elif node.op == "placeholder":
            names[node] = f"input/{node.name}"
            inputs.append(_proto(node, names, "IO Node", ""))
        elif node.op == "output":
            for i, source in enumerate(node.all_input_nodes):
                shape = _shape(source)
                outputs.append(
                    node_proto(f"output/output.{i + 1}", "IO Node", names[source], outputsize=shape)
                )
        else:
            module = next(reversed(node.meta.get("nn_module_stack") or {}), "")
            names[node] = f"{scopes.name(module)}/{node.name}"
            operations.append(_proto(node, names, _operation(node.target), _attributes(node)))
    return inputs + outputs + operations


class _Scopes:
    """The names that TensorBoard folds graphs by: `Net/Sequential[body]/Linear[0]` for the module `body.0`."""

    def __init__(self, model: Any):
        self._modules = dict(model.named_modules(remove_duplicate=False))

    def name(self, path: str) -> str:
        parts = [type(self._modules[""]).__name__]
        for prefix, attribute in _prefixes(path):
            # The exported program may name modules that it made itself.
            kind = type(self._modules[prefix]).__name__ if prefix in self._modules else "Module"
            parts.append(f"{kind}[{attribute}]")
        return "/".join(parts)


def _prefixes(path: str) -> Iterable[tuple[str, str]]:
    attributes = (
        re.sub(r"@\d+", "", path).split(".") if path else []
    )  # `layer@1` is the second call of `layer`
    return [(".".join(attributes[: i + 1]), attribute) for i, attribute in enumerate(attributes)]


def _proto(node: Any, names: dict[Any, str], op: str, attributes: str) -> NodeDef:
    sources = [names[each] for each in node.all_input_nodes]
    return node_proto(names[node], op, sources, outputsize=_shape(node), attributes=attributes)


def _operation(target: Any) -> str:
    """Return the name of a function, or of a method, which `target` is already."""
    return f"aten::{target if isinstance(target, str) else getattr(target, '__name__', target)}"


def _attributes(node: Any) -> str:
    """Return the arguments that are no nodes, as text."""
    from ...fx import Node

    def is_text(value: Any) -> bool:
        return not isinstance(value, (Node, list, tuple))

    unnamed = [str(each) for each in node.args if is_text(each)]
    named = [f"{name}: {each}" for name, each in node.kwargs.items() if is_text(each)]
    return "{" + ", ".join(unnamed + named) + "}"


def _shape(node: Any) -> tuple[int, ...] | None:
    value = node.meta.get("val")
    return tuple(int(each) for each in value.shape) if isinstance(value, Tensor) else None
