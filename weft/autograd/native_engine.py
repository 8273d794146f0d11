"""The inner loops of a backward pass in machine code: listing the nodes, and running those that need nothing but their rules.

`_Pass` in `engine.py` is the definition. `run_nodes` takes the nodes one after the other, and stops at one that the functions of
Python must run: with hooks, with a retained gradient, with a large cotangent, of a `torch.autograd.Function`, or without a cotangent. It
calls methods of the pass for what is rare: sums of cotangents, cotangents of another shape or class, leaves with hooks.
"""

from __future__ import annotations

from ..core.spec import Spec
from ..engine import host
from ..engine.objects import (
    SIZE,
    TENSOR,
    TUPLE_ITEMS,
    Function,
    References,
    Text,
    add_object,
    name,
    offsets,
)
from ..families import native_calls
from ..ops.elementwise.arithmetic import ADD
from . import engine
from .graph import Leaf, Node, NodeSpec, Output
from .saved import RELEASED

_NODE, _SPEC, _LEAF, _OUTPUT, _META = (offsets(each) for each in (Node, NodeSpec, Leaf, Output, Spec))
_EQUAL = "2"  # Py_EQ

# The arguments of `run_nodes`.
PASS, NODES, START, PENDING, USES, LEAVES, KEEPING, ADDS = range(8)


def _refers_once(f: Function, value: str) -> str:
    """Whether there is one reference to an object. The upper half of the word holds flags in Python 3.14."""
    return f.same(f.load(value, 0, "i32"), "1", "i32")


def _tell(f: Text, method: str, *arguments: str) -> None:
    """Call a method of the pass."""
    room = f.room(1 + len(arguments))
    for k, each in enumerate(("%now", *arguments)):
        f.store(room, 8 * k, each)
    count = str(1 + len(arguments))
    answer = f.call("PyObject_VectorcallMethod", name(method), room, count, "null")
    f.require(f.differ(answer, "null"), "failed")
    f.decref(answer)


class _Explore(Text):
    """The steps of `_explore`. `uses` counts the edges that lead to each leaf; `seen` and `nodes` have the nodes that were met, `stack` edges to follow."""

    def __init__(self) -> None:
        super().__init__("explore_graph", "ptr %self, ptr %args, i64 %nargs", linkage="")
        self.references = References(self, 5)
        self.references.begin()
        self.uses, self.seen = (self.references.own(self.call("PyDict_New")) for _ in range(2))
        self.nodes, self.stack = (self.references.own(self.call("PyList_New", "0")) for _ in range(2))
        # The order of the last node, and whether every node so far was older than the one before it.
        self.last, self.ordered, self.overflow = self.room(1), self.room(1), self.room(1)
        self.store(self.last, 0, str(2**63 - 1), "i64")
        self.store(self.ordered, 0, "1", "i64")

    def count_use(self, leaf: str) -> None:
        """Count an edge to a leaf."""
        before = self.call("PyDict_GetItemWithError", self.uses, leaf)
        self.branch(self.same(before, "null"), "first", "again")
        self.label("again")
        known = self.call("PyLong_AsLongLongAndOverflow", before, self.overflow)
        self.go("used")
        self.label("first")
        self.go("used")
        self.label("used")
        times = self.add(self.let(f"phi i64 [0, %first], [{known}, %again]"), "1")
        number = self.call("PyLong_FromLongLong", times)
        self.require(self.differ(number, "null"), "drop_edges")
        stored = self.call("PyDict_SetItem", self.uses, leaf, number)
        self.decref(number)
        self.branch(self.same(stored, "0", "i32"), "next", "drop_edges")

    def meet(self, node: str) -> None:
        """Note a node that was not met before, and follow its edges later."""
        is_node = self.call("PyType_IsSubtype", self.type_of(node), name("node"))
        self.require(self.differ(is_node, "0", "i32"), "unknown")
        self.require(self.same(self.call("PyDict_GetItemWithError", self.seen, node), "null"), "next")
        for answer in (
            self.call("PyDict_SetItem", self.seen, node, name("none")),
            self.call("PyList_Append", self.nodes, node),
            self.call("PyList_Append", self.stack, self.load(node, _NODE["_edges"])),
        ):
            self.require(self.same(answer, "0", "i32"), "drop_edges")
        order = self.call("PyLong_AsLongLongAndOverflow", self.load(node, _NODE["_order"]), self.overflow)
        newer = self.let(f"icmp slt i64 {order}, {self.load(self.last, 0, 'i64')}")
        still = self.let(
            f"and i64 {self.load(self.ordered, 0, 'i64')}, {self.let(f'zext i1 {newer} to i64')}"
        )
        self.store(self.ordered, 0, still, "i64")
        self.store(self.last, 0, order, "i64")
        self.go("next")

    def follow(self, edge: str) -> None:
        """An edge leads to nothing, a leaf, an output of a node, or a node."""
        kind = self.type_of(edge)
        self.branch(self.same(edge, name("none")), "next", "edge")
        self.label("edge")
        self.branch(self.same(kind, name("leaf")), "leaf", "no_leaf")
        self.label("leaf")
        self.count_use(edge)
        self.label("no_leaf")
        self.branch(self.same(kind, name("output")), "output", "node")
        self.label("output")
        maker = self.load(edge, _OUTPUT["node"])
        self.go("node")
        self.label("node")
        self.meet(self.let(f"phi ptr [{edge}, %no_leaf], [{maker}, %output]"))
        self.label("next")

    def sort(self) -> None:
        """Sort the nodes, unless they were met in their order."""
        self.branch(self.differ(self.load(self.ordered, 0, "i64"), "0", "i64"), "sorted", "sort")
        self.label("sort")
        done = self.python(name("sort_nodes"), self.nodes)
        self.require(self.differ(done, "null"), "failed")
        self.decref(done)
        self.go("sorted")
        self.label("sorted")

    def answer(self, edges: str) -> None:
        """Return (uses, seen, nodes). All other ways end here, too: some with the `edges` of a node that the function owns."""
        result = self.call("PyTuple_New", "3")
        self.require(self.differ(result, "null"), "failed")
        for position, each in enumerate((self.uses, self.seen, self.nodes)):
            self.incref(each)
            self.store(result, TUPLE_ITEMS + 8 * position, each)
        self.go("result")
        self.label("result")
        self.go("clear")
        self.label("unknown")
        self.decref(edges)
        self.incref(name("none"))
        self.go("clear")
        self.label("drop_edges")
        self.decref(edges)
        self.go("failed")
        self.label("failed")
        self.go("clear")
        self.label("clear")
        answer = self.let(f"phi ptr [{result}, %result], [{name('none')}, %unknown], [null, %failed]")
        self.references.drop()
        self.ret(answer)


