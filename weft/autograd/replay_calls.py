"""Replayed calls in machine code: the same function again, with tensors of the same metadata and the same other arguments.

Most functions decide everything from the metadata of tensors and from the values of other arguments: `t.transpose(0, 1)`,
`t[1:3]`, `t.sum(0)`, `a @ b`, `softmax(t, -1)`. The first calls are those of the Python function, which stays the definition.
`replays.py` notes what they did, as a record. Later calls with an equal key do the same without Python.

`replay_keys.py` makes the key of a call. A call that has none is not replayed.
"""

from __future__ import annotations

from ..engine.call_tables import field, find, table_of_self
from ..engine.objects import (
    BYTES,
    SIZE,
    STORAGE,
    TENSOR,
    TUPLE_ITEMS,
    Function,
    References,
    Text,
    _quoted,
    name,
    offsets,
)
from ..families.launches import OBJECT, OF_RESULT, OF_SCRATCH
from ..families.map_calls import UNKNOWN, UNUSUAL, answer_code
from . import replay_keys
from .graph import Leaf, Node
from .replay_keys import COUNT, FRAME, HASH, INPUT, INPUTS, MOST_INPUTS, POSITION, POSITIONS, WORD

# What a record says to do; the first word of its recipe.
NEVER, SAME, VIEW, VIEWS, PROGRAM, NUMBER, NUMBERS, OBJECT_ITSELF = range(8)

# The items of a record. `recipe` is bytes, as the functions below read them. `spec` is that of the result, or the result itself if
# that is no tensor. `node` says how the call is recorded, None if it is
# not: (class, NodeSpec, bytes). `alive` holds all objects whose addresses the record has.
KEY, RECIPE, SPEC, NODE, ALIVE = range(5)

MOST_OWNED = 128  # references that a program holds while it runs; the learner refuses longer programs
MOST_ARGUMENTS = 40  # of a launch
MOST_RESULTS = 4  # of a program

# What NUMBER reads: how many bytes, and of which kind.
FLOAT32, FLOAT64, INT64, INT32, BOOL = range(5)

NODE_SLOTS, LEAF_SLOTS = offsets(Node), offsets(Leaf)


# ---- Keys ----------------------------------------------------------------------------------------------------------------


def key_of() -> Text:
    """A builtin, `key_of(*args, **kwargs)`: the key of the call as bytes, None if it has none."""
    f = Text("key_of", "ptr %self, ptr %args, i64 %nargs, ptr %names", linkage="")
    frame = f.room(FRAME)
    f.ask("encode_call", f"ptr {table_of_self(f)}, ptr {frame}, ptr %args, i64 %nargs, ptr %names", "no")
    length = f.let(f"mul i64 {f.word(frame, COUNT)}, 8")
    f.ret(f.call("PyBytes_FromStringAndSize", f.place(frame, 8 * WORD), length))
    f.label("no")
    f.require(f.same(f.call("PyErr_Occurred"), "null"), "error")
    f.incref(name("none"))
    f.ret(name("none"))
    f.label("error")
    f.ret("null")
    return f


# ---- What records say ----------------------------------------------------------------------------------------------------


def moved() -> Text:
    """The int that is `%by` more than the int `%offset`; a new reference."""
    f = Text("moved", "ptr %offset, i64 %by")
    f.require(f.differ("%by", "0", "i64"), "same")
    f.ret(f.call("PyLong_FromSsize_t", f.add(f.address(f.call("PyLong_AsVoidPtr", "%offset")), "%by")))
    f.label("same")
    f.incref("%offset")
    f.ret("%offset")
    return f


