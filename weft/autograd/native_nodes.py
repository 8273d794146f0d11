"""The nodes of recorded calls in machine code: what the functions of `recorders.py` do, for plans with one result.

A recorder's `parts` say what to fill: the class of the node, and for the result and each input the edges for which its value is saved,
one of which must be there. The NodeSpec that the recorder is bound to stands between them in records of machine code.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from ..core.grad_mode import detours
from ..engine.call_tables import STRIDES
from ..engine.objects import BYTES, STORAGE, TENSOR, TUPLE_ITEMS, Function, add_object, name, offsets
from ..families import native_calls
from . import graph
from .dual import Dual
from .graph import Leaf, Node, Output
from .saved import Saved

_NODE, _LEAF = offsets(Node), offsets(Leaf)
NODE_TYPE, NODE_SPEC, MASKS = 0, 1, 2  # the items of what a record keeps


def parts(
    node_type: type,
    inputs: int,
    tensors: Sequence[int],
    of_result: tuple[int, ...] | None,
    of_inputs: dict[int, tuple[int, ...] | None],
) -> tuple[type, bytes]:
    """The parts of a recorder. `tensors` are the inputs that are tensors; the others are conditions, see `recorders.Condition`."""
    all_tensors = sum(1 << k for k in tensors)

    def mask(condition: tuple[int, ...] | None) -> int:
        if condition is None:
            return 0
        return sum(1 << k for k in condition) if condition else all_tensors

    masks = [mask(of_result), *(mask(of_inputs.get(k)) for k in range(inputs))]
    return node_type, struct.pack(f"{1 + len(masks)}q", all_tensors, *masks)


def _add_objects() -> None:
    """Make the names known that these functions refer to."""
    add_object("detours", detours)
    add_object("order", graph._order)
    add_object("leaf", Leaf)
    add_object("saved", Saved)
    add_object("output", Output)
    add_object("dual", Dual)
    add_object("_views", "_views")


def _functions() -> list[Function]:
    return [_saved(), _can_rebase(), _can_record(), *(_record(inputs) for inputs in range(1, STRIDES))]


native_calls.parts.append(native_calls.Part(_functions, _add_objects))


def _saved() -> Function:
    """What `saved.save` makes of a tensor; null after an error."""
    f = Function("saved_of", "ptr %tensor, ptr %edge", "ptr", "internal", "noinline")
    storage = f.load("%tensor", TENSOR["_storage"])
    f.incref(storage)  # a new object may run finalizers, which may give the tensor another storage
    version = f.load(storage, STORAGE["version"])
    f.branch(f.same(f.type_of(version), name("int")), "counted", "special")
    f.label("counted")
    f.incref(version)
    f.go("versioned")
    f.label("special")  # memory of inference mode raises
    positive = f.call("PyNumber_Positive", version)
    f.require(f.differ(positive, "null"), "failed")
    f.go("known")
    f.label("known")
    f.go("versioned")
    f.label("versioned")
    own = f.let(f"phi ptr [{version}, %counted], [{positive}, %known]")
    new = f.call("PyType_GenericAlloc", name("saved"), str(len(Saved._fields)))
    f.require(f.differ(new, "null"), "without")
    values = {
        "storage": storage,
        "start": f.load("%tensor", TENSOR["_byte_offset"]),
        "spec": f.load("%tensor", TENSOR["spec"]),
        "version": own,
        "edge": "%edge",
    }
    for k, field in enumerate(Saved._fields):
        if field not in ("storage", "version"):
            f.incref(values[field])
        f.store(new, TUPLE_ITEMS + 8 * k, values[field])
    f.ret(new)
    f.label("without")
    f.decref(own)
    f.go("failed")
    f.label("failed")
    f.decref(storage)
    f.ret("null")
    return f


def _can_rebase() -> Function:
    """Whether a node that is recorded after an in-place call may become the grad_fn of its target by a store.

    The target must be the result of an operation, and nobody may follow it: no hooks or retained gradient of its node, and no views.
    """
    f = Function("can_rebase", "ptr %target", "i1", "internal", "noinline")
    f.require(f.same(f.list_size(name("watchers")), "0", "i64"), "no")
    f.require(f.same(f.load("%target", TENSOR["_base"]), name("none")), "no")
    edge = f.load("%target", TENSOR["_autograd"])
    f.require(f.differ(edge, name("none")), "no")
    for each in ("leaf", "output", "dual"):
        f.require(f.differ(f.type_of(edge), name(each)), "no")
    f.require(f.same(f.load(edge, _NODE["_notes"]), name("none")), "no")
    views = f.call("PyObject_GetAttr", "%target", name("_views"))
    f.require(f.differ(views, "null"), "failed")
    f.decref(views)
    f.require(f.same(views, name("none")), "no")
    f.ret("true")
    f.label("failed")
    f.call("PyErr_Clear")
    f.go("no")
    f.label("no")
    f.ret("false")
    return f


def _can_record() -> Function:
    """Whether `record` may run after an in-place call with `%count` operands has run, as `inplace.can_record_after` says.

    The target is one for `can_rebase`.
    """
    f = Function("can_record", "ptr %parts, ptr %args, i64 %count", "i1", "internal", "noinline")
    storage = f.load(f.load("%args"), TENSOR["_storage"])
    masks = f.tuple_item("%parts", MASKS)
    tensors, readers = f.load(masks, BYTES, "i64"), f.load(masks, BYTES + 16, "i64")
    f.require(f.same(f.let(f"and i64 {readers}, 1"), "0", "i64"), "no")  # the target has an edge
    f.go("before")
    f.label("before")
    f.go("next")
    f.label("next")
    f.do("%k = phi i64 [0, %before], [%next_k, %tensor_done], [%next_k, %operand]")
    f.do("%next_k = add i64 %k, 1")
    f.branch(f.let("icmp slt i64 %next_k, %count"), "operand", "yes")
    f.label("operand")
    bit = f.let("shl i64 1, %next_k")
    f.branch(f.differ(f.let(f"and i64 {tensors}, {bit}"), "0", "i64"), "tensor", "next")
    f.label("tensor")
    value = f.load(f.let("getelementptr ptr, ptr %args, i64 %next_k"))
    other = f.load(value, TENSOR["_storage"])
    f.require(f.differ(other, storage), "no")
    f.require(f.same(f.type_of(f.load(other, STORAGE["version"])), name("int")), "no")
    followed = f.differ(f.load(value, TENSOR["_autograd"]), name("none"))
    reads = f.differ(f.let(f"and i64 {readers}, {bit}"), "0", "i64")
    f.branch(f.let(f"and i1 {followed}, {reads}"), "no", "tensor_done")
    f.label("tensor_done")
    f.go("next")
    f.label("yes")
    f.ret("true")
    f.label("no")
    f.ret("false")
    return f


def _record(inputs: int) -> Function:
    """Make the node of a call with these inputs, and make it the grad_fn of the result; 0, or -1 after an error."""
    given = "".join(f", ptr %x{k}" for k in range(inputs))
    f = Function(f"record{inputs}", f"ptr %parts, ptr %result{given}", "i32", "internal", "noinline")
    masks = f.tuple_item("%parts", MASKS)
    tensors = f.load(masks, BYTES, "i64")
    node = f.call("PyType_GenericAlloc", f.tuple_item("%parts", NODE_TYPE), "0")
    f.require(f.differ(node, "null"), "failed")
    spec = f.tuple_item("%parts", NODE_SPEC)
    for slot, value in (("_spec", spec), ("_notes", name("none"))):
        f.incref(value)
        f.store(node, _NODE[slot], value)
    edges = _edges(f, node, tensors, inputs)
    _leaves(f, node, edges)
    order = f.call("PyIter_Next", name("order"))
    f.require(f.differ(order, "null"), "drop")
    f.store(node, _NODE["_order"], order)
    _values(f, node, masks, tensors, edges)
    f.decref(f.load("%result", TENSOR["_autograd"]))
    f.store("%result", TENSOR["_autograd"], node)
    f.ret("0")
    f.label("drop")
    f.decref(node)
    f.go("failed")
    f.label("failed")
    f.ret("-1")
    return f


def _has_bit(f: Function, mask: str, position: int) -> str:
    return f.differ(f.let(f"and i64 {mask}, {1 << position}"), "0", "i64")


def _edges(f: Function, node: str, tensors: str, inputs: int) -> list[str]:
    """Fill `_edges`; the edges."""
    edges = f.call("PyTuple_New", str(inputs))
    f.require(f.differ(edges, "null"), "drop")
    f.store(node, _NODE["_edges"], edges)
    found = []
    for k in range(inputs):
        f.go(f"before_edge{k}")
        f.label(f"before_edge{k}")
        f.branch(_has_bit(f, tensors, k), f"tensor{k}", f"edge{k}")
        f.label(f"tensor{k}")
        edge = f.load(f"%x{k}", TENSOR["_autograd"])
        f.go(f"edge{k}")
        f.label(f"edge{k}")
        found.append(f.let(f"phi ptr [{edge}, %tensor{k}], [{name('none')}, %before_edge{k}]"))
        f.incref(found[k])
        f.store(edges, TUPLE_ITEMS + 8 * k, found[k])
    return found


def _leaves(f: Function, node: str, edges: Sequence[str]) -> None:
    """Fill `_leaves`: None, or a pair of an input that is a lasting leaf and the rest."""
    f.incref(name("none"))
    f.store(node, _NODE["_leaves"], name("none"))
    for k, edge in enumerate(edges):
        f.require(f.same(f.type_of(edge), name("leaf")), f"no_leaf{k}")
        f.require(f.same(f.load(edge, _LEAF["lasting"]), name("true")), f"no_leaf{k}")
        pair = f.call("PyTuple_New", "2")
        f.require(f.differ(pair, "null"), "drop")
        f.incref(f"%x{k}")
        f.store(pair, TUPLE_ITEMS, f"%x{k}")
        f.store(pair, TUPLE_ITEMS + 8, f.load(node, _NODE["_leaves"]))
        f.store(node, _NODE["_leaves"], pair)
        f.go(f"no_leaf{k}")
        f.label(f"no_leaf{k}")


def _values(f: Function, node: str, masks: str, tensors: str, edges: Sequence[str]) -> None:
    """Fill `_saved`: what is kept of the result and of the inputs."""
    wanted = "0"
    for k, edge in enumerate(edges):
        bit = f.let(f"select i1 {f.differ(edge, name('none'))}, i64 {1 << k}, i64 0")
        wanted = f.let(f"or i64 {wanted}, {bit}")
    values = f.call("PyTuple_New", str(1 + len(edges)))
    f.require(f.differ(values, "null"), "drop")
    f.store(node, _NODE["_saved"], values)
    sources = [("%result", name("zero")), *((f"%x{k}", edge) for k, edge in enumerate(edges))]
    for k, (value, edge) in enumerate(sources):
        place = TUPLE_ITEMS + 8 * k
        if k:
            f.branch(_has_bit(f, tensors, k - 1), f"save{k}", f"number{k}")
            f.label(f"number{k}")
            f.incref(value)
            f.store(values, place, value)
            f.go(f"kept{k}")
            f.label(f"save{k}")
        mask = f.load(masks, BYTES + 8 + 8 * k, "i64")
        f.require(f.differ(f.let(f"and i64 {mask}, {wanted}"), "0", "i64"), f"nothing{k}")
        entry = f.let(f"call ptr @saved_of(ptr {value}, ptr {edge})")
        f.require(f.differ(entry, "null"), "drop")
        f.store(values, place, entry)
        f.go(f"kept{k}")
        f.label(f"nothing{k}")
        f.incref(name("none"))
        f.store(values, place, name("none"))
        f.go(f"kept{k}")
        f.label(f"kept{k}")