def _explore() -> Text:
    """A builtin, `explore(edges)`: what `engine.explore` returns. None if an edge is of a class that it does not know."""
    f = _Explore()
    f.require(f.same(f.call("PyList_Append", f.stack, f.load("%args")), "0", "i32"), "failed")
    f.go("more")
    f.label("more")
    f.require(f.differ(f.list_size(f.stack), "0", "i64"), "complete")
    edges = f.list_pop(f.stack)
    with f.each(f.load(edges, SIZE, "i64")) as k:
        f.follow(f.word(f.place(edges, TUPLE_ITEMS), k, "ptr"))
    f.decref(edges)
    f.go("more")
    f.label("complete")
    f.sort()
    f.answer(edges)
    return f


def _fits() -> Text:
    """Whether a cotangent with one Spec is one for an input with the other: 1 or 0, -1 after an error."""
    f = Text("fits", "ptr %given, ptr %wanted", "i32")
    f.require(f.differ("%given", "%wanted"), "yes")
    f.require(f.same(f.type_of("%wanted"), name("spec_type")), "no")
    for each in ("dtype", "device"):
        f.require(f.same(f.load("%given", _META[each]), f.load("%wanted", _META[each])), "no")
    shapes = (f.load(each, _META["shape"]) for each in ("%given", "%wanted"))
    f.ret(f.call("PyObject_RichCompareBool", *shapes, _EQUAL))
    f.label("yes")
    f.ret("1")
    f.label("no")
    f.ret("0")
    return f


def _is_spec(f: Text, tensor: str) -> str:
    """Whether the elements of a tensor are in strided memory."""
    return f.same(f.type_of(f.load(tensor, TENSOR["spec"])), name("spec_type"))


def _called(f: Function, function: str, otherwise: str) -> None:
    """Call a Python object without arguments, of which the result does not count."""
    answer = f.call("PyObject_CallNoArgs", name(function))
    f.require(f.differ(answer, "null"), otherwise)
    f.decref(answer)