def view() -> Text:
    """The view that a record describes, of the first input. The frame's key says whether autograd takes part."""
    f = Text("view", "ptr %frame, ptr %record, ptr %recipe")
    base = f.word("%frame", INPUT, "ptr")
    storage, node = f.load(base, TENSOR["_storage"]), f.tuple_item("%record", NODE)
    f.require(f.same(f.type_of(storage), name("storage")), "unusual")
    by = f.room(1)
    f.store(by, 0, f.word("%recipe", 1), "i64")
    with f.each(f.word("%frame", POSITIONS)) as k:
        step = f.word("%recipe", f.add(k, "3"))
        further = f.let(f"mul i64 {step}, {f.word('%frame', f.add(k, str(POSITION)))}")
        f.store(by, 0, f.add(f.load(by, 0, "i64"), further), "i64")
    f.incref("%record")
    offset = f.load(base, TENSOR["_byte_offset"])
    start = f.let(f"call ptr @moved(ptr {offset}, i64 {f.load(by, 0, 'i64')})")
    f.require(f.differ(start, "null"), "failed")
    f.incref(storage)
    result = f.let(f"call ptr @new_tensor(ptr {storage}, ptr {start}, ptr {f.tuple_item('%record', SPEC)})")
    f.decref(start)
    f.require(f.differ(result, "null"), "failed")
    f.require(
        f.differ(f.word("%recipe", 2), "0", "i64"), "done"
    )  # of `detach`, which autograd does not know as a view
    root = f.load(base, TENSOR["_base"])
    direct = f.same(root, name("none"))
    whole = f.let(f"select i1 {direct}, ptr {base}, ptr {root}")
    f.incref(whole)
    f.store(result, TENSOR["_base"], whole)
    f.decref(name("none"))
    f.require(f.differ(node, name("none")), "done")
    f.ask("record_call", f"ptr %frame, ptr {node}, ptr {result}", "drop")
    is_leaf = f.same(f.type_of(f.load(base, TENSOR["_autograd"])), name("leaf"))
    f.branch(f.let(f"and i1 {direct}, {is_leaf}"), "done", "note")
    f.label("note")
    noted = f.python(name("recorded_view"), result, base)
    f.require(f.differ(noted, "null"), "drop")
    f.decref(noted)
    f.go("done")
    f.label("done")
    f.decref("%record")
    f.ret(result)
    f.label("drop")
    f.decref(result)
    f.go("failed")
    f.label("failed")
    f.decref("%record")
    f.ret("null")
    f.label("unusual")
    f.ret(answer_code(UNUSUAL))
    return f


def views() -> Text:
    """A tuple of views of the first input. The recipe: VIEWS, their number, and for each how many bytes it lies behind the input,
    and its Spec."""
    f = Text("views", "ptr %frame, ptr %record, ptr %recipe")
    base = f.word("%frame", INPUT, "ptr")
    storage, offset, root = (f.load(base, TENSOR[slot]) for slot in ("_storage", "_byte_offset", "_base"))
    f.require(f.same(f.type_of(storage), name("storage")), "unusual")
    whole = f.let(f"select i1 {f.same(root, name('none'))}, ptr {base}, ptr {root}")
    # New objects may run finalizers, which may give the tensor other memory.
    owned = ("%record", storage, offset, whole)
    for each in owned:
        f.incref(each)
    count = f.word("%recipe", 1)
    together = f.call("PyTuple_New", count)
    f.require(f.differ(together, "null"), "failed")
    with f.each(count) as k:
        described = f.place("%recipe", f.add(f.let(f"shl i64 {k}, 4"), "16"))
        start = f.let(f"call ptr @moved(ptr {offset}, i64 {f.word(described, 0)})")
        f.require(f.differ(start, "null"), "drop")
        f.incref(storage)
        view = f.let(f"call ptr @new_tensor(ptr {storage}, ptr {start}, ptr {f.word(described, 1, 'ptr')})")
        f.decref(start)
        f.require(f.differ(view, "null"), "drop")
        f.incref(whole)
        f.store(view, TENSOR["_base"], whole)
        f.decref(name("none"))
        f.set_word(f.place(together, TUPLE_ITEMS), k, view, "ptr")
    for each in owned:
        f.decref(each)
    f.ret(together)
    f.label("drop")
    f.decref(together)
    f.go("failed")
    f.label("failed")
    for each in owned:
        f.decref(each)
    f.ret("null")
    f.label("unusual")
    f.ret(answer_code(UNUSUAL))
    return f


