"""The keys of replayed calls in machine code: the arguments of a call as words.

The key of a call is a sequence of 64-bit words. Equal keys mean equal calls:

    a plain tensor              the address of its Spec, which the record keeps alive
    an int of up to 62 bits     twice its value, and 1: the only odd words
    a float                     the address of the class, then the bits of its value
    None, bools, `...`, dtypes, layouts, devices, strings
                                the address of the object
    a slice                     the address of the class, then the three parts
    of `tensor[...]`: an int    the address of the class; the place is no part of the key
    of `tensor[...]`: a slice   the address of the class, its length and its step; the place is no part of the key
    a tuple or a list           the address of the class, the number of items, then the items
    names of keyword arguments  as a tuple
    autograd takes part         2 + 4 * whether grad mode is on + 8 * which of the tensors have an edge, as bits: no address, because
                                addresses of objects are multiples of 8

A call with any other argument has no key.
"""

from __future__ import annotations

from ..core.spec import Spec
from ..engine.call_tables import mix
from ..engine.objects import SIZE, TENSOR, TUPLE_ITEMS, Text, name, offsets

# The fields of a frame, in words: what `encode` has found of the arguments.
COUNT, INPUTS, HASH, MASK, POSITIONS, INPUT, POSITION, WORD = 0, 1, 2, 3, 4, 5, 13, 21
MOST_INPUTS, MOST_POSITIONS, MOST_WORDS = POSITION - INPUT, WORD - POSITION, 32
FRAME = WORD + MOST_WORDS

SPEC_SLOTS = offsets(Spec)
SLICE_PARTS = (SIZE, SIZE + 8, SIZE + 16)
SLOTS_READ = ("spec", "_storage", "_byte_offset", "_autograd", "_base")  # of tensors, by replayed calls


def push() -> Text:
    """Add a word to the key; false if the key is full."""
    f = Text("push", "ptr %frame, i64 %word", "i1")
    count = f.word("%frame", COUNT)
    f.require(f.let(f"icmp slt i64 {count}, {MOST_WORDS}"), "full")
    f.set_word("%frame", f.add(count, str(WORD)), "%word")
    f.set_word("%frame", COUNT, f.add(count, "1"))
    f.set_word("%frame", HASH, mix(f, f.word("%frame", HASH), "%word"))
    f.ret("true")
    f.label("full")
    f.ret("false")
    return f


def encode_one() -> Text:
    """Add an argument that is no container to the key; false if no key has such arguments."""
    f = Text("encode_one", "ptr %frame, ptr %value", "i1")
    kind = f.type_of("%value")
    parameter = f.load(name("other_plain_type"))
    tensors, others = (name("tensor"), parameter), tuple(map(name, IDENTICAL))
    for label, classes in (
        ("tensor", tensors),
        ("int", (name("int"),)),
        ("float", (name("float"),)),
        ("same", others),
    ):
        for each in classes:
            n = f.number()
            f.branch(f.same(kind, each), label, f"not{n}")
            f.label(f"not{n}")
    f.ret("false")
    f.label("tensor")
    inputs = f.word("%frame", INPUTS)
    f.require(f.let(f"icmp slt i64 {inputs}, {MOST_INPUTS}"), "no")
    # The slots are null while other code builds the tensor, which `gc.get_objects()` shows already.
    for slot in SLOTS_READ:
        f.require(f.differ(f.load("%value", TENSOR[slot]), "null"), "no")
    f.set_word("%frame", f.add(inputs, str(INPUT)), "%value", "ptr")
    f.set_word("%frame", INPUTS, f.add(inputs, "1"))
    edge = f.let(f"zext i1 {f.differ(f.load('%value', TENSOR['_autograd']), name('none'))} to i64")
    bit = f.let(f"shl i64 {edge}, {inputs}")
    f.set_word("%frame", MASK, f.let(f"or i64 {f.word('%frame', MASK)}, {bit}"))
    f.ret(f.let(f"call i1 @push(ptr %frame, i64 {f.load('%value', TENSOR['spec'], 'i64')})"))
    f.label("int")
    overflow = f.room(1)
    whole = f.call("PyLong_AsLongLongAndOverflow", "%value", overflow)
    f.require(f.same(f.load(overflow, 0, "i32"), "0", "i32"), "no")
    twice = f.let(f"shl i64 {whole}, 1")
    f.require(f.same(f.let(f"ashr i64 {twice}, 1"), whole, "i64"), "no")
    f.ret(f.let(f"call i1 @push(ptr %frame, i64 {f.add(twice, '1')})"))
    f.label("float")
    f.ask("push", f"ptr %frame, i64 {f.address(kind)}", "no")
    bits = f.let(f"bitcast double {f.call('PyFloat_AsDouble', '%value')} to i64")
    f.ret(f.let(f"call i1 @push(ptr %frame, i64 {bits})"))
    f.label("same")
    f.ret(f.let(f"call i1 @push(ptr %frame, i64 {f.address('%value')})"))
    f.label("no")
    f.ret("false")
    return f


# The classes of the objects that stand for themselves in a key.
IDENTICAL = ("none_type", "bool", "ellipsis", "dtype", "memory_format", "layout", "device", "str")


