"""Recorders: functions written for plans of one form, which make the nodes of their calls.

The metadata of a call decide the class of the node, which inputs are tensors, and which values the rules need. So all of this is
decided once, and the rest of the work is written as the source of a function, because a loop over the inputs would take several
times as long. Sizes decide none of it: the function gets the NodeSpec of a plan as its first argument, and the recorder of the plan is the
function bound to the NodeSpec. So a plan for new sizes needs nothing but a NodeSpec.

`mul` of two tensors, for instance, has this recorder:

    def record(spec, result, x0, x1):
        if detours:
            return tape.record(spec.op, result, (x0, x1), spec.static)
        node = new(node_type)
        edge0 = x0._autograd
        edge1 = x1._autograd
        node._spec = spec
        node._edges = (edge0, edge1, )
        ...
        node._saved = (None, None if edge1 is None else saved(Saved, (x0._storage, ...)), ...)
        result._autograd = node

The other way around, `_pull_code` writes the function that runs the rules of the nodes of a form when nothing records them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from types import CodeType, FunctionType, MethodType
from typing import Any

from ..core.derivative import Derivative, keywords, nondifferentiable
from ..core.dispatch import watchers
from ..core.dtype import FLOAT
from ..core.grad_mode import detours
from ..core.op import Op
from ..core.recording import NO_RULE, tape
from ..core.spec import Spec
from ..core.tensor import Tensor
from ..families.fusing import kernel_of
from . import graph, native_nodes
from .graph import Leaf, Node, NodeSpec, Output, next_order, type_for
from .saved import RELEASED, Saved, SavedOutputs, overwritten, unpack

_KNOWN = {
    "detours": detours,
    "new": object.__new__,
    "next_order": next_order,
    "saved": tuple.__new__,
    "tape": tape,
    "Leaf": Leaf,
    "Output": Output,
    "Saved": Saved,
    "SavedOutputs": SavedOutputs,
}


def recorder(op: Any, result: Any, inputs: Sequence[Any], static: tuple = ()) -> Callable:
    """The function `(result, *inputs)` that records calls of `op` with the metadata of this one.

    It must be called in grad mode, for inputs of which at least one takes part in autograd.
    """
    single = isinstance(result, Tensor)
    results = (result,) if single else result
    followed = tuple([k for k, each in enumerate(results) if each.spec.dtype.category >= FLOAT])
    if op.derivative is nondifferentiable or not followed:
        return _constant
    specs = tuple([each.spec if isinstance(each, Tensor) else None for each in inputs])
    spec = NodeSpec.of(op, specs, static, results[0].spec if single else tuple([r.spec for r in results]))
    kinds = tuple([_kind(each) for each in inputs])
    known = None if op.derivative is None else op.derivative.forms.get(_form(spec))
    _set_pull(spec, _first_pull if known is None else _pull_of(spec, *known))
    node_type = type_for(op, inputs, static)
    return MethodType(
        _recorder(op.derivative, node_type, kinds, 0 if single else len(results), followed), spec
    )


_TENSOR, _NUMBER, _MISSING = "tensor", "number", "missing"


def _kind(input: Any) -> str:
    return _TENSOR if isinstance(input, Tensor) else _MISSING if input is None else _NUMBER


@functools.lru_cache(maxsize=4096)
def _recorder(
    rules: Derivative | None, node_type: type, kinds: tuple[str, ...], outs: int, followed: tuple[int, ...]
) -> Callable:
    """The function `(spec, result, *inputs)`. outs: how many results there are if they are a tuple; followed: those that get an edge."""
    tensors = tuple([k for k, kind in enumerate(kinds) if kind is _TENSOR])
    numbers = tuple([k for k, kind in enumerate(kinds) if kind is _NUMBER])
    out_users, users = _users(rules, tensors, len(kinds))
    used = None if not outs or rules is None else rules.results
    source = _source(len(kinds), tensors, numbers, outs, followed, used, out_users, tuple(users.items()))
    record: Any = FunctionType(_compiled(source), {**_KNOWN, "node_type": node_type})
    if not outs and len(kinds) < 64:  # machine code has masks of 64 bits with a sign for the inputs
        record.parts = native_nodes.parts(node_type, len(kinds), tensors, out_users, users)
    return record


_SIMPLE = frozenset((type(None), bool, int, float, complex, str))
_recorders: dict[tuple, Callable] = {}  # of ops whose plans keep none
MOST_RECORDERS = 4096


def record(op: Any, result: Any, inputs: Sequence[Any], static: tuple = ()) -> Any:
    """As `graph.record`, by the recorder of an earlier call with the same metadata, if the op is one that lasts."""
    if detours or watchers or not isinstance(op, Op):
        return graph.record(op, result, inputs, static)
    kinds = [each.spec if isinstance(each, Tensor) else type(each) for each in inputs]
    key = (op, static, result.spec if isinstance(result, Tensor) else tuple([r.spec for r in result]), *kinds)
    try:
        found = _recorders.get(key)
    except TypeError:  # a static argument that cannot be hashed
        return graph.record(op, result, inputs, static)
    if found is None:
        if not all(type(kind) is Spec or kind in _SIMPLE for kind in kinds):
            return graph.record(op, result, inputs, static)
        if len(_recorders) >= MOST_RECORDERS:
            _recorders.clear()
        found = _recorders[key] = recorder(op, result, inputs, static)
    found(result, *inputs)
    return result


def _constant(result: Any, *inputs: Any) -> None:
    """Records nothing: no derivative follows this result."""


Condition = tuple[int, ...] | None  # inputs one of which must need a gradient; () for always, None for never


Users = tuple[Condition, dict[int, Condition]]


def _users(rules: Derivative | None, tensors: Sequence[int], n: int) -> Users:
    """For the result, and for each tensor among the inputs: the inputs whose rules mention it."""
    if rules is None:
        return None, dict.fromkeys(tensors)
    key = "users", *tensors, n
    if key not in rules.forms:
        rules.forms[key] = _find_users(rules, tensors, n)
    return rules.forms[key]


def _find_users(rules: Derivative, tensors: Sequence[int], n: int) -> Users:
    out: list[int] = []
    of: dict[int, list[int]] = {k: [] for k in tensors}
    for position in tensors:
        need = rules.needs(1 << position, n)
        if need.out:
            out.append(position)
        for k in need.inputs:
            if k in of:
                of[k].append(position)

    def condition(found: list[int]) -> Condition:
        return None if not found else () if len(found) == len(tensors) else tuple(found)

    return condition(out), {k: condition(found) for k, found in of.items()}


def readers_of_first(op: Any, inputs: Sequence[Any]) -> tuple[int, ...]:
    """The inputs whose rules mention the value of the first input."""
    tensors = [k for k, each in enumerate(inputs) if isinstance(each, Tensor)]
    condition = _users(op.derivative, tensors, len(inputs))[1][0]
    return () if condition is None else condition or tuple(tensors)


@functools.lru_cache(maxsize=1024)
def _source(
    n: int,
    tensors: tuple[int, ...],
    numbers: tuple[int, ...],
    outs: int,
    followed: tuple[int, ...],
    used: tuple[int, ...] | None,
    out_users: Condition,
    users: tuple[tuple[int, Condition], ...],
) -> str:
    names = [f"x{k}" for k in range(n)]
    lines = [
        f"def record(spec, result, {', '.join(names)}):",
        "    if detours:",
        f"        return tape.record(spec.op, result, ({', '.join(names)}, ), spec.static)",
        "    node = new(node_type)",
        "    node._spec = spec",
        *[f"    edge{k} = x{k}._autograd" for k in tensors],
        f"    node._edges = ({''.join(f'edge{k}, ' if k in tensors else 'None, ' for k in range(n))})",
    ]
    if tensors:
        first, *others = tensors
        lines.append(f"    leaves = (x{first}, None) if {_is_leaf(first)} else None")
        for k in others:
            lines += [f"    if {_is_leaf(k)}:", f"        leaves = x{k}, leaves"]
    lines += [
        f"    node._leaves = {'leaves' if tensors else None}",
        "    node._order = next_order()",
        "    node._notes = None",
    ]
    if outs:
        lines.append(f"    {''.join(f'result{k}, ' for k in range(outs))} = result")
        entries = [_saved(f"result{k}", str(k)) if used is None or k in used else "None" for k in range(outs)]
        out = f"saved(SavedOutputs, ({', '.join(entries)}, ))"
    else:
        out = _saved("result", "0")
    entries = ["None"] * (1 + n)
    entries[0] = _if(out_users, out)
    for k, condition in users:
        entries[1 + k] = _if(condition, _saved(f"x{k}", f"edge{k}"))
    for k in numbers:
        entries[1 + k] = f"x{k}"
    lines.append(f"    node._saved = ({', '.join(entries)}, )")
    if outs:
        lines += [f"    result{k}._autograd = Output(node, {k})" for k in followed]
    else:
        lines.append("    result._autograd = node")
    return "\n".join(lines)


def _is_leaf(k: int) -> str:
    return f"type(edge{k}) is Leaf and edge{k}.lasting"


def _saved(tensor: str, edge: str) -> str:
    """Source of what `saved.save` makes. The `+` raises for memory made in inference mode, see `InferenceVersion`."""
    storage = f"{tensor}._storage"
    return f"saved(Saved, ({storage}, {tensor}._byte_offset, {tensor}.spec, +{storage}.version, {edge}))"


def _if(condition: Condition, entry: str) -> str:
    if condition is None:
        return "None"
    if not condition:
        return entry
    return f"None if {' and '.join(f'edge{k} is None' for k in condition)} else {entry}"


@functools.lru_cache(maxsize=1024)
def _compiled(source: str) -> CodeType:
    """The code of the function that the source defines."""
    (code,) = [
        each for each in compile(source, "<weft recorder>", "exec").co_consts if type(each) is CodeType
    ]
    return code


# ---- Running the rules ----------------------------------------------------------------------------------------------


def _first_pull(node: Node, ct: Any, edges: tuple) -> Sequence[Any]:
    """Write the function that runs the rules for all nodes of this form, which kernels may have to be compiled for, and run it."""
    spec = node._spec
    rules: Derivative = spec.op.derivative
    if rules is None:
        raise NotImplementedError(NO_RULE.format(spec.op.name))
    form = _form(spec)
    if form not in rules.forms:
        rules.forms[form] = _pull_code(rules, *form)
    pull = _pull_of(spec, *rules.forms[form])
    _set_pull(spec, pull)
    return pull(node, ct, edges)


def _set_pull(spec: NodeSpec, pull: Callable) -> None:
    spec.pull = pull
    spec.quick_pull = None if spec.large else pull


def _pull_of(
    spec: NodeSpec, code: CodeType, known: dict[str, Any]
) -> Callable[[Node, Any, tuple], Sequence[Any]]:
    """The function `(node, ct, edges)` that finds the cotangents of the inputs when nothing records the rules."""
    return FunctionType(code, known, "pull", (spec.inputs, spec.result, spec.static, *spec.static))


def _form(spec: NodeSpec) -> tuple[Any, tuple[int, ...], int, bool, int]:
    """What the function that runs the rules depends on: op, which inputs are tensors, of how many, several results, static arguments."""
    tensors = tuple([k for k, each in enumerate(spec.inputs) if each is not None])
    return spec.op, tensors, len(spec.inputs), type(spec.result) is tuple, len(spec.static)


def _pull_code(
    rules: Derivative, op: Any, tensors: Sequence[int], n: int, several: bool, statics: int
) -> tuple[CodeType, dict[str, Any]]:
    """The code of a `pull`, and the names that it knows. What differs between the nodes of a form are the defaults of the function."""
    out_users, users = _users(rules, tensors, n)
    names = ", ".join(["out", *[f"x{k}" for k in range(n)]])
    static = "".join([f", static{k}" for k in range(statics)])
    lines = [f"def pull(node, ct, edges, specs, spec, static{static}):"]
    if out_users is None and len(tensors) == n and all(condition is None for condition in users.values()):
        names = ", ".join(["None"] * (1 + n))  # nothing is ever saved
    else:
        lines += [
            "    values = node._saved",
            "    if values is RELEASED:",
            "        values = node._as_if_saved()",
            f"    {names} = values",
        ]
    if out_users is not None:
        lines += ["    out = unpack(out, node, False)"] if several else _unpacking("out")
    for k in tensors:
        if users[k] is not None:
            lines += _unpacking(f"x{k}")
    known: dict[str, Any] = {
        "RELEASED": RELEASED,
        "Saved": Saved,
        "unpack": unpack,
        "overwritten": overwritten,
    }
    if rules.joint is not None:
        known["joint"] = rules.joint
        lines.append(f"    return {_call('joint', rules.joint, names, static)}")
    else:
        lines += [f"    {', '.join(f'edge{k}' for k in range(n))} = edges"] if len(tensors) > 1 else []
        answers = ["None"] * n
        for k, rule in enumerate(rules.rules[:n]):
            if k in tensors and rule is not None:
                kernel = rule if keywords(rule) else rules.fused.get(k) or kernel_of(op, k)
                known[f"rule{k}"] = kernel
                answers[k] = _call(f"rule{k}", rule, names, static)
                if len(tensors) > 1:
                    answers[k] = f"None if edge{k} is None else {answers[k]}"
        lines.append(f"    return {', '.join(answers)}, ")
    return _compiled("\n".join(lines)), known


def _unpacking(name: str) -> Iterable[str]:
    """Source that makes a tensor of what was saved of it, as `saved.unpack` does."""
    return (
        f"    if {name} is not None:",
        f"        if type({name}) is Saved:",
        f"            storage, start, tensor_spec, version, edge = {name}",
        "            if storage.version != version:",
        f"                raise RuntimeError(overwritten({name}, node))",
        f"            {name} = storage.new_tensor()",
        f"            {name}._storage = storage",
        f"            {name}._byte_offset = start",
        f"            {name}.spec = tensor_spec",
        f"            {name}._autograd = {name}._base = None",
        "        else:",
        f"            {name} = unpack({name}, node, False)",
    )


def _call(name: str, rule: Any, values: str, static: str) -> str:
    """Source of a call of a rule, with these static arguments."""
    given = {"wanted": "tuple([edge is not None for edge in edges])"}
    wanted = keywords(rule)
    named = "".join(f", {each}={given.get(each, each)}" for each in wanted)
    return f"{name}(ct, {values}{'' if 'static' in wanted else static}{named})"