def place_in() -> Text:
    """The address of the first element of a tensor in a plain storage, as a number."""
    f = Text("place_in", "ptr %tensor, ptr %storage", "i64")
    start = f.address(f.call("PyLong_AsVoidPtr", f.load("%storage", STORAGE["ptr"])))
    f.ret(f.add(start, f.address(f.call("PyLong_AsVoidPtr", f.load("%tensor", TENSOR["_byte_offset"])))))
    return f


class _Program(Text):
    """The steps of `program`. Arrays have a word for each input, result, argument: the functions that fill them say of what."""

    SCRATCH = (
        MOST_INPUTS + MOST_RESULTS
    )  # where the address of scratch memory stands, behind those of inputs and results

    def __init__(self) -> None:
        super().__init__("program", "ptr %frame, ptr %record, ptr %recipe")
        self.references = References(self, MOST_OWNED)
        # The addresses, as ints of Python and as numbers: those of inputs, of results, of scratch memory.
        self.objects, self.places = self.room(self.SCRATCH + 1), self.room(self.SCRATCH + 1)
        self.storages, self.tensors = self.room(MOST_RESULTS), self.room(MOST_RESULTS)
        self.storages_read, self.specs_read = self.room(MOST_INPUTS), self.room(MOST_INPUTS)
        self.arguments, self.at = self.room(MOST_ARGUMENTS + 1), self.room(1)
        self.inputs = self.word("%frame", INPUTS)

    def input(self, k: str) -> str:
        """A tensor among the arguments."""
        return self.word("%frame", self.add(k, str(INPUT)), "ptr")

    def check_inputs(self) -> None:
        """The call is unusual if an input has no memory, or counts its writes with more than an int."""
        with self.each(self.inputs) as k:
            storage = self.load(self.input(k), TENSOR["_storage"])
            self.require(self.same(self.type_of(storage), name("storage")), "unusual")
            self.require(
                self.same(self.type_of(self.load(storage, STORAGE["version"])), name("int")), "unusual"
            )

    def own_inputs(self) -> None:
        """Own the inputs and their storages, and note where their elements are."""
        with self.each(self.inputs) as k:
            tensor = self.input(k)
            storage = self.load(tensor, TENSOR["_storage"])
            # A launch lets other threads run. They may take a tensor out of the list that is an argument.
            for value in (tensor, storage):
                self.incref(value)
                self.references.own(value)
            self.set_word(self.storages_read, k, storage, "ptr")
            self.set_word(self.specs_read, k, self.load(tensor, TENSOR["spec"]), "ptr")
            place = self.let(f"call i64 @place_in(ptr {tensor}, ptr {storage})")
            made = self.call("PyLong_FromVoidPtr", self.pointer(place))
            self.references.own(made)
            self.set_word(self.objects, k, made, "ptr")
            self.set_word(self.places, k, place)

    def allocate(self, allocator: str, position: int | str) -> str:
        """A new storage, whose address stands at a position."""
        storage = self.references.own(self.call("PyObject_CallNoArgs", allocator))
        block = self.load(storage, STORAGE["ptr"])
        self.set_word(self.objects, position, block, "ptr")
        self.set_word(self.places, position, self.address(self.call("PyLong_AsVoidPtr", block)))
        return storage

    def allocate_results(self) -> None:
        """Storages for the results, and scratch memory if the launches need it."""
        self.results, self.described = self.word("%recipe", 3), self.place("%recipe", 48)
        self.faults = self.word("%recipe", 5, "ptr")
        self.faults_before = self.load(self.faults, 0, "i64")
        with self.each(self.results) as k:
            allocator = self.word(self.described, self.let(f"shl i64 {k}, 1"), "ptr")
            self.set_word(self.storages, k, self.allocate(allocator, self.add(k, str(MOST_INPUTS))), "ptr")
        scratch = self.word("%recipe", 2, "ptr")
        self.branch(self.same(scratch, "null"), "launches", "scratch")
        self.label("scratch")
        self.allocate(scratch, self.SCRATCH)
        self.go("launches")
        self.label("launches")

    def check_unchanged(self) -> None:
        """Allocating may run finalizers, which may give an input other memory or another Spec."""
        with self.each(self.inputs) as k:
            tensor, storage = self.input(k), self.word(self.storages_read, k, "ptr")
            self.require(self.same(self.load(tensor, TENSOR["_storage"]), storage), "changed")
            self.require(
                self.same(self.load(tensor, TENSOR["spec"]), self.word(self.specs_read, k, "ptr")), "changed"
            )
            place = self.let(f"call i64 @place_in(ptr {tensor}, ptr {storage})")
            self.require(self.same(place, self.word(self.places, k), "i64"), "changed")

    def launch_all(self) -> None:
        """Call the function of each launch; no launch may have met a bad index."""
        self.store(self.at, 0, self.place(self.described, self.let(f"shl i64 {self.results}, 4")))
        with self.each(self.word("%recipe", 1)):
            launch = self.load(self.at)
            number = self.word(launch, 1)
            self.store(self.at, 0, self.place(launch, 16))
            with self.each(number) as k:
                self.put_argument(k)
            flagged = self.let(f"or i64 {number}, {-(1 << 63)}")  # PY_VECTORCALL_ARGUMENTS_OFFSET
            function, given = self.word(launch, 0, "ptr"), self.place(self.arguments, 8)
            answer = self.call("PyObject_Vectorcall", function, given, flagged, "null")
            self.require(self.differ(answer, "null"), "failed")
            self.decref(answer)
        self.require(self.same(self.load(self.faults, 0, "i64"), self.faults_before, "i64"), "faulty")

    def put_argument(self, k: str) -> None:
        """The argument that three words of the recipe describe: an object, or an address of an input, a result or scratch memory."""
        given = self.load(self.at)
        kind, value, extra = self.word(given, 0), self.word(given, 1), self.word(given, 2)
        self.store(self.at, 0, self.place(given, 24))
        n = self.number()
        self.branch(self.same(kind, str(OBJECT), "i64"), f"object{n}", f"memory{n}")
        self.label(f"object{n}")
        self.set_word(self.arguments, self.add(k, "1"), self.pointer(value), "ptr")
        self.go(f"put{n}")
        self.label(f"memory{n}")
        is_result, is_scratch = (self.same(kind, str(each), "i64") for each in (OF_RESULT, OF_SCRATCH))
        made_here = self.let(f"select i1 {is_scratch}, i64 {self.SCRATCH}, i64 {value}")
        position = self.let(
            f"select i1 {is_result}, i64 {self.add(value, str(MOST_INPUTS))}, i64 {made_here}"
        )
        self.set_word(self.arguments, self.add(k, "1"), self.word(self.objects, position, "ptr"), "ptr")
        self.branch(self.same(extra, "0", "i64"), f"put{n}", f"inside{n}")
        self.label(f"inside{n}")
        inside = self.call(
            "PyLong_FromVoidPtr", self.pointer(self.add(self.word(self.places, position), extra))
        )
        self.references.own(inside)
        self.set_word(self.arguments, self.add(k, "1"), inside, "ptr")
        self.go(f"put{n}")
        self.label(f"put{n}")

    def make_results(self) -> str:
        """Tensors around the storages; the first of them, which has a node if the call is recorded."""
        with self.each(self.results) as k:
            storage = self.word(self.storages, k, "ptr")
            self.incref(storage)
            spec = self.word(self.described, self.add(self.let(f"shl i64 {k}, 1"), "1"), "ptr")
            tensor = self.let(f"call ptr @new_tensor(ptr {storage}, ptr {name('zero')}, ptr {spec})")
            self.references.own(tensor)
            self.set_word(self.tensors, k, tensor, "ptr")
        first, node = self.word(self.tensors, 0, "ptr"), self.tuple_item("%record", NODE)
        self.branch(self.differ(node, name("none")), "graph", "complete")
        self.label("graph")
        self.ask("record_call", f"ptr %frame, ptr {node}, ptr {first}", "failed")
        self.go("complete")
        self.label("complete")
        return first

    def return_results(self, first: str) -> None:
        """Return the one result, or a tuple of all. All other ways end here, too, and give back what the function owns."""
        kind = self.word("%recipe", 4, "ptr")
        self.branch(self.same(kind, "null"), "single", "several")
        self.label("single")
        self.incref(first)
        self.go("clear")
        self.label("several")
        together = self.call("PyType_GenericAlloc", kind, self.results)
        self.require(self.differ(together, "null"), "failed")
        with self.each(self.results) as k:
            tensor = self.word(self.tensors, k, "ptr")
            self.incref(tensor)
            self.set_word(self.place(together, TUPLE_ITEMS), k, tensor, "ptr")
        self.go("done")
        for label, target in (
            ("done", "clear"),
            ("failed", "clear"),
            ("changed", "faulty"),
            ("faulty", "clear"),
        ):
            self.label(label)
            self.go(target)
        self.label("clear")
        answers = {first: "single", together: "done", "null": "failed", answer_code(UNUSUAL): "faulty"}
        answer = self.let(f"phi ptr {', '.join(f'[{value}, %{label}]' for value, label in answers.items())}")
        self.references.drop()
        self.decref("%record")
        self.ret(answer)
        self.label("unusual")
        self.ret(answer_code(UNUSUAL))


