"""The calls of elementwise ops in machine code: operands checked, plan found, storage and tensor made, kernel run.

`families/calls.py` defines what a call means. These functions take the usual calls: plain tensors on plain storages, numbers,
plans of one kernel, which workers may share. For all other calls they do nothing and answer UNUSUAL. When the table has
no record for the operands, they answer UNKNOWN: the Python function then runs the call, and adds the record.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..engine.call_tables import (
    ALLOCATION,
    KERNEL,
    RECORDER,
    SPEC,
    STRIDES,
    field,
    lookup,
    table_of_self,
    word,
)
from ..engine.nests import nest_ir
from ..engine.objects import NUMBER_METHODS, NUMBER_SLOTS, STORAGE, TENSOR, Function, name

# Answers that are no objects; null means that an error is set.
UNUSUAL, UNKNOWN = 1, 2

# Types of the number that a kernel reads, as WORDS have them.
FLOAT32, FLOAT64, INTEGER = 1, 2, 3


def address_of() -> Function:
    """The address of a tensor's first element; null if its storage is not a plain one."""
    f = Function("address_of", "ptr %tensor", "ptr", "internal")
    storage = f.load("%tensor", TENSOR["_storage"])
    f.require(f.same(f.type_of(storage), name("storage")), "unusual")
    start = f.call("PyLong_AsVoidPtr", f.load(storage, STORAGE["ptr"]))
    offset = f.load("%tensor", TENSOR["_byte_offset"])
    f.branch(f.same(offset, name("zero")), "first", "later")
    f.label("first")
    f.ret(start)
    f.label("later")
    bytes_ = f.let(f"ptrtoint ptr {f.call('PyLong_AsVoidPtr', offset)} to i64")
    f.ret(f.place(start, bytes_))
    f.label("unusual")
    f.ret("null")
    return f


def new_tensor() -> Function:
    """A tensor of these parts; `%storage` is a reference that the function takes over, or null after an error."""
    f = Function("new_tensor", "ptr %storage, ptr %offset, ptr %spec", "ptr", "internal")
    f.require(f.differ("%storage", "null"), "failed")
    new = f.call("PyType_GenericAlloc", name("tensor"), "0")
    f.require(f.differ(new, "null"), "without")
    f.store(new, TENSOR["_storage"], "%storage")
    for slot, value in (("_byte_offset", "%offset"), ("spec", "%spec")):
        f.incref(value)
        f.store(new, TENSOR[slot], value)
    for slot in ("_autograd", "_base"):
        f.incref(name("none"))
        f.store(new, TENSOR[slot], name("none"))
    f.ret(new)
    f.label("without")
    f.decref("%storage")
    f.go("failed")
    f.label("failed")
    f.ret("null")
    return f


def run(operands: int) -> Function:
    """Run the kernel of a record. `%room` has a free word, the addresses, and a number if the kernel reads one.

    A kernel that workers share releases the GIL, so the caller owns a reference to the record.
    """
    f = Function(f"run{operands}", "ptr %words, ptr %room", "void", "internal")
    row, count = word(f, "%words", "row", "ptr"), word(f, "%words", "count")
    f.store("%room", 0, row)
    share = word(f, "%words", "share", "ptr")
    f.branch(f.differ(share, "null"), "shared", "alone")
    f.label("shared")
    pool, grain, always = (word(f, "%words", each) for each in ("pool", "grain", "always"))
    job = f"ptr {word(f, '%words', 'loop', 'ptr')}, ptr {f.place('%room', 8)}, ptr {word(f, '%words', 'meta', 'ptr')}"
    f.do(f"call void {share}(i64 {pool}, {job}, i64 {count}, i64 {grain}, i64 {always})")
    f.ret()
    f.label("alone")
    f.require(f.differ(word(f, "%words", "flat"), "0", "i64"), "nest")
    given = []
    for k in range(operands):
        given += [f"ptr {f.load('%room', 8 + 8 * k)}", f"i64 {word(f, '%words', f'stride{k}')}"]
    parameters = f.place("%room", 8 + 8 * operands)
    f.do(f"call void {row}({', '.join(given)}, ptr {parameters}, i64 {count})")
    f.ret()
    f.label("nest")
    first, meta = f.place("%room", 8), word(f, "%words", "meta", "ptr")
    f.do(f"call void @loop{operands}(ptr {first}, ptr {meta}, i64 0, i64 {count})")
    f.ret()
    return f