def encode_item() -> Text:
    """As `encode_one`, for slices as well."""
    f = Text("encode_item", "ptr %frame, ptr %value", "i1")
    kind = f.type_of("%value")
    f.branch(f.same(kind, name("slice")), "slice", "other")
    f.label("other")
    f.ret(f.let("call i1 @encode_one(ptr %frame, ptr %value)"))
    f.label("slice")
    f.ask("push", f"ptr %frame, i64 {f.address(kind)}", "no")
    before = f.word("%frame", INPUTS)
    for part in SLICE_PARTS:
        f.ask("encode_one", f"ptr %frame, ptr {f.load('%value', part)}", "no")
    # A slice reads the values of tensors, and they are not in the key.
    f.ret(f.same(before, f.word("%frame", INPUTS), "i64"))
    f.label("no")
    f.ret("false")
    return f


def encode() -> Text:
    """As `encode_item`, for tuples and lists as well."""
    f = Text("encode", "ptr %frame, ptr %value", "i1")
    kind = f.type_of("%value")
    f.branch(f.same(kind, name("tuple")), "tuple", "no_tuple")
    f.label("no_tuple")
    f.branch(f.same(kind, name("list")), "list", "other")
    f.label("other")
    f.ret(f.let("call i1 @encode_item(ptr %frame, ptr %value)"))
    f.label("tuple")
    in_tuple = f.place("%value", TUPLE_ITEMS)
    f.go("items")
    f.label("list")
    in_list = f.load("%value", SIZE + 8)
    f.go("items")
    f.label("items")
    items = f.let(f"phi ptr [{in_tuple}, %tuple], [{in_list}, %list]")
    count = f.load("%value", SIZE, "i64")
    f.ask("push", f"ptr %frame, i64 {f.address(kind)}", "no")
    f.ask("push", f"ptr %frame, i64 {count}", "no")
    with f.each(count) as k:
        f.ask("encode_item", f"ptr %frame, ptr {f.word(items, k, 'ptr')}", "no")
    f.ret("true")
    f.label("no")
    f.ret("false")
    return f


def encode_place() -> Text:
    """Add an int or a slice for one dim of the first input to the key, and where it starts to the positions of the frame.

    False for positions out of range, and for more dims than there are.
    """
    f = Text("encode_place", "ptr %frame, ptr %value, i64 %dim", "i1")
    shape = f.load(f.load(f.word("%frame", INPUT, "ptr"), TENSOR["spec"]), SPEC_SLOTS["shape"])
    f.require(f.let(f"icmp slt i64 %dim, {f.load(shape, SIZE, 'i64')}"), "no")
    f.require(f.let(f"icmp slt i64 {f.word('%frame', POSITIONS)}, {MOST_POSITIONS}"), "no")
    item = f.word(f.place(shape, TUPLE_ITEMS), "%dim", "ptr")
    f.require(
        f.same(f.type_of(item), name("int")), "no"
    )  # the size of a ragged dim of a nested tensor is no int
    size = f.address(f.call("PyLong_AsVoidPtr", item))
    kind, start, overflow = f.type_of("%value"), f.room(1), f.room(1)
    f.ask("push", f"ptr %frame, i64 {f.address(kind)}", "no")
    f.branch(f.same(kind, name("int")), "int", "slice")
    f.label("int")
    whole = f.call("PyLong_AsLongLongAndOverflow", "%value", overflow)
    f.require(f.same(f.load(overflow, 0, "i32"), "0", "i32"), "no")
    from_end = f.let(f"select i1 {f.let(f'icmp slt i64 {whole}, 0')}, i64 {size}, i64 0")
    place = f.add(whole, from_end)
    f.require(f.let(f"icmp ult i64 {place}, {size}"), "no")
    f.store(start, 0, place, "i64")
    f.go("found")
    f.label("slice")
    stop, step = f.room(1), f.room(1)
    for part in SLICE_PARTS:  # a tensor is also taken as a place, by its value
        inner = f.load("%value", part)
        is_int, is_none = f.same(f.type_of(inner), name("int")), f.same(inner, name("none"))
        f.require(f.let(f"or i1 {is_int}, {is_none}"), "no")
    f.require(f.same(f.call("PySlice_Unpack", "%value", start, stop, step), "0", "i32"), "no")
    stride = f.load(step, 0, "i64")
    f.require(f.let(f"icmp sgt i64 {stride}, 0"), "no")
    length = f.call("PySlice_AdjustIndices", size, start, stop, stride)
    f.ask("push", f"ptr %frame, i64 {length}", "no")
    f.ask("push", f"ptr %frame, i64 {stride}", "no")
    f.go("found")
    f.label("found")
    count = f.word("%frame", POSITIONS)
    f.set_word("%frame", f.add(count, str(POSITION)), f.load(start, 0, "i64"))
    f.set_word("%frame", POSITIONS, f.add(count, "1"))
    f.ret("true")
    f.label("no")
    f.ret("false")
    return f