def program() -> Text:
    """Run the launches of a record, and return the new tensor that they compute, or a tuple of them.

    The recipe: PROGRAM, the number of launches, the allocator of scratch memory or 0, the number of results, the class of the tuple or
    0, the address of a count of bad indices; for each result its allocator and its Spec; for each launch its function, the number of
    its arguments, and three words for each of these: of which kind it is, which one, and an offset. If the launches have met a bad
    index, the Python function runs the call again, and raises the error. It also runs the call if an input has changed meanwhile.
    """
    f = _Program()
    f.check_inputs()
    f.incref("%record")
    f.references.begin()
    f.own_inputs()
    f.allocate_results()
    f.check_unchanged()
    f.launch_all()
    f.return_results(f.make_results())
    return f


# What the readers below read: how it is stored, the function that makes a Python number of it, and the conversion to its argument.
_KINDS = {
    FLOAT32: ("float", "PyFloat_FromDouble", "fpext float {} to double"),
    FLOAT64: ("double", "PyFloat_FromDouble", ""),
    INT64: ("i64", "PyLong_FromLongLong", ""),
    INT32: ("i32", "PyLong_FromLongLong", "sext i32 {} to i64"),
    BOOL: ("i8", "PyBool_FromLong", "zext i8 {} to i64"),
}


