"""Ranges of profiles that begin and end by operators, also in graphs."""

import weft


def test_operators_begin_and_end_ranges():
    profiler = weft.ops.profiler
    with weft.profiler.profile() as prof:
        handle = profiler._record_function_enter("older", None)
        weft.ones(2)
        profiler._record_function_exit(handle)
        record = profiler._record_function_enter_new("newer")
        weft.zeros(2)
        profiler._record_function_exit(record)
    around = {event.name: event.cpu_parent and event.cpu_parent.name for event in prof.events()}
    assert around["older"] is around["newer"] is None
    assert (around["aten::ones"], around["aten::zeros"]) == ("older", "newer")
    assert str(record) == "ScriptObject <__torch__.torch.classes.profiler._RecordFunction>"


def test_graphs_keep_them():
    profiler = weft.ops.profiler
    graph = weft.fx.Graph()
    handle = graph.call_function(profiler._record_function_enter_new, ("range",))
    graph.call_function(weft.ones, (2,))
    graph.call_function(profiler._record_function_exit._RecordFunction, (handle,))
    graph.output(None)
    graph.eliminate_dead_code()
    targets = [node.target for node in graph.nodes if node.op == "call_function"]
    assert targets == [profiler._record_function_enter_new, profiler._record_function_exit._RecordFunction]
    module = weft.fx.GraphModule(weft.nn.Module(), graph)
    with weft.profiler.profile() as prof:
        module()
    assert [event.name for event in prof.events()] == ["range"]