def _finish() -> Text:
    """Add the gradient of a leaf, whose last cotangent this is, to its tensor: 1, 0 if `_Pass._finish` must do so, -1 after an error."""
    f = Text("finish_leaf", "ptr %leaf, ptr %ct, i1 %lone", "i32")
    tensor = _usual_tensor(f)
    _called(f, "acquire", "drop")
    before = f.call("PyObject_GetAttr", tensor, name("_grad"))
    f.require(f.differ(before, "null"), "unlock")
    f.branch(f.same(before, name("none")), "first", "add")
    f.label("add")
    _add_to(f, before)
    f.label("first")
    f.decref(before)
    _set_gradient(f, tensor)
    f.label("done")
    _called(f, "release", "drop")
    f.decref(tensor)
    f.ret("1")
    _ends_of_finish(f, tensor)
    return f


def _usual_tensor(f: Text) -> str:
    """The tensor of the leaf, a new reference. It and the leaf have no hooks, and `.grad` has the dtype of the tensor."""
    for each in ("hooks", "after", "of_node"):
        f.require(f.same(f.load("%leaf", _LEAF[each]), name("none")), "no")
    f.require(_is_spec(f, "%ct"), "no")  # a sparse gradient
    tensor = f.call("PyObject_CallNoArgs", f.load("%leaf", _LEAF["tensor"]))  # a weak reference
    f.require(f.differ(tensor, "null"), "failed")
    f.require(f.is_plain(tensor), "other")  # None, too
    for each in ("_autograd", "_base"):
        found = f.same(f.load(tensor, TENSOR[each]), name("none"))
        f.require(found if each == "_base" else f.let(f"xor i1 {found}, true"), "other")
    dtype = f.call("PyObject_GetAttr", tensor, name("_grad_dtype"))
    f.require(f.differ(dtype, "null"), "drop")
    f.decref(dtype)
    f.require(f.same(dtype, name("ellipsis_itself")), "other")
    return tensor


def _add_to(f: Text, before: str) -> None:
    """Add the cotangent to the gradient that is there."""
    f.branch(_is_spec(f, before), "add_dense", "add_other")
    f.label("add_other")
    f.decref(before)
    _called(f, "release", "drop")
    f.go("other")
    f.label("add_dense")
    operands = f.room(3)
    for k, each in enumerate((name("add"), before, "%ct")):
        f.store(operands, 8 * k, each)
    summed = f.call("PyObject_VectorcallMethod", name("inplace"), operands, "3", "null")
    f.decref(before)
    f.require(f.differ(summed, "null"), "unlock")
    f.decref(summed)
    f.go("done")


def _set_gradient(f: Text, tensor: str) -> None:
    """The first gradient is the cotangent itself if nothing else refers to it, else a copy."""
    spec = f.load(tensor, TENSOR["spec"])
    same_spec = f.same(spec, f.load("%ct", TENSOR["spec"]))
    contiguous = f.same(f.load(spec, _META["is_contiguous"]), name("true"))
    f.branch(f.let(f"and i1 %lone, {f.let(f'and i1 {same_spec}, {contiguous}')}"), "take", "copy")
    f.label("take")
    f.incref("%ct")
    f.go("set")
    f.label("copy")
    lone = f.let(f"select i1 %lone, ptr {name('true')}, ptr {name('false')}")
    copy = f.python(name("own_gradient"), "%ct", spec, lone)
    f.require(f.differ(copy, "null"), "unlock")
    f.go("copied")
    f.label("copied")
    f.go("set")
    f.label("set")
    gradient = f.let(f"phi ptr [%ct, %take], [{copy}, %copied]")
    failure = f.call("PyObject_SetAttr", tensor, name("_grad"), gradient)
    f.decref(gradient)
    f.require(f.same(failure, "0", "i32"), "unlock")
    f.go("done")


def _ends_of_finish(f: Text, tensor: str) -> None:
    """After an error: with the lock, which is released first, or without it; and where Python must go on."""
    f.label("unlock")
    error = [f.room(1) for _ in range(3)]
    f.call("PyErr_Fetch", *error)
    released = f.call("PyObject_CallNoArgs", name("release"))
    f.call("Py_DecRef", released)
    f.call("PyErr_Restore", *map(f.load, error))
    f.go("drop")
    f.label("other")
    f.decref(tensor)
    f.go("no")
    f.label("no")
    f.ret("0")
    f.label("drop")
    f.decref(tensor)
    f.go("failed")
    f.label("failed")
    f.ret("-1")