def element() -> Text:
    """The element of this kind at an address, as a Python number."""
    f = Text("element", "ptr %place, i64 %kind")
    cases = " ".join(f"i64 {kind}, label %kind{kind}" for kind in _KINDS)
    f.do(f"switch i64 %kind, label %kind{FLOAT32} [{cases}]")
    for kind, (stored, make, wider) in _KINDS.items():
        f.label(f"kind{kind}")
        value = f.load("%place", 0, stored)
        f.ret(f.call(make, f.let(wider.format(value)) if wider else value))
    return f


def number() -> Text:
    """The only element of the first input. The recipe: NUMBER, its kind."""
    f = Text("number", "ptr %frame, ptr %record, ptr %recipe")
    start = f.let(f"call ptr @address_of(ptr {f.word('%frame', INPUT, 'ptr')})")
    f.require(f.differ(start, "null"), "unusual")
    f.ret(f.let(f"call ptr @element(ptr {start}, i64 {f.word('%recipe', 1)})"))
    f.label("unusual")
    f.ret(answer_code(UNUSUAL))
    return f


def numbers() -> Text:
    """A list of the elements of the first input, which has one dim. The recipe: NUMBERS, their kind, their count, their stride."""
    f = Text("numbers", "ptr %frame, ptr %record, ptr %recipe")
    tensor = f.word("%frame", INPUT, "ptr")
    kind, count, stride = (f.word("%recipe", k) for k in (1, 2, 3))
    found = f.call("PyList_New", count)
    f.require(f.differ(found, "null"), "failed")
    # After the new list, which may run finalizers; new numbers run none.
    start = f.let(f"call ptr @address_of(ptr {tensor})")
    f.require(f.differ(start, "null"), "without_memory")
    items = f.load(found, SIZE + 8)
    with f.each(count) as k:
        place = f.place(start, f.let(f"mul i64 {k}, {stride}"))
        value = f.let(f"call ptr @element(ptr {place}, i64 {kind})")
        f.require(f.differ(value, "null"), "drop")
        f.set_word(items, k, value, "ptr")
    f.ret(found)
    f.label("drop")
    f.decref(found)
    f.go("failed")
    f.label("failed")
    f.ret("null")
    f.label("without_memory")
    f.decref(found)
    f.ret(answer_code(UNUSUAL))
    return f


