"""The instructions of CPython 3.11: one function for each, which the interpreter calls (`_interpreter.py`).

`_instructions_3_12.py` and `_instructions_3_13.py` have the instructions that these versions added or changed.
"""

from __future__ import annotations

import builtins
import dis
import operator
import sys
import types
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from ..core.grad_mode import _Switch
from ..core.tensor import Tensor
from ._interpreter import _NULL, _PURE, _SWITCHES, HANDLERS, MISSING, Frame, Interpreter
from ._tape import GraphBreak, Unsupported

_UNARY: dict[str, Callable] = {
    "UNARY_POSITIVE": operator.pos,
    "UNARY_NEGATIVE": operator.neg,
    "UNARY_INVERT": operator.invert,
}


def handles(*names: str, since: tuple[int, int] = (3, 11)) -> Callable[[Callable], Callable]:
    """A decorator: the function runs the instructions of these names from a version of CPython on."""

    def note(function: Callable) -> Callable:
        if sys.version_info >= since:
            HANDLERS.update(dict.fromkeys(names, function))
        return function

    return note


def number(it: dis.Instruction) -> int:
    """The number that is encoded with an instruction."""
    return it.arg or 0


@handles("NOP", "RESUME", "PRECALL", "CACHE", "COPY_FREE_VARS", "EXTENDED_ARG")
def _nothing(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    pass


@handles("POP_TOP")
def _pop(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    frame.stack.pop()


@handles("PUSH_NULL")
def _push_null(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    frame.stack.append(_NULL)


@handles("COPY")
def _copy(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    frame.stack.append(frame.stack[-number(it)])


@handles("SWAP")
def _swap(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    stack, place = frame.stack, -number(it)
    stack[-1], stack[place] = stack[place], stack[-1]


@handles("LOAD_CONST")
def _load_const(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    frame.stack.append(it.argval)


@handles("LOAD_FAST", "LOAD_CLOSURE")
def _load_fast(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    found = frame.variables[number(it)]
    if found is _NULL:
        raise Unsupported(f"the local variable {it.argval} has no value")
    frame.stack.append(found)


@handles("STORE_FAST")
def _store_fast(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    frame.variables[number(it)] = frame.stack.pop()


@handles("DELETE_FAST")
def _delete_fast(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    frame.variables[number(it)] = _NULL


@handles("MAKE_CELL")
def _make_cell(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    value = frame.variables[number(it)]
    cell = types.CellType() if value is _NULL else types.CellType(value)
    frame.variables[number(it)] = run.keep(cell)


@handles("LOAD_DEREF")
def _load_deref(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    cell = frame.variables[number(it)]
    try:
        found = cell.cell_contents
    except ValueError:
        raise Unsupported(f"the variable {it.argval} has no value") from None
    frame.stack.append(found if id(cell) in run.own else run.read("cell", cell, it.argval, found))


@handles("STORE_DEREF")
def _store_deref(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    cell = frame.variables[number(it)]
    if id(cell) not in run.own:
        raise Unsupported(f"the variable {it.argval} of an enclosing function is set")
    cell.cell_contents = frame.stack.pop()


@handles("LOAD_GLOBAL")
def _load_global(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    if number(it) & 1:
        frame.stack.append(_NULL)
    name = it.argval
    if name in frame.globals:
        frame.stack.append(run.variable(frame.globals, name, frame.globals[name]))
    elif hasattr(builtins, name):
        found = getattr(builtins, name)
        run.guard("item", frame.globals, name, MISSING)
        is_pythons = isinstance(found, (type, types.BuiltinFunctionType))
        frame.stack.append(found if is_pythons else run.read("item", vars(builtins), name, found))
    else:
        raise Unsupported(f"the name {name} is not defined")


@handles("LOAD_ATTR")
def _load_attr(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    frame.stack.append(run.attribute(frame.stack.pop(), it.argval))


@handles("LOAD_METHOD")
def _load_method(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    found = run.attribute(frame.stack.pop(), it.argval)
    frame.stack += [_NULL, found]


@handles("STORE_ATTR")
def _store_attr(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    owner = frame.stack.pop()
    run.set_attribute(owner, it.argval, frame.stack.pop())


@handles("BINARY_SUBSCR")
def _binary_subscr(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    index = frame.stack.pop()
    frame.stack.append(run.subscript(frame.stack.pop(), index))


@handles("STORE_SUBSCR")
def _store_subscr(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    index, owner, value = frame.stack.pop(), frame.stack.pop(), frame.stack.pop()
    run.set_item(owner, index, value)


@handles("BINARY_OP")
def _binary_op(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    b = frame.stack.pop()
    a = frame.stack.pop()
    frame.stack.append(run.binary(it.argrepr, a, b))


@handles(*_UNARY)
def _unary(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    apply(run, frame, _UNARY[it.opname])


def apply(run: Interpreter, frame: Frame, function: Callable) -> None:
    """Replace the value on the stack by the result of an operator."""
    operand = frame.stack.pop()
    if not isinstance(operand, Tensor) and type(operand) not in _PURE:
        raise Unsupported(f"an operator is applied to an object of class {type(operand).__name__}")
    frame.stack.append(run.operate(function, operand))


@handles("UNARY_NOT")
def _unary_not(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    frame.stack.append(not run.truth(frame.stack.pop()))


@handles("COMPARE_OP")
def _compare_op(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    b = frame.stack.pop()
    a = frame.stack.pop()
    frame.stack.append(run.compare(it.argval, a, b))


@handles("IS_OP")
def _is_op(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    b = frame.stack.pop()
    a = frame.stack.pop()
    if a is not b and type(a) is type(b) and (id(a) in run.read_only or id(b) in run.read_only):
        raise Unsupported("`is` compares a list or a dictionary that is an argument")
    run.compares_tensors |= isinstance(a, Tensor) and isinstance(b, Tensor) and a is not b
    frame.stack.append((a is b) != bool(number(it)))


@handles("CONTAINS_OP")
def _contains_op(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    container = frame.stack.pop()
    frame.stack.append(run.contains(frame.stack.pop(), container) != bool(number(it)))


@handles("JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT")
def _jump(run: Interpreter, frame: Frame, it: dis.Instruction) -> int:
    return it.argval


@handles("POP_JUMP_FORWARD_IF_FALSE", "POP_JUMP_BACKWARD_IF_FALSE")
def _jump_if_false(run: Interpreter, frame: Frame, it: dis.Instruction) -> int | None:
    return None if run.truth(frame.stack.pop()) else it.argval


@handles("POP_JUMP_FORWARD_IF_TRUE", "POP_JUMP_BACKWARD_IF_TRUE")
def _jump_if_true(run: Interpreter, frame: Frame, it: dis.Instruction) -> int | None:
    return it.argval if run.truth(frame.stack.pop()) else None


@handles("POP_JUMP_FORWARD_IF_NONE", "POP_JUMP_BACKWARD_IF_NONE")
def _jump_if_none(run: Interpreter, frame: Frame, it: dis.Instruction) -> int | None:
    return it.argval if frame.stack.pop() is None else None


@handles("POP_JUMP_FORWARD_IF_NOT_NONE", "POP_JUMP_BACKWARD_IF_NOT_NONE")
def _jump_if_not_none(run: Interpreter, frame: Frame, it: dis.Instruction) -> int | None:
    return it.argval if frame.stack.pop() is not None else None


@handles("JUMP_IF_FALSE_OR_POP", "JUMP_IF_TRUE_OR_POP")
def _jump_or_pop(run: Interpreter, frame: Frame, it: dis.Instruction) -> int | None:
    if run.truth(frame.stack[-1]) == (it.opname == "JUMP_IF_TRUE_OR_POP"):
        return it.argval
    frame.stack.pop()
    return None


@handles("GET_ITER")
def _get_iter(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    frame.stack.append(run.keep(run.iterate(frame.stack.pop())))


@handles("FOR_ITER")
def _for_iter(run: Interpreter, frame: Frame, it: dis.Instruction) -> int | None:
    for value in frame.stack[-1]:
        frame.stack.append(run.keep(value) if type(value) is tuple else value)
        return None
    frame.stack.pop()
    return it.argval


@handles("UNPACK_SEQUENCE")
def _unpack_sequence(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    values = list(run.iterate(frame.stack.pop()))
    if len(values) != number(it):
        raise Unsupported("a sequence of another length is unpacked")
    frame.stack += reversed(values)


@handles("UNPACK_EX")
def _unpack_ex(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    before, after = number(it) & 0xFF, number(it) >> 8
    values = list(run.iterate(frame.stack.pop()))
    if len(values) < before + after:
        raise Unsupported("a sequence of another length is unpacked")
    end = len(values) - after
    rest = run.keep(values[before:end])
    frame.stack += reversed([*values[:before], rest, *values[end:]])


def popped(frame: Frame, count: int) -> list[Any]:
    """The values on top of the stack, which are taken off, the uppermost last."""
    if not count:
        return []
    values = frame.stack[-count:]
    del frame.stack[-count:]
    return values


def slice_of(parts: list[Any]) -> slice:
    """The slice from start, stop, and maybe step."""
    if any(isinstance(each, Tensor) for each in parts):
        raise GraphBreak("an index depends on the value of a tensor")
    return slice(*parts)


@handles("BUILD_TUPLE", "BUILD_LIST", "BUILD_SET", "BUILD_STRING", "BUILD_SLICE")
def _build(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    values = popped(frame, number(it))
    if it.opname == "BUILD_SET" and not all(map(run.is_plain, values)):
        raise Unsupported("a set of unusual objects is made")
    make: dict[str, Callable] = {"BUILD_TUPLE": tuple, "BUILD_LIST": list, "BUILD_SET": set, "BUILD_STRING": "".join,
                                 "BUILD_SLICE": slice_of}  # fmt: skip
    frame.stack.append(run.keep(make[it.opname](values)))


@handles("BUILD_MAP")
def _build_map(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    values = popped(frame, 2 * number(it))
    if not all(map(run.is_plain, values[::2])):
        raise Unsupported("a dictionary with unusual keys is made")
    frame.stack.append(run.keep(dict(zip(values[::2], values[1::2], strict=True))))


@handles("BUILD_CONST_KEY_MAP")
def _build_const_key_map(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    keys = frame.stack.pop()
    frame.stack.append(run.keep(dict(zip(keys, popped(frame, number(it)), strict=True))))


@handles("LIST_TO_TUPLE")
def list_to_tuple(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    frame.stack.append(run.keep(tuple(frame.stack.pop())))


@handles("LIST_APPEND", "SET_ADD")
def _append(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    value = frame.stack.pop()
    target = frame.stack[-number(it)]
    if it.opname == "SET_ADD" and not run.is_plain(value):
        raise Unsupported("a set of unusual objects is made")
    (target.append if it.opname == "LIST_APPEND" else target.add)(value)


@handles("MAP_ADD")
def _map_add(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    value = frame.stack.pop()
    key = frame.stack.pop()
    if not run.is_plain(key):
        raise Unsupported("a dictionary with unusual keys is made")
    frame.stack[-number(it)][key] = value


@handles("LIST_EXTEND", "SET_UPDATE")
def _extend(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    values = list(run.iterate(frame.stack.pop()))
    target = frame.stack[-number(it)]
    if it.opname == "SET_UPDATE" and not run.is_plain(values):
        raise Unsupported("a set of unusual objects is made")
    (target.extend if it.opname == "LIST_EXTEND" else target.update)(values)


@handles("DICT_MERGE", "DICT_UPDATE")
def _merge(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    values = run.items(frame.stack.pop())
    target = frame.stack[-number(it)]
    if (
        type(values) not in (dict, OrderedDict)
        or it.opname == "DICT_MERGE"
        and not target.keys().isdisjoint(values)
    ):
        raise Unsupported("arguments by name come from an unusual object")
    target.update(values)


@handles("KW_NAMES")
def _kw_names(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    frame.names = frame.code.co_consts[number(it)]


@handles("CALL")
def _call(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    names, frame.names = frame.names, ()
    call(run, frame, number(it), names)


def call(run: Interpreter, frame: Frame, count: int, names: tuple[str, ...]) -> None:
    """Call the function on the stack with the arguments above it, of which the last ones have names."""
    values = popped(frame, count)
    function, *first = _callee(frame)
    values = [*first, *values]
    count = len(values) - len(names)
    kwargs = dict(zip(names, values[count:], strict=True))
    if isinstance(getattr(function, "__self__", None), _Switch) and function.__name__ == "__exit__":
        frame.stack.append(function(*values))
    else:
        frame.stack.append(run.call(function, tuple(values[:count]), kwargs))


def _callee(frame: Frame) -> list[Any]:
    """The function to call, and its first argument if that lies right above it (at the end of a `with`).

    Without such an argument NULL lies next to the function: below it up to CPython 3.12, above it later.
    """
    return [each for each in popped(frame, 2) if each is not _NULL]


@handles("CALL_FUNCTION_EX")
def _call_function_ex(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    kwargs = run.items(frame.stack.pop()) if number(it) & 1 else {}
    args = tuple(run.iterate(frame.stack.pop()))
    function, *first = _callee(frame)
    frame.stack.append(run.call(function, (*first, *args), dict(kwargs)))


@handles("MAKE_FUNCTION")
def _make_function(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    code = frame.stack.pop()
    flags = number(it)
    closure = frame.stack.pop() if flags & 8 else None
    if flags & 4:
        frame.stack.pop()  # annotations
    named = frame.stack.pop() if flags & 2 else None
    defaults = frame.stack.pop() if flags & 1 else None
    function = types.FunctionType(code, frame.globals, code.co_name, defaults, closure)
    function.__kwdefaults__ = named
    frame.stack.append(run.keep(function))


CONVERSIONS: dict[int, Callable] = {
    1: str,
    2: repr,
    3: ascii,
}  # of values in f-strings: {value!s}, {value!r}, {value!a}


def text(run: Interpreter, make: Callable, value: Any, *form: str) -> str:
    """The text of a value in an f-string."""
    if not run.is_plain(value):
        raise Unsupported("the text of an unusual object is made")
    return run.attempt(make, (value, *form), {})


@handles("FORMAT_VALUE")
def _format_value(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    form = frame.stack.pop() if number(it) & 4 else ""
    value = frame.stack.pop()
    conversion = number(it) & 3
    if conversion:
        value = text(run, CONVERSIONS[conversion], value)
    frame.stack.append(text(run, format, value, form))


@handles("GET_LEN")
def _get_len(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    frame.stack.append(run.pure(len, (frame.stack[-1],), {}))


@handles("LOAD_ASSERTION_ERROR")
def _load_assertion_error(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    frame.stack.append(AssertionError)


@handles("RAISE_VARARGS", "RERAISE")
def _raise(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    raise Unsupported("an exception is raised")


@handles("BEFORE_WITH")
def _before_with(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    context = frame.stack.pop()
    if not (type(context) in _SWITCHES and id(context) in run.own):
        raise Unsupported(f"a context of class {type(context).__name__} is entered")
    frame.stack += [context.__exit__, context.__enter__()]