def loops() -> list[str]:
    """`loop2` and so on, which call the row whose address stands before the operands."""
    declarations: set[str] = set()
    found = [nest_ir(f"loop{n}", n, declarations, linkage="internal") for n in range(2, STRIDES + 1)]
    return [*found, *sorted(declarations)]


class Call(Function):
    """The common parts of the functions below. They end at the labels `unusual`, `unknown` and `failed`."""

    def __init__(self, called: str, operands: str):
        super().__init__(called, f"ptr %table, {operands}", "ptr", "internal", "noinline")
        # Two bytes: whether watchers must see plain tensors, and whether modes must see functions.
        self.require(self.same(self.load(name("watched"), 0, "i16"), "0", "i16"), "unusual")

    def number_type(self, tensor: str, number: str) -> tuple[str, str]:
        """The type of the number, and whether it is float; another is unusual, and so is a tensor that is not plain."""
        self.require(self.is_plain(tensor), "unusual")
        kind = self.type_of(number)
        is_float = self.same(kind, name("float"))
        self.require(self.let(f"or i1 {is_float}, {self.same(kind, name('int'))}"), "unusual")
        return kind, is_float

    def find(self, key: str, other: str) -> tuple[str, str]:
        """The record for two keys, and its words."""
        record = lookup(self, "%table", key, other)
        return record, self.kernel_of(record)

    def kernel_of(self, record: str) -> str:
        """The words of a record; a plan that machine code cannot run is unusual."""
        words = self.tuple_item(record, KERNEL)
        self.require(self.differ(words, name("none")), "unusual")
        self.take_turn(words)
        return words

    def take_turn(self, words: str) -> None:
        """As `Habit.take_turn`, for a plan that is deferred; a call that waits is unusual."""
        turns = word(self, words, "turns", "ptr")
        self.branch(self.differ(turns, "null"), "deferred", "at_once")
        self.label("deferred")
        left = self.load(turns, 0, "i64")
        self.require(self.differ(left, "0", "i64"), "unusual")
        self.store(turns, 0, self.let(f"sub i64 {left}, 1"), "i64")
        self.go("at_once")
        self.label("at_once")

    def put_addresses(self, room: str, tensors: Sequence[str], otherwise: str) -> None:
        """Put the addresses of the operands behind that of the result.

        No object may be allocated between this and the kernel, because a finalizer may give a tensor other memory.
        """
        for k, each in enumerate(tensors, 2):
            address = self.let(f"call ptr @address_of(ptr {each})")
            self.require(self.differ(address, "null"), otherwise)
            self.store(room, 8 * k, address)

    def put_number(self, room: str, position: int, words: str, number: str, is_float: str) -> None:
        """Put a float or an int into the room as the kernel reads it."""
        self.convert(self.place(room, 8 * position), word(self, words, "number"), number, is_float)

    def convert(self, place: str, kind: str, number: str, is_float: str) -> None:
        """Store a float or an int as FLOAT32, FLOAT64 or INTEGER. An int of more than 64 bits is unusual.

        %real_number is its value as a float.
        """
        self.branch(is_float, "float", "int")
        self.label("int")
        overflow = self.room(1)
        whole = self.call("PyLong_AsLongLongAndOverflow", number, overflow)
        self.require(self.same(self.load(overflow, 0, "i32"), "0", "i32"), "unusual")
        rounded = self.let(f"sitofp i64 {whole} to double")
        self.go("whole")
        self.label("whole")
        self.go("real")
        self.label("float")
        value = self.call("PyFloat_AsDouble", number)
        self.go("real")
        self.label("real")
        self.do(f"%real_number = phi double [{value}, %float], [{rounded}, %whole]")
        self.do(f"%whole_number = phi i64 [0, %float], [{whole}, %whole]")
        kinds = {FLOAT32: "single", FLOAT64: "double", INTEGER: "integer"}
        self.do(
            f"switch i64 {kind}, label %unusual [{' '.join(f'i64 {k}, label %{v}' for k, v in kinds.items())}]"
        )
        self.label("single")
        self.do("%single_number = fptrunc double %real_number to float")
        self.do(f"store float %single_number, ptr {place}")
        self.go("converted")
        self.label("double")
        self.do(f"store double %real_number, ptr {place}")
        self.go("converted")
        self.label("integer")
        self.do(f"store i64 %whole_number, ptr {place}")
        self.go("converted")
        self.label("converted")

    def ask_recording(self, *tensors: str) -> str:
        """Whether the call is recorded: an operand takes part in autograd, and grad mode is on."""
        followed = "false"
        for each in tensors:
            edge = self.load(each, TENSOR["_autograd"])
            followed = self.let(f"or i1 {followed}, {self.differ(edge, name('none'))}")
        return self.ask_if(followed)

    def ask_if(self, followed: str) -> str:
        """Whether grad mode is on, asked only if an operand takes part in autograd."""
        self.go("edges")
        self.label("edges")
        self.branch(followed, "ask", "prepared")
        self.label("ask")
        enabled = self.call("PyObject_GetAttr", name("mode"), name("enabled"))
        self.require(self.differ(enabled, "null"), "failed")
        self.decref(enabled)  # True and False never die
        on = self.same(enabled, name("true"))
        self.go("asked")
        self.label("asked")
        self.go("prepared")
        self.label("prepared")
        return self.let(f"phi i1 [false, %edges], [{on}, %asked]")

    def choose_recorder(self, record: str, recorded: str, constant: str = "chosen_none") -> None:
        """%recorder: what records the call, null if nothing does. A result without a derivative goes on at `constant`."""
        self.go("choose")
        self.label("choose")
        self.branch(recorded, "chosen", "chosen_none")
        self.label("chosen")
        recorder = self.tuple_item(record, RECORDER)
        self.require(self.differ(recorder, name("none")), "unknown")
        self.go("chosen_known")
        self.label("chosen_known")
        self.branch(self.same(recorder, name("false")), constant, "chosen_parts")
        self.label("chosen_parts")
        self.require(self.same(self.list_size(name("detours")), "0", "i64"), "unusual")
        self.go("chosen_found")
        self.label("chosen_found")
        self.go("chosen_none")
        self.label("chosen_none")
        none = ", [null, %chosen_known]" if constant == "chosen_none" else ""
        self.do(f"%recorder = phi ptr [null, %choose]{none}, [{recorder}, %chosen_found]")

    def new_result(self, record: str, room: str) -> str:
        """A new tensor for the result; its address is the first in the room. The record is the function's own from here on."""
        self.incref(record)  # allocating may run finalizers, which may change the table
        allocation, spec = self.tuple_item(record, ALLOCATION), self.tuple_item(record, SPEC)
        storage = self.let(f"call ptr {name('allocate')}(ptr {allocation}, ptr null, i64 0)")
        result = self.let(f"call ptr @new_tensor(ptr {storage}, ptr {name('zero')}, ptr {spec})")
        self.require(self.differ(result, "null"), "drop_record")
        self.store(room, 8, self.call("PyLong_AsVoidPtr", self.load(storage, STORAGE["ptr"])))
        return result

    def check_storage(self, tensor: str) -> None:
        """The call is unusual if the tensor has no memory yet."""
        kind = self.type_of(self.load(tensor, TENSOR["_storage"]))
        self.require(self.same(kind, name("storage")), "unusual")

    def compute(self, record: str, words: str, room: str, *tensors: str) -> str:
        """A new tensor, computed by the kernel of the record, which is the function's own from here on."""
        for each in tensors:
            self.check_storage(each)
        specs = [self.load(each, TENSOR["spec"]) for each in tensors]
        result = self.new_result(record, room)
        for each, spec in zip(tensors, specs, strict=True):  # a finalizer may have changed it
            self.require(self.same(self.load(each, TENSOR["spec"]), spec), "without_memory")
        self.put_addresses(room, tensors, "without_memory")
        self.do(f"call void @run{1 + len(tensors)}(ptr {words}, ptr {room})")
        return result

    def finish(self, record: str, result: str, *inputs: str) -> None:
        """Record the call for autograd if there is a %recorder, and return the result."""
        self.branch(self.differ("%recorder", "null"), "record", "done")
        self.label("record")
        given = ", ".join(f"ptr {each}" for each in ("%recorder", result, *inputs))
        failure = self.let(f"call i32 @record{len(inputs)}({given})")
        self.branch(self.same(failure, "0", "i32"), "done", "drop_result")
        self.finish_record(record, result)

    def finish_record(self, record: str, result: str) -> None:
        """Give the record back and return the result; the end of the function."""
        self.label("done")
        self.decref(record)
        self.ret(result)
        self.label("drop_result")
        self.decref(result)
        self.go("drop_record")
        self.label("drop_record")
        self.decref(record)
        self.go("failed")
        self.label("without_memory")
        self.decref(result)
        self.decref(record)
        self.go("unusual")
        self.end()

    def count_write(self, target: str) -> None:
        """Count a write in the version of a storage."""
        storage = self.load(target, TENSOR["_storage"])
        version = self.load(storage, STORAGE["version"])
        self.require(self.same(self.type_of(version), name("int")), "unusual")
        more = self.call("PyNumber_Add", version, name("one"))
        self.require(self.differ(more, "null"), "failed")
        self.store(storage, STORAGE["version"], more)
        self.decref(version)

    def end(self) -> None:
        self.label("unusual")
        self.ret(answer_code(UNUSUAL))
        self.label("unknown")
        self.ret(answer_code(UNKNOWN))
        self.label("failed")
        self.ret("null")


