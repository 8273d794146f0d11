"""The methods `run`, `inplace` and `into` of elementwise ops in machine code, for up to MOST operands, tensors and numbers.

Public functions that check or choose something first call these methods: `where`, `clamp`, `gelu`, sums with `alpha`. One table
serves all ops, because the op is the first key of each record.
"""

from __future__ import annotations

from collections.abc import Callable

from ..engine.call_tables import STRIDES, field, lookup_words, mix, table_of_self, word
from ..engine.objects import TENSOR, TUPLE_ITEMS, Function, name
from .map_calls import INTEGER, UNKNOWN, FromPython, InPlace, answer_code, call_in_python

MOST = STRIDES - 1  # operands, without the result
METHODS = ("run", "inplace", "into")

# Numbers of at most this size fit all dtypes of floats, so they need no check against the limits of a plan.
_SAFE = "1.000000e+02"


class _Method(InPlace):
    """A method of `%op` with the operands `%args`, of which there are `%count`.

    While it runs, `keys` holds the op and the spec or type of each operand, `places` what the kernel gets, and `numbers` the
    operands that are numbers.
    """

    def __init__(self, called: str):
        super().__init__(called, "ptr %op, ptr %args, i64 %count")
        self.keys, self.places, self.numbers = self.room(MOST + 1), self.room(MOST + 3), self.room(MOST)

    def element(self, array: str, position: str) -> str:
        return self.let(f"getelementptr i64, ptr {array}, i64 {position}")

    def read(self, writes: bool) -> None:
        """Read the operands. %tensors is how many of them are tensors.

        If the method writes, all tensors but the first must have another storage or be the same object.
        """
        self.require(self.let("icmp sge i64 %count, 1"), "unusual")
        self.require(self.let(f"icmp sle i64 %count, {MOST}"), "unusual")
        self.do(f"store ptr %op, ptr {self.keys}")
        start = mix(self, "0", self.let("ptrtoint ptr %op to i64"))
        target = self.load("%args")
        self.go("before")
        self.label("before")
        self.go("operand")
        self.label("operand")
        self.do("%k = phi i64 [0, %before], [%next_k, %operand_done]")
        self.do("%found = phi i64 [0, %before], [%tensors, %operand_done]")
        self.do("%edges_before = phi i1 [false, %before], [%followed, %operand_done]")
        self.do(f"%mixed_before = phi i64 [{start}, %before], [%mixed, %operand_done]")
        value = self.load(self.element("%args", "%k"))
        self.branch(self.is_plain(value), "tensor", "number")
        self.label("tensor")
        if writes:
            self.branch(self.same(value, target), "apart", "another")
            self.label("another")
            self.require(self.is_plain(target), "unusual")
            storages = [self.load(each, TENSOR["_storage"]) for each in (value, target)]
            self.branch(self.differ(*storages), "apart", "unusual")
            self.label("apart")
        spec = self.load(value, TENSOR["spec"], "i64")
        edge = self.differ(self.load(value, TENSOR["_autograd"]), name("none"))
        self.check_storage(value)
        one_more = self.let("add i64 %found, 1")
        self.go("tensor_read")
        self.label("tensor_read")
        self.go("operand_done")
        self.label("number")
        kind = self.type_of(value)
        known = self.let(f"or i1 {self.same(kind, name('float'))}, {self.same(kind, name('int'))}")
        self.require(known, "unusual")
        position = self.let("sub i64 %k, %found")
        self.do(f"store ptr {value}, ptr {self.element(self.numbers, position)}")
        type_key = self.let(f"ptrtoint ptr {kind} to i64")
        self.go("number_read")
        self.label("number_read")
        self.go("operand_done")
        self.label("operand_done")
        self.do(f"%key = phi i64 [{spec}, %tensor_read], [{type_key}, %number_read]")
        self.do(f"%tensors = phi i64 [{one_more}, %tensor_read], [%found, %number_read]")
        self.do(f"%edge = phi i1 [{edge}, %tensor_read], [false, %number_read]")
        self.do("%followed = or i1 %edges_before, %edge")
        self.do(f"%mixed = add i64 {mix(self, '%mixed_before', '%key')}, 0")
        self.do("%next_k = add i64 %k, 1")
        self.do(f"store i64 %key, ptr {self.element(self.keys, '%next_k')}")
        self.branch(self.let("icmp slt i64 %next_k, %count"), "operand", "read")
        self.label("read")

    def put_all_addresses(self, first: int, otherwise: str) -> None:
        """As `put_addresses`, for all operands that are tensors: from word `first` of `places` on."""
        self.go("before_addresses")
        self.label("before_addresses")
        self.go("each_address")
        self.label("each_address")
        self.do("%m = phi i64 [0, %before_addresses], [%next_m, %address_done]")
        self.do(f"%at = phi i64 [{first}, %before_addresses], [%next_at, %address_done]")
        value = self.load(self.element("%args", "%m"))
        self.branch(self.is_plain(value), "has_address", "no_address")
        self.label("has_address")
        # A finalizer may have changed the tensor since its spec was read.
        key = self.load(self.element(self.keys, self.let("add i64 %m, 1")))
        self.require(self.same(self.load(value, TENSOR["spec"]), key), otherwise)
        address = self.let(f"call ptr @address_of(ptr {value})")
        self.require(self.differ(address, "null"), otherwise)
        self.do(f"store ptr {address}, ptr {self.element(self.places, '%at')}")
        after = self.let("add i64 %at, 1")
        self.go("stored_address")
        self.label("stored_address")
        self.go("address_done")
        self.label("no_address")
        self.go("address_done")
        self.label("address_done")
        self.do(f"%next_at = phi i64 [{after}, %stored_address], [%at, %no_address]")
        self.do("%next_m = add i64 %m, 1")
        self.branch(self.let("icmp slt i64 %next_m, %count"), "each_address", "addresses_done")
        self.label("addresses_done")

    def for_each_count(self, called: str, call: Callable[[list[str]], None]) -> None:
        """`call(operands)`, for as many operands as there are."""
        cases = " ".join(f"i64 {k}, label %{called}{k}" for k in range(1, MOST + 1))
        self.do(f"switch i64 %count, label %{called}_done [{cases}]")
        for k in range(1, MOST + 1):
            self.label(f"{called}{k}")
            call([self.load("%args", 8 * j) for j in range(k)])
            self.go(f"{called}_done")
        self.label(f"{called}_done")

    def find_all(self) -> tuple[str, str]:
        """The record for the op and its operands, and its words."""
        words = self.let("add i64 %count, 1")
        record = lookup_words(self, "%table", "%mixed", self.keys, words)
        return record, self.kernel_of(record)

    def put_numbers(self, words: str, first: int) -> None:
        """Put the numbers behind the addresses, as the kernel reads them."""
        limited = self.differ(word(self, words, "limited"), "0", "i64")
        count = self.let("sub i64 %count, %tensors")
        start = self.let(f"add i64 %tensors, {first}")
        self.go("before_numbers")
        self.label("before_numbers")
        self.branch(self.same(count, "0", "i64"), "numbers_done", "each_number")
        self.label("each_number")
        self.do("%i = phi i64 [0, %before_numbers], [%next_i, %number_done]")
        value = self.load(self.element(self.numbers, "%i"))
        place = self.element(self.places, self.let(f"add i64 {start}, %i"))
        is_float = self.same(self.type_of(value), name("float"))
        self.convert(place, word(self, words, "number"), value, is_float)
        self.branch(limited, "limit", "number_done")
        self.label("limit")
        # Integers that must fit a narrow dtype are left to Python.
        self.require(self.differ(word(self, words, "number"), str(INTEGER), "i64"), "unusual")
        self.require(self.let(f"fcmp olt double %real_number, {_SAFE}"), "unusual")
        self.require(self.let(f"fcmp ogt double %real_number, -{_SAFE}"), "unusual")
        self.go("number_done")
        self.label("number_done")
        self.do("%next_i = add i64 %i, 1")
        self.branch(self.let(f"icmp slt i64 %next_i, {count}"), "each_number", "numbers_done")
        self.label("numbers_done")

    def launch(self, words: str) -> None:
        """Run the kernel with the operands in `places`."""
        cases = " ".join(f"i64 {k}, label %with{k}" for k in range(2, STRIDES + 1))
        self.do(f"switch i64 {word(self, words, 'operands')}, label %launched [{cases}]")
        for k in range(2, STRIDES + 1):
            self.label(f"with{k}")
            self.do(f"call void @run{k}(ptr {words}, ptr {self.places})")
            self.go("launched")
        self.label("launched")


