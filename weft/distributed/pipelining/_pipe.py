"""`pipeline`: the stages of a model as it is, which is traced and cut.

Each traced operation is marked with its stage. A stage gets what it and the stages behind it need of earlier results, and hands on
what later ones need, so that a value may skip stages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Any

from ...export import export
from ...fx import traceback
from ...fx.graph import Graph
from ...fx.graph_module import GraphModule
from ...fx.node import Node
from ...nn.module import Module
from .._group import ProcessGroup
from .stage import PipeInfo, PipelineStage, build_stage

__all__ = ["Pipe", "SplitPoint", "pipe_split", "pipeline"]

_STAGE = "pipeline_stage"  # the mark of an operation


class SplitPoint(Enum):
    """Where a stage begins: with a module, or behind it."""

    BEGINNING = 1
    END = 2


def pipe_split() -> None:
    """Begin a new stage with the operation that follows, in a model that `pipeline` traces. Elsewhere it does nothing."""
    marks = traceback.current_meta.get("custom", {})
    if _STAGE in marks:
        traceback.current_meta["custom"] = {**marks, _STAGE: marks[_STAGE] + 1}


class Pipe(Module):
    """A model that is cut into stages; `pipeline` makes it. Called, it computes all stages one after the other.

    split_gm: a module with the stages, `submod_pp_0` and so on. num_stages: how many there are.
    """

    def __init__(self, split_gm: Module, num_stages: int, has_loss_and_backward: bool, loss_spec: Any):
        super().__init__()
        self.split_gm, self.num_stages = split_gm, num_stages
        self.has_loss_and_backward, self.loss_spec = has_loss_and_backward, loss_spec

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        values = self.get_stage_module(0)(*args, **kwargs)
        for index in range(1, self.num_stages):
            values = self.get_stage_module(index)(*(values if isinstance(values, tuple) else (values,)))
        return values if isinstance(values, tuple) else (values,)

    def get_stage_module(self, stage_idx: int) -> Module:
        """The module of a stage.

        Raises: ValueError if there is no such stage.
        """
        if not 0 <= stage_idx < self.num_stages:
            raise ValueError(f"Invalid stage index {stage_idx}!")
        return self.split_gm.get_submodule(f"submod_pp_{stage_idx}")

    def build_stage(self, stage_index: int, device: Any, group: ProcessGroup | None = None) -> PipelineStage:
        """A stage for a schedule, on the rank that is to compute it."""
        return build_stage(self.get_stage_module(stage_index), stage_index, self.info(), device, group)

    def info(self) -> PipeInfo:
        """What `build_stage` needs besides the module."""
        graph: Any = self.get_stage_module(0).graph
        return PipeInfo(graph, self.num_stages, self.has_loss_and_backward)

    def print_readable(self) -> None:
        """Print the code of the stages."""
        for index in range(self.num_stages):
            stage: Any = self.get_stage_module(index)
            stage.print_readable()

    @staticmethod
    def from_tracing(
        mod: Module,
        example_args: tuple[Any, ...],
        example_kwargs: dict[str, Any] | None = None,
        split_policy: Callable[[GraphModule], GraphModule] | None = None,
    ) -> Pipe:
        """Cut a model where it calls `pipe_split`."""
        with traceback.preserve_node_meta(), traceback.annotate({_STAGE: 0}):
            program = export(mod, example_args, example_kwargs)
        traced: Any = program.module()
        if split_policy is not None:
            traced = split_policy(traced)
        stages = Module()
        segments = [*_segments(traced.graph)]
        for index, segment in enumerate(segments):
            before = _values(segments[:index])
            graph = _graph_of(
                segment, _used(before, segments[index:]), _used(before + segment, segments[index + 1 :])
            )
            stages.add_module(f"submod_pp_{index}", GraphModule(traced, graph))
        return Pipe(stages, len(segments), False, None)


def _segments(graph: Graph) -> Iterator[list[Node]]:
    """The operations of each stage in their order, those of the first one behind the inputs."""
    segment: list[Node] = []
    current = passed = 0
    for node in graph.nodes:
        if node.target is pipe_split:  # from a split policy
            passed += 1
            continue
        if node.op == "get_attr" or node.target == "_guards_fn":
            continue
        stage = node.meta.get("custom", {}).get(_STAGE, current - passed) + passed
        if stage > current:
            yield segment
            segment, current = [], stage
        segment.append(node)
    yield segment


def _values(segments: Iterable[list[Node]]) -> list[Node]:
    return [node for segment in segments for node in segment]


def _used(values: Iterable[Node], segments: Iterable[list[Node]]) -> list[Node]:
    """The values that stages read."""
    read = {each for node in _values(segments) for each in node.all_input_nodes}
    return [each for each in values if each in read]


def _graph_of(segment: list[Node], given: list[Node], handed_on: list[Node]) -> Graph:
    """The graph of one stage, from what it is given to what it hands on. The last one ends with the results of the model."""
    graph = Graph()
    copies = {node: graph.placeholder(node.name) for node in given}

    def copy_of(node: Node) -> Node:
        if node not in copies:  # an attribute of the model
            copies[node] = graph.node_copy(node)
        return copies[node]

    for node in segment:
        if node.op != "output":
            copies[node] = graph.node_copy(node, copy_of)
            continue
        (handed_on,) = node.args  # type: ignore[assignment]
    results = tuple([copy_of(each) for each in handed_on])
    graph.output(results[0] if len(results) == 1 else results)
    return graph


def pipeline(
    module: Module,
    mb_args: tuple[Any, ...],
    mb_kwargs: dict[str, Any] | None = None,
    split_spec: dict[str, SplitPoint] | None = None,
    split_policy: Callable[[GraphModule], GraphModule] | None = None,
) -> Pipe:
    """Cut a model into stages, by tracing it with the arguments of one microbatch.

    split_spec: for names of submodules, whether a stage begins with them or behind them. Besides, one begins wherever the model calls
    `pipe_split`. split_policy: a function that adds calls of `pipe_split` to the traced model.

    Raises: ValueError if both are given; AttributeError if there is no such submodule.

    >>> import weft as torch
    >>> model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    >>> pipe = pipeline(model, (torch.ones(3, 4),), split_spec={"2": SplitPoint.BEGINNING})
    >>> [[name for name, _ in pipe.get_stage_module(k).named_parameters()] for k in range(pipe.num_stages)]
    [['0.weight', '0.bias'], ['2.weight', '2.bias']]
    """
    if split_spec is not None and split_policy is not None:
        raise ValueError("Cannot specify both `split_spec` and `split_policy`. Please use only one of them.")
    with _split_at(module, split_spec or {}):
        return Pipe.from_tracing(module, mb_args, mb_kwargs, split_policy)


@contextmanager
def _split_at(module: Module, points: dict[str, SplitPoint]) -> Iterator[None]:
    """Within it, the submodules of these names begin or end stages."""
    chosen = [(module.get_submodule(name), point) for name, point in points.items()]
    try:
        for submodule, point in chosen:
            submodule.forward = _splitting(submodule.forward, point)
        yield
    finally:
        for submodule, _ in chosen:
            vars(submodule).pop("forward", None)


def _splitting(forward: Callable[..., Any], point: SplitPoint) -> Callable[..., Any]:
    def split_forward(*args: Any, **kwargs: Any) -> Any:
        if point is SplitPoint.BEGINNING:
            pipe_split()
        found = forward(*args, **kwargs)
        if point is SplitPoint.END:
            pipe_split()
        return found

    return split_forward