def unary() -> Function:
    """`op(a)`."""
    f = Call("unary", "ptr %a")
    f.require(f.is_plain("%a"), "unusual")
    recorded = f.ask_recording("%a")
    nothing = f.let(f"ptrtoint ptr {name('none')} to i64")
    record, words = f.find(f.load("%a", TENSOR["spec"], "i64"), nothing)
    f.choose_recorder(record, recorded)
    f.finish(record, f.compute(record, words, f.room(3), "%a"), "%a")
    return f


def tensors() -> Function:
    """`op(a, b)`, where `a` is a plain tensor."""
    f = Call("tensors", "ptr %a, ptr %b")
    f.require(f.is_plain("%b"), "unusual")
    recorded = f.ask_recording("%a", "%b")
    record, words = f.find(f.load("%a", TENSOR["spec"], "i64"), f.load("%b", TENSOR["spec"], "i64"))
    f.choose_recorder(record, recorded)
    f.finish(record, f.compute(record, words, f.room(4), "%a", "%b"), "%a", "%b")
    return f


def with_number(called: str, tensor: str, number: str) -> Function:
    """`op(a, b)`, where one is a plain tensor and the other is an int or a float."""
    f = Call(called, "ptr %a, ptr %b")
    kind, is_float = f.number_type(tensor, number)
    recorded = f.ask_recording(tensor)
    keys = f.load(tensor, TENSOR["spec"], "i64"), f.let(f"ptrtoint ptr {kind} to i64")
    record, words = f.find(*(keys if number == "%b" else keys[::-1]))
    f.choose_recorder(record, recorded)
    room = f.room(4)
    f.put_number(room, 3, words, number, is_float)
    f.finish(record, f.compute(record, words, room, tensor), "%a", "%b")
    return f


