"""Recorders: functions written for one plan, which make the nodes of its calls.

The metadata of a call decide the class of the node, its NodeSpec, which inputs are tensors, and which values the rules need.
So all of this is decided once, with the plan. The rest of the work is written as the source of a function, because a loop
over the inputs would take several times as long. Plans of the same form share the code that the source is compiled to.

`mul` of two tensors, for instance, has this recorder:

    def record(result, x0, x1):
        if detours:
            return tape.record(op, result, (x0, x1), static)
        node = new(node_type)
        edge0 = x0._autograd
        edge1 = x1._autograd
        node._spec = spec
        node._edges = (edge0, edge1, )
        ...
        node._saved = (None, None if edge1 is None else saved(Saved, (s0 := x0._storage, ...)), ...)
        result._autograd = node

The other way around, `puller` writes the function that runs the rules of a plan's nodes when nothing records them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from types import CodeType, FunctionType
from typing import Any, NamedTuple

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
    outs = [each.spec for each in results]
    followed = tuple([k for k, each in enumerate(outs) if each.dtype.category >= FLOAT])
    if op.derivative is nondifferentiable or not followed:
        return _constant
    specs = tuple([each.spec if isinstance(each, Tensor) else None for each in inputs])
    spec = NodeSpec.of(op, specs, static, outs[0] if single else tuple(outs))
    spec.pull = _first_pull
    spec.quick_pull = None if spec.large else _first_pull
    kinds = tuple(
        [_TENSOR if own else _MISSING if each is None else _NUMBER for own, each in zip(specs, inputs)]
    )
    form = _form(op, kinds, 0 if single else len(outs), followed)
    known = form.known.copy()
    known["static"], known["spec"], known["node_type"] = static, spec, type_for(op, inputs, static)
    for name, own in zip(form.names, (*specs, *outs)):
        known[name] = own
    record: Any = FunctionType(form.code, known)
    if form.masks is not None:
        record.parts = known["node_type"], spec, form.masks
    return record


_TENSOR, _NUMBER, _MISSING = range(3)  # kinds of inputs


class _Form(NamedTuple):
    """What recorders have in common that differ only in specs and static arguments: nothing of it is made for each size."""

    code: CodeType
    known: dict[str, Any]
    names: tuple[str, ...]  # of the specs of the inputs and results
    masks: bytes | None  # see `native_nodes.masks`


def _form(op: Any, kinds: tuple[int, ...], outs: int, followed: tuple[int, ...]) -> _Form:
    """The form for inputs of these kinds and so many results, 0 for a single one."""
    key = op, kinds, outs, followed
    forms = _forms_of_others if op.derivative is None else op.derivative.forms
    if key not in forms:
        forms[key] = _new_form(*key)
    return forms[key]


_forms_of_others: dict[tuple, Any] = {}  # of ops without a derivative


def _new_form(op: Any, kinds: tuple[int, ...], outs: int, followed: tuple[int, ...]) -> _Form:
    n = len(kinds)
    tensors = [k for k, kind in enumerate(kinds) if kind == _TENSOR]
    numbers = tuple([k for k, kind in enumerate(kinds) if kind == _NUMBER])
    out_users, users = _users(op.derivative, tensors, n)
    used = None if not outs or op.derivative is None else op.derivative.results
    source = _source(n, tuple(tensors), numbers, outs, followed, used, out_users, tuple(users.items()))
    names = (*[f"spec{k}" for k in range(n)], *[f"out{k}" for k in range(outs or 1)])
    is_short = not outs and n < 64  # machine code has masks of 64 bits with a sign for the inputs
    masks = native_nodes.masks(tensors, out_users, users, n) if is_short else None
    return _Form(_compiled(source), {**_KNOWN, "tape": tape, "op": op}, names, masks)


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


def _users(rules: Derivative | None, tensors: list[int], n: int) -> Users:
    """For the result, and for each tensor among the inputs: the inputs whose rules mention it."""
    if rules is None:
        return None, dict.fromkeys(tensors)
    key = "users", *tensors, n
    if key not in rules.forms:
        rules.forms[key] = _find_users(rules, tensors, n)
    return rules.forms[key]


def _find_users(rules: Derivative, tensors: list[int], n: int) -> Users:
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
        return None if not found else () if found == tensors else tuple(found)

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
        f"def record(result, {', '.join(names)}):",
        "    if detours:",
        f"        return tape.record(op, result, ({', '.join(names)}, ), static)",
        "    node = new(node_type)",
        "    node._spec = spec",
        *[f"    edge{k} = x{k}._autograd" for k in tensors],
        f"    node._edges = ({''.join(f'edge{k}, ' if k in tensors else 'None, ' for k in range(n))})",
        "    leaves = None",
    ]
    for k in tensors:
        lines += [f"    if type(edge{k}) is Leaf and edge{k}.lasting:", f"        leaves = x{k}, leaves"]
    lines += ["    node._leaves = leaves", "    node._order = next_order()", "    node._notes = None"]
    if outs:
        lines.append(f"    {''.join(f'result{k}, ' for k in range(outs))} = result")
        entries = [
            _saved(f"result{k}", f"out{k}", str(k)) if used is None or k in used else "None"
            for k in range(outs)
        ]
        out = f"saved(SavedOutputs, ({', '.join(entries)}, ))"
    else:
        out = _saved("result", "out0", "0")
    entries = ["None"] * (1 + n)
    entries[0] = _if(out_users, out)
    for k, condition in users:
        entries[1 + k] = _if(condition, _saved(f"x{k}", f"spec{k}", f"edge{k}"))
    for k in numbers:
        entries[1 + k] = f"x{k}"
    lines.append(f"    node._saved = ({', '.join(entries)}, )")
    if outs:
        lines += [f"    result{k}._autograd = Output(node, {k})" for k in followed]
    else:
        lines.append("    result._autograd = node")
    return "\n".join(lines)


def _saved(tensor: str, spec: str, edge: str) -> str:
    """Source of what `saved.save` makes. The `+` raises for memory made in inference mode, see `InferenceVersion`."""
    return f"saved(Saved, (storage := {tensor}._storage, {tensor}._byte_offset, {spec}, +storage.version, {edge}))"


def _if(condition: Condition, entry: str) -> str:
    if condition is None:
        return "None"
    if not condition:
        return entry
    return f"None if {' and '.join(f'edge{k} is None' for k in condition)} else {entry}"


@functools.lru_cache(maxsize=1024)
def _compiled(source: str) -> CodeType:
    """The code of the function that the source defines."""
    (code,) = [each for each in compile(source, "<recorder>", "exec").co_consts if type(each) is CodeType]
    return code


# ---- Running the rules ----------------------------------------------------------------------------------------------


def _first_pull(node: Node, ct: Any, edges: tuple) -> Sequence[Any]:
    """Write the function that runs the rules, which kernels may have to be compiled for, and run it."""
    spec = node._spec
    spec.pull = puller(spec)
    spec.quick_pull = None if spec.large else spec.pull
    return spec.pull(node, ct, edges)


def puller(spec: NodeSpec) -> Callable:
    """The function `(node, ct, edges)` that finds the cotangents of the inputs when nothing records the rules."""
    rules: Derivative = spec.op.derivative
    if rules is None:
        raise NotImplementedError(NO_RULE.format(spec.op.name))
    tensors = [k for k, each in enumerate(spec.inputs) if each is not None]
    form = spec.op, tuple(tensors), len(spec.inputs), type(spec.result) is tuple, len(spec.static)
    if form not in rules.forms:
        rules.forms[form] = _pull_form(rules, *form)
    code, known, names = rules.forms[form]
    known = known.copy()
    known["specs"], known["spec"], known["static"] = spec.inputs, spec.result, spec.static
    for name, value in zip(names, spec.static):
        known[name] = value
    return FunctionType(code, known)


def _pull_form(
    rules: Derivative, op: Any, tensors: Sequence[int], n: int, several: bool, statics: int
) -> tuple[CodeType, dict[str, Any], list[str]]:
    """The code of a `pull`, what it knows for all nodes of this form, and the names of the static arguments. several: there are several results."""
    out_users, users = _users(rules, list(tensors), n)
    names = ", ".join(["out", *[f"x{k}" for k in range(n)]])
    lines = ["def pull(node, ct, edges):"]
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
        lines.append(f"    return {_call('joint', rules.joint, names, statics)}")
    else:
        lines += [f"    {', '.join(f'edge{k}' for k in range(n))} = edges"] if len(tensors) > 1 else []
        answers = ["None"] * n
        for k, rule in enumerate(rules.rules[:n]):
            if k in tensors and rule is not None:
                kernel = rule if keywords(rule) else rules.fused.get(k) or kernel_of(op, k)
                known[f"rule{k}"] = kernel
                answers[k] = _call(f"rule{k}", rule, names, statics)
                if len(tensors) > 1:
                    answers[k] = f"None if edge{k} is None else {answers[k]}"
        lines.append(f"    return {', '.join(answers)}, ")
    return _compiled("\n".join(lines)), known, [f"static{k}" for k in range(statics)]


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


def _call(name: str, rule: Any, values: str, count: int) -> str:
    """Source of a call of a rule, for so many static arguments."""
    given = {"wanted": "tuple([edge is not None for edge in edges])"}
    wanted = keywords(rule)
    named = "".join(f", {each}={given.get(each, each)}" for each in wanted)
    static = "" if "static" in wanted else "".join(f", static{k}" for k in range(count))
    return f"{name}(ct, {values}{static}{named})"
