"""The instructions that CPython 3.13 added or changed."""

from __future__ import annotations

import dis
import functools
import types

from ._instructions import CONVERSIONS, call, handles, number, text
from ._interpreter import Frame, Interpreter

handles = functools.partial(handles, since=(3, 13))


@handles("END_FOR")
def _end_for(run: Interpreter, frame: Frame, it: dis.Instruction) -> int:
    return (
        it.offset + 4
    )  # behind the POP_TOP that follows: FOR_ITER has taken the iterator off the stack at its end


@handles("TO_BOOL")
def _to_bool(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    frame.stack.append(run.truth(frame.stack.pop()))


# Pairs of instructions in one. The numbers of their variables have four bits each.


@handles("LOAD_FAST_LOAD_FAST")
def _load_load(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    first, second = divmod(number(it), 16)
    frame.stack += [frame.variables[first], frame.variables[second]]


@handles("STORE_FAST_LOAD_FAST")
def _store_load(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    first, second = divmod(number(it), 16)
    frame.variables[first] = frame.stack.pop()
    frame.stack.append(frame.variables[second])


@handles("STORE_FAST_STORE_FAST")
def _store_store(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    first, second = divmod(number(it), 16)
    frame.variables[first] = frame.stack.pop()
    frame.variables[second] = frame.stack.pop()


@handles("CALL_KW")
def _call_kw(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    names = frame.stack.pop()
    call(run, frame, number(it), names)


@handles("MAKE_FUNCTION")
def _make_function(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    code = frame.stack.pop()
    # A later instruction sets the closure, but types.FunctionType needs it now. It is the next value on the stack.
    closure = frame.stack[-1] if code.co_freevars else None
    frame.stack.append(run.keep(types.FunctionType(code, frame.globals, code.co_name, None, closure)))


@handles("SET_FUNCTION_ATTRIBUTE")
def _set_function_attribute(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    function, value = frame.stack.pop(), frame.stack.pop()
    if number(it) == 1:
        function.__defaults__ = value
    elif number(it) == 2:
        function.__kwdefaults__ = value
    frame.stack.append(function)  # annotations and the closure, which the function has, need nothing


@handles("CONVERT_VALUE")
def _convert_value(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    frame.stack.append(text(run, CONVERSIONS[number(it)], frame.stack.pop()))


@handles("FORMAT_SIMPLE")
def _format_simple(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    frame.stack.append(text(run, format, frame.stack.pop()))


@handles("FORMAT_WITH_SPEC")
def _format_with_spec(run: Interpreter, frame: Frame, it: dis.Instruction) -> None:
    form = frame.stack.pop()
    frame.stack.append(text(run, format, frame.stack.pop(), form))