# ---- In place ------------------------------------------------------------------------------------------------------------


class InPlace(Call):
    """A call that writes its result into its first operand."""

    def choose_recorder_of(self, target: str, record: str, recorded: str) -> None:
        """As `choose_recorder`. Calls that no recorder can record after the write are unusual."""
        self.go("asks_target")
        self.label("asks_target")
        self.branch(recorded, "target", "chooses")
        self.label("target")
        possible = self.let(f"call i1 @can_rebase(ptr {target})")
        self.branch(possible, "chooses", "unusual")
        self.label("chooses")
        self.choose_recorder(record, recorded, constant="unusual")

    def check_recorder(self, args: str, count: str) -> None:
        """The call is unusual if it is recorded in a way that the recorder cannot do after the write, see `can_record`."""
        self.branch(self.differ("%recorder", "null"), "recordable", "checked")
        self.label("recordable")
        possible = self.let(f"call i1 @can_record(ptr %recorder, ptr {args}, i64 {count})")
        self.branch(possible, "checked", "unusual")
        self.label("checked")

    def require_alone(self, words: str) -> None:
        """A write whose kernel workers share is unusual, because it has no reference to the record while other threads run."""
        self.require(self.same(word(self, words, "share"), "0", "i64"), "unusual")

    def write(
        self, record: str, words: str, room: str, tensors: Sequence[str], operands: Sequence[str]
    ) -> None:
        """Count the write, run the kernel, record the call, and return the first operand.

        `tensors` are those among the operands.
        """
        self.require_alone(words)
        args = self.room(len(operands))
        for k, each in enumerate(operands):
            self.store(args, 8 * k, each)
        self.check_recorder(args, str(len(operands)))
        self.put_addresses(room, tensors, "unusual")
        self.store(room, 8, self.load(room, 16))  # the first operand is the result
        self.count_write(operands[0])
        self.do(f"call void @run{1 + len(tensors)}(ptr {words}, ptr {room})")
        self.branch(self.differ("%recorder", "null"), "record", "written")
        self.label("record")
        self.record_write(record, operands)
        self.go("written")
        self.label("written")
        self.incref(operands[0])
        self.ret(operands[0])
        self.end()

    def record_write(self, record: str, operands: Sequence[str]) -> None:
        """Record the call; the first operand is the result as well."""
        self.incref(record)  # a new node may run finalizers, which may change the table
        given = ", ".join(f"ptr {each}" for each in ("%recorder", operands[0], *operands))
        failure = self.let(f"call i32 @record{len(operands)}({given})")
        self.decref(record)
        self.require(self.same(failure, "0", "i32"), "failed")