def encode_subscript() -> Text:
    """Add the index of `tensor[index]` to the key: ints and slices without their places, unless None or `...` are among them."""
    f = Text("encode_subscript", "ptr %frame, ptr %value", "i1")
    kind = f.type_of("%value")
    f.branch(f.same(kind, name("tuple")), "items", "single")
    f.label("single")
    f.branch(f.let("call i1 @is_place(ptr %value)"), "place", "other")
    f.label("place")
    f.ret(f.let("call i1 @encode_place(ptr %frame, ptr %value, i64 0)"))
    f.label("items")
    items, count = f.place("%value", TUPLE_ITEMS), f.load("%value", SIZE, "i64")
    with f.each(count) as k:
        f.require(f.let(f"call i1 @is_place(ptr {f.word(items, k, 'ptr')})"), "other")
    f.ask("push", f"ptr %frame, i64 {f.address(kind)}", "no")
    with f.each(count) as k:
        f.ask("encode_place", f"ptr %frame, ptr {f.word(items, k, 'ptr')}, i64 {k}", "no")
    f.ret("true")
    f.label("other")
    f.ret(f.let("call i1 @encode(ptr %frame, ptr %value)"))
    f.label("no")
    f.ret("false")
    return f


def is_place() -> Text:
    f = Text("is_place", "ptr %value", "i1")
    kind = f.type_of("%value")
    f.ret(f.let(f"or i1 {f.same(kind, name('int'))}, {f.same(kind, name('slice'))}"))
    return f


def grad_mode() -> Text:
    """Whether grad mode is on in this thread: 1 or 0, -1 after an error."""
    f = Text("grad_mode", "", "i32")
    enabled = f.call("PyObject_GetAttr", name("mode"), name("enabled"))
    f.require(f.differ(enabled, "null"), "failed")
    f.decref(enabled)  # True and False never die
    f.ret(f.let(f"zext i1 {f.same(enabled, name('true'))} to i32"))
    f.label("failed")
    f.ret("-1")
    return f


def encode_call() -> Text:
    """Make the key of a call; false if the call is not to be replayed, or after an error."""
    f = Text("encode_call", "ptr %table, ptr %frame, ptr %args, i64 %nargs, ptr %names", "i1")
    # Whether watchers must see plain tensors, and whether modes must see functions.
    f.require(f.same(f.load(name("watched"), 0, "i16"), "0", "i16"), "no")
    for each in ("watchers", "new_hooks", "autocasts"):
        f.require(f.same(f.load(name(each), SIZE, "i64"), "0", "i64"), "no")
    for field in (COUNT, INPUTS, HASH, MASK, POSITIONS):
        f.set_word("%frame", field, "0")
    total = f.room(1)
    f.store(total, 0, "%nargs", "i64")
    f.branch(f.same("%names", "null"), "arguments", "named")
    f.label("named")
    named = f.load("%names", SIZE, "i64")
    f.store(total, 0, f.add("%nargs", named), "i64")
    f.ask("push", f"ptr %frame, i64 {f.address(name('tuple'))}", "no")
    f.ask("push", f"ptr %frame, i64 {named}", "no")  # strings are arguments, too
    with f.each(named) as k:
        keyword = f.load(f.place("%names", TUPLE_ITEMS), f.let(f"mul i64 {k}, 8"), "i64")
        f.ask("push", f"ptr %frame, i64 {keyword}", "no")
    f.go("arguments")
    f.label("arguments")
    f.branch(f.same("%table", name("table.__getitem__")), "subscript", "all")
    f.label("subscript")
    f.require(f.same("%nargs", "2", "i64"), "no")
    f.ask("encode_one", f"ptr %frame, ptr {f.word('%args', 0, 'ptr')}", "no")
    f.require(f.same(f.word("%frame", INPUTS), "1", "i64"), "no")
    f.ask("encode_subscript", f"ptr %frame, ptr {f.word('%args', 1, 'ptr')}", "no")
    f.go("complete")
    f.label("all")
    with f.each(f.load(total, 0, "i64")) as k:
        f.ask("encode", f"ptr %frame, ptr {f.word('%args', k, 'ptr')}", "no")
    f.go("complete")
    f.label("complete")
    mask = f.word("%frame", MASK)
    f.branch(f.same(mask, "0", "i64"), "yes", "autograd")
    f.label("autograd")
    f.require(f.same(f.load(name("detours"), SIZE, "i64"), "0", "i64"), "no")
    on = f.let("call i32 @grad_mode()")
    f.require(f.let(f"icmp sge i32 {on}, 0"), "no")
    mode = f.let(f"shl i64 {f.let(f'zext i32 {on} to i64')}, 2")
    edges = f.let(f"shl i64 {mask}, 3")
    f.ret(f.let(f"call i1 @push(ptr %frame, i64 {f.add(f.add(edges, mode), '2')})"))
    f.label("yes")
    f.ret("true")
    f.label("no")
    f.ret("false")
    return f


def functions() -> list[Text]:
    """All functions of this file, in an order that does not matter."""
    return [
        push(),
        encode_one(),
        encode_item(),
        encode(),
        grad_mode(),
        is_place(),
        encode_place(),
        encode_subscript(),
        encode_call(),
    ]