def _send() -> Text:
    """Send the cotangent `%ct` along an edge of a node; false after an error."""
    f = Text("send", "ptr %args, ptr %node, ptr %edge, ptr %ct, i64 %position", "i1")
    now = f.word("%args", PASS, "ptr")
    f.do(f"%now = bitcast ptr {now} to ptr")
    kind = f.type_of("%edge")
    is_leaf = f.same(kind, name("leaf"))
    f.branch(f.same("%ct", name("none")), "nothing", "something")
    f.label("nothing")
    f.require(is_leaf, "sent")
    _tell(f, "_give_leaf_nothing", "%edge")
    f.go("sent")
    f.label("something")
    f.require(f.same(f.type_of("%ct"), name("tensor")), "unusual")
    inputs = f.load(f.load("%node", _NODE["_spec"]), _SPEC["inputs"])
    wanted = f.call("PyTuple_GetItem", inputs, "%position")
    f.require(f.differ(wanted, "null"), "failed")
    fits = f.let(f"call i32 @fits(ptr {f.load('%ct', TENSOR['spec'])}, ptr {wanted})")
    f.require(f.let(f"icmp sge i32 {fits}, 0"), "failed")
    f.branch(f.same(fits, "1", "i32"), "fitting", "unusual")
    f.label("unusual")
    number = f.call("PyLong_FromLongLong", "%position")
    f.require(f.differ(number, "null"), "failed")
    room = f.room(5)
    for k, each in enumerate(("%now", "%edge", "%ct", "%node", number)):
        f.store(room, 8 * k, each)
    answer = f.call("PyObject_VectorcallMethod", name("_send"), room, "5", "null")
    f.decref(number)
    f.require(f.differ(answer, "null"), "failed")
    f.decref(answer)
    f.go("sent")
    f.label("fitting")
    f.branch(is_leaf, "leaf", "no_leaf")
    f.label("leaf")
    alone = _refers_once(f, "%ct")
    lone = f.let(f"and i1 {alone}, {_refers_once(f, f.load('%ct', TENSOR['_storage']))}")
    left = f.call("PyDict_GetItemWithError", f.word("%args", USES, "ptr"), "%edge")
    f.require(f.differ(left, "null"), "collect")
    overflow = f.room(1)
    last = f.same(f.call("PyLong_AsLongLongAndOverflow", left, overflow), "1", "i64")
    none_waits = f.same(f.call("PyDict_Size", f.word("%args", LEAVES, "ptr")), "0", "i64")
    adds = f.same(
        f.word("%args", ADDS, "ptr"), name("true")
    )  # the pass adds gradients to `.grad`, and does no more
    f.require(f.let(f"and i1 {last}, {f.let(f'and i1 {none_waits}, {adds}')}"), "collect")
    finished = f.let(f"call i32 @finish_leaf(ptr %edge, ptr %ct, i1 {lone})")
    f.require(f.let(f"icmp sge i32 {finished}, 0"), "failed")
    f.branch(f.same(finished, "1", "i32"), "sent", "collect")
    f.label("collect")
    _tell(
        f, "_give_leaf", "%edge", "%ct", f.let(f"select i1 {lone}, ptr {name('true')}, ptr {name('false')}")
    )
    f.go("sent")
    f.label("no_leaf")
    f.require(f.differ(kind, name("output")), "give")
    pending = f.word("%args", PENDING, "ptr")
    f.require(f.same(f.call("PyDict_GetItemWithError", pending, "%edge"), "null"), "give")
    f.branch(f.same(f.call("PyDict_SetItem", pending, "%edge", "%ct"), "0", "i32"), "sent", "failed")
    f.label("give")
    _tell(f, "_give", "%edge", "%ct")
    f.go("sent")
    f.label("sent")
    f.ret("true")
    f.label("failed")
    f.ret("false")
    return f