def inplace_unary() -> Function:
    """`op_(a)`."""
    f = InPlace("inplace_unary", "ptr %a")
    f.require(f.is_plain("%a"), "unusual")
    recorded = f.ask_recording("%a")
    nothing = f.let(f"ptrtoint ptr {name('none')} to i64")
    record, words = f.find(f.load("%a", TENSOR["spec"], "i64"), nothing)
    f.choose_recorder_of("%a", record, recorded)
    f.write(record, words, f.room(3), ["%a"], ["%a"])
    return f


def inplace_tensors() -> Function:
    """`op_(a, b)`, where `a` is a plain tensor."""
    f = InPlace("inplace_tensors", "ptr %a, ptr %b")
    f.require(f.is_plain("%b"), "unusual")
    storages = [f.load(each, TENSOR["_storage"]) for each in ("%a", "%b")]
    f.require(f.differ(*storages), "unusual")
    recorded = f.ask_recording("%a", "%b")
    record, words = f.find(f.load("%a", TENSOR["spec"], "i64"), f.load("%b", TENSOR["spec"], "i64"))
    f.choose_recorder_of("%a", record, recorded)
    f.write(record, words, f.room(4), ["%a", "%b"], ["%a", "%b"])
    return f


def inplace_number() -> Function:
    """`op_(a, b)`, where `b` is an int or a float."""
    f = InPlace("inplace_number", "ptr %a, ptr %b")
    kind, is_float = f.number_type("%a", "%b")
    recorded = f.ask_recording("%a")
    record, words = f.find(f.load("%a", TENSOR["spec"], "i64"), f.let(f"ptrtoint ptr {kind} to i64"))
    f.choose_recorder_of("%a", record, recorded)
    room = f.room(4)
    f.put_number(room, 3, words, "%b", is_float)
    f.write(record, words, room, ["%a"], ["%a", "%b"])
    return f


# ---- How Python code calls them ------------------------------------------------------------------------------------------