# ---- Autograd ------------------------------------------------------------------------------------------------------------

# How a node names a value that it saves; SAVED_INPUT and SAVED_POSITION are followed by which one.
VALUE, SAVED_INPUT, SAVED_RESULT, SAVED_POSITION = range(4)


def record_call() -> Text:
    """Make the node of a result, as `recorders.py` and `native_nodes.py` do; false after an error.

    The bytes of a record's `node`: the number of edges, for each the input that it comes from or -1; the number of saved values,
    and two words for each, see VALUE.
    """
    f = Text("record_call", "ptr %frame, ptr %template, ptr %result", "i1")
    words = f.place(f.tuple_item("%template", 2), BYTES)
    node = f.call("PyType_GenericAlloc", f.tuple_item("%template", 0), "0")
    f.require(f.differ(node, "null"), "failed")
    edges = f.word(words, 0)
    leaves = _put_edges(f, node, words, edges)
    f.store(node, NODE_SLOTS["_leaves"], f.load(leaves))
    _put_saved(f, node, f.let(f"getelementptr i64, ptr {words}, i64 {f.add(edges, '1')}"))
    f.incref(f.tuple_item("%template", 1))
    f.store(node, NODE_SLOTS["_spec"], f.tuple_item("%template", 1))
    order = f.call("PyIter_Next", name("order"))
    f.require(f.differ(order, "null"), "drop")
    f.store(node, NODE_SLOTS["_order"], order)
    f.incref(name("none"))
    f.store(node, NODE_SLOTS["_notes"], name("none"))
    f.store("%result", TENSOR["_autograd"], node)
    f.decref(name("none"))
    f.ret("true")
    f.label("drop_leaves")
    f.decref(f.load(leaves))
    f.go("drop")
    f.label("drop")
    f.decref(node)
    f.go("failed")
    f.label("failed")
    f.ret("false")
    return f


def _put_edges(f: Text, node: str, words: str, edges: str) -> str:
    """Give the node its edges. The room of the result has the chain of the leaves whose tensors the node keeps alive."""
    tuple_ = f.call("PyTuple_New", edges)
    f.require(f.differ(tuple_, "null"), "drop")
    f.store(node, NODE_SLOTS["_edges"], tuple_)
    leaves = f.room(1)
    f.incref(name("none"))
    f.store(leaves, 0, name("none"))
    with f.each(edges) as k:
        source = f.word(words, f.add(k, "1"))
        place = f.place(tuple_, f.add(f.let(f"mul i64 {k}, 8"), str(TUPLE_ITEMS)))
        n = f.number()
        f.branch(f.let(f"icmp slt i64 {source}, 0"), f"without{n}", f"with{n}")
        f.label(f"without{n}")
        f.incref(name("none"))
        f.store(place, 0, name("none"))
        f.go(f"set{n}")
        f.label(f"with{n}")
        tensor = f.word("%frame", f.add(source, str(INPUT)), "ptr")
        edge = f.load(tensor, TENSOR["_autograd"])
        f.incref(edge)
        f.store(place, 0, edge)
        f.branch(f.same(f.type_of(edge), name("leaf")), f"leaf{n}", f"set{n}")
        f.label(f"leaf{n}")
        f.branch(f.same(f.load(edge, LEAF_SLOTS["lasting"]), name("true")), f"lasting{n}", f"set{n}")
        f.label(f"lasting{n}")
        pair = f.call("PyTuple_New", "2")
        f.require(f.differ(pair, "null"), "drop_leaves")
        f.incref(tensor)
        f.store(pair, TUPLE_ITEMS, tensor)
        f.store(pair, TUPLE_ITEMS + 8, f.load(leaves))
        f.store(leaves, 0, pair)
        f.go(f"set{n}")
        f.label(f"set{n}")
    return leaves