def _run() -> Function:
    f = _Method("run")
    f.read(writes=False)
    recorded = f.ask_if("%followed")
    record, words = f.find_all()
    f.choose_recorder(record, recorded)
    f.put_numbers(words, 2)
    result = f.new_result(record, f.places)
    f.put_all_addresses(2, "without_memory")
    f.launch(words)
    f.branch(f.differ("%recorder", "null"), "record", "done")
    f.label("record")

    def record_result(operands: list[str]) -> None:
        given = ", ".join(f"ptr {each}" for each in ("%recorder", result, *operands))
        failure = f.let(f"call i32 @record{len(operands)}({given})")
        f.require(f.same(failure, "0", "i32"), "drop_result")

    f.for_each_count("recorded", record_result)
    f.go("done")
    f.finish_record(record, result)
    return f


def _write(called: str) -> Function:
    """`inplace(target, *others)` or `into(out, *operands)`: the first operand is written to."""
    first = 1 if called == "into" else 2  # the target of `inplace` is the kernel's first input as well
    f = _Method(called)
    f.require(f.same(f.list_size(name("watchers")), "0", "i64"), "unusual")
    f.read(writes=True)
    recorded = f.ask_if("%followed")
    target = f.load("%args")
    if called == "into":
        f.branch(recorded, "unusual", "unrecorded")
        f.label("unrecorded")
    record, words = f.find_all()
    f.require_alone(words)
    if called == "inplace":
        f.choose_recorder_of(target, record, recorded)
        f.check_recorder("%args", "%count")
    f.put_numbers(words, first)
    f.put_all_addresses(first, "unusual")
    if called == "inplace":
        f.store(f.places, 8, f.load(f.places, 16))
    f.count_write(target)
    f.launch(words)
    if called == "inplace":
        f.branch(f.differ("%recorder", "null"), "record", "written")
        f.label("record")
        f.for_each_count("recorded", lambda operands: f.record_write(record, operands))
        f.go("written")
        f.label("written")
    f.incref(target)
    f.ret(target)
    f.end()
    return f