class FromPython(Function):
    """A function that Python calls. `rest` ends it, for calls that the function behind it does not take."""

    def answer(self, called: str, table: str, *operands: str) -> str:
        """Return what `called` returns, unless that is no object: then go on, with the answer."""
        given = ", ".join(each if " " in each else f"ptr {each}" for each in (table, *operands))
        answer = self.let(f"call ptr @{called}({given})")
        n = self.number()
        self.branch(self.let(f"icmp ugt ptr {answer}, {answer_code(UNKNOWN)}"), f"taken{n}", f"rest{n}")
        self.label(f"taken{n}")
        self.ret(answer)
        self.label(f"rest{n}")
        return answer

    def choose(self, two: str, one: str, table: str, a: str, b: str) -> None:
        """Return what `two` answers if both operands are tensors, else what `one` answers; the rest has %answer."""
        self.branch(self.is_plain(b), "two", "one")
        self.label("two")
        self.branch(self.is_plain(a), "both", "rest")
        self.label("both")
        both = self.answer(two, table, a, b)
        self.go("both_rest")
        self.label("both_rest")
        self.go("rest")
        self.label("one")
        single = self.answer(one, table, a, b)
        self.go("one_rest")
        self.label("one_rest")
        self.go("rest")
        self.label("rest")
        self.do(
            f"%answer = phi ptr [{both}, %both_rest], [{single}, %one_rest], [{answer_code(UNUSUAL)}, %two]"
        )

    def unless_unusual(self, answer: str, instruction: str) -> None:
        """Return the result of an instruction if the answer was UNUSUAL."""
        self.branch(self.same(answer, answer_code(UNUSUAL)), "unusual", "usual")
        self.label("unusual")
        self.ret(self.let(instruction))
        self.label("usual")


def answer_code(code: int) -> str:
    return f"inttoptr (i64 {code} to ptr)"


def python_call(operands: int) -> Function:
    """The rest of a call: by the Python function, which then adds the record if the table knew none."""
    names = [f"%x{k}" for k in range(operands)]
    given = ", ".join(f"ptr {each}" for each in names)
    parameters = f"ptr %table, ptr %function, ptr %answer, {given}"
    f = Function(f"python_call{operands}", parameters, "ptr", "internal", "noinline")
    call_in_python(f, "%table", "%answer", "%function", lambda function: f.python(function, *names))
    return f


def call_in_python(f: Function, table: str, answer: str, function: str, call: Callable[[str], str]) -> None:
    """The end of a function: return `call(function)`. If machine code answered UNKNOWN, the table then learns the call."""
    f.require(f.differ(answer, "null"), "failed")
    result = call(function)
    f.require(f.differ(result, "null"), "failed")
    f.branch(f.same(answer, answer_code(UNKNOWN)), "learn", "done")
    f.label("learn")
    learned = call(field(f, table, "learn"))
    f.require(f.differ(learned, "null"), "drop")
    f.decref(learned)
    f.go("done")
    f.label("done")
    f.ret(result)
    f.label("drop")
    f.decref(result)
    f.go("failed")
    f.label("failed")
    f.ret("null")


def _rest(f: FromPython, table: str, function: str, answer: str, *operands: str) -> None:
    given = ", ".join(f"ptr {each}" for each in (table, function, answer, *operands))
    f.ret(f.let(f"call ptr @python_call{len(operands)}({given})"))


def call_unary(called: str, function: str) -> Function:
    """`op(a)` as a builtin, whose self is the `bound` of a Table."""
    f = FromPython(called, "ptr %self, ptr %args, i64 %nargs")
    table, a = table_of_self(f), f.load("%args")
    answer = f.answer(function, table, a)
    _rest(f, table, field(f, table, "python"), answer, a)
    return f


def call_binary(called: str, two: str, one: str) -> Function:
    """`op(a, b)` as a builtin; `two` is the function for two tensors, `one` that for a tensor and a number."""
    f = FromPython(called, "ptr %self, ptr %args, i64 %nargs")
    table, a, b = table_of_self(f), f.load("%args"), f.load("%args", 8)
    f.choose(two, one, table, a, b)
    _rest(f, table, field(f, table, "python"), "%answer", a, b)
    return f


def unary_slot(slot: str) -> Function:
    """A unary operator: the C function in the slot of Tensor."""
    f, table = FromPython(f"slot.{slot}", "ptr %a"), name(f"table.{slot}")
    answer = f.answer("unary", table, "%a")
    f.unless_unusual(answer, f"call ptr {name('python.' + slot)}(ptr %a)")
    _rest(f, table, field(f, table, "python"), answer, "%a")
    return f