def _put_saved(f: Text, node: str, words: str) -> None:
    """Give the node the values that its rules read, see VALUE."""
    count = f.word(words, 0)
    values = f.call("PyTuple_New", count)
    f.require(f.differ(values, "null"), "drop")
    f.store(node, NODE_SLOTS["_saved"], values)
    with f.each(count) as k:
        pair = f.let(f"getelementptr i64, ptr {words}, i64 {f.add(f.let(f'shl i64 {k}, 1'), '1')}")
        kind, value = f.word(pair, 0), f.word(pair, 1)
        place = f.place(values, f.add(f.let(f"mul i64 {k}, 8"), str(TUPLE_ITEMS)))
        n = f.number()
        f.do(
            f"switch i64 {kind}, label %value{n} [i64 {SAVED_INPUT}, label %input{n} i64 {SAVED_RESULT}, label %result{n} "
            f"i64 {SAVED_POSITION}, label %position{n}]"
        )
        f.label(f"value{n}")
        object_ = f.pointer(value)
        f.incref(object_)
        f.store(place, 0, object_)
        f.go(f"saved{n}")
        f.label(f"input{n}")
        tensor = f.word("%frame", f.add(value, str(INPUT)), "ptr")
        entry = f.let(f"call ptr @saved_of(ptr {tensor}, ptr {f.load(tensor, TENSOR['_autograd'])})")
        f.go(f"check{n}")
        f.label(f"result{n}")
        own = f.let(f"call ptr @saved_of(ptr %result, ptr {name('zero')})")
        f.go(f"check{n}")
        f.label(f"position{n}")
        start = f.call("PyLong_FromSsize_t", f.word("%frame", f.add(value, str(POSITION))))
        f.go(f"check{n}")
        f.label(f"check{n}")
        made = f.let(f"phi ptr [{entry}, %input{n}], [{own}, %result{n}], [{start}, %position{n}]")
        f.require(f.differ(made, "null"), "drop")
        f.store(place, 0, made)
        f.go(f"saved{n}")
        f.label(f"saved{n}")


# ---- Calls ---------------------------------------------------------------------------------------------------------------


def replay() -> Text:
    """The result of a call; UNUSUAL if the Python function must run it, UNKNOWN if it is worth a record."""
    f = Text("replay", "ptr %table, ptr %args, i64 %nargs, ptr %names")
    frame = f.room(FRAME)
    f.ask("encode_call", f"ptr %table, ptr {frame}, ptr %args, i64 %nargs, ptr %names", "no_key")
    hashed, words = f.word(frame, HASH), f.place(frame, 8 * WORD)
    record = find(f, "%table", hashed, words, f.word(frame, COUNT))
    f.require(f.differ(record, "null"), "unknown")
    recipe = f.place(f.tuple_item(record, RECIPE), BYTES)
    functions = {VIEW: "view", VIEWS: "views", PROGRAM: "program", NUMBER: "number", NUMBERS: "numbers"}
    kinds = {SAME: "same", OBJECT_ITSELF: "object", **functions}
    cases = " ".join(f"i64 {kind}, label %do_{label}" for kind, label in kinds.items())
    f.do(f"switch i64 {f.word(recipe, 0)}, label %unusual [{cases}]")
    f.label("do_same")
    same = f.word(frame, INPUT, "ptr")
    f.incref(same)
    f.ret(same)
    f.label("do_object")
    found = f.tuple_item(record, SPEC)
    f.incref(found)
    f.ret(found)
    for called in functions.values():
        f.label(f"do_{called}")
        f.ret(f.let(f"call ptr @{called}(ptr {frame}, ptr {record}, ptr {recipe})"))
    f.label("no_key")
    error = f.call("PyErr_Occurred")
    f.branch(f.same(error, "null"), "unusual", "failed")
    f.label("unusual")
    f.ret(answer_code(UNUSUAL))
    f.label("unknown")
    patience = f.load(name("patience"), 0, "i64")
    f.ask("is_usual", f"ptr %table, i64 {hashed}, i64 {patience}", "unusual")
    f.ret(answer_code(UNKNOWN))
    f.label("failed")
    f.ret("null")
    return f