def _method(called: str) -> Function:
    """The method as Python calls it."""
    f = FromPython(f"op.{called}", "ptr %self, ptr %args, i64 %nargs")
    table = name(f"table.{called}")
    answer = f.answer(called, table, "%self", "%args", "i64 %nargs")
    f.require(f.differ(answer, "null"), "failed")
    given = f.call("PyTuple_New", f.let("add i64 %nargs, 1"))
    f.require(f.differ(given, "null"), "failed")
    f.incref("%self")
    f.store(given, TUPLE_ITEMS, "%self")
    f.go("before")
    f.label("before")
    f.branch(f.same("%nargs", "0", "i64"), "packed", "each")
    f.label("each")
    f.do("%k = phi i64 [0, %before], [%next, %each]")
    value = f.load(f.let("getelementptr ptr, ptr %args, i64 %k"))
    f.incref(value)
    f.do("%next = add i64 %k, 1")
    f.do(
        f"store ptr {value}, ptr {f.let(f'getelementptr ptr, ptr {f.place(given, TUPLE_ITEMS)}, i64 %next')}"
    )
    f.branch(f.let("icmp slt i64 %next, %nargs"), "each", "packed")
    f.label("packed")
    result = f.call("PyObject_Call", field(f, table, "python"), given, "null")
    f.require(f.differ(result, "null"), "drop_given")
    f.branch(f.same(answer, answer_code(UNKNOWN)), "learn", "done")
    f.label("learn")
    learned = f.call("PyObject_Call", field(f, table, "learn"), given, "null")
    f.require(f.differ(learned, "null"), "drop_result")
    f.decref(learned)
    f.go("done")
    f.label("done")
    f.decref(given)
    f.ret(result)
    f.label("drop_result")
    f.decref(result)
    f.go("drop_given")
    f.label("drop_given")
    f.decref(given)
    f.go("failed")
    f.label("failed")
    f.ret("null")
    return f


def _shortcut(called: str) -> Function:
    """A builtin that is a method of one op; its self is the `bound` of a Table, which holds the key of its records."""
    f = FromPython(f"shortcut.{called}", "ptr %self, ptr %args, i64 %nargs")
    table = table_of_self(f)
    answer = f.answer(
        called, name(f"table.shortcut.{called}"), field(f, table, "owner"), "%args", "i64 %nargs"
    )

    def call(function: str) -> str:
        return f.call("PyObject_Vectorcall", function, "%args", "%nargs", "null")

    call_in_python(f, table, answer, field(f, table, "python"), call)
    return f


def functions() -> list[Function]:
    return [
        _run(),
        _write("inplace"),
        _write("into"),
        *map(_method, METHODS),
        *map(_shortcut, METHODS),
    ]