def inplace_slot(slot: str) -> Function:
    """An operator that writes into its left operand."""
    f, table = FromPython(f"slot.{slot}", "ptr %a, ptr %b"), name(f"table.{slot}")
    f.choose("inplace_tensors", "inplace_number", table, "%a", "%b")
    f.unless_unusual("%answer", f"call ptr {name('python.' + slot)}(ptr %a, ptr %b)")
    _rest(f, table, field(f, table, "python"), "%answer", "%a", "%b")
    return f


def comparison_slot() -> Function:
    """All comparisons; `%op` is their number, from Py_LT on."""
    f = FromPython("slot.tp_richcompare", "ptr %a, ptr %b, i32 %op")
    position = f.let("zext i32 %op to i64")
    place = f.let(f"getelementptr ptr, ptr {name('comparisons')}, i64 {position}")
    table = f.load(place)
    f.choose("tensors", "number_right", table, "%a", "%b")
    f.unless_unusual("%answer", f"call ptr {name('python.tp_richcompare')}(ptr %a, ptr %b, i32 %op)")
    _rest(f, table, field(f, table, "python"), "%answer", "%a", "%b")
    return f


def binary_slot(slot: str) -> Function:
    """A binary operator: the C function in the slot of Tensor, and of those subclasses that use Tensor's operators.

    CPython's own function in such slots cannot take the rest, because it only calls methods of classes that have it in their
    slot. So the rest is what that function does: `a.__op__(b)` if the class of `a` has this slot, else `b.__rop__(a)`.
    """
    f, table = FromPython(f"slot.{slot}", "ptr %a, ptr %b"), name(f"table.{slot}")
    f.branch(f.is_plain("%a"), "left", "right")
    f.label("left")
    f.choose("tensors", "number_right", table, "%a", "%b")
    _rest(f, table, field(f, table, "python"), "%answer", "%a", "%b")
    f.label("right")
    answer = f.answer("number_left", table, "%a", "%b")
    f.branch(f.same(answer, answer_code(UNKNOWN)), "unknown", "other")
    f.label("unknown")
    result = f.python(field(f, table, "reflected"), "%b", "%a")
    f.require(f.differ(result, "null"), "failed")
    learned = f.python(field(f, table, "learn"), "%a", "%b")
    f.require(f.differ(learned, "null"), "drop")
    f.decref(learned)
    f.ret(result)
    f.label("drop")
    f.decref(result)
    f.ret("null")
    f.label("other")
    f.require(f.differ(answer, "null"), "failed")
    _rest_of_operator(f, slot, table, answer)
    f.label("failed")
    f.ret("null")
    return f


def _rest_of_operator(f: FromPython, slot: str, table: str, answer: str) -> None:
    """`a.__op__(b)` if the class of `a` has this slot, else `b.__rop__(a)`."""
    methods = f.load(f.type_of("%a"), NUMBER_METHODS)
    f.require(f.differ(methods, "null"), "foreign")
    f.require(f.same(f.load(methods, 8 * NUMBER_SLOTS.index(slot)), f'@"slot.{slot}"'), "foreign")
    _rest(f, table, field(f, table, "python"), answer, "%a", "%b")
    f.label("foreign")
    _rest(f, table, field(f, table, "reflected"), answer, "%b", "%a")