def call_or_replay() -> Text:
    """As `replay`, and else by the Python function of the table, or by the one that learns."""
    f = Text("call_or_replay", "ptr %table, ptr %args, i64 %nargs, ptr %names")
    answer = f.let("call ptr @replay(ptr %table, ptr %args, i64 %nargs, ptr %names)")
    f.branch(f.let(f"icmp ugt ptr {answer}, {answer_code(UNKNOWN)}"), "replayed", "python")
    f.label("python")
    f.require(f.differ(answer, "null"), "replayed")
    known = f.same(answer, answer_code(UNUSUAL))
    function = f.let(
        f"select i1 {known}, ptr {field(f, '%table', 'python')}, ptr {field(f, '%table', 'learn')}"
    )
    f.ret(f.call("PyObject_Vectorcall", function, "%args", "%nargs", "%names"))
    f.label("replayed")
    f.ret(answer)
    return f


def replayed() -> Text:
    """A builtin that is called as the Python function of its table is."""
    f = Text("replayed", "ptr %self, ptr %args, i64 %nargs, ptr %names", linkage="")
    f.ret(f.let(f"call ptr @call_or_replay(ptr {table_of_self(f)}, ptr %args, i64 %nargs, ptr %names)"))
    return f


def slot(called: str, *operands: str) -> Text:
    """The C function in a slot of Tensor, with the table and the Python function of this name.

    The Python function has code that asks modes, while there are any.
    """
    f = Text(f"slot.{called}", ", ".join(f"ptr {each}" for each in operands), linkage="")
    room = f.room(len(operands) + 1)
    for k, each in enumerate(operands, 1):
        f.store(room, 8 * k, each)
    given, count = f.place(room, 8), len(operands)
    f.require(f.same(f.load(name("watched"), 0, "i16"), "0", "i16"), "watched")
    f.ret(
        f.let(f"call ptr @call_or_replay(ptr {name('table.' + called)}, ptr {given}, i64 {count}, ptr null)")
    )
    f.label("watched")
    f.ret(f.call("PyObject_Vectorcall", name("method." + called), given, str(count), "null"))
    return f


def truth() -> Text:
    """`bool(tensor)`: 1 or 0, -1 after an error."""
    f = Text("slot.truth", "ptr %self", "i32", linkage="")
    answer = f.let(f"call ptr @{_quoted('slot.__bool__')}(ptr %self)")
    f.require(f.differ(answer, "null"), "failed")
    f.decref(answer)
    f.ret(f.let(f"zext i1 {f.same(answer, name('true'))} to i32"))
    f.label("failed")
    f.ret("-1")
    return f


def product() -> Text:
    """`a @ b`: as CPython's function in this slot, by `__rmatmul__` if the class of `a` is not Tensor or Parameter."""
    f = Text("slot.product", "ptr %a, ptr %b", linkage="")
    f.require(f.is_plain("%a"), "reflected")
    f.ret(f.let(f"call ptr @{_quoted('slot.__matmul__')}(ptr %a, ptr %b)"))
    f.label("reflected")
    f.ret(f.python(name("method.__rmatmul__"), "%b", "%a"))
    return f


# The methods of Tensor that slots of the class replay: how many operands they have.
METHODS = {"__getitem__": 2, "__matmul__": 2, "__float__": 1, "__int__": 1, "__index__": 1, "__bool__": 1}


def functions() -> list[Function]:
    """All functions of this file. They call some of `families/map_calls.py`."""
    return [
        *replay_keys.functions(),
        key_of(),
        moved(),
        view(),
        views(),
        place_in(),
        program(),
        element(),
        number(),
        numbers(),
        record_call(),
        replay(),
        call_or_replay(),
        replayed(),
        *(slot(method, *("%a", "%b")[:count]) for method, count in METHODS.items()),
        truth(),
        product(),
    ]