def _run_node() -> Text:
    """Run a node with its cotangent, which the function takes over, and send the cotangents of its inputs; false after an error."""
    f = Text("run_node", "ptr %args, ptr %node, ptr %pull, ptr %ct", "i1")
    edges = f.load("%node", _NODE["_edges"])
    f.incref(edges)
    f.incref("%pull")
    answer = f.python("%pull", "%node", "%ct", edges)
    f.decref("%pull")
    f.decref("%ct")
    f.require(f.differ(answer, "null"), "drop_edges")
    f.branch(f.same(f.word("%args", KEEPING, "ptr"), name("true")), "kept", "release")
    f.label("release")
    saved = f.load("%node", _NODE["_saved"])
    f.incref(name("released"))
    f.store("%node", _NODE["_saved"], name("released"))
    f.decref(saved)
    f.go("kept")
    f.label("kept")
    f.branch(f.same(f.type_of(answer), name("tuple")), "tuple", "sequence")  # most rules give a tuple
    f.label("sequence")
    items = f.call("PySequence_Tuple", answer)
    f.decref(answer)
    f.require(f.differ(items, "null"), "drop_edges")
    f.go("converted")
    f.label("converted")
    f.go("tuple")
    f.label("tuple")
    found = f.let(f"phi ptr [{answer}, %kept], [{items}, %converted]")
    with f.each(f.load(edges, SIZE, "i64")) as k:
        edge = f.word(f.place(edges, TUPLE_ITEMS), k, "ptr")
        f.require(f.differ(edge, name("none")), "sent")
        ct = f.call("PyTuple_GetItem", found, k)
        f.require(f.differ(ct, "null"), "drop_found")
        f.ask("send", f"ptr %args, ptr %node, ptr {edge}, ptr {ct}, i64 {k}", "drop_found")
        f.go("sent")
        f.label("sent")
    f.decref(found)
    f.decref(edges)
    f.ret("true")
    f.label("drop_found")
    f.decref(found)
    f.go("drop_edges")
    f.label("drop_edges")
    f.decref(edges)
    f.ret("false")
    return f


def _run_nodes() -> Text:
    """A builtin, `run_nodes(pass, nodes, start, pending, uses, leaves, keeping, adds)`: the index of the first node that it left to Python."""
    f = Text("run_nodes", "ptr %self, ptr %args, i64 %nargs", linkage="")
    nodes, pending = f.word("%args", NODES, "ptr"), f.word("%args", PENDING, "ptr")
    at, overflow = f.room(1), f.room(1)
    start = f.call("PyLong_AsLongLongAndOverflow", f.word("%args", START, "ptr"), overflow)
    f.store(at, 0, f.let(f"sub i64 {start}, 1"), "i64")
    f.go("next")
    f.label("next")
    k = f.add(f.load(at, 0, "i64"), "1")
    f.store(at, 0, k, "i64")
    f.require(f.let(f"icmp slt i64 {k}, {f.list_size(nodes)}"), "stop")
    node = f.word(f.load(nodes, SIZE + 8), k, "ptr")
    given = f.call("PyDict_GetItemWithError", pending, node)
    f.require(f.differ(given, "null"), "stop")  # no cotangent has reached it
    pull = f.load(f.load(node, _NODE["_spec"]), _SPEC["quick_pull"])
    f.require(f.differ(pull, name("none")), "stop")
    f.require(f.same(f.load(node, _NODE["_notes"]), name("none")), "stop")
    f.incref(given)
    f.require(f.same(f.call("PyDict_DelItem", pending, node), "0", "i32"), "drop_given")
    f.go("given")
    f.label("given")
    f.branch(f.same(f.type_of(given), name("tensor")), "plain", "collected")
    f.label("collected")
    ct = f.python(name("collected"), given)
    f.decref(given)
    f.require(f.differ(ct, "null"), "failed")
    f.go("known")
    f.label("known")
    f.go("plain")
    f.label("plain")
    cotangent = f.let(f"phi ptr [{given}, %given], [{ct}, %known]")
    f.ask("run_node", f"ptr %args, ptr {node}, ptr {pull}, ptr {cotangent}", "failed")
    f.go("next")
    f.label("stop")
    f.ret(f.call("PyLong_FromLongLong", f.load(at, 0, "i64")))
    f.label("drop_given")
    f.decref(given)
    f.go("failed")
    f.label("failed")
    f.ret("null")
    return f


def _functions() -> list[Function]:
    return [_explore(), _fits(), _finish(), _send(), _run_node(), _run_nodes()]


def _prepare() -> None:
    known = {
        "leaf": Leaf, "output": Output, "node": Node, "spec_type": Spec, "released": RELEASED, "ellipsis_itself": ..., "add": ADD,
        "acquire": engine.accumulating.acquire, "release": engine.accumulating.release, "sort_nodes": engine.sort_nodes, "own_gradient": engine.own, "collected": engine.collected,
        **{each: each for each in ("_grad", "_grad_dtype", "_send", "_give", "_give_leaf", "_give_leaf_nothing", "inplace")},
    }  # fmt: skip
    for key, value in known.items():
        add_object(key, value)


def _install(addresses: dict[str, int]) -> None:
    engine.native.explore = host.builtin(addresses["explore_graph"], "explore")
    engine.native.run_nodes = host.builtin(addresses["run_nodes"], "run_nodes")


native_calls.parts.append(native_calls.Part(_functions, _prepare, ("explore_graph", "run_nodes"), _install))