def power_slot() -> Function:
    """`a ** b`, where some numbers have an op of their own: `powers` is their count, then each with the address of its table."""
    slot = "nb_power"
    f, table = FromPython(f"slot.{slot}", "ptr %a, ptr %b, ptr %modulus"), name(f"table.{slot}")
    f.require(f.same("%modulus", name("none")), "ternary")
    f.branch(f.is_plain("%a"), "left", "other")
    f.label("left")
    f.branch(f.is_plain("%b"), "both", "number")
    f.label("both")
    both = f.answer("tensors", table, "%a", "%b")
    _rest(f, table, field(f, table, "python"), both, "%a", "%b")
    f.label("number")
    kind = f.type_of("%b")
    f.branch(f.same(kind, name("float")), "float", "perhaps_int")
    f.label("perhaps_int")
    f.branch(f.same(kind, name("int")), "int", "other")
    f.label("int")
    overflow = f.room(1)
    rounded = f.let(f"sitofp i64 {f.call('PyLong_AsLongLongAndOverflow', '%b', overflow)} to double")
    f.branch(f.same(f.load(overflow, 0, "i32"), "0", "i32"), "whole", "other")
    f.label("whole")
    f.go("search")
    f.label("float")
    value = f.call("PyFloat_AsDouble", "%b")
    f.go("search")
    f.label("search")
    f.do(f"%exponent = phi double [{value}, %float], [{rounded}, %whole]")
    end = f.let(f"mul i64 {f.load(name('powers'), 0, 'i64')}, 16")
    f.go("each")
    f.label("each")
    f.do("%k = phi i64 [0, %search], [%next, %differs]")
    place = f.place(name("powers"), "%k")
    equal = f.let(f"fcmp oeq double {f.load(place, 8, 'double')}, %exponent")
    f.branch(equal, "simple", "differs")
    f.label("differs")
    f.do("%next = add i64 %k, 16")
    f.branch(f.let(f"icmp slt i64 %next, {end}"), "each", "other")
    f.label("simple")
    own = f.load(place, 16)
    answer = f.answer("unary", own, "%a")
    _rest(f, own, field(f, own, "python"), answer, "%a", "%b")
    f.label("other")
    _rest_of_operator(f, slot, table, answer_code(UNUSUAL))
    f.label("ternary")
    f.ret(f.let(f"call ptr {name('python.' + slot)}(ptr %a, ptr %b, ptr %modulus)"))
    return f


# The operators of these slots in Python: the method, and the reflected one.
BINARY_SLOTS = {
    "nb_add": ("__add__", "__radd__"),
    "nb_subtract": ("__sub__", "__rsub__"),
    "nb_multiply": ("__mul__", "__rmul__"),
    "nb_true_divide": ("__truediv__", "__rtruediv__"),
    "nb_and": ("__and__", "__rand__"),
    "nb_or": ("__or__", "__ror__"),
    "nb_xor": ("__xor__", "__rxor__"),
}
UNARY_SLOTS = {"nb_negative": "__neg__", "nb_absolute": "__abs__"}
INPLACE_SLOTS = {
    "nb_inplace_add": "__iadd__",
    "nb_inplace_subtract": "__isub__",
    "nb_inplace_multiply": "__imul__",
    "nb_inplace_true_divide": "__itruediv__",
    "nb_inplace_and": "__iand__",
    "nb_inplace_or": "__ior__",
    "nb_inplace_xor": "__ixor__",
}
COMPARISONS = (
    "__lt__",
    "__le__",
    "__eq__",
    "__ne__",
    "__gt__",
    "__ge__",
)  # in the order of their numbers in C
POWER = ("__pow__", "__rpow__")
SLOTS = (*BINARY_SLOTS, *UNARY_SLOTS, *INPLACE_SLOTS, "nb_power", "tp_richcompare")
BUILTINS = ("call_unary", "call_binary", "call_inplace_unary", "call_inplace_binary")


def functions() -> list[Function | str]:
    """All functions of this file, in an order that does not matter."""
    return [
        *loops(),
        *(run(operands) for operands in range(2, STRIDES + 1)),
        address_of(),
        new_tensor(),
        unary(),
        tensors(),
        with_number("number_right", "%a", "%b"),
        with_number("number_left", "%b", "%a"),
        inplace_unary(),
        inplace_tensors(),
        inplace_number(),
        *(python_call(operands) for operands in (1, 2)),
        call_unary("call_unary", "unary"),
        call_binary("call_binary", "tensors", "number_right"),
        call_unary("call_inplace_unary", "inplace_unary"),
        call_binary("call_inplace_binary", "inplace_tensors", "inplace_number"),
        *map(unary_slot, UNARY_SLOTS),
        *map(binary_slot, BINARY_SLOTS),
        *map(inplace_slot, INPLACE_SLOTS),
        comparison_slot(),
        power_slot(),
    ]
