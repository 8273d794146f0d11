"""The instructions of CPython 3.11: one function for each, which the interpreter calls (`_interpreter.py`)."""

from __future__ import annotations

import builtins
import dis
import operator
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


def _handles(*names: str) -> Callable[[Callable], Callable]:
    def note(function: Callable) -> Callable:
        for name in names:
            HANDLERS[name] = function
        return function

    return note


@_handles("NOP", "RESUME", "PRECALL", "CACHE", "COPY_FREE_VARS", "EXTENDED_ARG")
def _nothing(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    pass


@_handles("POP_TOP")
def _pop(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    frame.stack.pop()


@_handles("PUSH_NULL")
def _push_null(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    frame.stack.append(_NULL)


@_handles("COPY")
def _copy(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    frame.stack.append(frame.stack[-it.arg])  # type: ignore[operator]


@_handles("SWAP")
def _swap(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    stack, place = frame.stack, -(it.arg or 0)
    stack[-1], stack[place] = stack[place], stack[-1]


@_handles("LOAD_CONST")
def _load_const(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    frame.stack.append(it.argval)


@_handles("LOAD_FAST")
def _load_fast(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    if it.argval not in frame.locals:
        raise Unsupported(f"the local variable {it.argval} has no value")
    frame.stack.append(frame.locals[it.argval])


@_handles("STORE_FAST")
def _store_fast(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    frame.locals[it.argval] = frame.stack.pop()


@_handles("DELETE_FAST")
def _delete_fast(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    frame.locals.pop(it.argval, None)


@_handles("MAKE_CELL")
def _make_cell(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    name = it.argval
    cell = types.CellType(frame.locals[name]) if name in frame.locals else types.CellType()
    frame.cells[name] = run.keep(cell)


@_handles("LOAD_CLOSURE")
def _load_closure(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    frame.stack.append(frame.cells[it.argval])


@_handles("LOAD_DEREF")
def _load_deref(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    cell = frame.cells[it.argval]
    try:
        found = cell.cell_contents
    except ValueError:
        raise Unsupported(f"the variable {it.argval} has no value") from None
    frame.stack.append(found if id(cell) in run.own else run.read("cell", cell, it.argval, found))


@_handles("STORE_DEREF")
def _store_deref(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    cell = frame.cells[it.argval]
    if id(cell) not in run.own:
        raise Unsupported(f"the variable {it.argval} of an enclosing function is set")
    cell.cell_contents = frame.stack.pop()


@_handles("LOAD_GLOBAL")
def _load_global(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    if (it.arg or 0) & 1:
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


@_handles("LOAD_ATTR")
def _load_attr(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    frame.stack.append(run.attribute(frame.stack.pop(), it.argval))


@_handles("LOAD_METHOD")
def _load_method(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    found = run.attribute(frame.stack.pop(), it.argval)
    frame.stack += [_NULL, found]


@_handles("STORE_ATTR")
def _store_attr(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    owner = frame.stack.pop()
    run.set_attribute(owner, it.argval, frame.stack.pop())


@_handles("BINARY_SUBSCR")
def _binary_subscr(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    index = frame.stack.pop()
    frame.stack.append(run.subscript(frame.stack.pop(), index))


@_handles("STORE_SUBSCR")
def _store_subscr(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    index, owner, value = frame.stack.pop(), frame.stack.pop(), frame.stack.pop()
    run.set_item(owner, index, value)


@_handles("BINARY_OP")
def _binary_op(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    b = frame.stack.pop()
    a = frame.stack.pop()
    frame.stack.append(run.binary(it.argrepr, a, b))


@_handles(*_UNARY)
def _unary(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    operand = frame.stack.pop()
    if not isinstance(operand, Tensor) and type(operand) not in _PURE:
        raise Unsupported(f"an operator is applied to an object of class {type(operand).__name__}")
    frame.stack.append(run.operate(_UNARY[it.opname], operand))


@_handles("UNARY_NOT")
def _unary_not(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    frame.stack.append(not run.truth(frame.stack.pop()))


@_handles("COMPARE_OP")
def _compare_op(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    b = frame.stack.pop()
    a = frame.stack.pop()
    frame.stack.append(run.compare(it.argval, a, b))


@_handles("IS_OP")
def _is_op(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    b = frame.stack.pop()
    a = frame.stack.pop()
    if a is not b and type(a) is type(b) and (id(a) in run.read_only or id(b) in run.read_only):
        raise Unsupported("`is` compares a list or a dictionary that is an argument")
    run.compares_tensors |= isinstance(a, Tensor) and isinstance(b, Tensor) and a is not b
    frame.stack.append((a is b) != bool(it.arg))


@_handles("CONTAINS_OP")
def _contains_op(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    container = frame.stack.pop()
    frame.stack.append(run.contains(frame.stack.pop(), container) != bool(it.arg))


@_handles("JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT")
def _jump(run: Interpreter, frame: Frame, it: dis.Instruction) -> int:
    return it.argval


@_handles("POP_JUMP_FORWARD_IF_FALSE", "POP_JUMP_BACKWARD_IF_FALSE")
def _jump_if_false(run: Interpreter, frame: Frame, it: dis.Instruction) -> int | None:
    return None if run.truth(frame.stack.pop()) else it.argval


@_handles("POP_JUMP_FORWARD_IF_TRUE", "POP_JUMP_BACKWARD_IF_TRUE")
def _jump_if_true(run: Interpreter, frame: Frame, it: dis.Instruction) -> int | None:
    return it.argval if run.truth(frame.stack.pop()) else None


@_handles("POP_JUMP_FORWARD_IF_NONE", "POP_JUMP_BACKWARD_IF_NONE")
def _jump_if_none(run: Interpreter, frame: Frame, it: dis.Instruction) -> int | None:
    return it.argval if frame.stack.pop() is None else None


@_handles("POP_JUMP_FORWARD_IF_NOT_NONE", "POP_JUMP_BACKWARD_IF_NOT_NONE")
def _jump_if_not_none(run: Interpreter, frame: Frame, it: dis.Instruction) -> int | None:
    return it.argval if frame.stack.pop() is not None else None


@_handles("JUMP_IF_FALSE_OR_POP", "JUMP_IF_TRUE_OR_POP")
def _jump_or_pop(run: Interpreter, frame: Frame, it: dis.Instruction) -> int | None:
    if run.truth(frame.stack[-1]) == (it.opname == "JUMP_IF_TRUE_OR_POP"):
        return it.argval
    frame.stack.pop()
    return None


@_handles("GET_ITER")
def _get_iter(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    frame.stack.append(run.keep(run.iterate(frame.stack.pop())))


@_handles("FOR_ITER")
def _for_iter(run: Interpreter, frame: Frame, it: dis.Instruction) -> int | None:
    for value in frame.stack[-1]:
        frame.stack.append(run.keep(value) if type(value) is tuple else value)
        return None
    frame.stack.pop()
    return it.argval


@_handles("UNPACK_SEQUENCE")
def _unpack_sequence(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    values = list(run.iterate(frame.stack.pop()))
    if len(values) != it.arg:
        raise Unsupported("a sequence of another length is unpacked")
    frame.stack += reversed(values)


@_handles("UNPACK_EX")
def _unpack_ex(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    before, after = (it.arg or 0) & 0xFF, (it.arg or 0) >> 8
    values = list(run.iterate(frame.stack.pop()))
    if len(values) < before + after:
        raise Unsupported("a sequence of another length is unpacked")
    end = len(values) - after
    rest = run.keep(values[before:end])
    frame.stack += reversed([*values[:before], rest, *values[end:]])


def _popped(frame: Frame, count: int) -> list[Any]:
    if not count:
        return []
    values = frame.stack[-count:]
    del frame.stack[-count:]
    return values


@_handles("BUILD_TUPLE", "BUILD_LIST", "BUILD_SET", "BUILD_STRING", "BUILD_SLICE")
def _build(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    values = _popped(frame, it.arg or 0)
    if it.opname == "BUILD_SET" and not all(map(run.is_plain, values)):
        raise Unsupported("a set of unusual objects is made")
    if it.opname == "BUILD_SLICE" and any(isinstance(each, Tensor) for each in values):
        raise GraphBreak("an index depends on the value of a tensor")
    make: dict[str, Callable] = {"BUILD_TUPLE": tuple, "BUILD_LIST": list, "BUILD_SET": set, "BUILD_STRING": "".join,
                                 "BUILD_SLICE": lambda parts: slice(*parts)}  # fmt: skip
    frame.stack.append(run.keep(make[it.opname](values)))


@_handles("BUILD_MAP")
def _build_map(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    values = _popped(frame, 2 * (it.arg or 0))
    if not all(map(run.is_plain, values[::2])):
        raise Unsupported("a dictionary with unusual keys is made")
    frame.stack.append(run.keep(dict(zip(values[::2], values[1::2], strict=True))))


@_handles("BUILD_CONST_KEY_MAP")
def _build_const_key_map(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    keys = frame.stack.pop()
    frame.stack.append(run.keep(dict(zip(keys, _popped(frame, it.arg or 0), strict=True))))


@_handles("LIST_TO_TUPLE")
def _list_to_tuple(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    frame.stack.append(run.keep(tuple(frame.stack.pop())))


@_handles("LIST_APPEND", "SET_ADD")
def _append(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    value = frame.stack.pop()
    target = frame.stack[-(it.arg or 0)]
    if it.opname == "SET_ADD" and not run.is_plain(value):
        raise Unsupported("a set of unusual objects is made")
    (target.append if it.opname == "LIST_APPEND" else target.add)(value)


@_handles("MAP_ADD")
def _map_add(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    value = frame.stack.pop()
    key = frame.stack.pop()
    if not run.is_plain(key):
        raise Unsupported("a dictionary with unusual keys is made")
    frame.stack[-(it.arg or 0)][key] = value


@_handles("LIST_EXTEND", "SET_UPDATE")
def _extend(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    values = list(run.iterate(frame.stack.pop()))
    target = frame.stack[-(it.arg or 0)]
    if it.opname == "SET_UPDATE" and not run.is_plain(values):
        raise Unsupported("a set of unusual objects is made")
    (target.extend if it.opname == "LIST_EXTEND" else target.update)(values)


@_handles("DICT_MERGE", "DICT_UPDATE")
def _merge(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    values = run.items(frame.stack.pop())
    target = frame.stack[-(it.arg or 0)]
    if (
        type(values) not in (dict, OrderedDict)
        or it.opname == "DICT_MERGE"
        and not target.keys().isdisjoint(values)
    ):
        raise Unsupported("arguments by name come from an unusual object")
    target.update(values)


@_handles("KW_NAMES")
def _kw_names(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    frame.names = frame.code.co_consts[it.arg]  # type: ignore[index]


@_handles("CALL")
def _call(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    values = _popped(frame, it.arg or 0)
    names, frame.names = frame.names, ()
    second = frame.stack.pop()
    first = frame.stack.pop()
    function = second
    if first is not _NULL:  # a context manager's __exit__: the function lies below its first argument
        function, values = first, [second, *values]
    count = len(values) - len(names)
    kwargs = dict(zip(names, values[count:], strict=True))
    if isinstance(getattr(function, "__self__", None), _Switch) and function.__name__ == "__exit__":
        frame.stack.append(function(*values))
    else:
        frame.stack.append(run.call(function, tuple(values[:count]), kwargs))


@_handles("CALL_FUNCTION_EX")
def _call_function_ex(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    kwargs = run.items(frame.stack.pop()) if (it.arg or 0) & 1 else {}
    args = tuple(run.iterate(frame.stack.pop()))
    function = frame.stack.pop()
    if frame.stack and frame.stack[-1] is _NULL:
        frame.stack.pop()
    frame.stack.append(run.call(function, args, dict(kwargs)))


@_handles("MAKE_FUNCTION")
def _make_function(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    code = frame.stack.pop()
    flags = it.arg or 0
    closure = frame.stack.pop() if flags & 8 else None
    if flags & 4:
        frame.stack.pop()  # annotations
    named = frame.stack.pop() if flags & 2 else None
    defaults = frame.stack.pop() if flags & 1 else None
    function = types.FunctionType(code, frame.globals, code.co_name, defaults, closure)
    function.__kwdefaults__ = named
    frame.stack.append(run.keep(function))


@_handles("FORMAT_VALUE")
def _format_value(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    flags = it.arg or 0
    form = frame.stack.pop() if flags & 4 else ""
    value = frame.stack.pop()
    if not run.is_plain(value):
        raise Unsupported("the text of an unusual object is made")
    convert: Any = {0: lambda each: each, 1: str, 2: repr, 3: ascii}[flags & 3]
    frame.stack.append(format(convert(value), form))


@_handles("GET_LEN")
def _get_len(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    frame.stack.append(run.pure(len, (frame.stack[-1],), {}))


@_handles("LOAD_ASSERTION_ERROR")
def _load_assertion_error(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    frame.stack.append(AssertionError)


@_handles("RAISE_VARARGS", "RERAISE")
def _raise(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    raise Unsupported("an exception is raised")


@_handles("BEFORE_WITH")
def _before_with(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    context = frame.stack.pop()
    if not (type(context) in _SWITCHES and id(context) in run.own):
        raise Unsupported(f"a context of class {type(context).__name__} is entered")
    frame.stack += [context.__exit__, context.__enter__()]
